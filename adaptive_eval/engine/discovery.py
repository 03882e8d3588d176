"""Servers that come and go: the source that names them, and the pools that follow it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from adaptive_eval.config.model import DiscoveryConfig
from adaptive_eval.core.results import Decision
from adaptive_eval.engine.clock import LONGEST_WAIT, backoff
from adaptive_eval.engine.health import HealthMonitor, Presence
from adaptive_eval.engine.pool import Member, Pool
from adaptive_eval.engine.protocols import Clock, Endpoint
from adaptive_eval.errors import Coded, EndpointError, PermanentEndpointError
from adaptive_eval.store.records import EndpointHealth


@dataclass(frozen=True, slots=True)
class Reading:
    """The servers that a source names now."""

    addresses: tuple[str, ...] = ()  # base addresses, without repetition; the last known ones at a problem
    problem: str = ""  # why it could not be read


class ServerFinder(Protocol):
    """Says which servers are there. Models that share one share its servers."""

    @property
    def name(self) -> str:
        """Its description in messages."""

    @property
    def every(self) -> float:
        """Seconds from one reading to the next."""

    async def read(self) -> Reading:
        """Read it; never raises, never blocks the event loop, and ends within its time limit."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The search for the servers of one model."""

    source: ServerFinder  # names the servers
    # returns the endpoint at an address once it has said that it serves the model; raises EndpointError
    # where it does not. Asked again for an address, it may return the same endpoint.
    connect: Callable[[str], Awaitable[Endpoint]]
    config: DiscoveryConfig


@dataclass(eq=False)
class PoolMembers:
    """Adds the servers that a source names to the pool of one model, and removes the others.

    A server joins once it has answered that it serves the model; until then it is asked repeatedly. A server
    that leaves gets no more requests; those in flight finish.
    """

    model: str
    discovery: Discovery
    pool: Pool
    enrol: Callable[[Endpoint], Member]
    clock: Clock
    tasks: asyncio.TaskGroup
    changes: list[Decision]
    on_change: Callable[[], None]
    _candidates: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)
    _why_not: dict[str, EndpointError] = field(default_factory=dict, init=False)
    _members: dict[str, Member] = field(default_factory=dict, init=False)
    _was_read: bool = field(default=False, init=False)

    def follow(self, addresses: Sequence[str]) -> None:
        """Update the pool to these addresses; new servers are asked whether they serve the model."""
        self._was_read = True
        named = set(addresses)
        for url in [url for url in self._candidates if url not in named]:
            self._candidates.pop(url).cancel()
            self._why_not.pop(url, None)
        for url, member in self._members.items():
            if member.left_at is None and url not in named:
                self.pool.part(member, now=self.clock.now())
                self._note("left", url, "left")
        for url in addresses:
            known = self._members.get(url)
            if url not in self._candidates and (known is None or known.left_at is not None):
                self._candidates[url] = self.tasks.create_task(self._join_when_ready(url))

    def close(self) -> None:
        """Stop asking servers to join."""
        for task in self._candidates.values():
            task.cancel()

    @property
    def lacking(self) -> tuple[str, ...]:
        """Why no server can be asked; empty if one can, or before all have been tried."""
        usable = any(member.usable for member in self.pool.members)
        if usable or not self._was_read or not self._why_not.keys() >= self._candidates.keys():
            return ()
        return tuple(self.refusals) or (f"{self.discovery.source.name} names none",)

    @property
    def refusals(self) -> Iterator[str]:
        """Why servers that the source names are not asked."""
        for url, error in self._why_not.items():
            if url in str(error):
                yield str(error)
            else:
                yield f"{url}: {error}"
        for member in self.pool.members:
            if not member.usable:
                yield member.says(member.presence.reason)

    def health(self, now: float) -> Iterator[EndpointHealth]:
        """Yield the state of servers outside the pool: those that are joining, or left not long ago.

        One that left is shown for as long as the model would wait for a server.
        """
        for url in self._candidates:
            refuses = isinstance(self._why_not.get(url), PermanentEndpointError)
            state = "refused" if refuses else "joining"
            yield HealthMonitor(self.model, url).health(now=now, in_flight=0, limit=0, state=state)
        patience = self.discovery.config.patience
        for url, member in self._members.items():
            gone = member.left_at is not None and url not in self._candidates
            if gone and (member.in_flight or now - (member.left_at or 0.0) <= patience):
                yield member.monitor.health(now=now, in_flight=member.in_flight, limit=0, state="left")

    async def _join_when_ready(self, url: str) -> None:
        """Ask a server until it serves the model, then add it; a refusal is noted once."""
        probes = 0
        while True:
            try:
                endpoint = await self.discovery.connect(url)
                break
            except EndpointError as error:
                probes += 1
                wait = backoff(probes)
                if isinstance(error, PermanentEndpointError):
                    wait = LONGEST_WAIT
                    if str(self._why_not.get(url)) != str(error):
                        self._note("refused", url, f"is left out: {error}")
                self._why_not[url] = error
            self.on_change()
            await self.clock.sleep(wait)
        del self._candidates[url]
        self._why_not.pop(url, None)
        self._join(url, endpoint)

    def _join(self, url: str, endpoint: Endpoint) -> None:
        member = self._members.get(url)
        if member is None:
            member = self._members[url] = self.enrol(endpoint)
        else:
            member.endpoint, member.presence = endpoint, Presence()
        self.pool.join(member, now=self.clock.now())
        self._note("joined", url, "joined")

    def _note(self, what: str, url: str, words: str) -> None:
        text = f"{self.model}: server {url} {words}"
        self.changes.append(Decision("servers", (self.model,), what, 0, 0, text, {}))
        self.on_change()


