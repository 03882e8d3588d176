"""Rubrics and scorers for stored answers, as written in a command or in a config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from adaptive_eval.config import RunConfig
from adaptive_eval.config.document import read_document
from adaptive_eval.config.problems import plain_problems
from adaptive_eval.errors import UsageError
from adaptive_eval.options.mistakes import dotted
from adaptive_eval.options.rubric_options import RubricConfig, by_schema
from adaptive_eval.options.scorers import ScorerConfig
from adaptive_eval.options.section import Section, by_kind


@dataclass(frozen=True)
class RescoringSpec:
    """A requested scoring."""

    name: str
    rubric: RubricConfig | None = None
    scorer: Any = None
    by_task: Mapping[str, RubricConfig] = field(default_factory=dict)


class _Written(Section):
    """The values of options, in the grammar and with the messages of a config."""

    scorer: Annotated[ScorerConfig, Field(discriminator="kind"), BeforeValidator(by_kind)] | None = None
    rubric: Annotated[RubricConfig, BeforeValidator(by_schema)] | None = None


def read_rubric(text: str) -> RubricConfig:
    """Read a rubric as it is written in a config: a schema's name, or a mapping.

    Examples
    --------
    >>> read_rubric("format-aware").label
    'format-aware'
    >>> read_rubric("{schema: binary, weights: [0, 2]}").category_weights
    (0.0, 2.0)
    """
    rubric = _written(text, "rubric").rubric
    assert rubric is not None
    try:
        weights = rubric.category_weights
    except ValueError as error:
        raise UsageError(f"--rubric {text!r}: {error}") from None
    schema = rubric.schema_definition
    categories = 2 if schema is None else len(schema.categories)
    if len(weights) != categories:
        raise UsageError(
            f"--rubric: {len(weights)} weights for the {categories} categories of {rubric.label}"
        )
    if rubric.pilot is not None or rubric.thresholds_from is not None:
        raise UsageError("--rubric: give thresholds, or leave them out to take them from the stored answers")
    return rubric


def read_scorer(text: str) -> Any:
    """Read a scorer as it is written in a config: its kind, or a mapping with kind and options.

    Examples
    --------
    >>> read_scorer("{kind: numeric, tolerance: 0.1}").tolerance
    0.1
    """
    return _written(text, "scorer").scorer


def tracked(config: RunConfig) -> list[RescoringSpec]:
    """Return the rubrics that a config tracks in addition to those that decide, one spec for each name."""
    by_name: dict[str, dict[str, RubricConfig]] = {}
    for task in config.tasks:
        for rubric in task.track:
            by_name.setdefault(rubric.label, {})[task.name] = rubric
    return [RescoringSpec(name, by_task=rubrics) for name, rubrics in by_name.items()]


def _written(text: str, option: str) -> _Written:
    document = read_document(text)
    if document.problems or document.data is None:
        what = document.problems[0].message if document.problems else "it is empty"
        raise UsageError(f"--{option} {text!r}: {what}")
    try:
        return _Written.model_validate({option: document.data})
    except ValidationError as error:
        (_, *place), words = next(plain_problems(error, _Written))
        where = dotted(tuple(place))
        raise UsageError(f"--{option} {text!r}: {where + ': ' if where else ''}{words}") from None
