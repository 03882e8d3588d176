"""The servers of a model: which gets the next request, and which are back."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field

from adaptive_eval.engine.health import PROBATION_SLOTS, HealthMonitor, Presence
from adaptive_eval.engine.limits import AdaptiveConcurrency, Server
from adaptive_eval.engine.protocols import Clock, Endpoint, QueueingEndpoint
from adaptive_eval.engine.rates import RateLimit, Rates
from adaptive_eval.errors import EndpointError, PermanentEndpointError, TransientEndpointError
from adaptive_eval.trial import Completion


@dataclass(eq=False, slots=True)
class Member:
    """One server of a model's pool."""

    endpoint: Endpoint  # asks the model there
    server: Server  # what the models served there share
    monitor: HealthMonitor  # how it has been doing
    presence: Presence = field(default_factory=Presence)  # whether it is there
    in_flight: int = 0  # requests of the model in flight there
    # monotonic seconds before which nothing may start: the server asked for a pause
    held_until: float = -math.inf
    last_chosen: int = 0  # number of the last choice that fell on it, so that equal servers take turns
    left_at: float | None = None  # monotonic seconds when it left the pool; None while it belongs to it

    @property
    def usable(self) -> bool:
        """Whether requests may go there, now or after the pause that it asked for."""
        return self.left_at is None and self.presence.usable

    def hold(self, until: float) -> None:
        """Let nothing start there before time `until`."""
        self.held_until = max(self.held_until, until)

    def says(self, words: str) -> str:
        """Return `words` about it with its address before them, unless they begin with that."""
        url = self.endpoint.url
        return words if words.startswith(url) else f"{url}: {words}"

    def open(self, now: float) -> bool:
        """Return whether it is there and has not asked for a pause."""
        return self.usable and now >= self.held_until

    def free(self, now: float) -> float:
        """Return how many requests may start there at time `now`, as far as the model is concerned."""
        if not self.open(now):
            return 0
        return math.inf if self.presence.state == "in" else max(0, PROBATION_SLOTS - self.in_flight)


