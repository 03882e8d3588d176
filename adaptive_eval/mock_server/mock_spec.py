"""What a mimic is: frozen dataclasses of plain types, so that a config, a test or JSON can build them.

Every class checks itself and raises ValueError naming the field and its value.
:mod:`adaptive_eval.mock_server.spec_json` reads and writes them as JSON.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from adaptive_eval.mock_server.value_checks import (
    check_flag,
    check_integer,
    check_name,
    check_number,
    check_one_of,
    check_text,
    check_tuple,
)

__all__ = [
    "AnswerKind",
    "DatasetSpec",
    "FaultKind",
    "FaultSpec",
    "Ignored",
    "KnownQuestion",
    "LatencySpec",
    "MimicSpec",
    "ModelSpec",
    "TokenSpec",
]

AnswerKind: TypeAlias = Literal["auto", "numeric", "choice", "text"]
Ignored: TypeAlias = Literal["seed", "n", "max_tokens", "stop", "logprobs"]
FaultKind: TypeAlias = Literal["status", "hang", "drop", "malformed", "cut_off", "echo_key"]


@dataclass(frozen=True, slots=True)
class LatencySpec:
    """Seconds from request to answer, lognormal.

    Parameters
    ----------
    median : float
        Median in seconds; 0 answers at once.
    sigma : float
        Standard deviation of the logarithm.
    correct_factor : float
        Right answers take this many times as long; other than 1 it makes latency depend on correctness.
    """

    median: float = 0.0
    sigma: float = 0.4
    correct_factor: float = 1.0

    def __post_init__(self) -> None:
        check_number("median", self.median, 0.0)
        check_number("sigma", self.sigma, 0.0)
        check_number("correct_factor", self.correct_factor, 0.0)


@dataclass(frozen=True, slots=True)
class TokenSpec:
    """Lengths of prompts and answers in tokens (:mod:`adaptive_eval.mock_server.tokens`).

    Parameters
    ----------
    prompt_overhead : int
        Tokens that the chat template adds to a prompt.
    completion_median : int
        Median length of an answer; reasoning is padded to a lognormal length around it.
    completion_sigma : float
        Standard deviation of the logarithm of that length.
    """

    prompt_overhead: int = 8
    completion_median: int = 60
    completion_sigma: float = 0.3

    def __post_init__(self) -> None:
        check_integer("prompt_overhead", self.prompt_overhead, 0)
        check_integer("completion_median", self.completion_median, 1)
        check_number("completion_sigma", self.completion_sigma, 0.0)


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """One way to misbehave, and when.

    At most one of `probability`, `first`, `requests`, `every` and `attempts` is given; without any, every
    request is struck. Requests are counted from the moment the fault is set, per model for a model's
    faults, and for the server's faults over all requests that no model's fault has struck.

    Parameters
    ----------
    kind : str
        ``status``: an error with HTTP `status`, and a Retry-After header where `retry_after` is given.
        ``hang``: silence after `after` of the answer's bytes, for ever; or, with `seconds`, a pause and
        then the answer.
        ``drop``: the connection is closed after `after` of the answer's bytes.
        ``malformed``: HTTP 200 whose body is JSON cut in the middle.
        ``cut_off``: half of the answer, with `finish_reason`.
        ``echo_key``: an error 500 that repeats the Authorization header, as careless proxies do.
    probability : float, optional
        Chance for each attempt, decided by a hash of the request and its attempt number: the same request
        meets the same fate in every run, whatever else is in flight.
    first : int, optional
        The first so many requests.
    requests : tuple of int, optional
        Requests number i to j, from 1, both included.
    every : int, optional
        Every so many-th request.
    attempts : int, optional
        The first so many attempts of each distinct request (same model, prompt and seed).
    status : int
        HTTP status of ``status``, 400 to 599.
    retry_after : float, optional
        Seconds for the Retry-After header.
    seconds : float, optional
        Length of a ``hang`` that ends.
    after : float
        Share of the answer's bytes sent before ``hang`` or ``drop``, in [0, 1]; 0 sends nothing at all,
        not even a status line.
    finish_reason : str
        What ``cut_off`` says: ``abort`` or ``length``.

    Examples
    --------
    >>> FaultSpec("status", status=429, retry_after=1.5, attempts=1).status
    429
    >>> FaultSpec("drop", first=2, every=3)
    Traceback (most recent call last):
        ...
    ValueError: first, every: give at most one of probability, first, requests, every, attempts
    """

    kind: FaultKind
    probability: float | None = None
    first: int | None = None
    requests: tuple[int, int] | None = None
    every: int | None = None
    attempts: int | None = None
    status: int = 500
    retry_after: float | None = None
    seconds: float | None = None
    after: float = 0.5
    finish_reason: str = "abort"

    def __post_init__(self) -> None:
        check_one_of("kind", self.kind, get_args(FaultKind))
        self._check_trigger()
        check_integer("status", self.status, 400, 599)
        if self.retry_after is not None:
            check_number("retry_after", self.retry_after, 0.0)
        if self.seconds is not None:
            check_number("seconds", self.seconds, 0.0)
        check_number("after", self.after, 0.0, 1.0)
        check_one_of("finish_reason", self.finish_reason, ("abort", "length"))

    def _check_trigger(self) -> None:
        names = ("probability", "first", "requests", "every", "attempts")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{', '.join(given)}: give at most one of {', '.join(names)}")
        if self.probability is not None:
            check_number("probability", self.probability, 0.0, 1.0)
        for name in ("first", "every", "attempts"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1)
        if self.requests is not None:
            check_tuple("requests", self.requests)
            if len(self.requests) != 2:
                raise ValueError(f"requests: {self.requests!r} is not a pair [i, j] of request numbers")
            check_integer("requests[0]", self.requests[0], 1)
            check_integer("requests[1]", self.requests[1], self.requests[0])


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model of biased coins: a chance to be right for every question.

    Parameters
    ----------
    name : str
        The model id that requests name.
    mean : float, optional
        Mean probability of a right answer, in [0, 1]. Per question p ~ Beta(spread·mean,
        spread·(1 − mean)), then shifted and clipped so that each dataset has exactly this mean.
    accuracies : tuple of float, optional
        Probabilities given outright, in the order of the questions (datasets first, then `questions` of
        the mimic, dataset by dataset); `mean` may be left out then.
    spread : float
        Concentration of the Beta distribution: 8 is what the paper's mimics use, large is homogeneous.
    like : str, optional
        Another model, whose easy questions are easy for this one too: it shares that model's difficulties
        at correlation 1, whatever the mimic's `correlation`.
    latency : LatencySpec
        How long answers take.
    tokens : TokenSpec
        How long prompts and answers are.
    faults : tuple of FaultSpec
        How this model misbehaves; asked before the server's faults.
    context_length : int
        Prompt and answer may have so many tokens together; more is an error 400.
    ignores : tuple of str
        Parameters that are taken without a word and have no effect: ``seed``, ``n``, ``max_tokens``,
        ``stop``, ``logprobs``.
    cached : bool
        Whether a prompt is always answered with the same text, as by a proxy that caches.

    Examples
    --------
    >>> ModelSpec("apprentice", mean=0.4).mean
    0.4
    >>> ModelSpec("apprentice", mean=1.4)
    Traceback (most recent call last):
        ...
    ValueError: mean: 1.4 is not a number in [0, 1]
    """

    name: str
    mean: float | None = None
    accuracies: tuple[float, ...] | None = None
    spread: float = 8.0
    like: str | None = None
    latency: LatencySpec = field(default_factory=LatencySpec)
    tokens: TokenSpec = field(default_factory=TokenSpec)
    faults: tuple[FaultSpec, ...] = ()
    context_length: int = 131_072
    ignores: tuple[Ignored, ...] = ()
    cached: bool = False

    def __post_init__(self) -> None:
        check_name("name", self.name)
        if self.mean is None and not self.accuracies:
            raise ValueError(f"mean: is missing for model {self.name!r}; give it, or accuracies")
        if self.mean is not None:
            check_number("mean", self.mean, 0.0, 1.0)
        if self.accuracies is not None:
            check_tuple("accuracies", self.accuracies)
        for index, value in enumerate(self.accuracies or ()):
            check_number(f"accuracies[{index}]", value, 0.0, 1.0)
        check_number("spread", self.spread, 1e-6)
        check_integer("context_length", self.context_length, 1)
        check_tuple("ignores", self.ignores)
        for index, name in enumerate(self.ignores):
            check_one_of(f"ignores[{index}]", name, get_args(Ignored))
        check_flag("cached", self.cached)

    @property
    def average(self) -> float:
        """The stated `mean`, or the mean of `accuracies` where none is stated."""
        if self.mean is not None:
            return self.mean
        given = self.accuracies or ()
        return math.fsum(given) / len(given)


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """A JSON Lines file with questions and their right answers.

    Parameters
    ----------
    path : str
        The file, relative to the current directory of the server.
    id, question, target, choices : str
        Names of the fields. Rows without `id` are numbered from 0; `choices` may be missing.
    kind : str
        ``numeric``, ``choice``, ``text``, or ``auto``: choice where the row has choices, else numeric
        where the target reads as a number, else text.
    """

    path: str
    id: str = "id"
    question: str = "question"
    target: str = "answer"
    choices: str = "choices"
    kind: AnswerKind = "auto"

    def __post_init__(self) -> None:
        for name in ("path", "id", "question", "target", "choices"):
            check_name(name, getattr(self, name))
        check_one_of("kind", self.kind, get_args(AnswerKind))


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """One question of the answer key.

    Parameters
    ----------
    id : str
        Its name, for messages.
    question : str
        Its text, by which it is recognised in a prompt.
    target : str
        The right answer; for a choice its letter, or the text of the choice.
    choices : tuple of str
        The options of a multiple-choice question.
    kind : str
        As in :class:`DatasetSpec`.
    dataset : str
        Questions of the same dataset share a stated mean, and wrong answers where answers are texts.
    """

    id: str
    question: str
    target: str
    choices: tuple[str, ...] = ()
    kind: AnswerKind = "auto"
    dataset: str = ""

    def __post_init__(self) -> None:
        check_one_of("kind", self.kind, get_args(AnswerKind))
        for name in ("id", "question", "target", "dataset"):
            check_text(name, getattr(self, name))
        check_tuple("choices", self.choices)
        for index, choice in enumerate(self.choices):
            check_text(f"choices[{index}]", choice)
        if not self.question.strip():
            raise ValueError("question: is empty")


