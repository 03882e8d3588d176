"""The ``rubric`` of a task: the categories an answer can fall into, and what each is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from adaptive_eval.options.mistakes import did_you_mean, not_one_of, shown
from adaptive_eval.options.section import Range, Section
from adaptive_eval.trial import ScoreRange

if TYPE_CHECKING:
    from scorio.categorical import Schema

BINARY = "binary"
"""The rubric of right (category 1) and everything else (category 0)."""


def _schema(value: Any) -> Any:
    if isinstance(value, str):
        if not value:
            raise ValueError("is empty; write binary, a schema's name or a definition with categories")
        if value != BINARY and value not in rubric_names():
            known = rubric_names()
            near = did_you_mean(value, known)
            raise ValueError(not_one_of(f"{shown(value)} is not one of {', '.join(known)}{near}"))
        return value
    if not isinstance(value, dict):
        raise ValueError("write binary, a schema's name, or a definition with categories")
    resolve_schema(value)
    return value


class RubricConfig(Section):
    """How a scored answer becomes a category, and what each category is worth."""

    schema_name: Annotated[
        str | dict[str, Any], BeforeValidator(_schema, json_schema_input_type=str | dict[str, Any])
    ] = Field(default=BINARY, alias="schema")
    """binary (right is 1, all else 0), a schema's name, or a definition with categories."""
    weights: tuple[float, ...] | None = None
    """Worth of each category, in order; default: the schema's own."""
    thresholds: dict[str, float] = Field(default_factory=dict)
    """Values of the schema's thresholds, by name."""
    thresholds_from: str | None = Field(default=None, min_length=1)
    """An earlier run's directory, to take the thresholds from."""
    pilot: int | None = Field(default=None, ge=1, le=1000)
    """Trials of every question and model that thresholds are found from; asked first."""
    range: Range | None = None
    """Lowest and highest score: the scorer's scores are kept as numbers. Default: the scorer's range."""
    truncated: Literal["zero", "judged"] = "zero"
    """A truncated answer is category 0 (zero), or judged as it is."""

    @property
    def category_weights(self) -> tuple[float, ...]:
        """Worth of each category, the schema's own where none is given; a range where scores are numbers.

        Examples
        --------
        >>> RubricConfig().category_weights, RubricConfig(schema="format-aware").category_weights
        ((0.0, 1.0), (0.0, 0.0, 1.0, 2.0, 3.0))
        """
        if self.range is not None:
            return ScoreRange(self.range)
        return self.weights if self.weights is not None else default_weights(self.schema_name)

    @property
    def schema_definition(self) -> Schema | None:
        """The schema; None for ``binary``."""
        return resolve_schema(self.schema_name)

    @property
    def label(self) -> str:
        """The schema's name."""
        schema = self.schema_definition
        name = BINARY if schema is None else schema.name
        return name if self.range is None else f"{self.range[0]:g} to {self.range[1]:g}"

    def identity(self) -> dict[str, Any]:
        """Return what decides an answer's category, as JSON-able data: all but its worth."""
        return self.model_dump(mode="json", by_alias=True, exclude={"weights", "range"})


def rubric_names() -> tuple[str, ...]:
    """Return the names that a rubric's `schema` may have.

    Examples
    --------
    >>> rubric_names()[:3]
    ('binary', 'exact-match', 'format-aware')
    """
    # The schemas are only looked at where one is named: this keeps the statistics out of most starts.
    from scorio.categorical import schema_names

    return (BINARY, *schema_names())


def resolve_schema(schema: str | dict[str, Any]) -> Schema | None:
    """Return the schema that a rubric names or defines, or None for ``binary``.

    Examples
    --------
    >>> resolve_schema("binary") is None, resolve_schema("format-aware").name
    (True, 'format-aware')
    """
    if schema == BINARY:
        return None
    from scorio.categorical import Schema, get_schema

    return get_schema(schema) if isinstance(schema, str) else Schema.from_dict({"name": "own", **schema})


def default_weights(schema: str | dict[str, Any]) -> tuple[float, ...]:
    """Return the weights of a schema's categories where the config gives none.

    Examples
    --------
    >>> default_weights("binary")
    (0.0, 1.0)
    """
    definition = resolve_schema(schema)
    if definition is None:
        return (0.0, 1.0)
    return definition.weights or tuple(float(k) for k in range(len(definition.categories)))