class PoolChanges:
    """The pool members of all models with discovered servers; each source is read once for all of them."""

    def __init__(
        self,
        discoveries: Mapping[str, Discovery],
        pools: Mapping[str, Pool],
        enrol: Callable[[str, Endpoint], Member],
        clock: Clock,
        tasks: asyncio.TaskGroup,
        on_change: Callable[[], None],
    ) -> None:
        self._changes: list[Decision] = []
        self._pool_members: dict[str, PoolMembers] = {}
        for model, discovery in discoveries.items():
            self._pool_members[model] = PoolMembers(
                model, discovery, pools[model], partial(enrol, model), clock, tasks, self._changes, on_change
            )
        self._clock = clock
        self._tasks = tasks
        self._announce = on_change
        self._problems: dict[ServerFinder, str] = {}
        self._readers: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Read the sources from now on, and ask the servers that they name."""
        for source in {members.discovery.source: None for members in self._pool_members.values()}:
            self._readers.append(self._tasks.create_task(self._follow(source)))

    def close(self) -> None:
        """Stop reading the sources."""
        for reader in self._readers:
            reader.cancel()
        for members in self._pool_members.values():
            members.close()

    def drop(self, model: str) -> None:
        """Close the pool of `model`, which is stopped, to new servers."""
        members = self._pool_members.pop(model, None)
        if members is not None:
            members.close()

    def take_decisions(self, trials: int) -> list[Decision]:
        """Return the changes since the last call as decisions, made after so many trials."""
        changes = [replace(change, trials=trials) for change in self._changes]
        self._changes.clear()
        return changes

    def remarks(self) -> tuple[str, ...]:
        """Return warnings: sources that cannot be read, models without a server."""
        return tuple(dict.fromkeys([*self._of_sources(), *self._of_models()]))

    def lacking(self, model: str) -> tuple[str, ...]:
        """Return why `model` has no server that can be asked; empty if it has one."""
        members = self._pool_members.get(model)
        if members is None:
            return ()
        return members.lacking

    def health(self) -> Iterator[EndpointHealth]:
        """Yield the state of servers that are joining a pool or left one recently."""
        now = self._clock.now()
        for members in self._pool_members.values():
            yield from members.health(now)

    def _of_sources(self) -> Iterator[str]:
        for problem in self._problems.values():
            if problem:
                yield Coded("warning/server-list", f"{problem}; the last known servers are kept")

    def _of_models(self) -> Iterator[str]:
        alike: dict[str, list[str]] = {}
        for model, members in self._pool_members.items():
            if members.lacking:
                patience = members.discovery.config.patience
                why = "; ".join(members.lacking)
                words = f"for a server, {patience:g} s at most: {why}"
                alike.setdefault(words, []).append(model)
        for words, models in alike.items():
            verb = "wait"
            if len(models) == 1:
                verb = "waits"
            yield Coded("warning/waiting", f"{', '.join(models)} {verb} {words}")

    async def _follow(self, source: ServerFinder) -> None:
        while pool_members := self._following(source):
            reading = await source.read()
            self._problems[source] = reading.problem
            for members in pool_members:
                if members.model in self._pool_members:  # it may have been stopped meanwhile
                    members.follow(reading.addresses)
            self._announce()
            await self._clock.sleep(source.every)
        self._problems.pop(source, None)

    def _following(self, source: ServerFinder) -> list[PoolMembers]:
        return [members for members in self._pool_members.values() if members.discovery.source is source]
