"""The ``tasks`` section: which questions, how they are put, how answers are scored, and their ``rubric``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from adaptive_eval.errors import Coded
from adaptive_eval.options.limit_options import BudgetSpec
from adaptive_eval.options.mistakes import CONFLICT, Mistakes, did_you_mean, not_one_of, shown
from adaptive_eval.options.scorers import AnyScorer
from adaptive_eval.options.section import (
    INSPECT,
    LM_EVAL,
    Count,
    Label,
    Range,
    Section,
    one_or_more,
    short_for,
)
from adaptive_eval.trial import IMAGE_TOKENS, RIGHT_OR_WRONG, ScoreRange

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
    range: Range | None = None
    """Lowest and highest score: the scorer's scores are kept as numbers. Default: the scorer's range."""
    truncated: Literal["zero", "judged"] = "zero"
    """A truncated answer is category 0 (zero), or judged as it is."""

    @model_validator(mode="after")
    def _a_weight_each(self) -> Self:
        weights = self.weights
        worth = default_weights(self.schema_name)
        if weights is not None and self.range is None and len(weights) != len(worth):
            words = f"{len(weights)} weights for the {len(worth)} categories of {self.label}"
            raise Mistakes([(("weights",), Coded(CONFLICT, words))])
        return self

    @property
    def category_weights(self) -> tuple[float, ...]:
        """Worth of each category, the schema's own if none is given; a range if scores are numbers.

        Examples
        --------
        >>> RubricConfig().category_weights, RubricConfig(schema="format-aware").category_weights
        ((0.0, 1.0), (0.0, 0.0, 1.0, 2.0, 3.0))
        """
        if self.range is not None:
            return ScoreRange(self.range)
        if self.weights is not None:
            return self.weights
        return default_weights(self.schema_name)

    @property
    def schema_definition(self) -> Schema | None:
        """The schema; None for ``binary``."""
        return resolve_schema(self.schema_name)

    @property
    def label(self) -> str:
        """The schema's name."""
        schema = self.schema_definition
        name = BINARY
        if schema is not None:
            name = schema.name
        if self.range is None:
            return name
        return f"{self.range[0]:g} to {self.range[1]:g}"

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

    if isinstance(schema, str):
        return get_schema(schema)
    return Schema.from_dict({"name": "own", **schema})


def default_weights(schema: str | dict[str, Any]) -> tuple[float, ...]:
    """Return the weights of a schema's categories if the config gives none.

    Examples
    --------
    >>> default_weights("binary")
    (0.0, 1.0)
    """
    definition = resolve_schema(schema)
    if definition is None:
        return RIGHT_OR_WRONG
    return definition.weights or tuple(map(float, range(len(definition.categories))))


Medium: TypeAlias = Literal["image", "audio"]


_Column: TypeAlias = Annotated[
    str | tuple[str, ...], one_or_more("write the dataset's column, or for choices a list of columns")
]
_Subset: TypeAlias = Annotated[
    str | tuple[str, ...], one_or_more("write the name of a subset, or a list of names")
]
_Value: TypeAlias = str | int | float | bool


def _values(value: Any) -> Any:
    values = value
    if not isinstance(value, tuple):
        values = (value,)
    if not values or not all(isinstance(one, str | int | float | bool) for one in values):
        raise ValueError("write the value that the column must have, or a list of values")
    return tuple(map(_as_text, values))


def _as_text(value: str | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


_Values: TypeAlias = Annotated[
    tuple[str, ...], BeforeValidator(_values, json_schema_input_type=_Value | tuple[_Value, ...])
]


def _names(value: Any) -> Any:
    names = value
    if isinstance(value, str):
        names = (value,)
    if not isinstance(names, tuple) or not all(isinstance(name, str) and name for name in names):
        raise ValueError("write the name of a field, or a list of names")
    return names


_Names: TypeAlias = Annotated[
    tuple[str, ...], BeforeValidator(_names, json_schema_input_type=str | list[str])
]
_Rubric: TypeAlias = Annotated[RubricConfig, short_for("schema", str | RubricConfig)]


def _prompt(value: Any) -> Any:
    if value and (isinstance(value, str) or _are_mappings(value)):
        return value
    raise ValueError("write a text, or a list of messages, each with role and content")


def _tools(value: Any) -> Any:
    if _are_mappings(value) or (isinstance(value, str) and value):
        return value
    raise ValueError("write a list of tools, or the column that holds such a list")


def _are_mappings(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, dict) for item in value)


