"""All trials in flight, model by model: which may start, which have ended, which return to the queue."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adaptive_eval.engine.attempts import Result, TrialRunner
from adaptive_eval.engine.discards import Discards
from adaptive_eval.engine.fleet import Fleet
from adaptive_eval.engine.independence import COPY
from adaptive_eval.engine.limits import FIRST_ANSWER, BatchRounds, ConcurrencyLimit
from adaptive_eval.engine.model_client import ModelClient, OfServers
from adaptive_eval.engine.overdue import AnswerTimes
from adaptive_eval.engine.pool import Member
from adaptive_eval.engine.protocols import Clock, Executor
from adaptive_eval.engine.trial_task import Sending, State, TrialTask
from adaptive_eval.errors import (
    BY_USER_CODE,
    REQUEST_STATUSES,
    EndpointError,
    PermanentEndpointError,
    ScorerUnavailable,
    TransientEndpointError,
)
from adaptive_eval.options.limit_options import SharedLimits
from adaptive_eval.store.records import CANCELLED, SEED_TEST, WITHDRAWN, AttemptRecord, EndpointHealth
from adaptive_eval.trial import FILTERED, DiscardCause, TrialKey

End: TypeAlias = Literal["scored", "unscored", "missing", "refused", "requeued", "abandoned"]
"""The end of a trial: with a score; with an answer that could not be scored; without an answer for good; with
a refusal that concerns the whole model; queued again; or dropped: its model or the run has stopped."""


@dataclass(slots=True)
class Lane:
    """The trials of one model that is asked."""

    client: ModelClient
    limit: ConcurrencyLimit
    in_flight: int = 0  # those that wait before their next attempt included
    queue: deque[TrialTask] = field(default_factory=deque)
    begun: int = 0  # trials that were started
    begun_at: float = 0.0  # monotonic seconds when the first was
    proven: bool = False  # whether a request was answered or has failed, but for a refusal
    answered: bool = False  # whether a request was answered in this session
    consecutive_missing: int = 0
    times: AnswerTimes = field(default_factory=AnswerTimes)  # from the start of a trial to its end

    @property
    def answers_nothing(self) -> bool:
        """Whether too many consecutive trials are missing."""
        return self.consecutive_missing >= self.client.outage

    @property
    def unasked(self) -> bool:
        """Whether its first trial was not started yet."""
        return not self.begun and not self.proven

    @property
    def free(self) -> int:
        """Number of trials that may start."""
        return max(0, self.limit.slots - self.in_flight)


@dataclass(slots=True)
class Unlogged:
    """What has happened to trials since the last commit."""

    attempts: list[AttemptRecord] = field(default_factory=list)
    # trials without an outcome; True: may have been billed. Each is also stored as an attempt, so that later
    # sessions of the run know of it.
    dropped: list[tuple[TrialKey, bool]] = field(default_factory=list)
    recorded: list[asyncio.Event] = field(default_factory=list)  # to be set once the attempts are stored


class InFlightTrials:
    """The trials in flight of all models. Nothing here awaits, but the tasks of the trials themselves."""

    def __init__(
        self,
        clients: Mapping[str, ModelClient],
        servers: Mapping[str, SharedLimits],
        *,
        clock: Clock,
        executor: Executor,
        jitter: Callable[[], float],
        on_change: Callable[[], None],
        presume_billed: Callable[[TrialKey], bool],
        may_repeat: Callable[[TrialKey], bool],
        proven: Collection[str],
        fastest: Mapping[str, float],
    ) -> None:
        self._clock = clock
        self._announce = on_change
        self.tasks = asyncio.TaskGroup()  # of all trials and probes
        self.fleet = Fleet(clients, servers, clock, self.tasks, on_change, self)
        self._runner = TrialRunner(
            clock,
            self.fleet.dispatch,
            executor,
            jitter,
            on_attempt=self._on_attempt,
            on_end=self._on_end,
            discards=Discards(dict(fastest)),
            on_repeat=self._on_repeat,
        )
        self._presume_billed = presume_billed
        self._may_repeat = may_repeat
        self._all_lanes: dict[str, Lane] = {}
        for model, client in clients.items():
            limit = client.limit or OfServers(self.fleet.pools[model], client.samples)
            in_batches = isinstance(limit, BatchRounds)  # whose first answers may take a day
            self._all_lanes[model] = Lane(client, limit, proven=model in proven or in_batches)
        self.lanes = dict(self._all_lanes)  # without those of stopped models
        self._running: dict[TrialKey, TrialTask] = {}
        self._ended: deque[TrialTask] = deque()
        self.unlogged = Unlogged()

    def __len__(self) -> int:
        """Return how many trials are in flight or have ended and wait in :meth:`ended`."""
        return len(self._running) + len(self._ended)

    def __contains__(self, key: TrialKey) -> bool:
        return key in self._running

    @property
    def running(self) -> int:
        """Number of trials in flight, without those that wait in a queue."""
        return len(self._running)

    @property
    def held(self) -> bool:
        """Whether a model can start nothing now, even alone, until time passes."""
        return any(not self.fleet.dispatch.slots({model: 1})[model] for model in self.lanes)

    def capacity(self, without: Collection[str]) -> dict[str, int]:
        """Return how many trials of every model that is not stopped may start; none of those `without`.

        If requests can be for several trials, there are so many times the slots: what does not share a
        request then waits for the next slot. The first trial of every model is sent first; until it is
        answered or has failed, no model gets more than may be missing in a row before a model is stopped.
        """
        requests = self._requests(without)
        firsts = [model for model, free in requests.items() if free and self.lanes[model].unasked]
        few = self._waits_for_firsts()
        found = {}
        for model, free in requests.items():
            lane = self.lanes[model]
            found[model] = min(lane.free, free * lane.client.samples)
            if firsts:
                found[model] = min(found[model], int(model in firsts))
            elif few:
                found[model] = min(found[model], max(0, lane.client.outage - lane.begun))
        return found

    @property
    def opening(self) -> bool:
        """Whether the first requests hold back others."""
        return self._waits_for_firsts() or any(lane.unasked for lane in self.lanes.values())

    def _waits_for_firsts(self) -> bool:
        since = self._clock.now() - FIRST_ANSWER  # a wrong address is refused at once
        return any(lane.begun and not lane.proven and lane.begun_at > since for lane in self.lanes.values())

    def _requests(self, without: Collection[str] = ()) -> dict[str, int]:
        """Return how many requests of every model may start."""
        wanted = {model: lane.free for model, lane in self.lanes.items()}
        for model in wanted.keys() & without:
            wanted[model] = 0
        return self.fleet.dispatch.slots(wanted)

    @property
    def constrained(self) -> list[str]:
        """The models that have fewer free slots than their own limits of concurrency would allow."""
        return [model for model, free in self._requests().items() if free < self.lanes[model].free]

    def relaunch(self) -> None:
        """Start queued trials again, as far as their models' limits allow; one alone always."""
        self.fleet.dispatch.serve()
        for lane in self.lanes.values():
            while lane.queue and (lane.free or not lane.in_flight):
                self.start(lane.queue.popleft())

    def start(self, trial: TrialTask) -> None:
        """Start `trial` as an asyncio task."""
        trial.failure = None
        lane = self.lanes[trial.request.key.model]
        lane.in_flight += 1
        if not lane.begun:
            lane.begun_at = self._clock.now()
        lane.begun += 1
        if trial.since is None:
            trial.since = self._clock.now()
        self._running[trial.request.key] = trial
        state = State.SCORING  # its scorer was out of reach
        if trial.completion is None:
            if trial.sending.sender is trial:
                self.fleet.dispatch.admit_now(trial.sending)
            if trial.sending.slot is None:
                state = State.WAITING
            else:
                state = State.ASKING
        trial.enter(state)
        trial.task = self.tasks.create_task(self._runner.run(trial))

    @property
    def rounds(self) -> list[BatchRounds]:
        """The limits of models that are asked in batches of a size that follows from the forecast."""
        limits = (lane.limit for lane in self.lanes.values())
        return [limit for limit in limits if isinstance(limit, BatchRounds)]

    def take_unlogged(self) -> Unlogged:
        """Return what has happened since the last call, to be stored."""
        unlogged, self.unlogged = self.unlogged, Unlogged()
        return unlogged

    def ended(self) -> Iterator[TrialTask]:
        """Yield the trials that have ended, in the order in which they did; each is yielded once."""
        while self._ended:
            yield self._ended.popleft()

    def settle(self, trial: TrialTask) -> End:
        """Return how `trial` ended, and queue it again if it may be attempted again.

        The one place that decides what a failure means for the trial: a permanent one stops the model, unless
        it concerns this request alone; a transient one queues the trial again until its requeues are used up;
        an answer that no scorer could score yet is kept.
        """
        failure = trial.failure
        model = trial.request.key.model
        lane = self._all_lanes[model]
        if failure is None:
            return self._settle_answered(trial, lane)
        if isinstance(failure, PermanentEndpointError) and model in self.lanes:
            alone = lane.answered and not lane.answers_nothing
            if alone and failure.status in REQUEST_STATUSES:
                lane.consecutive_missing += 1
                return "missing"
            self.drop(trial)
            return "refused"
        paid = isinstance(failure, ScorerUnavailable)  # the answer is here and is kept
        if not (trial.wanted or paid):
            self.drop(trial)
            return "abandoned"
        spent = trial.spent.total_tokens > 0 and not paid  # another run of its solver would be paid as well
        if trial.wanted and not spent and trial.requeued < trial.client.retry.requeue:
            self._hold_as_asked(trial, failure)
            trial.queue_again()
            lane.queue.append(trial)
            return "requeued"
        lane.consecutive_missing += 1
        if paid:
            return "unscored"
        return "missing"

    def _hold_as_asked(self, trial: TrialTask, failure: EndpointError) -> None:
        """Spare the server of a trial that starts again at once for as long as it has asked to wait."""
        wait = None
        if isinstance(failure, TransientEndpointError):
            wait = failure.retry_after
        if wait is not None and trial.sending.last is not None:
            longest = trial.client.retry.max_seconds
            trial.sending.last.hold(self._clock.now() + min(wait, longest))

    def discarded(self, trial: TrialTask) -> tuple[DiscardCause, ...]:
        """Return why draws of a trial that has ended, and judgements of its answer, were given up."""
        if trial.completion is not None:
            answer = trial.completion.discarded
        else:
            answer = ()
        if trial.score is not None:
            judged = trial.score.discarded
        else:
            judged = ()
        return (*trial.discarded, *self._runner.causes(trial), *answer, *judged)

    def overdue(self) -> list[TrialKey]:
        """Return the trials in flight that are awaited for far longer than others of their models took."""
        awaited: dict[str, dict[TrialKey, float]] = {model: {} for model in self.lanes}
        now = self._clock.now()
        for key, trial in self._running.items():
            if key.model in awaited and trial.since is not None:
                awaited[key.model][key] = now - trial.since
        found: list[TrialKey] = []
        for model, lane in self.lanes.items():
            found += lane.times.overdue(awaited[model])
        return found

    def _settle_answered(self, trial: TrialTask, lane: Lane) -> End:
        assert trial.score is not None
        if trial.since is not None:
            lane.times.took(self._clock.now() - trial.since)
        if trial.score.category is not None:
            lane.consecutive_missing = 0
            self._runner.remember(trial)
            return "scored"
        if not trial.score.signals.keys() & {COPY, FILTERED}:  # a copy is an answer, and so is a refusal
            lane.consecutive_missing += 1
        return "unscored"

    def stop_model(self, model: str) -> None:
        """Start nothing more of `model`; requests in flight finish, waits are cancelled."""
        self.fleet.changes.drop(model)
        self._empty(self.lanes.pop(model).queue)
        self._each(TrialTask.finish_attempt, model)

    def drain(self) -> None:
        """Let all requests in flight finish, and cancel the waits."""
        for lane in self.lanes.values():
            self._empty(lane.queue)
        self._each(TrialTask.finish_attempt)

    def abandon(self) -> None:
        """Cancel all trials in flight except those already answered."""
        self._each(TrialTask.abandon)

    def drop(self, trial: TrialTask) -> None:
        """Note that `trial` has no outcome, and whether it may have been billed."""
        paid = trial.completion is not None or trial.spent.total_tokens > 0
        billed = paid or trial.state is State.CANCELLED
        self.unlogged.dropped.append((trial.request.key, billed))
        self._note(trial, CANCELLED if billed else WITHDRAWN)

    def health(self) -> tuple[EndpointHealth, ...]:
        """Return how every server of every model is doing."""
        return self.fleet.health({model: lane.limit.slots for model, lane in self._all_lanes.items()})

    def _note(self, trial: TrialTask, kind: str, message: str = "") -> None:
        """Log what became of `trial` after its last attempt."""
        key = trial.request.key
        number = trial.attempts + 1
        now = self._clock.time()
        record = AttemptRecord(key, number, trial.sending.url, now, 0.0, None, kind, message)
        trial.failed.append(record)
        self.unlogged.attempts.append(record)

    def _empty(self, queue: deque[TrialTask]) -> None:
        """Drop the queued trials; an answer that waits for its scorer ends unscored."""
        while queue:
            trial = queue.popleft()
            if trial.completion is None:
                self.drop(trial)
            else:
                trial.wanted = False
                trial.enter(State.ENDED)
                self._ended.append(trial)
                self._announce()

    def _each(self, how: Callable[[TrialTask], None], model: str | None = None) -> None:
        for trial in [*self._ended, *self._running.values()]:
            if model is not None and trial.request.key.model != model:
                continue
            how(trial)  # one that has ended is only told that no further attempt is wanted
            if trial.abandoned:
                self._leave(trial)
                self.drop(trial)

    def _leave(self, trial: TrialTask) -> None:
        del self._running[trial.request.key]
        self._all_lanes[trial.request.key.model].in_flight -= 1
        if trial.sending.sender is trial:
            trial.sending.close(trial.failure)
            self.fleet.dispatch.release(trial.sending)

    def _on_end(self, trial: TrialTask) -> None:
        unusable = trial.failure is not None and trial.completion is None
        if trial.state is State.SCORING and unusable:
            # Answered, and no scorer can use the answer: it is paid for, and the next attempt will be too.
            self._note(trial, "malformed", str(trial.failure))
            self._presume(trial.sending, (trial,))
        trial.enter(State.ENDED)
        self._leave(trial)
        self._ended.append(trial)
        self._announce()

    def _on_attempt(
        self, sending: Sending, member: Member, records: Sequence[AttemptRecord], result: Result
    ) -> None:
        self.unlogged.attempts += records
        lane = self.lanes.get(sending.model)
        refused = isinstance(result, PermanentEndpointError) and result.kind != BY_USER_CODE
        if lane is not None and not refused:
            lane.proven = True
            lane.answered = lane.answered or not isinstance(result, EndpointError)
        if isinstance(result, EndpointError) and result.billed:
            self._presume(sending, sending.trials)
        self.fleet.ended(sending, member, result, records[0].latency)

    def _on_repeat(self, trial: TrialTask, member: Member) -> bool:
        """Log that a trial's question is asked again to test a server, if a budget has room for it."""
        if not self._may_repeat(trial.request.key):
            return False
        trial.attempts += 1
        key = trial.request.key
        now = self._clock.time()
        url = member.endpoint.url
        self.unlogged.attempts.append(AttemptRecord(key, trial.attempts, url, now, 0.0, None, SEED_TEST))
        self._announce()
        return True

    def spares(self, model: str, member: Member) -> bool:
        """Return whether all other servers of a model would give the draws that are in flight at one."""
        return self._runner.spares(model, member)

    async def compare(self, model: str, member: Member) -> None:
        """Find out whether they would."""
        await self._runner.compare(model, member)

    async def replies(self, model: str, member: Member, seconds: float) -> bool:
        """Return whether a server replies to the question of a trial in flight, under a seed of none."""
        for key, trial in self._running.items():
            if key.model == model and trial.wanted:
                return await self._runner.replies(trial, member, seconds)
        return False

    def _presume(self, sending: Sending, trials: Sequence[TrialTask]) -> None:
        """Count an attempt that may have been billed; it is the last one if no budget allows another.

        One request was made for all of `trials`, and one would be again: what is counted for any of them may
        forbid it.
        """
        verdicts = [self._presume_billed(trial.request.key) for trial in trials]
        sending.recorded = asyncio.Event()
        for trial in trials:
            trial.wanted = trial.wanted and all(verdicts)
        self.unlogged.recorded.append(sending.recorded)
        self._announce()
