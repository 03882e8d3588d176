"""The interfaces that the engine uses; the runner depends on these protocols only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from adaptive_eval.core.results import BudgetLine, Decision, Results, StopVerdict
from adaptive_eval.errors import Coded
from adaptive_eval.stops import StopReason
from adaptive_eval.store.records import AttemptRecord, LoggedTrial, SnapshotRecord, TrialRecord
from adaptive_eval.trial import Completion, Message, Missing, Score, TrialKey, TrialOutcome, TrialRequest


class Controller(Protocol):
    """Decides which trials to run and when to stop; synchronous, without a clock.

    A trial it has asked for ends in one of three ways: its outcome is told, it is told to be
    :class:`~adaptive_eval.trial.Missing`, or it is *abandoned*, because its model was stopped, the run has
    ended, or no budget allows another attempt. An abandoned trial is asked again, by a resumed run at the
    latest.
    """

    @property
    def stopped(self) -> StopVerdict | None:
        """The reason to launch nothing more, or None."""

    def ask(self, capacity: Mapping[str, int]) -> Sequence[TrialRequest]:
        """Return trials to launch now.

        Parameters
        ----------
        capacity : mapping of str to int
            Free slots of every model that is not stopped, 0 included.

        Returns
        -------
        sequence of TrialRequest
            At most that many of each model. An empty list means: wait for trials in flight.
        """

    def tell(self, outcomes: Sequence[TrialOutcome | Missing]) -> Sequence[Decision]:
        """Count stored outcomes, and return the decisions.

        Some may still come of a stopped model, and after the stop: the requests that were under way. They
        count in the estimates.
        """

    def overdue(self, keys: Sequence[TrialKey]) -> Sequence[Decision]:
        """Plan without trials in flight that take far too long; they count when they end."""

    def presume_billed(self, key: TrialKey) -> bool:
        """Count a failed attempt of a trial in flight that may have been billed.

        Returns whether the budgets allow the trial another attempt.
        """

    def may_repeat(self, key: TrialKey) -> bool:
        """Count another request of a launched trial at its worst case, if the budgets have room for it."""

    def abandon(self, key: TrialKey, *, billed: bool) -> None:
        """Release a trial in flight without an outcome; `billed`: a request was sent."""

    def stop_model(
        self, model: str, reason: str, *, spent: bool = False, unusable: bool = False
    ) -> Sequence[Decision]:
        """Ask nothing more of `model`, which has failed, has `spent` its time, or gives `unusable` answers.

        Its trials in flight may be abandoned.
        """

    def end(
        self, reason: StopReason, text: str = "", evidence: Mapping[str, Any] | None = None
    ) -> Sequence[Decision]:
        """Stop from outside, unless it has stopped: :attr:`stopped` is set afterwards.

        Returns decisions not returned yet.
        """

    def results(self) -> Results:
        """Return the state of the session as plain data."""


class Endpoint(Protocol):
    """Answers requests of one model at one server, one attempt at a time."""

    @property
    def url(self) -> str:
        """Its address without credentials, fit to be stored and shown."""

    def body(self, messages: Sequence[Message], *, seed: int | None) -> Mapping[str, Any]:
        """Return the request's body as :meth:`complete` sends it."""

    async def complete(self, messages: Sequence[Message], *, seed: int | None) -> Completion:
        """Ask once.

        Raises
        ------
        TransientEndpointError
            Worth another attempt.
        PermanentEndpointError
            No attempt will succeed.
        """

    async def alive(self) -> bool:
        """Return whether the server is there, within seconds and at no cost; it raises no EndpointError."""


@runtime_checkable
class SamplingEndpoint(Endpoint, Protocol):
    """An endpoint that gives several answers to one request."""

    def body(self, messages: Sequence[Message], *, seed: int | None, n: int = 1) -> Mapping[str, Any]:
        """Return the request's body as :meth:`complete` or, for `n` answers, :meth:`sample` sends it."""

    async def sample(
        self, messages: Sequence[Message], *, seed: int | None, n: int
    ) -> Sequence[Completion | None]:
        """Ask once for `n` answers with the seeds `seed`, `seed` + 1, …; return at least one of them.

        Each stands in the place of its seed; None stands for one that did not come.

        Raises
        ------
        TransientEndpointError, PermanentEndpointError
            As :meth:`complete`.
        """