class Pool:
    """The servers of one model, and how many requests and tokens a minute it may take."""

    def __init__(
        self, members: Sequence[Member], rate: RateLimit | None = None, *, open_since: float | None = None
    ) -> None:
        self.members = tuple(members)
        self.rates = Rates(rate or RateLimit())
        self._choices = 0
        self._changed_at = open_since

    @property
    def grows(self) -> bool:
        """Whether other servers may join."""
        return self._changed_at is not None

    def join(self, member: Member, *, now: float) -> None:
        """Add a server, or add it again."""
        member.left_at = None
        self.members = (*self.members, member)
        self._changed_at = now

    def part(self, member: Member, *, now: float) -> None:
        """Remove a server: it gets no more requests; those in flight finish."""
        member.left_at = now
        self.members = tuple(one for one in self.members if one is not member)
        self._changed_at = now

    @property
    def slots(self) -> int:
        """Requests that all servers together may have in flight; every one of them must have a limit."""
        return int(sum(member.server.slots for member in self.members))

    def choose(self, tokens: int, *, now: float, failed_at: Collection[Member] = ()) -> Member | None:
        """Return the free server with the fewest requests in flight, those of other models included."""
        if self.rates.room(tokens, now=now) < 1:
            return None
        free = [one for one in self.members if one.free(now) >= 1 and one.server.free(tokens, now=now) >= 1]
        if not free:
            return None
        chosen = min(free, key=lambda one: (one in failed_at, one.server.in_flight, one.last_chosen))
        self._choices += 1
        chosen.last_chosen = self._choices
        return chosen

    def enter(self, member: Member, tokens: int, *, now: float) -> None:
        """Count a request at `member` that starts and takes `tokens` at most."""
        member.in_flight += 1
        member.server.enter(tokens, now=now)
        self.rates.start(tokens, now=now)

    def leave(self, member: Member, tokens: int, used: int, *, now: float) -> None:
        """Count a request at `member` that has ended and `used` so many of its `tokens`."""
        member.in_flight -= 1
        member.server.leave(tokens, used, now=now)
        self.rates.end(tokens, used, now=now)

    def free_at(self, tokens: int, *, now: float) -> float:
        """Return when time alone lets a request of `tokens` start; infinity where it does not."""
        times = [
            max(one.held_until, one.server.rates.free_at(tokens, now=now))
            for one in self.members
            if one.usable and one.server.in_flight < one.server.slots
        ]
        return max(self.rates.free_at(tokens, now=now), min(times, default=math.inf))

    def elsewhere(
        self, member: Member, error: EndpointError, tried: Collection[Member], *, now: float
    ) -> bool:
        """Return whether a trial that has failed at `member` is the concern of another server.

        It is where the failure says that `member` is not to be asked now, and nothing about the trial: then
        the trial goes elsewhere at once, and no attempt is counted. Where others may join, one that is
        refused, or has failed at a server that has left, waits for them.
        """
        others = [other for other in self.members if other not in tried]
        if isinstance(error, PermanentEndpointError):
            others_left = self.grows or any(other.presence.state != "refused" for other in others)
            return error.kind != "bad_request" and others_left
        return member.left_at is not None or (
            not member.open(now) and any(other.open(now) for other in others)
        )

    def answered(self, member: Member, answers: Sequence[Completion], *, now: float, longest: float) -> None:
        """Take note of answers at `member`, and of a pause that they ask for (at most `longest` seconds)."""
        for answer in answers:
            member.monitor.answered(answer, now=now)
        member.presence.answered()
        pause = max(answer.pause for answer in answers)
        if pause > 0.0:
            member.hold(now + min(pause, longest))

    def failed(
        self, member: Member, error: EndpointError, trial: Hashable, *, now: float, longest: float
    ) -> bool:
        """Take note that a request of `trial` has failed at `member`."""
        member.monitor.failed(error)
        if isinstance(error, PermanentEndpointError):
            if error.kind != "bad_request":
                member.presence.refused(error)
                self._changed_at = now if self.grows else None
            return False
        if isinstance(error, TransientEndpointError) and error.retry_after is not None:
            member.hold(now + min(error.retry_after, longest))
        return member.presence.failed(error, trial, now=now)

    def lost(self, now: float, patience: float, further: Sequence[str] = ()) -> str | None:
        """Return why the model cannot be asked any more, None while it can be, or may be again soon.

        All servers are refused, or out for more than `patience` seconds; or for so long there has been none.
        """
        if any(member.usable for member in self.members):
            return None
        out = [member.presence for member in self.members if member.presence.state == "out"]
        moments = [presence.out_since or now for presence in out]
        moments += [] if self._changed_at is None else [self._changed_at]
        if now - max(moments, default=-math.inf) <= patience:
            return None
        reasons = "; ".join(further or [member.says(member.presence.reason) for member in self.members])
        if self.grows:
            return f"there was no server for {patience:g} s: {reasons or 'none has answered yet'}"
        return f"no server answered within {patience:g} s: {reasons}" if out else reasons


class Prober:
    """Probes each server that is out until it answers; one task each."""

    def __init__(self, clock: Clock, on_return: Callable[[], None]) -> None:
        self._clock = clock
        self._on_return = on_return
        self._tasks: set[asyncio.Task[None]] = set()

    def watch(self, member: Member, tasks: asyncio.TaskGroup) -> None:
        """Probe `member`, which has just gone out, in `tasks`."""
        task = tasks.create_task(self._until_back(member))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Stop all probes."""
        for task in self._tasks:
            task.cancel()

    async def _until_back(self, member: Member) -> None:
        while member.left_at is None and member.presence.state == "out":
            await self._clock.sleep(member.presence.probe_wait)
            member.presence.probed(there=await member.endpoint.alive())
        self._on_return()


_EVERY = 5.0
"""Seconds between two requests."""

_SILENT = 3
"""A server that did not say it this many times in succession is not asked again."""


class QueueWatch:
    """Tells each adaptive limit how many requests wait at its server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watches: dict[Server, asyncio.Task[None]] = {}

    def watch(self, member: Member, tasks: asyncio.TaskGroup) -> None:
        """Watch the server of `member` in `tasks`, if its limit adapts and it is not watched yet."""
        server, endpoint = member.server, member.endpoint
        if server.adaptive is None or server in self._watches or not isinstance(endpoint, QueueingEndpoint):
            return
        self._watches[server] = tasks.create_task(self._watch(server, server.adaptive, endpoint))

    def close(self) -> None:
        """Stop asking."""
        for watch in self._watches.values():
            watch.cancel()

    async def _watch(self, server: Server, limit: AdaptiveConcurrency, endpoint: QueueingEndpoint) -> None:
        silent = 0
        while silent < _SILENT:
            await self._clock.sleep(_EVERY)
            if server.in_flight:
                waiting = await endpoint.waiting()
                silent = silent + 1 if waiting is None else 0
                limit.waiting(waiting or 0, in_flight=server.in_flight, now=self._clock.now())