@dataclass(frozen=True, slots=True)
class MimicSpec:
    """A server of biased coins.

    Parameters
    ----------
    models : tuple of ModelSpec
        What it serves, at least one.
    seed : int
        Seed of every coin, wrong answer, length, latency and random fault.
    datasets : tuple of DatasetSpec
        Answer keys in files.
    questions : tuple of KnownQuestion
        Answer key given outright, after those in files.
    correlation : float
        Correlation in [0, 1] between any two models of how hard a question is (of its normal score); 1,
        the default, makes the same questions hard for everyone.
    faults : tuple of FaultSpec
        How the whole server misbehaves.
    slow_start : float
        Seconds after the start during which everything is answered 503.
    api_key : str, optional
        The key that requests must carry; None takes any.
    answer : str
        The last sentence of an answer, with ``{answer}`` for the answer itself.

    Examples
    --------
    >>> spec = MimicSpec(models=(ModelSpec("a", mean=0.8), ModelSpec("b", mean=0.5, like="a")), seed=7)
    >>> [model.name for model in spec.models]
    ['a', 'b']
    """

    models: tuple[ModelSpec, ...]
    seed: int = 0
    datasets: tuple[DatasetSpec, ...] = ()
    questions: tuple[KnownQuestion, ...] = ()
    correlation: float = 1.0
    faults: tuple[FaultSpec, ...] = ()
    slow_start: float = 0.0
    api_key: str | None = field(default=None, repr=False)
    answer: str = "The answer is \\boxed{{answer}}."

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("models: is empty; give at least one")
        self._check_names()
        check_integer("seed", self.seed, -(2**63), 2**63 - 1)
        check_number("correlation", self.correlation, 0.0, 1.0)
        check_number("slow_start", self.slow_start, 0.0)
        if self.api_key is not None:
            check_name("api_key", self.api_key, show=False)
        check_text("answer", self.answer)
        if "{answer}" not in self.answer:
            raise ValueError(f"answer: {self.answer!r} does not contain {{answer}}")

    def _check_names(self) -> None:
        names = Counter(model.name for model in self.models)
        for name, count in names.items():
            if count > 1:
                raise ValueError(f"models: {name!r} is there {count} times; names must differ")
        like = {model.name: model.like for model in self.models}
        for name in names:
            seen = [name]
            while (other := like[seen[-1]]) is not None:
                if other not in names:
                    raise ValueError(f"models: {seen[-1]!r} is like {other!r}, which is not a model here")
                if other in seen:
                    raise ValueError(f"models: {' is like '.join(map(repr, [*seen, other]))}, a circle")
                seen.append(other)
