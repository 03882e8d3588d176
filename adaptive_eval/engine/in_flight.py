"""All trials in flight, model by model: which may start, which have ended, which return to the queue."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, TypeAlias

from adaptive_eval.engine.attempts import TrialRunner
from adaptive_eval.engine.clock import Alarm
from adaptive_eval.engine.discovery import PoolChanges
from adaptive_eval.engine.dispatch import Dispatch
from adaptive_eval.engine.independence import COPY
from adaptive_eval.engine.limits import BatchRounds, Gate, ServerLimits
from adaptive_eval.engine.model_client import ModelClient, OfServers, Pools
from adaptive_eval.engine.no_answers import NoAnswers
from adaptive_eval.engine.pool import Member, Prober, QueueWatch
from adaptive_eval.engine.protocols import Clock, Endpoint, Executor
from adaptive_eval.engine.trial_task import TrialTask
from adaptive_eval.errors import Coded, EndpointError, PermanentEndpointError, ScorerUnavailable
from adaptive_eval.store.records import CANCELLED, WITHDRAWN, AttemptRecord, EndpointHealth
from adaptive_eval.trial import Completion, TrialKey

End: TypeAlias = Literal["scored", "unscored", "missing", "refused", "requeued", "abandoned"]
"""The end of a trial: with a score; with an answer that could not be scored; without an answer for good; with
a refusal that concerns the whole model; queued again; or dropped: its model or the run has stopped."""


class InFlightTrials:
    """The trials in flight of all models. Nothing here awaits, but the tasks of the trials themselves."""

    def __init__(
        self,
        clients: Mapping[str, ModelClient],
        servers: Mapping[str, ServerLimits],
        *,
        clock: Clock,
        executor: Executor,
        jitter: Callable[[], float],
        on_change: Callable[[], None],
        presume_billed: Callable[[TrialKey], bool],
        no_answers: NoAnswers,
    ) -> None:
        self._open = dict(clients)
        self._clock = clock
        self._announce = on_change
        self._known = Pools(clients, servers, clock)
        self._pools = self._known.of
        self.pool_changes = PoolChanges(
            self._known.discoveries, self._pools, self._enrol, clock, self._on_places
        )
        self._dispatch = Dispatch(self._pools, clock)
        self._prober = Prober(clock, self._on_places)
        self._alarm = Alarm(clock, self._on_places)
        self._queue_watch = QueueWatch(clock)
        self._runner = TrialRunner(
            clock,
            self._dispatch,
            executor,
            jitter,
            on_attempt=self._on_attempt,
            on_end=self._on_end,
        )
        self._presume_billed = presume_billed
        self.no_answers = no_answers
        self._dropped: list[tuple[TrialKey, bool]] = []
        self._unrecorded: list[asyncio.Event] = []
        self._gates = {
            model: Gate(client.limit or OfServers(self._pools[model], client.samples))
            for model, client in clients.items()
        }
        self._running: dict[TrialKey, TrialTask] = {}
        self._queues: dict[str, deque[TrialTask]] = {model: deque() for model in clients}
        self._consecutive_missing: Counter[str] = Counter()
        self._attempts: list[AttemptRecord] = []
        self._ended: deque[TrialTask] = deque()
        self._tasks: asyncio.TaskGroup | None = None

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
    def unfinished(self) -> int:
        """Number of trials that have begun and are not settled, including queued ones."""
        return len(self) + sum(map(len, self._queues.values()))

    @property
    def held(self) -> bool:
        """Whether a model can start nothing now, even alone, until time passes."""
        return any(not self._dispatch.places({model: 1})[model] for model in self._open)

    @contextmanager
    def in_tasks(self, tasks: asyncio.TaskGroup) -> Iterator[None]:
        """Run all trials and probes in `tasks`; probes end with the context."""
        self._tasks = tasks
        for pool in self._pools.values():
            for member in pool.members:
                self._queue_watch.watch(member, tasks)
        self.pool_changes.begin(tasks)
        try:
            yield
        finally:
            self.pool_changes.close()
            self._queue_watch.close()
            self._prober.close()
            self._alarm.close()

    def client(self, model: str) -> ModelClient | None:
        """Return how `model` is asked, None where it was stopped or is unknown."""
        return self._open.get(model)

    def capacity(self, without: Collection[str] = ()) -> dict[str, int]:
        """Return how many trials of every model that is not stopped may start; none of those `without`.

        Where requests can be for several trials, there are so many times the places: what does not share a
        request then waits for the next place.
        """
        places = self._places(without)
        return {
            model: min(self._gates[model].free, free * self._open[model].samples)
            for model, free in places.items()
        }

    def _places(self, without: Collection[str] = ()) -> dict[str, int]:
        """Return how many requests of every model may start."""
        wanted = {model: 0 if model in without else self._gates[model].free for model in self._open}
        return self._dispatch.places(wanted)

    @property
    def constrained(self) -> list[str]:
        """The models that have fewer free places than their own limits of concurrency would allow."""
        return [model for model, free in self._places().items() if free < self._gates[model].free]

    def wake_when_free(self) -> None:
        """Set a timer for the end of a rate limit or pause that delays a model."""
        assert self._tasks is not None
        self._alarm.set(self._dispatch.free_at(self.constrained), self._tasks)

    def relaunch(self) -> None:
        """Start queued trials again, as far as there are free places."""
        self._dispatch.serve()
        for model, free in self._places().items():
            queue = self._queues[model]
            for _ in range(min(free, len(queue))):
                self.start(queue.popleft())

    def start(self, trial: TrialTask) -> None:
        """Start `trial` as an asyncio task."""
        assert self._tasks is not None
        trial.failure = None
        self._gates[trial.request.key.model].enter()
        self._running[trial.request.key] = trial
        if trial.completion is not None:
            trial.phase = "scoring"  # its scorer was out of reach
        else:
            asks = self._dispatch.take(trial) if trial.sends else trial.group[0].phase == "asking"
            trial.phase = "asking" if asks else "waiting"
        trial.task = self._tasks.create_task(self._runner.run(trial))

    @property
    def rounds(self) -> list[BatchRounds]:
        """The limits of models that are asked in batches of a size that follows from the forecast."""
        return [gate.limit for gate in self._gates.values() if isinstance(gate.limit, BatchRounds)]

    def take_attempts(self) -> list[AttemptRecord]:
        """Return the attempts since the last call."""
        attempts, self._attempts = self._attempts, []
        return attempts

    def take_unrecorded(self) -> list[asyncio.Event]:
        """Return the events to be set once the attempts taken so far are on the disk."""
        unrecorded, self._unrecorded = self._unrecorded, []
        return unrecorded

    def take_dropped(self) -> list[tuple[TrialKey, bool]]:
        """Return the trials dropped without an outcome since the last call; True: may have been billed.

        Each is also stored as an attempt, so that later sessions of the run know of it.
        """
        gone, self._dropped = self._dropped, []
        return gone

    def ended(self) -> Iterator[TrialTask]:
        """Yield the trials that have ended, in the order in which they did; each is yielded once."""
        while self._ended:
            yield self._ended.popleft()

    def settle(self, trial: TrialTask) -> End:
        """Return how `trial` ended, and queue it again where it may be attempted again.

        The one place that decides what a failure means for the trial: a permanent one stops the model, a
        transient one queues the trial again until its requeues are used up, an answer that no scorer could
        score yet is kept.
        """
        model, failure = trial.request.key.model, trial.failure
        if failure is None and trial.score is not None:
            self.no_answers.add(model, trial.score)
        if failure is None and trial.score is not None and trial.score.category is not None:
            self._consecutive_missing[model] = 0
            return "scored"
        if failure is None:
            if trial.score is None or COPY not in trial.score.signals:  # a copy is an answer
                self._consecutive_missing[model] += 1
            return "unscored"
        if isinstance(failure, PermanentEndpointError) and model in self._open:
            self.drop(trial)
            return "refused"
        dropped = trial.last_attempt or model not in self._open
        paid = isinstance(failure, ScorerUnavailable)  # the answer is here and is kept
        if dropped and not paid:
            self.drop(trial)
            return "abandoned"
        spent = trial.spent.total_tokens > 0 and not paid  # another run of its solver would be paid as well
        if not dropped and not spent and trial.requeued < trial.client.requeues:
            trial.requeued += 1
            self._queues[model].append(trial)
            return "requeued"
        self._consecutive_missing[model] += 1
        return "unscored" if paid else "missing"

    def lost(self) -> dict[str, str]:
        """Return the models without a server for longer than their patience, and why."""
        now, who = self._clock.now(), self.pool_changes
        reasons = {
            model: self._pools[model].lost(now, client.patience, who.lacking(model))
            for model, client in self._open.items()
        }
        return {model: reason for model, reason in reasons.items() if reason is not None}

    def answers_nothing(self, model: str) -> bool:
        """Return whether too many consecutive trials of `model` are missing."""
        client = self._open.get(model)
        return client is not None and self._consecutive_missing[model] >= client.outage

    @property
    def open_models(self) -> Collection[str]:
        """The models that are asked."""
        return self._open.keys()

    def stop_model(self, model: str) -> None:
        """Start nothing more of `model`; requests in flight finish, waits are cancelled."""
        self._open.pop(model, None)
        self.pool_changes.drop(model)
        self._empty(self._queues[model])
        self._each(TrialTask.finish_attempt, model)

    def drain(self) -> None:
        """Let all requests in flight finish, and cancel the waits."""
        for queue in self._queues.values():
            self._empty(queue)
        self._each(TrialTask.finish_attempt)

    def abandon(self) -> None:
        """Cancel all trials in flight except those already answered."""
        self._each(TrialTask.abandon)

    def drop(self, trial: TrialTask) -> None:
        """Note that `trial` has no outcome, and whether it may have been billed."""
        out = trial.abandoned and trial.phase == "asking"
        billed = trial.completion is not None or out or trial.spent.total_tokens > 0
        key = trial.request.key
        self._dropped.append((key, billed))
        self._note(trial, CANCELLED if billed else WITHDRAWN)

    def _note(self, trial: TrialTask, kind: str, message: str = "") -> None:
        """Log what became of `trial` after its last attempt."""
        key, number, now = trial.request.key, trial.attempts + 1, self._clock.time()
        self._attempts.append(AttemptRecord(key, number, trial.url, now, 0.0, None, kind, message))

    def _empty(self, queue: deque[TrialTask]) -> None:
        """Drop the queued trials; an answer that waits for its scorer ends unscored."""
        while queue:
            trial = queue.popleft()
            if trial.completion is None:
                self.drop(trial)
            else:
                trial.last_attempt = True
                self._ended.append(trial)
                self._announce()

    def remarks(self) -> tuple[str, ...]:
        """Return warnings about servers and answers."""
        return (*self.pool_changes.remarks(), *self._impossible_usages(), *self.no_answers.remarks())

    def _impossible_usages(self) -> Iterator[str]:
        for model, pool in self._pools.items():
            for member in pool.members:
                count = member.monitor.impossible_usages
                if count:
                    answers = "an answer" if count == 1 else f"{count:,} answers"
                    yield Coded(
                        "warning/usage-impossible",
                        f"{model}: {member.endpoint.url} reported more tokens than can be for {answers}; "
                        "this counts as no report, at the worst case where a budget limits tokens or money",
                    )

    def health(self) -> tuple[EndpointHealth, ...]:
        """Return how every server of every model is doing."""
        now = self._clock.now()
        members = (
            member.monitor.health(
                now=now,
                in_flight=member.in_flight,
                limit=int(min(self._gates[model].limit.slots, member.server.slots)),
                state=member.presence.state,
            )
            for model, pool in self._pools.items()
            for member in pool.members
        )
        return (*members, *self.pool_changes.health())

    def _each(self, how: Callable[[TrialTask], None], model: str | None = None) -> None:
        for trial in self._ended:
            trial.last_attempt = True  # one that has failed is not queued again
        for trial in list(self._running.values()):
            if model is None or trial.request.key.model == model:
                how(trial)
                if trial.abandoned:
                    self._leave(trial)
                    self.drop(trial)

    def _leave(self, trial: TrialTask) -> None:
        del self._running[trial.request.key]
        self._gates[trial.request.key.model].leave()
        self._dispatch.release(trial)

    def _on_end(self, trial: TrialTask) -> None:
        if trial.phase == "scoring" and trial.failure is not None and trial.completion is None:
            # Answered, and no scorer can use the answer: it is paid for, and the next attempt will be too.
            self._note(trial, "malformed", str(trial.failure))
            self._count((trial,))
        self._leave(trial)
        self._ended.append(trial)
        self._announce()

    def _enrol(self, model: str, endpoint: Endpoint) -> Member:
        """Return the member for a newly discovered server."""
        assert self._tasks is not None
        member = self._known.member(model, endpoint)
        self._queue_watch.watch(member, self._tasks)
        return member

    def _on_places(self) -> None:
        self._dispatch.serve()
        self._announce()

    def _on_attempt(
        self,
        trial: TrialTask,
        member: Member,
        records: Sequence[AttemptRecord],
        result: Sequence[Completion] | EndpointError,
    ) -> None:
        self._attempts += records
        now, latency = self._clock.now(), records[0].latency
        pool = self._pools[trial.request.key.model]
        # No longer than a trial would wait: a server that says "tomorrow" is asked again before.
        longest = trial.client.retry.total_wait
        if not isinstance(result, EndpointError):
            tokens = sum(answer.usage.completion_tokens for answer in result)
            member.server.answered(sent_at=now - latency, now=now, tokens=tokens)
            pool.answered(member, result, now=now, longest=longest)
            member.monitor.withheld(len(records) - len(result))
            return
        member.server.failed(result, sent_at=now - latency, now=now)
        if result.billed:
            self._count(trial.group)
        if pool.failed(member, result, trial.request.key, now=now, longest=longest):
            assert self._tasks is not None
            self._prober.watch(member, self._tasks)

    def _count(self, group: Sequence[TrialTask]) -> None:
        """Count an attempt that may have been billed; it is the last one where no budget allows another.

        One request was made for all of `group`, and one would be again: what is counted for any of them may
        forbid it.
        """
        verdicts = [self._presume_billed(trial.request.key) for trial in group]
        recorded = asyncio.Event()
        for trial in group:
            trial.last_attempt = trial.last_attempt or not all(verdicts)
            trial.recorded = recorded
        self._unrecorded.append(recorded)
        self._announce()
