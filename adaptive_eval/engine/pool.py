"""The servers of a model: which gets the next request, and which are back."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from adaptive_eval.engine.clock import TICK, backoff
from adaptive_eval.engine.health import FEW, SEVERAL, HealthMonitor, Presence
from adaptive_eval.engine.limits import RateLimiter, Server
from adaptive_eval.engine.overdue import ANSWERS, LEAST, TIMES
from adaptive_eval.engine.protocols import Clock, Endpoint
from adaptive_eval.errors import EndpointError, PermanentEndpointError, TransientEndpointError, without_home
from adaptive_eval.options.limit_options import RateLimit
from adaptive_eval.trial import Completion


@dataclass(eq=False, slots=True)
class Slot:
    """A request's slot at a server."""

    member: Member
    tokens: int  # the most tokens of the request
    since: float  # monotonic seconds when it was given
    task: asyncio.Task[None] | None = None  # the trial that asks, while its request is in flight
    given_up: EndpointError | None = None  # why its request was given up together with its server


@dataclass(eq=False, slots=True)
class Member:
    """One server of a model's pool."""

    endpoint: Endpoint  # asks the model there
    server: Server  # what the models served there share
    monitor: HealthMonitor  # how it has been doing
    presence: Presence = field(default_factory=Presence)  # whether it is there
    slots: dict[Slot, None] = field(default_factory=dict)  # of the model's requests in flight there, in order
    # monotonic seconds before which nothing may start: the server asked for a pause
    held_until: float = -math.inf
    refusals: int = 0  # consecutive requests that it was too busy for, with a time to wait
    last_chosen: int = 0  # number of the last choice that fell on it, so that equal servers take turns
    left_at: float | None = None  # monotonic seconds when it left the pool; None while it belongs to it

    @property
    def in_flight(self) -> int:
        """Requests of the model in flight there."""
        return len(self.slots)

    @property
    def usable(self) -> bool:
        """Whether requests may go there, now or after the pause that it asked for."""
        return self.left_at is None and self.presence.usable

    def hold(self, until: float) -> None:
        """Let nothing start there before time `until`."""
        self.held_until = max(self.held_until, until)

    def says(self, words: str) -> str:
        """Return `words` about it with its address before them, unless they begin with that."""
        url = without_home(self.endpoint.url)
        if words.startswith(url):
            return words
        return f"{url}: {words}"

    def open(self, now: float) -> bool:
        """Return whether it is there and has not asked for a pause."""
        return self.usable and now >= self.held_until

    def free(self, now: float) -> float:
        """Return how many requests may start there at time `now`, as far as the model is concerned."""
        if not self.open(now):
            return 0
        return self.presence.slots - len(self.slots)

    def speaks(self, after: float) -> bool:
        """Return whether it has answered after so many monotonic seconds, or is there and has no request."""
        return self.monitor.last > after or (self.usable and not self.server.in_flight)

    @property
    def awaited(self) -> bool:
        """Whether a trial waits for an answer from there."""
        return any(slot.task is not None for slot in self.slots)

    def give_up(self, failure: EndpointError) -> None:
        """Let the requests in flight there fail."""
        for slot in self.slots:
            if slot.task is not None:
                slot.given_up = failure
                slot.task.cancel()


@dataclass(frozen=True, slots=True)
class Silence:
    """When a server counts as silent: its health decides, never one answer that takes long.

    Enough requests together, of all models, have been in flight there for `times` as long as the longest
    answer, and at least for `least` seconds, while others answered; twice as long after each silence: servers
    may only have paused, and each time draws are lost. At a server that has answered nothing yet one request
    is enough, and one second.
    """

    requests: int = FEW
    times: float = TIMES
    least: float = LEAST
    answers: int = SEVERAL  # that must have been given
    itself: bool = False  # whether answers of the server itself are enough, and no other must answer

    def seconds(self, server: Server, longest: float, silences: int = 0) -> float:
        """Return the seconds for a server, by the longest answer and the silences before."""
        if self.itself:  # at the end, when nothing is asked meanwhile
            least = self.least
        elif server.answered:
            before = silences - server.silent  # its present one is none before
            least = self.least * backoff(1 + before) / TICK
        else:
            least = TICK
        return max(least, self.times * longest)