class Prompts(Protocol):
    """Turns a trial into the messages of a request."""

    def messages(self, request: TrialRequest) -> Sequence[Message]:
        """Return the conversation that asks the trial's question."""


class Scoring(Protocol):
    """Scores an answer. It may await: a scorer that takes long must not hold up the event loop."""

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        """Return the category of `completion` as an answer to the trial's question."""


class Executor(Protocol):
    """Makes attempts and scores answers, here or elsewhere; the engine decides when, where and how often.

    A request has its slot at a server for as long as :meth:`attempt` takes: so limits hold wherever it is
    made. A cancelled call leaves nothing that would arrive later.
    """

    async def attempt(
        self, endpoint: Endpoint, messages: Sequence[Message], requests: Sequence[TrialRequest]
    ) -> Sequence[Completion | None]:
        """Ask `endpoint` once for the answers to one or more trials.

        Parameters
        ----------
        endpoint : Endpoint
            Who is asked; for more than one trial a :class:`SamplingEndpoint`.
        messages : sequence of Message
            What is asked.
        requests : sequence of TrialRequest
            Trials of one question whose seeds follow each other.

        Returns
        -------
        sequence of Completion or None
            The answers in the order of `requests`: at least one; None, or nothing at the end, for one that
            did not come.

        Raises
        ------
        TransientEndpointError, PermanentEndpointError
            As the endpoint raises them; of kind ``worker`` if it is not the server that has failed.
        """

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        """Return the category of `completion` as an answer to the trial's question.

        Raises
        ------
        ScorerUnavailable
            It could not be scored now: ask again.
        EndpointError
            Only another answer would help.
        """


@dataclass(frozen=True, slots=True)
class Unusable:
    """A model whose answers say nothing about it: it is stopped, and the others continue."""

    model: str
    reason: str


News: TypeAlias = Coded | Unusable


class Watch(Protocol):
    """Looks at every finished trial of a run, live and from its log alike."""

    def take(self, trial: LoggedTrial) -> Sequence[News]:
        """Take in a trial; return what is new."""

    def verdict(self) -> StopVerdict | None:
        """Return why the run must end; None if it may go on."""

    def remarks(self) -> Iterable[Coded]:
        """Return all that is wrong at present."""


class ScoringBudget(Protocol):
    """The remaining budget of scoring, separate from the session's."""

    def room(self) -> int | None:
        """Return how many answers can still be scored, those that are not scored yet included; None: any."""

    def spent(self) -> Mapping[str, Any]:
        """Return the spent limit, if any, as evidence of a stop."""

    def lines(self) -> Sequence[BudgetLine]:
        """Return the amounts spent."""


class Recorder(Protocol):
    """Stores what happens, in the order of the calls; nothing counts before :meth:`commit` has returned.

    Calls never overlap. :meth:`commit` may come from another thread than the others
    (:mod:`adaptive_eval.engine.ledger`).
    """

    def launch(self, requests: Sequence[TrialRequest], at: float) -> None:
        """Log that these trials are being sent, at Unix time `at`."""

    def attempt(self, record: AttemptRecord) -> None:
        """Log one attempt."""

    def outcome(self, record: TrialRecord) -> bool:
        """Add a finished trial; False if it has an outcome already."""

    def decision(self, at: float, trials: int, body: Mapping[str, Any]) -> None:
        """Log a decision."""

    def snapshot(self, record: SnapshotRecord) -> None:
        """Store the results of the moment."""

    def commit(self) -> int:
        """Make everything so far durable."""


class Clock(Protocol):
    """Time, as an argument."""

    def now(self) -> float:
        """Return seconds on a clock that never goes back."""

    def time(self) -> float:
        """Return Unix time."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""
