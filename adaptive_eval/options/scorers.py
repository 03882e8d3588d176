"""The ``scorer`` of a task: one section a kind, with the options of its class."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from adaptive_eval.options.limit_options import Price
from adaptive_eval.options.mistakes import shown
from adaptive_eval.options.section import PYTHON, Count, Endpoint, EnvName, Range, Seconds, Section


class _Scorer(Section):
    """Settings of every scorer."""

    place: ClassVar[str]  # of its class, whose module is imported if a config names it
    at_once: ClassVar[bool] = False  # whether it waits for other processes or a server

    strip_reasoning: bool = True
    """Drop <think>…</think> before looking for the answer."""

    @property
    def sections(self) -> tuple["_Scorer", ...]:
        """The scorer itself and those that it consists of."""
        return (self,)

    def has(self, *kinds: str) -> bool:
        """Whether it is of one of these kinds, or one that it consists of."""
        return any(isinstance(one, SCORERS[kind]) for kind in kinds for one in self.sections)

    @property
    def numbers(self) -> tuple[float, float] | None:
        """Lowest and highest score if scores are numbers, not right or wrong."""
        return getattr(self, "range", None)

    def options(self) -> dict[str, Any]:
        """Return the scorer's options, without its kind."""
        return self.model_dump(exclude={"kind"}, by_alias=True)

    def identity(self) -> dict[str, Any]:
        """Return what decides an answer's category, as JSON-able data."""
        return self.model_dump(mode="json")


class _ReadsReasoning(_Scorer):
    """The fields of scorers that may read a server's separate reasoning."""

    with_reasoning: bool = False
    """Read the reasoning too, which the server keeps apart from the answer."""


class LabelledScorerConfig(_ReadsReasoning):
    """The fields of scorers that people's labels may correct."""

    labels: str | None = Field(default=None, min_length=1)
    """A file of labels (JSONL or CSV; samples --label), from the config's folder: they decide the run, and
    this scorer alone decides nothing. It is read when the run starts or continues, and need not exist yet."""


class AnswerScorerConfig(_Scorer):
    """The fields of scorers that extract an answer from the text."""

    marker: str | None = Field(default=None, min_length=1)
    """Look only at what follows the last occurrence of this text."""


class _ExtractingScorer(AnswerScorerConfig):
    """Scorers of a stated answer."""

    extract: Literal["auto", "boxed", "stated", "whole"] = "auto"
    """Where the answer is: auto takes a box, else a stated answer, else the whole text."""


class _TextScorer(AnswerScorerConfig):
    """Scorers that compare texts."""

    ignore_case: bool = True
    """Letter case does not matter."""


class GradedScorerConfig(_Scorer):
    """Scorers whose score from 0 to 1 counts as right from some value on."""

    right_from: float = Field(default=0.5, gt=0, le=1)
    """Least score that counts as right."""
    range: Range | None = None
    """Lowest and highest score, such as [0, 1]: scores are kept as numbers. Default: right or wrong, from
    right_from."""

    @model_validator(mode="after")
    def _one_meaning(self) -> Self:
        if self.range is not None and self.right_from != 0.5:
            raise ValueError("right_from makes scores right or wrong, and range keeps them: leave one out")
        return self


class _ToolScorer(GradedScorerConfig):
    """Scorers of tasks of other tools."""

    metric: str | None = Field(default=None, min_length=1)
    """The task's scorer or metric, if it has several."""


class ExactScorerConfig(_ExtractingScorer, _TextScorer):
    """Right when the answer is the target after normalising both."""

    kind: Literal["exact"] = "exact"
    place: ClassVar[str] = "scoring.match:ExactScorer"


class NumericScorerConfig(AnswerScorerConfig):
    """Right when the answer is the target's number, whatever its notation and unit."""

    kind: Literal["numeric"] = "numeric"
    place: ClassVar[str] = "scoring.match:NumericScorer"
    extract: Literal["auto", "boxed", "stated", "last-number"] = "auto"
    """Where the answer is: auto takes a box, else a stated answer, else the last number."""
    tolerance: float = Field(default=0.0, ge=0)
    """Largest absolute difference that counts as right."""
    relative_tolerance: float = Field(default=0.0, ge=0, lt=1)
    """Largest difference relative to the target."""


