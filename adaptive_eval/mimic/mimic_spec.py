"""The specification of a mimic server: frozen models that check themselves, and their JSON.

JSON is what ``--spec FILE`` holds and what a parent process hands to the server. The config's ``mimic``
section shares :class:`ServerOptions` and :class:`ModelOptions`.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from adaptive_eval.errors import UsageError
from adaptive_eval.options.mistakes import Mistakes
from adaptive_eval.options.section import Section, as_read

AnswerKind: TypeAlias = Literal["auto", "numeric", "choice", "text"]
Name: TypeAlias = Annotated[str, Field(min_length=1)]
Probability: TypeAlias = Annotated[float, Field(ge=0, le=1)]

_TRIGGERS = ("probability", "first", "requests", "every", "attempts")
_SHOWN = 60  # characters of a wrong value


class LatencySpec(Section):
    """Seconds from request to answer, lognormal."""

    median: float = Field(default=0.0, ge=0)
    """Median in seconds; 0 answers at once."""
    sigma: float = Field(default=0.4, ge=0)
    """Standard deviation of the logarithm."""
    correct_factor: float = Field(default=1.0, ge=0)
    """Right answers take this many times as long."""


class TokenSpec(Section):
    """Lengths of prompts and answers in tokens."""

    prompt_overhead: int = Field(default=8, ge=0)
    """Tokens that the chat template adds to a prompt."""
    completion_median: int = Field(default=60, ge=1)
    """Median length of an answer, in tokens; lengths are lognormal."""
    completion_sigma: float = Field(default=0.3, ge=0)
    """Standard deviation of the logarithm of that length."""


class FaultSpec(Section):
    """One fault, and when it occurs: at most one of the five triggers; without one, at every request.

    Requests are counted from the moment the fault is set: per model for a model's faults, and for the
    server's faults over all requests that no model's fault has met.

    Examples
    --------
    >>> FaultSpec(kind="status", status=429, retry_after=1.5, attempts=1).status
    429
    """

    # status: an HTTP error. hang: silence after a share of the bytes, for ever or for `seconds`. drop: the
    # connection closes after a share of the bytes. malformed: JSON cut in the middle. cut_off: half of the
    # answer. echo_key: an error 500 that repeats the Authorization header.
    kind: Literal["status", "hang", "drop", "malformed", "cut_off", "echo_key"]
    # the chance of each attempt, a hash of request and attempt: the same in every run
    probability: Probability | None = None
    first: int | None = Field(default=None, ge=1)  # the first so many requests
    requests: tuple[int, int] | None = None  # requests number i to j, from 1, both included
    every: int | None = Field(default=None, ge=1)  # every so many-th request
    attempts: int | None = Field(default=None, ge=1)  # the first so many attempts of each distinct request
    status: int = Field(default=500, ge=400, le=599)  # of the kind status
    retry_after: float | None = Field(default=None, ge=0)  # seconds, for the header Retry-After
    seconds: float | None = Field(default=None, ge=0)  # length of a hang that ends
    after: Probability = 0.5  # share of the bytes that are sent before a hang or drop
    finish_reason: Literal["abort", "length"] = "abort"  # that cut_off reports

    @field_validator("requests")
    @classmethod
    def _is_span(cls, span: tuple[int, int] | None) -> tuple[int, int] | None:
        if span is not None and not 1 <= span[0] <= span[1]:
            raise ValueError(f"{list(span)} is not a span of request numbers from 1")
        return span

    @model_validator(mode="after")
    def _has_one_trigger(self) -> Self:
        given = [name for name in _TRIGGERS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{', '.join(given)}: give at most one of {', '.join(_TRIGGERS)}")
        return self


class ModelOptions(Section):
    """One mimic model: a probability of a right answer for every question."""

    mean: Probability | None = None
    """Mean probability of a right answer. Per question p ~ Beta(spread·mean, spread·(1 − mean)), shifted and
    clipped so that each dataset has exactly this mean."""
    accuracies: tuple[Probability, ...] | None = Field(default=None, min_length=1)
    """Probabilities, one for each question in order; `mean` may be left out then."""
    spread: float = Field(default=8.0, ge=1e-6)
    """Concentration of the questions' probabilities around the mean."""
    like: str | None = None
    """A model whose easy questions are easy for this one too."""
    latency: LatencySpec | None = None
    """How long answers take; default: the server's."""
    tokens: TokenSpec | None = None
    """How long prompts and answers are; default: the server's."""
    cached: bool = False
    """Whether a prompt always gets the same response, as from a caching proxy."""

    @model_validator(mode="after")
    def _has_a_mean(self) -> Self:
        if self.mean is None and self.accuracies is None:
            raise ValueError("mean is missing: the mean probability of a right answer, from 0 to 1")
        return self

    @property
    def average(self) -> float:
        """The stated `mean`, or the mean of `accuracies` if none is stated."""
        if self.mean is None:
            return fmean(self.accuracies or ())
        return self.mean


class MimicModelSpec(ModelOptions):
    """A mimic model with the id that requests name.

    Examples
    --------
    >>> MimicModelSpec(name="apprentice", mean=0.4).average
    0.4
    """

    name: Name
    latency: LatencySpec = LatencySpec()
    tokens: TokenSpec = TokenSpec()
    faults: tuple[FaultSpec, ...] = ()  # tried before the server's
    context_length: int = Field(default=131_072, ge=1)  # most tokens of prompt and answer together
    # parameters that are accepted and have no effect
    ignores: tuple[Literal["seed", "n", "max_tokens", "stop", "logprobs"], ...] = ()


