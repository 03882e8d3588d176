"""All trials in flight, model by model: who may start, who has ended, who comes back to the queue."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, TypeAlias

from adaptive_eval.engine.alarm import Alarm
from adaptive_eval.engine.dispatch import Dispatch
from adaptive_eval.engine.flight import Flight
from adaptive_eval.engine.lane import Lane
from adaptive_eval.engine.limits import Gate
from adaptive_eval.engine.pool import Member
from adaptive_eval.engine.pool_changes import Membership
from adaptive_eval.engine.pools import OfServers, Pools
from adaptive_eval.engine.prober import Prober
from adaptive_eval.engine.protocols import Clock, Endpoint, Executor
from adaptive_eval.engine.queue_watch import QueueWatch
from adaptive_eval.engine.server import ServerLimits
from adaptive_eval.engine.trials import TrialRunner
from adaptive_eval.errors import EndpointError, PermanentEndpointError, ScorerUnavailable
from adaptive_eval.store.records import CANCELLED, WITHDRAWN, AttemptRecord, EndpointHealth
from adaptive_eval.trial import Completion, TrialKey

__all__ = ["End", "Fleet"]

End: TypeAlias = Literal["scored", "unscored", "missing", "refused", "requeued", "abandoned"]
"""How a flight ended: with a score; with an answer that could not be scored; without an answer for good; with
a refusal that concerns the whole model; given up for now; or with a failure that no longer matters, because
its model or the run has stopped."""


class Fleet:
    """The trials in flight of all models. Nothing here awaits, but the tasks of the trials themselves.

    Parameters
    ----------
    lanes : mapping of str to Lane
        How each model is asked.
    servers : mapping of str to ServerLimits
        Limits of servers, by their address.
    clock : Clock
        For attempts, waits and rates.
    executor : Executor
        Makes the attempts and scores the answers.
    jitter : callable
        Returns a uniform random number in [0, 1).
    on_change : callable
        Called when a trial has ended and waits in :meth:`ended`, and when a server is back.
    presume : callable
        Called when an attempt has come to nothing and may have been billed; returns whether the budgets allow
        the trial another.

    Attributes
    ----------
    membership : Membership
        Which servers join and leave, where they are found.
    """

    def __init__(
        self,
        lanes: Mapping[str, Lane],
        servers: Mapping[str, ServerLimits],
        *,
        clock: Clock,
        executor: Executor,
        jitter: Callable[[], float],
        on_change: Callable[[], None],
        presume: Callable[[TrialKey], bool],
    ) -> None:
        self._open = dict(lanes)
        self._clock = clock
        self._announce = on_change
        self._known = Pools(lanes, servers, clock)
        self._pools = self._known.of
        self.membership = Membership(
            self._known.discoveries, self._pools, self._enrol, clock, self._on_places
        )
        self._dispatch = Dispatch(self._pools, clock)
        self._prober = Prober(clock, self._on_places)
        self._alarm = Alarm(clock, self._on_places)
        self._queue_watch = QueueWatch(clock)
        self._trials = TrialRunner(
            clock,
            self._dispatch,
            executor,
            jitter,
            on_attempt=self._on_attempt,
            on_end=self._on_flight_end,
        )
        self._presume = presume
        self._gone: list[tuple[TrialKey, bool]] = []
        self._unrecorded: list[asyncio.Event] = []
        self._gates = {
            model: Gate(lane.limit or OfServers(self._pools[model], lane.samples))
            for model, lane in lanes.items()
        }
        self._flights: dict[TrialKey, Flight] = {}
        self._queues: dict[str, deque[Flight]] = {model: deque() for model in lanes}
        self._missing_in_a_row: Counter[str] = Counter()
        self._attempts: list[AttemptRecord] = []
        self._ended: deque[Flight] = deque()
        self._tasks: asyncio.TaskGroup | None = None

    def __len__(self) -> int:
        """Return how many trials are in flight or have ended and wait in :meth:`ended`."""
        return len(self._flights) + len(self._ended)

    def __contains__(self, key: TrialKey) -> bool:
        return key in self._flights

    @property
    def in_flight(self) -> int:
        """How many trials are in flight; those that wait in a queue are not."""
        return len(self._flights)

    @property
    def unfinished(self) -> int:
        """How many trials have begun and are not settled, those that wait in a queue among them."""
        return len(self) + sum(map(len, self._queues.values()))

    @property
    def held(self) -> bool:
        """Whether a model could start nothing now, even alone: only time can tell what comes."""
        return any(not self._dispatch.places({model: 1})[model] for model in self._open)

    @contextmanager
    def in_tasks(self, tasks: asyncio.TaskGroup) -> Iterator[None]:
        """Run all trials and probes in `tasks`; when this is left, nothing is probed any more."""
        self._tasks = tasks
        for pool in self._pools.values():
            for member in pool.members:
                self._queue_watch.watch(member, tasks)
        self.membership.begin(tasks)
        try:
            yield
        finally:
            self.membership.close()
            self._queue_watch.close()
            self._prober.close()
            self._alarm.close()

    def lane(self, model: str) -> Lane | None:
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
        """Announce the moment at which a rate limit or a silence ends that holds a model up."""
        assert self._tasks is not None
        self._alarm.set(self._dispatch.free_at(self.constrained), self._tasks)

    def relaunch(self) -> None:
        """Start again what has come back to the queue, as far as there are free places."""
        self._dispatch.serve()
        for model, free in self._places().items():
            queue = self._queues[model]
            for _ in range(min(free, len(queue))):
                self.start(queue.popleft())

    def start(self, flight: Flight) -> None:
        """Start `flight` in a task of its own."""
        assert self._tasks is not None
        flight.failure = None
        self._gates[flight.request.key.model].enter()
        self._flights[flight.request.key] = flight
        if flight.completion is not None:
            flight.phase = "scoring"  # its scorer was out of reach
        else:
            asks = self._dispatch.take(flight) if flight.sends else flight.party[0].phase == "asking"
            flight.phase = "asking" if asks else "waiting"
        flight.task = self._tasks.create_task(self._trials.run(flight))

    def take_attempts(self) -> list[AttemptRecord]:
        """Return the attempts since the last call."""
        attempts, self._attempts = self._attempts, []
        return attempts

    def take_unrecorded(self) -> list[asyncio.Event]:
        """Return the events to be set once the attempts taken so far are on the disk."""
        unrecorded, self._unrecorded = self._unrecorded, []
        return unrecorded

    def take_gone(self) -> list[tuple[TrialKey, bool]]:
        """Return the trials given up without an outcome since the last call; True: one may have been billed.

        Each has left a word in the attempts, so that a later sitting knows of it too.
        """
        gone, self._gone = self._gone, []
        return gone

    def ended(self) -> Iterator[Flight]:
        """Yield the trials that have ended, in the order in which they did; each is yielded once."""
        while self._ended:
            yield self._ended.popleft()

    def settle(self, flight: Flight) -> End:
        """Say how `flight` ended; put it back into the queue where it has a further chance."""
        model, failure = flight.request.key.model, flight.failure
        if failure is None and flight.score is not None and flight.score.category is not None:
            self._missing_in_a_row[model] = 0
            return "scored"
        if failure is None:
            self._missing_in_a_row[model] += 1
            return "unscored"
        if isinstance(failure, PermanentEndpointError) and model in self._open:
            self.give_up(flight)
            return "refused"
        given_up = flight.last_attempt or model not in self._open
        paid = isinstance(failure, ScorerUnavailable)  # the answer is here and is kept
        if given_up and not paid:
            self.give_up(flight)
            return "abandoned"
        if not given_up and flight.requeued < flight.lane.requeues:
            flight.requeued += 1
            self._queues[model].append(flight)
            return "requeued"
        self._missing_in_a_row[model] += 1
        return "unscored" if paid else "missing"

    def lost(self) -> dict[str, str]:
        """Return the models none of whose servers has been there for longer than is waited, and why."""
        now, who = self._clock.now(), self.membership
        reasons = {
            model: self._pools[model].lost(now, lane.patience, who.lacking(model))
            for model, lane in self._open.items()
        }
        return {model: reason for model, reason in reasons.items() if reason is not None}

    def is_barren(self, model: str) -> bool:
        """Return whether too many trials of `model` in a row are missing: its servers are of no use."""
        lane = self._open.get(model)
        return lane is not None and self._missing_in_a_row[model] >= lane.outage

    @property
    def open_models(self) -> Collection[str]:
        """The models that are asked."""
        return self._open.keys()

    def stop_model(self, model: str) -> None:
        """Start nothing more of `model`; requests that are out come back, waits are broken off."""
        self._open.pop(model, None)
        self.membership.drop(model)
        self._empty(self._queues[model])
        self._each(Flight.finish_attempt, model)

    def drain(self) -> None:
        """Let all requests that are out come back, and break off the waits."""
        for queue in self._queues.values():
            self._empty(queue)
        self._each(Flight.finish_attempt)

    def abandon(self) -> None:
        """Cancel all that is in flight, but what is already answered."""
        self._each(Flight.abandon)

    def give_up(self, flight: Flight) -> None:
        """Note that `flight` leaves no outcome, and whether what it has cost is unknown."""
        billed = flight.completion is not None or (flight.abandoned and flight.phase == "asking")
        key = flight.request.key
        self._gone.append((key, billed))
        kind = CANCELLED if billed else WITHDRAWN
        now = self._clock.time()
        self._attempts.append(AttemptRecord(key, flight.attempts + 1, flight.url, now, 0.0, None, kind))

    def _empty(self, queue: deque[Flight]) -> None:
        """Give up what waits for another attempt; an answer that waits for its scorer ends unscored."""
        while queue:
            flight = queue.popleft()
            if flight.completion is None:
                self.give_up(flight)
            else:
                flight.last_attempt = True
                self._ended.append(flight)
                self._announce()

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
        return (*members, *self.membership.health())

    def _each(self, how: Callable[[Flight], None], model: str | None = None) -> None:
        for flight in list(self._flights.values()):
            if model is None or flight.request.key.model == model:
                how(flight)
                if flight.abandoned:
                    self._leave(flight)
                    self.give_up(flight)

    def _leave(self, flight: Flight) -> None:
        del self._flights[flight.request.key]
        self._gates[flight.request.key.model].leave()
        self._dispatch.release(flight)

    def _on_flight_end(self, flight: Flight) -> None:
        if flight.phase == "scoring" and flight.failure is not None and flight.completion is None:
            self._count((flight,))  # answered, and no scorer can use the answer
        self._leave(flight)
        self._ended.append(flight)
        self._announce()

    def _enrol(self, model: str, endpoint: Endpoint) -> Member:
        """Return a member that has just been found."""
        assert self._tasks is not None
        member = self._known.member(model, endpoint)
        self._queue_watch.watch(member, self._tasks)
        return member

    def _on_places(self) -> None:
        self._dispatch.serve()
        self._announce()

    def _on_attempt(
        self,
        flight: Flight,
        member: Member,
        records: Sequence[AttemptRecord],
        result: Sequence[Completion] | EndpointError,
    ) -> None:
        self._attempts += records
        now, latency = self._clock.now(), records[0].latency
        pool = self._pools[flight.request.key.model]
        # No longer than a trial would wait: a server that says "tomorrow" is asked again before.
        longest = flight.lane.retry.total_wait
        if not isinstance(result, EndpointError):
            tokens = sum(answer.usage.completion_tokens for answer in result)
            member.server.answered(sent_at=now - latency, now=now, tokens=tokens)
            pool.answered(member, result, now=now, longest=longest)
            member.monitor.withheld(len(records) - len(result))
            return
        member.server.failed(result, sent_at=now - latency, now=now)
        if result.billed:
            self._count(flight.party)
        if pool.failed(member, result, flight.request.key, now=now, longest=longest):
            assert self._tasks is not None
            self._prober.watch(member, self._tasks)

    def _count(self, party: Sequence[Flight]) -> None:
        """Count an attempt that may have been billed; it is the last one where no budget allows another.

        One request was made for all of `party`, and one would be again: what is counted for any of them may
        forbid it.
        """
        verdicts = [self._presume(flight.request.key) for flight in party]
        recorded = asyncio.Event()
        for flight in party:
            flight.last_attempt = flight.last_attempt or not all(verdicts)
            flight.recorded = recorded
        self._unrecorded.append(recorded)
        self._announce()