class ChoosingScorerConfig(_Scorer):
    """Scorers of multiple choice."""

    letters: str = Field(default="ABCD", pattern=r"^[A-Z]{2,26}$")
    """Letters of the options, for questions whose dataset has no choices."""
    index_from: Literal[0, 1] | None = None
    """For datasets whose target is a number: whether it counts options from 0 or from 1."""


class ChoiceScorerConfig(ChoosingScorerConfig, AnswerScorerConfig):
    """Right when the answer is the target's option, by letter or by text."""

    kind: Literal["choice"] = "choice"
    place: ClassVar[str] = "scoring.choice:ChoiceScorer"


class ChoiceProbabilityScorerConfig(GradedScorerConfig, ChoosingScorerConfig):
    """The chance of the target's letter, from the log-probabilities of the first token."""

    kind: Literal["choice_probability"] = "choice_probability"
    place: ClassVar[str] = "scoring.choice:ChoiceProbabilityScorer"
    by: Literal["chance", "likeliest"] = "chance"
    """The score is the letter's chance; or the likeliest letter is right, as lm-eval counts."""

    @model_validator(mode="before")
    @classmethod
    def _scored_by_chance(cls, data: Any) -> Any:
        given = data
        if not isinstance(data, dict):
            given = {"by": None}
        by_chance = given.get("by", "chance") == "chance" and "right_from" not in given
        if by_chance:
            return {"range": (0.0, 1.0), **given}
        return data

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.by == "likeliest" and (self.range is not None or self.right_from != 0.5):
            raise ValueError("by: likeliest makes answers right or wrong; leave range and right_from out")
        if self.range not in (None, (0.0, 1.0)):
            raise ValueError("range: chances go from 0 to 1; leave it out")
        return self


class MathScorerConfig(_ExtractingScorer):
    """Right when the answer is mathematically equal to the target (math-verify)."""

    kind: Literal["math"] = "math"
    place: ClassVar[str] = "scoring.math:MathScorer"
    at_once: ClassVar[bool] = True
    time_limit: float = Field(default=5.0, gt=0, le=600)
    """Seconds of CPU time of one comparison."""


class RegexScorerConfig(_TextScorer):
    """Right when a regular expression finds the target, or the target as an expression matches."""

    kind: Literal["regex"] = "regex"
    place: ClassVar[str] = "scoring.match:RegexScorer"
    pattern: str | None = Field(default=None, min_length=1)
    """Regular expression; its last match (group 1) must be the target. Default: the target."""


class ContainsScorerConfig(_TextScorer):
    """Right when the target is somewhere in the answer."""

    kind: Literal["contains"] = "contains"
    place: ClassVar[str] = "scoring.match:ContainsScorer"


class JsonScorerConfig(AnswerScorerConfig):
    """Right when the answer's JSON has the target in a field, or fits a JSON Schema."""

    kind: Literal["json"] = "json"
    place: ClassVar[str] = "scoring.structured:JsonScorer"
    at_once: ClassVar[bool] = True
    field: str | None = Field(default=None, min_length=1)
    """The field, or path such as result.value, compared."""
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    """A JSON Schema that the answer must fit."""


class ToolCallsScorerConfig(_Scorer):
    """Right when the answer calls the target's tools."""

    kind: Literal["tool_calls"] = "tool_calls"
    place: ClassVar[str] = "scoring.structured:ToolCallsScorer"
    arguments: Literal["equal", "subset", "ignore"] = "equal"
    """equal: the same JSON; subset: those of the target, and maybe more; ignore: names only."""
    calls: Literal["equal", "subset"] = "equal"
    """Whether the answer may make more calls than the target's (subset)."""
    ordered: bool = False
    """Whether the calls must come in the target's order."""