def _one_group(value: str | None) -> str | None:
    if value is None:
        return None
    try:
        groups = re.compile(value).groups
    except (re.error, OverflowError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    except RecursionError:
        raise ValueError("is a regular expression that is nested too deeply") from None
    if groups != 1:
        raise ValueError(f"has {groups} groups; put the target, and only it, in round brackets")
    return value


def _shuffle(value: Any) -> Any:
    if isinstance(value, bool) or (isinstance(value, int) and 0 <= value < 2**63):
        return value
    raise ValueError(f"{value!r} is neither true, false nor a seed (a whole number from 0)")


class FewShotConfig(Section):
    """Worked examples: questions with their answers, as a conversation before the question."""

    count: int = Field(ge=1, le=1000)
    """How many."""
    dataset: str | None = Field(default=None, min_length=1)
    """Where they come from; default: the first of the task's own."""
    split: str = Field(default="train", min_length=1)
    """Split of a Hugging Face dataset."""
    answer: str = Field(default="{target}", min_length=1)
    """What the assistant is shown to have said."""


class SolverConfig(Section):
    """A function of yours that answers a question by several calls of the model; limits of these calls."""

    function: str | None = Field(default=None, pattern=r"^python:([\w.]+|[^:]+\.py):\w+$")
    """python:FILE.py:FUNCTION or python:module:FUNCTION: async, gets model and messages. A task of Inspect
    brings its own."""
    calls: int = Field(default=10, ge=1, le=10_000)
    """Most calls of the model in one trial."""
    prompt_tokens: Count = Field(default=100_000, ge=1)
    """Most tokens of all prompts of one trial; budgets reserve them."""


class AnswersConfig(Section):
    """Several answers to a question as one trial."""

    k: int = Field(ge=2, le=64)
    """How many answers one trial asks for."""
    by: Literal["all", "any", "majority"] = "all"
    """When a trial is right: all answers are (pass^k), any is (pass@k), or the most frequent one is
    (maj@k)."""


def _not_required(schema: dict[str, Any]) -> None:
    """Say in the schema that a ready benchmark, or a task of another tool, brings the rest."""
    schema["required"] = []
    schema["anyOf"] = [{"required": ["name"]}, {"required": ["benchmark"]}]


class TaskConfig(Section):
    """One task: a dataset, a prompt and a scorer; or a task of another tool, which brings them."""

    model_config = ConfigDict(json_schema_extra=_not_required)

    name: Label
    """The task's name."""
    benchmark: str | None = None
    """A ready benchmark (adaptive-eval tasks lists them); every key can be overridden."""
    inspect: str | None = Field(default=None, pattern=r"^[^@]+@\w+$")
    """A task of Inspect, FILE.py@NAME: its samples, solvers, sandboxes and scorers."""
    lm_eval: str | None = Field(default=None, min_length=1)
    """A task of lm-evaluation-harness, NAME or FOLDER/NAME: its questions, filters, metric."""
    dataset: str = Field(min_length=1)
    """A JSONL, JSON, CSV or Parquet file, relative to this config's folder; hf:NAME, hf:./FOLDER,
    python:module:function or inspect:FILE.py@TASK."""
    split: str = Field(default="test", min_length=1)
    """Split of a Hugging Face dataset."""
    subset: _Subset | None = None
    """Subset of a Hugging Face dataset, or a list; then it is the column subset."""
    revision: str | None = Field(default=None, min_length=1)
    """Branch, tag or commit of a Hugging Face dataset."""
    filter: dict[str, _Values] = Field(default_factory=dict)
    """Use only rows whose column has this value, or one of these."""
    fields: dict[str, _Column] = Field(default_factory=dict)
    """Names used here (id, input, target, choices, or your own) to the dataset's columns."""
    target_pattern: Annotated[str | None, AfterValidator(_one_group)] = None
    """A regular expression: the target is group 1 of its last match in the target's column."""
    duplicates: Literal["refuse", "skip"] = "refuse"
    """Whether a row that appears twice is a mistake, or asked once."""
    prompt: Annotated[str | tuple[dict[str, Any], ...], BeforeValidator(_prompt)] = "{input}"
    """The user message, or a list of messages; {name} is replaced by that field."""
    images: _Names = ()
    """Fields that are images: a file, a URL, a data URI, or an image column. {name} puts one into the prompt;
    one that it does not name comes before its text."""
    audio: _Names = ()
    """Fields that are sounds: a file, a data URI, or an audio column."""
    image_tokens: Count = Field(default=IMAGE_TOKENS, ge=1)
    """Tokens that budgets reserve for an image: the most that a model makes of one."""
    tools: Annotated[str | tuple[dict[str, Any], ...], BeforeValidator(_tools)] = ()
    """Tools offered with every question, as OpenAI's API has them; or a column of such lists."""
    system: str | None = Field(default=None, min_length=1)
    """The system message."""
    scorer: AnyScorer
    """How an answer is judged: a kind such as math, FILE.py:FUNCTION for a function of yours, a mapping with
    kind and options, or a list of these: several checks."""
    rubric: _Rubric = Field(default_factory=RubricConfig)
    """Categories and their worth: a schema's name, or a mapping with schema and weights."""
    weight: float = Field(default=1.0, gt=0)
    """Weight of the task in the overall score, times the one that overall gives."""
    track: tuple[_Rubric, ...] = Field(default=(), max_length=20)
    """Further rubrics by which the report ranks the same answers; they decide nothing."""
    solver: Annotated[SolverConfig | None, short_for("function", str | SolverConfig | None)] = None
    """A function that answers with several calls; default: one request."""
    answers: AnswersConfig | None = None
    """Several answers to a question, scored together as one trial."""
    few_shot: FewShotConfig | None = None
    """Worked examples shown before every question."""
    shuffle_options: bool = False
    """Shuffle the options of every trial, by its seed."""
    limit: int | None = Field(default=None, ge=1, le=10**9)
    """Number of questions to use, from the top (after shuffling)."""
    shuffle: Annotated[bool | int, BeforeValidator(_shuffle)] = False
    """Shuffle the questions before limit: true for the run's seed, or a seed."""
    budget: BudgetSpec = Field(default_factory=BudgetSpec)
    """Limits of this task; the run ends at the first, since models are asked all tasks."""

    @model_validator(mode="before")
    @classmethod
    def _of_another_tool(cls, data: Any) -> Any:
        for key, prefix, scorer in (("inspect", INSPECT, "inspect"), ("lm_eval", LM_EVAL, "lm-eval")):
            if isinstance(data, dict) and isinstance(data.get(key), str):
                if "dataset" in data:
                    raise ValueError(
                        f"has both dataset and {key}, which brings its own: leave one of them out"
                    )
                return {"dataset": f"{prefix}{data[key]}", "scorer": scorer, **data}
        return data

    @model_validator(mode="after")
    def _with_range(self) -> Self:
        given = getattr(self.scorer, "range", None)
        if given is not None and self.rubric.range is None:
            object.__setattr__(self, "rubric", self.rubric.model_copy(update={"range": given}))
        return self

    @property
    def media(self) -> dict[str, Medium]:
        """The fields that are images or sounds."""
        return {**dict.fromkeys(self.images, "image"), **dict.fromkeys(self.audio, "audio")}

    def scoring_identity(self) -> dict[str, Any]:
        """Return what decides an answer's category, as JSON-able data: scorer and rubric, without weights.

        Examples
        --------
        >>> TaskConfig(name="t", dataset="t.jsonl", scorer="exact").scoring_identity()["rubric"]["schema"]
        'binary'
        """
        if self.answers is not None:
            several = {"answers": self.answers.model_dump()}
        else:
            several = {}
        return {"scorer": self.scorer.identity(), "rubric": self.rubric.identity(), **several}

    def shuffle_seed(self, run_seed: int) -> int | None:
        """Return the seed to shuffle the questions with, or None to leave them in the file's order.

        Examples
        --------
        >>> task = TaskConfig(name="t", dataset="t.jsonl", scorer="exact", shuffle=True)
        >>> task.shuffle_seed(run_seed=7)
        7
        """
        if isinstance(self.shuffle, bool):
            if self.shuffle:
                return run_seed
            return None
        return self.shuffle
