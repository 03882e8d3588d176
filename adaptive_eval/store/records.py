"""The rows of a run file as plain data: what the engine writes and what monitor and report read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from adaptive_eval.trial import (
    JUDGEMENTS,
    ORDER_DECIDED,
    SAME_TEXT,
    Completion,
    DiscardCause,
    Missing,
    Score,
    TrialKey,
    TrialOutcome,
    TrialRequest,
    Usage,
)

CANCELLED, WITHDRAWN = "cancelled", "withdrawn"
"""Kinds of attempt that say that a launched trial was given up without an outcome: with a request out, which
may have been billed, or with none. They are no failures of an endpoint."""

SEED_TEST = "seed_test"
"""Kind of attempt by which a trial's question was asked again: whether servers honour seeds, or one that fell
silent answers again."""

KILLED = "killed"
"""Kind of an attempt, made up on reading, for a launch that a killed process has left without an end."""

FEWER_CHOICES = "fewer_choices"
"""Kind of attempt for a trial that shared a request and got no answer: fewer came than were asked for."""

NO_USAGE, IMPOSSIBLE_USAGE = "no_usage", "impossible_usage"
"""Counted among a server's errors: an answer that reports no tokens, which a token budget cannot see; one
that reports more than can be, which counts as no report."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt to get an answer, successful or not; or that no further one is made.

    Parameters
    ----------
    key : TrialKey
        The trial.
    attempt : int
        1 for the first attempt of the trial.
    endpoint : str
        Base URL, without credentials.
    started_at : float
        Unix time at which the request was sent.
    latency : float
        Seconds until the answer or the failure.
    status : int or None
        HTTP status, if there was one.
    error : str or None
        Kind of failure (:class:`adaptive_eval.errors.EndpointError`), None for success; :data:`CANCELLED` or
        :data:`WITHDRAWN` for a trial that was given up.
    message : str
        The server's words about the failure, bounded and without secrets.
    """

    key: TrialKey
    attempt: int
    endpoint: str
    started_at: float
    latency: float
    status: int | None = None
    error: str | None = None
    message: str = ""


class LoggedTrial(NamedTuple):
    """One finished trial as the log tells it: what the session counts and what the watches look at."""

    key: TrialKey
    task: str
    question: str
    category: int | None  # None for a missing trial
    usage: Usage
    finish_reason: str  # empty without an answer
    missing: str  # why there is no category; empty where there is one
    after_stop: bool
    finished_at: float  # Unix time
    answer: int | None  # digests of the answer's text and of the response's id; None where there is none
    response: int | None
    signals: Sequence[str]  # names
    discarded: tuple[DiscardCause, ...] = ()  # causes for which draws were given up
    server: str = ""  # base URL; empty where it is not known
    votes: int = (
        0  # a judge's votes in both orders, and those that the order decided; known while a run lives
    )
    by_order: int = 0
    text: str = ""  # the answer's, known while the run lives
    earlier: bool = False  # whether it is of an earlier session of the run

    @property
    def outcome(self) -> TrialOutcome | Missing:
        """The outcome of this trial, for the session."""
        if self.category is None:
            return Missing(self.key, self.missing, self.usage, self.discarded)
        repeats = SAME_TEXT in self.signals
        return TrialOutcome(self.key, self.category, self.usage, self.answer, repeats, self.discarded)


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One finished trial as stored: an answer with its score, or the reason why there is none.

    Three kinds: *scored* (`completion`, and `score` with a category), *unscored* (`completion`, and `score`
    without a category, because no scorer could say what it is) and *without an answer* (neither). The last
    two are missing: they are never right or wrong.

    Parameters
    ----------
    request : TrialRequest
        What was asked.
    finished_at : float
        Unix time.
    completion : Completion or None
        The answer; None if there is none.
    score : Score or None
        Its score; None if there is no answer.
    missing : str or None
        Why there is no answer or no category; None for a scored trial.
    after_stop : bool
        True when the trial finished after the session had stopped: in the estimate, not in the decision.
    sent : mapping
        The request's body as sent (prompt, sampling, seed), without headers.
    charged : Usage, optional
        Tokens charged to the budget; None: what the completion says was paid for it, and none for a missing
        trial. Read back from a run file it is always given.
    discarded : tuple of str
        Causes for which earlier draws of the trial, or judgements of its answer, were given up.

    Raises
    ------
    ValueError
        If the trial is none of the three.

    Examples
    --------
    >>> request = TrialRequest(TrialKey("qwen3-4b", 0), "aime25", "I-1", repeat=0, seed=7)
    >>> TrialRecord(request, 1.7e9, None, None, missing="timeout", charged=Usage(120)).outcome
    Missing(key=TrialKey(model='qwen3-4b', index=0), reason='timeout', usage=Usage(prompt_tokens=120, \
completion_tokens=0, cached_tokens=0), discarded=())
    """

    request: TrialRequest
    finished_at: float
    completion: Completion | None
    score: Score | None
    missing: str | None = None
    after_stop: bool = False
    sent: Mapping[str, Any] = field(default_factory=dict)
    charged: Usage | None = None
    discarded: tuple[DiscardCause, ...] = ()

    def __post_init__(self) -> None:
        scored = self.score is not None and self.score.category is not None
        whole = (self.completion is None) == (self.score is None)
        if not whole or scored == (self.missing is not None):
            raise ValueError(
                f"trial {self.request.key}: give completion and score with a category, or missing, "
                f"not completion={self.completion!r}, score={self.score!r}, missing={self.missing!r}"
            )

    @property
    def usage(self) -> Usage:
        """Tokens charged to the budget."""
        if self.charged is not None:
            return self.charged
        if self.completion is not None:
            return self.completion.paid
        return Usage()

    @property
    def outcome(self) -> TrialOutcome | Missing:
        """The outcome of this trial, for the session."""
        if self.score is not None and self.score.category is not None:
            assert self.completion is not None
            repeats = SAME_TEXT in self.score.signals
            category = self.score.category
            key = self.request.key
            digest = self.completion.digest
            return TrialOutcome(key, category, self.usage, digest, repeats, self.discarded)
        return Missing(self.request.key, self.missing or "", self.usage, self.discarded)

    def logged(self, server: str = "") -> LoggedTrial:
        """Return this trial as the log tells it; `server` has answered."""
        without_answer = LoggedTrial(
            key=self.request.key,
            task=self.request.task,
            question=self.request.question,
            category=None,
            usage=self.usage,
            finish_reason="",
            missing=self.missing or "",
            after_stop=self.after_stop,
            finished_at=self.finished_at,
            answer=None,
            response=None,
            signals=(),
            discarded=self.discarded,
            server=server,
        )
        answer, score = self.completion, self.score
        if answer is None or score is None:
            return without_answer
        votes = int(score.signals.get(JUDGEMENTS) or 0) // 2
        voted = 0
        if ORDER_DECIDED in score.signals:
            voted = votes
        return without_answer._replace(
            category=score.category,
            finish_reason=answer.finish_reason,
            answer=answer.digest,
            response=answer.response_digest,
            signals=tuple(score.signals),
            text=answer.text,
            votes=voted,
            by_order=int(score.signals.get(ORDER_DECIDED) or 0),
        )


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """Something the session decided, as stored.

    Parameters
    ----------
    at : float
        Unix time.
    trials : int
        Counted trials of the whole run at that moment.
    body : mapping
        The decision as JSON-able data (:class:`adaptive_eval.core.results.Decision`).
    """

    at: float
    trials: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EndpointHealth:
    """Counts and latencies of one model at one server, over the last minute and since this process started.

    Latencies are in seconds over the last minute, None before the first answer. `state` is ``in``; ``out``
    for a server that does not answer and is probed, ``probation`` for one that is just back, ``refused`` for
    one that will not answer for this model; if servers are found, ``joining`` for one that is named and has
    not answered yet, ``left`` for one that was named before.
    """

    model: str
    endpoint: str
    in_flight: int
    limit: int
    answered: int
    requests_per_second: float
    tokens_per_second: float
    p50: float | None
    p95: float | None
    errors: Mapping[str, int] = field(default_factory=dict)
    state: str = "in"

    @property
    def failed(self) -> int:
        """Requests without an answer."""
        answered = self.errors.get(NO_USAGE, 0) + self.errors.get(IMPOSSIBLE_USAGE, 0)
        return sum(self.errors.values()) - answered


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """The results of the session at one moment, as the running process stored them.

    `results` is what :func:`adaptive_eval.core.results.to_json` returned; `elapsed` is seconds of
    running time, previous sessions of a resumed run included.
    """

    at: float
    elapsed: float
    trials: int
    results: Mapping[str, Any]
    endpoints: tuple[EndpointHealth, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoringRecord:
    """One scoring of all stored answers after the run, which decided nothing."""

    name: str  # what it is called in reports
    at: float  # unix time at which it was made
    body: Mapping[str, Any]  # JSON-able: how each task was scored, and the results under it


@dataclass(frozen=True, slots=True)
class Rescored:
    """The score of one answer in such a scoring."""

    outcome: int  # number of the trial in commit order, from 0
    category: int | None  # its category; None where it cannot be scored so
    extracted: str | None  # the answer as extracted
    reason: str  # why it got this category


TargetLookup: TypeAlias = Callable[[TrialRecord], str | None]
"""Returns the expected answer of a trial, None where it is not known."""