class F1ScorerConfig(GradedScorerConfig, AnswerScorerConfig):
    """Word-overlap F1 with the target, logged as the signal score."""

    kind: Literal["f1"] = "f1"
    place: ClassVar[str] = "scoring.overlap:F1Scorer"


class RougeScorerConfig(GradedScorerConfig, AnswerScorerConfig):
    """ROUGE F-measure with the target, logged as the signal score."""

    kind: Literal["rouge"] = "rouge"
    place: ClassVar[str] = "scoring.overlap:RougeScorer"
    at_once: ClassVar[bool] = True
    measure: Literal["rouge1", "rouge2", "rougeL"] = "rougeL"
    """Words, pairs of words, or the longest common subsequence."""


class CodeScorerConfig(_Scorer):
    """Right when the answer's Python passes the question's tests, in a sandbox."""

    kind: Literal["code"] = "code"
    place: ClassVar[str] = "scoring.code:CodeScorer"
    at_once: ClassVar[bool] = True
    allow_execution: bool = False
    """Must be true: programs that a model wrote are run, in a sandbox."""
    code: str = Field(default="{answer}", pattern=r"\{answer\}")
    """The program to run; {answer} is the answer's program, {target} and fields work too."""
    tests: str = Field(default="{target}", min_length=1)
    """What is run after it; it passes by raising nothing."""
    cases: tuple[str, ...] = ()
    """Fields with cases of LiveCodeBench's form: it is run for each, in place of tests."""
    time_limit: Seconds = Field(default=10.0, gt=0, le=600)
    """How long a program may take."""
    cpu_limit: Seconds = Field(default=10.0, gt=0, le=600)
    """CPU time of one of its processes."""
    memory: Count = Field(default=512 * 2**20, ge=64 * 2**20)
    """Bytes of memory of all its processes together; also of address space of one."""
    python: str | None = Field(default=None, min_length=1)
    """The interpreter; default: the one of adaptive-eval itself."""
    require_sandbox: Literal["basic", "strict"] = "basic"
    """strict: refuse if the sandbox lacks a protection; validate lists them."""

    def identity(self) -> dict[str, Any]:
        """Return what decides an answer's category: not how safe the machine is."""
        return self.model_dump(mode="json", exclude={"require_sandbox"})


HERE = "in-process:"
"""Begins the name of a scorer that was given to ``evaluate`` as a function."""

_PLACE = re.compile(rf"(?:{HERE}\w+(?:@\w+)?|[\w.]+:\w+|[^:]+\.py:\w+)")


def _function(value: str) -> str:
    place = value.removeprefix(PYTHON)
    if not _PLACE.fullmatch(place):
        is_method = "." in place.partition(":")[2]
        advice = ""
        if is_method:
            advice = "; for a method write score = CLASS().METHOD into the file"
        raise ValueError(
            f"{shown(value)} names no function; write my_scorers.py:score or my_scorers:score{advice}"
        )
    return place


class CallableScorerConfig(GradedScorerConfig, LabelledScorerConfig):
    """A user function."""

    kind: Literal["python"] = "python"
    place: ClassVar[str] = "scoring.user_function:CallableScorer"
    at_once: ClassVar[bool] = True
    function: Annotated[str, AfterValidator(_function)]
    """FILE.py:FUNCTION or module:function, as from the config's folder."""
    time_limit: float = Field(default=60.0, gt=0, le=3600)
    """Seconds that one answer may take."""

    def identity(self) -> dict[str, Any]:
        """Return what decides an answer's category: not the labels that correct it."""
        return self.model_dump(mode="json", exclude={"labels"})


class ScorerBudgetConfig(Section):
    """The budget of a judge or verifier, in addition to the run's budget."""

    requests: Count | None = Field(default=None, ge=1)
    """Most requests."""
    tokens: Count | None = Field(default=None, ge=1)
    """Most tokens, prompts and replies together."""
    usd: float | None = Field(default=None, gt=0)
    """Most US dollars; needs price."""


