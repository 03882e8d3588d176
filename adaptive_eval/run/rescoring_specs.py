"""The scorings of stored answers that options and configs ask for, read as a config is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from adaptive_eval.config import RunConfig
from adaptive_eval.config.document import read_document
from adaptive_eval.errors import UsageError
from adaptive_eval.options.mistakes import Mistakes, dotted
from adaptive_eval.options.scorers import AnyScorer
from adaptive_eval.options.section import Section, short_for
from adaptive_eval.options.task_options import RubricConfig
from adaptive_eval.trial import CHECK


@dataclass(frozen=True)
class RescoringSpec:
    """A requested scoring."""

    name: str
    rubric: RubricConfig | None = None
    scorer: Any = None
    by_task: Mapping[str, RubricConfig] = field(default_factory=dict)
    check: str | None = None  # the signal of the check that judges the answers to these tasks


class _Written(Section):
    """The values of options, in the grammar and with the messages of a config."""

    scorer: AnyScorer | None = None
    rubric: Annotated[RubricConfig, short_for("schema")] | None = None


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
    if rubric.thresholds_from is not None:
        raise UsageError("--rubric: give thresholds, or leave them out to take them from the stored answers")
    return rubric


def read_scorer(text: str) -> Any:
    """Read a scorer as it is written in a config: its kind, or a mapping with kind and options.

    A run that it compares with is looked for in the current folder first, then in the config's.

    Examples
    --------
    >>> read_scorer("{kind: numeric, tolerance: 0.1}").tolerance
    0.1
    """
    scorer = _written(text, "scorer").scorer
    place, _, model = (getattr(scorer, "against", None) or "").rpartition("#")
    here = Path(place.strip()).expanduser().resolve()
    if scorer is None or not place or not here.is_dir():
        return scorer
    return scorer.model_copy(update={"against": f"{here}#{model}"})


def tracked(config: RunConfig) -> list[RescoringSpec]:
    """Return the rubrics that a config tracks, and the checks of its scorers, one spec for each name."""
    by_name: dict[str, dict[str, RubricConfig]] = {}
    checks: dict[str, dict[str, RubricConfig]] = {}
    for task in config.tasks:
        for rubric in task.track:
            by_name.setdefault(rubric.label, {})[task.name] = rubric
        for name, part in getattr(task.scorer, "parts", {}).items() if task.answers is None else ():
            checks.setdefault(f"{CHECK}{name}", {})[task.name] = RubricConfig(range=part.numbers)
    specs = [RescoringSpec(name, by_task=rubrics) for name, rubrics in by_name.items()]
    return [*specs, *(RescoringSpec(name, by_task=rubrics, check=name) for name, rubrics in checks.items())]


def _written(text: str, option: str) -> _Written:
    document = read_document(text)
    if document.problems or document.data is None:
        what = "it is empty"
        if document.problems:
            what = document.problems[0].message
        raise UsageError(f"--{option} {text!r}: {what}")
    try:
        return _Written.from_data({option: document.data})
    except Mistakes as error:
        (_, *place), words = error.found[0]
        where = dotted(tuple(place))
        start = ""
        if where:
            start = where + ": "
        raise UsageError(f"--{option} {text!r}: {start}{words}") from None