class DatasetSpec(Section):
    """A JSON Lines, JSON or CSV file with questions and right answers: its path and the names of its fields.

    Rows without `id` are numbered from 0; `choices` may be missing. Kind ``auto`` is choice if the row
    has choices, else numeric if the target reads as a number, else text.
    """

    path: Name
    id: Name = "id"
    question: Name = "question"
    target: Name = "answer"
    choices: Name = "choices"
    kind: AnswerKind = "auto"


class KnownQuestion(Section):
    """One question of the answer key.

    `target` is the right answer; for a choice its letter or its text. Questions of the same `dataset` share
    a stated mean, and wrong answers if answers are texts.
    """

    id: str
    question: Annotated[str, Field(pattern=r"\S")]
    target: str
    choices: tuple[str, ...] = ()
    kind: AnswerKind = "auto"
    dataset: str = ""


class ServerOptions(Section):
    """Options of the whole mimic server."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of every answer, length, latency and random fault."""
    correlation: Probability = 1.0
    """Correlation between models of how hard a question is; 1: the same questions are hard for every
    model."""
    answer: str = "The answer is \\boxed{{answer}}."
    """The last sentence of an answer, with {answer} in it."""

    @field_validator("answer")
    @classmethod
    def _has_a_place(cls, template: str) -> str:
        if "{answer}" not in template:
            raise ValueError(f"{template[:_SHOWN]!r} does not contain {{answer}}")
        return template


class MimicSpec(ServerOptions):
    """A mimic server: its models, its answer key (files first, then `questions`) and its options.

    With `api_key`, requests must carry that key.

    Examples
    --------
    >>> a, b = MimicModelSpec(name="a", mean=0.8), MimicModelSpec(name="b", mean=0.5, like="a")
    >>> [model.name for model in MimicSpec(models=(a, b), seed=7).models]
    ['a', 'b']
    """

    slow_start: float = Field(default=0.0, ge=0)  # seconds during which every answer is HTTP 503
    faults: tuple[FaultSpec, ...] = ()  # of the whole server
    models: tuple[MimicModelSpec, ...] = Field(min_length=1)
    datasets: tuple[DatasetSpec, ...] = ()
    questions: tuple[KnownQuestion, ...] = ()
    api_key: Name | None = Field(default=None, repr=False)

    @field_validator("models")
    @classmethod
    def _fit_together(cls, models: tuple[MimicModelSpec, ...]) -> tuple[MimicModelSpec, ...]:
        counts = Counter(model.name for model in models)
        wrong = [f"{name!r} occurs {count} times" for name, count in counts.items() if count > 1]
        likes = {one.name: one.like for one in models}
        wrong += [f"{name!r}: {words}" for name, words in like_problems(likes)]
        if wrong:
            raise ValueError("; ".join(wrong))
        return models


def like_problems(likes: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """Yield the models whose `like` names no model or leads back to themselves, and what is wrong."""
    for name, other in likes.items():
        chain = [name]
        while other is not None:
            if other not in likes:
                if len(chain) == 1:
                    yield name, f"{other[:_SHOWN]!r} is not one of the models ({', '.join(likes)})"
                break
            if other in chain:
                if other == name:
                    yield name, f"{' is like '.join([*chain, other])}: a circle"
                break
            chain.append(other)
            other = likes[other]


def spec_to_json(spec: MimicSpec) -> str:
    """Return `spec` as one line of JSON. It holds the API key if there is one.

    Examples
    --------
    >>> spec = MimicSpec(models=(MimicModelSpec(name="a", mean=0.5),))
    >>> spec_from_json(spec_to_json(spec)) == spec
    True
    """
    return json.dumps(spec.model_dump(), separators=(",", ":"))


def spec_from_json(text: str, source: str = "mimic spec") -> MimicSpec:
    """Read a spec from JSON; absent fields have their defaults.

    Examples
    --------
    >>> spec_from_json('{"models": [{"name": "a", "mean": 0.5}], "seed": 3}').seed
    3
    >>> spec_from_json('{"models": [{"name": "a", "mean": 5}]}')
    Traceback (most recent call last):
        ...
    adaptive_eval.errors.UsageError: mimic spec: models[0].mean: 5 must be at most 1
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{source}: is not JSON: {error}") from None
    return spec_from_data(data, source)


def spec_from_data(data: object, source: str = "mimic spec") -> MimicSpec:
    """Check a spec given as plain data; raises as :func:`spec_from_json` does."""
    try:
        return MimicSpec.from_data(as_read(data))
    except Mistakes as error:
        raise UsageError(error.listed(source)) from None


def faults_from_data(data: object) -> tuple[FaultSpec, ...]:
    """Check faults given as a list of mappings; raises as :func:`spec_from_json` does.

    Examples
    --------
    >>> faults_from_data([{"kind": "hang", "every": 10}])[0].every
    10
    """
    try:
        return _Faults.from_data(as_read({"faults": data})).faults
    except Mistakes as error:
        raise UsageError(error.listed()) from None


class _Faults(Section):
    faults: tuple[FaultSpec, ...]