class ModelGradedScorerConfig(LabelledScorerConfig):
    """The fields of model-graded scorers."""

    kind: str
    endpoint: Endpoint
    """Base URL of its server."""
    model: str = Field(min_length=1)
    """Its model id."""
    api_key_env: EnvName | None = None
    """Name of the environment variable that holds its key."""
    extra_body: dict[str, Any] | None = None
    """Further fields of every request, such as chat_template_kwargs."""
    timeout: Seconds = Field(default=120.0, gt=0)
    """How long one request may take."""
    concurrency: int = Field(default=16, ge=1, le=1000)
    """Answers scored at once."""
    price: Price | None = None
    """USD per million tokens."""
    budget: ScorerBudgetConfig | None = None
    """Its budget, in addition to the run's budget."""

    def identity(self) -> dict[str, Any]:
        """Return the fields that decide an answer's category: not its server, budget or what checks it."""
        return self.model_dump(mode="json", exclude=_OF_THE_SERVER | _OF_CHECKS)


_OF_THE_SERVER = {"endpoint", "api_key_env", "timeout", "concurrency", "price", "budget"}
_OF_CHECKS = {"labels", "second_votes", "anchors"}


class JudgeScorerConfig(GradedScorerConfig, ModelGradedScorerConfig):
    """Another model says whether the answer is right, or as good as the reference."""

    kind: Literal["judge"] = "judge"
    place: ClassVar[str] = "scoring.judge:JudgeScorer"
    at_once: ClassVar[bool] = True
    compare: Literal["reference", "pairwise"] = "reference"
    """Is the answer right, given the reference; or which of both is better, either order."""
    against: str | None = Field(default=None, pattern="^.+#.+$")
    """RUN#MODEL: compare with the stored answers of a model of the run in the directory RUN, in place of the
    target. A vote counts 1, 0.5 or 0."""
    criteria: str = ""
    """What counts as right or better, in words."""
    votes: Literal[1, 3, 5, 7, 9] = 1
    """Judgements of each answer; the majority decides."""
    second_votes: float = Field(default=0.05, ge=0, le=1)
    """With one vote: the share of answers that are judged once more, to measure how often the judge changes
    its verdict. It decides nothing, and is left out once half of a budget is spent."""
    anchors: int | None = Field(default=None, ge=0, le=1000)
    """Answers of the first pass that are judged once more in each later pass, to tell a judge that changes
    from models that do; default: 30, without `labels` at most one in ten of a pass; 0: none. They decide
    nothing, and are left out once half of a budget is spent."""
    max_tokens: int = Field(default=512, ge=16)
    """Longest judgement, in tokens."""

    @model_validator(mode="before")
    @classmethod
    def _head_to_head(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("against") is None:
            return data
        if "right_from" not in data:
            kept = {"range": (0.0, 1.0)}
        else:
            kept = {}
        return {"compare": "pairwise", **kept, **data}

    @model_validator(mode="after")
    def _of_shares(self) -> Self:
        if self.against is not None and self.compare != "pairwise":
            raise ValueError("against compares two answers: leave compare out, or write compare: pairwise")
        if self.compare == "pairwise" and self.range not in (None, (0.0, 1.0)):
            raise ValueError("range: with compare: pairwise a score is a share of wins, so write [0, 1]")
        return self


def _short(written: Any) -> BeforeValidator:
    """Return a check that reads a kind, the place of a function, or a list of checks as a scorer."""

    def read(value: Any) -> Any:
        if isinstance(value, tuple):
            return {"kind": "checks", "parts": value}
        if isinstance(value, Mapping) and _names_scorers(value):
            raise ValueError(
                "several checks with names are {kind: checks, parts: {NAME: SCORER, OTHER: SCORER}}"
            )
        if not isinstance(value, str):
            return value
        is_function = ":" in value or value.endswith(".py")
        if is_function:
            return {"kind": "python", "function": value}
        return {"kind": value}

    return BeforeValidator(read, json_schema_input_type=written)


def _names_scorers(value: Mapping[str, Any]) -> bool:
    """Tell whether a mapping holds names of scorers and no options."""
    texts = list(map(str, value.values()))
    return "kind" not in value and len(texts) > 1 and all(one in SCORERS or ":" in one for one in texts)


_Comparing: TypeAlias = (
    ExactScorerConfig
    | NumericScorerConfig
    | ChoiceScorerConfig
    | ChoiceProbabilityScorerConfig
    | MathScorerConfig
    | RegexScorerConfig
    | ContainsScorerConfig
    | JsonScorerConfig
    | ToolCallsScorerConfig
    | F1ScorerConfig
    | RougeScorerConfig
    | CodeScorerConfig
    | CallableScorerConfig
)


class VerifierScorerConfig(ModelGradedScorerConfig):
    """Another model's probabilities of correct, wrong and off-task, from its log-probabilities."""

    kind: Literal["verifier"] = "verifier"
    place: ClassVar[str] = "scoring.verifier:VerifierScorer"
    at_once: ClassVar[bool] = True
    prompt: str | None = Field(default=None, pattern=r"\{answer\}")
    """The prompt, with {question}, {target} and {answer}; labels are A, B and C."""
    content_free: tuple[str, ...] = Field(default=("N/A",), max_length=8)
    """Texts in place of question, target and answer, to calibrate against; [] does not."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """Temperature of the calibration."""
    top_logprobs: int = Field(default=20, ge=3, le=1000)
    """Likeliest tokens asked for; most servers give 20 at most."""
    is_correct: Annotated[
        Annotated[_Comparing, Field(discriminator="kind")] | None, _short(str | _Comparing | None)
    ] = None
    """A scorer that says whether the answer is right; default: the verifier, by its labels."""

    @property
    def sections(self) -> tuple["_Scorer", ...]:
        """The scorer itself, and the one that says what is right."""
        if self.is_correct is None:
            return (self,)
        return (self, self.is_correct)

    @model_validator(mode="after")
    def _right_or_wrong(self) -> Self:
        if getattr(self.is_correct, "range", None) is not None:
            raise ValueError(
                "is_correct: its scores are numbers, and say not what is right: write right_from, not range"
            )
        return self


class InspectScorerConfig(_ToolScorer):
    """The scores of an Inspect task's scorers."""

    kind: Literal["inspect"] = "inspect"
    place: ClassVar[str] = "interop.inspect_task:InspectScorer"


class LmEvalScorerConfig(_ToolScorer):
    """The filters and the metric of a task of lm-evaluation-harness."""

    kind: Literal["lm-eval"] = "lm-eval"
    place: ClassVar[str] = "interop.lm_eval_task:LmEvalScorer"
    filter: str | None = Field(default=None, min_length=1)
    """The task's filter, if it has several."""


_Part: TypeAlias = Annotated[
    Annotated[_Comparing | JudgeScorerConfig | VerifierScorerConfig, Field(discriminator="kind")],
    _short(str | _Comparing | JudgeScorerConfig | VerifierScorerConfig),
]
_Listed: TypeAlias = tuple[Any, ...]
_CHECK = re.compile(r"[A-Za-z]\w{0,39}", re.ASCII)


def _by_name(value: Any) -> Any:
    """Return parts by name; one of a list has that of its function or kind."""
    parts = value
    if isinstance(value, Mapping):
        parts = value.values()
    for part in parts if isinstance(value, Mapping | tuple) else ():
        if isinstance(part, tuple) or (isinstance(part, Mapping) and part.get("kind") == "checks"):
            raise ValueError(
                "a part is one scorer, and not several: write all of them as parts of this scorer"
            )
    if not isinstance(value, tuple):
        return value
    found: dict[str, Any] = {}
    for part in value:
        known = part
        if not isinstance(part, Mapping):
            known = {"kind": part}
        name = str(known.get("function", known.get("kind"))).rpartition(":")[2].partition("@")[0]
        if name in found:
            raise ValueError(
                f"two parts are called {name}; give them names: "
                "{kind: checks, parts: {NAME: SCORER, OTHER: SCORER}}"
            )
        found[name] = part
    return found


def _named(value: str) -> str:
    if not _CHECK.fullmatch(value):
        raise ValueError(f"{shown(value)} cannot name a check; use up to 40 letters, digits and _")
    return value


def _by_part(value: Any) -> Any:
    if isinstance(value, tuple):
        raise ValueError(
            "a list does not say which part has which weight; write {PART: WEIGHT, OTHER: WEIGHT}"
        )
    return value


class ChecksScorerConfig(GradedScorerConfig):
    """Several scorers of one answer, which together say whether it is right."""

    kind: Literal["checks"] = "checks"
    place: ClassVar[str] = "scoring.combined:ChecksScorer"
    at_once: ClassVar[bool] = True
    parts: Annotated[
        dict[Annotated[str, AfterValidator(_named)], _Part],
        BeforeValidator(_by_name, json_schema_input_type=dict[str, _Part] | _Listed),
    ] = Field(min_length=1, max_length=20)
    """Scorers by name, or a list of them. The result of each is the signal check_NAME."""
    by: Literal["all", "any", "mean"] = "all"
    """Right if all parts say so, or if any does; mean: the score is the mean of theirs, from 0 to 1."""
    weights: Annotated[dict[str, Annotated[float, Field(gt=0)]] | None, BeforeValidator(_by_part)] = None
    """Of by: mean: how much each part counts. Default: all the same."""

    @property
    def sections(self) -> tuple["_Scorer", ...]:
        """The scorer itself and its parts."""
        return (self, *(one for part in self.parts.values() for one in part.sections))

    def identity(self) -> dict[str, Any]:
        """Return what decides an answer's category, as JSON-able data."""
        return {**super().identity(), "parts": {name: part.identity() for name, part in self.parts.items()}}

    @model_validator(mode="before")
    @classmethod
    def _mean_is_a_number(cls, data: Any) -> Any:
        is_mean = isinstance(data, dict) and data.get("by") == "mean" and "right_from" not in data
        if is_mean:
            return {"range": (0.0, 1.0), **data}
        return data

    @model_validator(mode="after")
    def _together(self) -> Self:
        if not self.strip_reasoning:
            raise ValueError("strip_reasoning is an option of the parts: write it there")
        if self.by != "mean" and (self.weights or self.range or self.right_from != 0.5):
            raise ValueError("weights, range and right_from are for by: mean; leave them out")
        if self.range not in (None, (0.0, 1.0)):
            raise ValueError("range: the mean of the parts goes from 0 to 1; leave it out")
        if self.weights is not None and self.weights.keys() != self.parts.keys():
            unknown = [f"{name!r} is no part" for name in self.weights if name not in self.parts]
            lacking = [f"{name!r} has none" for name in self.parts if name not in self.weights]
            wrong = " and ".join([*unknown[:1], *lacking[:1]])
            raise ValueError(f"weights: {wrong}; give one to each part: {', '.join(self.parts)}")
        for name, part in self.parts.items():
            if self.by != "mean" and part.numbers is not None:
                raise ValueError(
                    f"{name}: its scores are numbers, and say not what is right: write right_from, not "
                    "range, or by: mean"
                )
            if getattr(part, "against", None) is not None:
                raise ValueError(f"{name}: against takes the place of the target; use this judge alone")
        if sum(isinstance(part, ModelGradedScorerConfig) for part in self.parts.values()) > 1:
            raise ValueError("one part may be a judge or verifier, and there are several")
        return self


ScorerConfig: TypeAlias = (
    _Comparing
    | ChecksScorerConfig
    | JudgeScorerConfig
    | VerifierScorerConfig
    | InspectScorerConfig
    | LmEvalScorerConfig
)

AnyScorer: TypeAlias = Annotated[
    ScorerConfig, Field(discriminator="kind"), _short(str | ScorerConfig | _Listed)
]
"""A scorer as a config writes it."""

SCORERS: Mapping[str, type[_Scorer]] = MappingProxyType(
    {section.model_fields["kind"].default: section for section in get_args(ScorerConfig)}
)
"""The sections of scorers by their kind."""