SPARED = Silence(times=1.0, least=TICK)
"""Where all other servers give the same draw to a seed: only tokens are lost, and ever fewer."""

AT_END = Silence(requests=1, least=2.0 * LEAST, answers=ANSWERS, itself=True)
"""When nothing more is sent, and a request would hold up the end of the run for as long as its timeout."""


class Late(NamedTuple):
    """A server that answers a model nothing, and its requests there that take too long."""

    member: Member
    requests: int
    seconds: float  # for which all of them have been in flight


class Pool:
    """The servers of one model, and how many requests and tokens a minute it may take."""

    def __init__(
        self,
        members: Sequence[Member],
        rate: RateLimit | None = None,
        *,
        open_since: float | None = None,
    ) -> None:
        self.members = tuple(members)
        self.rates = RateLimiter(rate or RateLimit())
        self._left: tuple[Member, ...] = ()  # servers whose requests in flight are awaited
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
        self._left = (*(one for one in self._left if one.slots), member)
        self._changed_at = now

    @property
    def slots(self) -> int:
        """Requests that all servers together may have in flight; every one of them must have a limit."""
        return int(sum(member.server.slots for member in self.members))

    @property
    def usable(self) -> bool:
        """Whether any server can be asked."""
        return any(member.usable for member in self.members)

    def reserve(self, tokens: int, *, now: float, failed_at: Collection[Member] = ()) -> Slot | None:
        """Take a slot at the free server with the fewest requests in flight, whichever models they are of."""
        if self.rates.free(tokens, now=now) < 1:
            return None
        free = [one for one in self.members if one.free(now) >= 1 and one.server.free(tokens, now=now) >= 1]
        if not free:
            return None
        chosen = free[0]
        if len(free) > 1:
            chosen = min(free, key=lambda one: (one in failed_at, *one.server.place(now), one.last_chosen))
        self._choices += 1
        chosen.last_chosen = self._choices
        return self.enter(chosen, tokens, now=now)

    def enter(self, member: Member, tokens: int, *, now: float) -> Slot:
        """Take a slot at a server."""
        slot = Slot(member, tokens, now)
        member.slots[slot] = None
        member.server.enter(tokens, now=now)
        self.rates.start(tokens, now=now)
        return slot

    def leave(self, slot: Slot, used: int, *, now: float) -> None:
        """Free a slot whose request has `used` so many tokens."""
        del slot.member.slots[slot]
        slot.member.server.leave(slot.tokens, used, now=now)
        self.rates.end(slot.tokens, used, now=now)

    def free_at(self, tokens: int, *, now: float) -> float:
        """Return when time alone lets a request of `tokens` start; infinity if it does not."""
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

        It is when the failure says that `member` is not to be asked now, and nothing about the trial: then
        the trial goes elsewhere at once, and no attempt is counted. If others may join, one that is
        refused, or has failed at a server that has left, waits for them. A request that one server calls bad
        is asked elsewhere too: servers may be set up differently.
        """
        others = [other for other in self.members if other not in tried]
        if isinstance(error, PermanentEndpointError):
            if error.kind == "bad_request":
                return any(other.open(now) for other in others)
            return self.grows or any(other.presence.state != "refused" for other in others)
        if member.left_at is not None:
            return True
        busy = error.kind == "rate_limit" and _asked_wait(error) is not None
        return (busy or not member.open(now)) and any(other.open(now) for other in others)

    def answered(self, member: Member, answers: Sequence[Completion], *, now: float, longest: float) -> None:
        """Take note of answers at `member`, and of a pause that they ask for (at most `longest` seconds)."""
        for answer in answers:
            member.monitor.answered(answer, now=now)
        member.presence.answered()
        member.refusals = 0
        pause = max(answer.pause for answer in answers)
        if pause > 0.0:
            member.hold(now + min(pause, longest))

    def failed(
        self, member: Member, error: EndpointError, trial: Hashable, *, now: float, longest: float
    ) -> bool:
        """Take note that a request of `trial` has failed at `member`; return whether that takes it out."""
        member.monitor.failed(error)
        if isinstance(error, PermanentEndpointError):
            if error.kind != "bad_request":
                member.presence.refused(error)
                self._changed_at = now if self.grows else None
            return False
        wait = _asked_wait(error)
        if wait is not None:
            member.refusals += 1
            # Fewer in a row delay themselves: at 16 requests in flight and one refusal in five that names a
            # second, a hold at each would make all take five times as long as those that were refused alone.
            if error.kind != "rate_limit" or member.refusals >= SEVERAL:
                member.hold(now + min(wait, longest))
        return member.presence.failed(error, trial, now=now)

    def late(self, now: float, rule: Silence, silences: int = 0) -> Iterator[Late]:
        """Yield the servers that answer nothing while answers came, with the requests that are late there."""
        for member in dict.fromkeys((*self.members, *self._left)):
            if not member.in_flight:
                continue
            others = [one for one in self.members if one is not member]
            answers = sum(one.monitor.answers for one in others)
            if rule.itself:
                answers += member.monitor.answers
            if answers < rule.answers:
                continue
            longest = max(one.monitor.longest for one in (member, *others))
            bound = rule.seconds(member.server, longest, silences)
            since = [slot.since for slot in member.slots if now - slot.since > bound]
            if not since or now - member.monitor.last <= bound:
                continue
            # What delays all of them is the network, or this process.
            if rule.itself or any(one.speaks(max(since) + longest) for one in others):
                yield Late(member, len(since), now - max(since))

    def lost(self, now: float, patience: float, further: Sequence[str] = ()) -> str | None:
        """Return why the model cannot be asked any more, None while it can be, or may be again soon.

        All servers are refused, or out for more than `patience` seconds; or for so long there has been none.
        """
        if self.usable:
            return None
        out = [member.presence for member in self.members if member.presence.state == "out"]
        moments = [presence.out_since or now for presence in out]
        if self._changed_at is not None:
            moments += [self._changed_at]
        if now - max(moments, default=-math.inf) <= patience:
            return None
        reasons = "; ".join(further or [member.says(member.presence.reason) for member in self.members])
        if self.grows:
            return f"there was no server for {patience:g} s: {reasons or 'none has answered yet'}"
        if out:
            return f"no server answered within {patience:g} s: {reasons}"
        return reasons


def _asked_wait(error: EndpointError) -> float | None:
    """Return the seconds for which a server asks to wait after a failure."""
    if isinstance(error, TransientEndpointError):
        return error.retry_after
    return None


class Prober:
    """Probes each server that is out until it answers; one task each."""

    def __init__(
        self,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        on_return: Callable[[], None],
        replies: Callable[[str, Member], Awaitable[bool]],
    ) -> None:
        self._clock = clock
        self._tasks = tasks
        self._on_return = on_return
        self._replies = replies  # whether a server that fell silent replies to a request
        self._probes: dict[Member, asyncio.Task[None]] = {}

    def watch(self, model: str, member: Member) -> None:
        """Probe `member`, which has just gone out."""
        before = self._probes.pop(member, None)
        if before is not None:  # an answer came, and it has not noticed yet
            before.cancel()
        self._probes[member] = self._tasks.create_task(self._until_back(model, member))

    def close(self) -> None:
        """Stop all probes."""
        for probe in self._probes.values():
            probe.cancel()

    async def _until_back(self, model: str, member: Member) -> None:
        while member.left_at is None and member.presence.state == "out":
            await self._clock.sleep(member.presence.probe_wait)
            there = await member.endpoint.alive()
            if there and member.server.silent:  # it may answer probes while requests hang
                there = await self._replies(model, member)
            member.presence.probed(there=there)
        self._on_return()
