"""Who belongs to the pool of one model whose servers come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from adaptive_eval.engine.discovery import Discovery
from adaptive_eval.engine.health import HealthMonitor
from adaptive_eval.engine.pool import Member, Pool
from adaptive_eval.engine.presence import Presence
from adaptive_eval.engine.protocols import Clock, Endpoint
from adaptive_eval.errors import EndpointError, PermanentEndpointError
from adaptive_eval.store.records import EndpointHealth

__all__ = ["Change", "PoolMembers"]

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0
"""Seconds before a server that did not answer is asked again: these at first, twice as many each time."""

_REMEMBERED = 600.0
"""Seconds for which a server that has left is shown."""

What: TypeAlias = Literal["joined", "left", "refused"]


@dataclass(frozen=True, slots=True)
class Change:
    """A server has joined the pool of a model, has left it, or is left out because it refuses the model."""

    model: str
    what: What
    url: str
    words: str = ""


class PoolMembers:
    """Lets the servers that a source names into the pool of one model, and takes the others out.

    A server is let in once it has said that it serves the model; until then it is asked again and again. One
    that leaves gets nothing more, and what is out there may come back.

    Parameters
    ----------
    model : str
        The model.
    discovery : Discovery
        How its servers are found.
    pool : Pool
        Its pool.
    enrol : callable
        Returns the member that asks through this endpoint.
    clock : Clock
        Waits.
    on_change : callable
        Called when something has changed.
    """

    def __init__(
        self,
        model: str,
        discovery: Discovery,
        pool: Pool,
        enrol: Callable[[Endpoint], Member],
        clock: Clock,
        on_change: Callable[[], None],
    ) -> None:
        self.model = model
        self.discovery = discovery
        self._pool = pool
        self._enrol = enrol
        self._clock = clock
        self._announce = on_change
        self._candidates: dict[str, asyncio.Task[None]] = {}
        self._why_not: dict[str, EndpointError] = {}
        self._members: dict[str, Member] = {}
        self._changes: list[Change] = []
        self._was_read = False

    def heed(self, addresses: Sequence[str], tasks: asyncio.TaskGroup) -> None:
        """Bring the pool in line with what the source says; servers that are new are asked in `tasks`."""
        self._was_read = True
        named = set(addresses)
        for url in [url for url in self._candidates if url not in named]:
            self._candidates.pop(url).cancel()
            self._why_not.pop(url, None)
        for url, member in self._members.items():
            if member.left_at is None and url not in named:
                self._pool.part(member, now=self._clock.now())
                self._note("left", url)
        for url in addresses:
            known = self._members.get(url)
            if url not in self._candidates and (known is None or known.left_at is not None):
                self._candidates[url] = tasks.create_task(self._let_in(url))

    def close(self) -> None:
        """Ask nobody any more."""
        for task in self._candidates.values():
            task.cancel()

    def take_changes(self) -> list[Change]:
        """Return what has changed since the last call."""
        changes, self._changes = self._changes, []
        return changes

    @property
    def lacking(self) -> tuple[str, ...]:
        """Why there is no server that could be asked, in words; empty where there is one, or it is early."""
        usable = any(member.usable for member in self._pool.members)
        if usable or not self._was_read or not self._why_not.keys() >= self._candidates.keys():
            return ()
        return tuple(self.refusals) or (f"{self.discovery.source.name} names none",)

    @property
    def refusals(self) -> Iterator[str]:
        """Why servers that the source names are not asked, in words."""
        for url, error in self._why_not.items():
            yield str(error) if url in str(error) else f"{url}: {error}"
        for member in self._pool.members:
            if not member.usable:
                yield member.says(member.presence.reason)

    def health(self, now: float) -> Iterator[EndpointHealth]:
        """Yield the state of the servers that are not in the pool: not let in yet, or gone of late."""
        for url in self._candidates:
            refuses = isinstance(self._why_not.get(url), PermanentEndpointError)
            state = "refused" if refuses else "joining"
            yield HealthMonitor(self.model, url).health(now=now, in_flight=0, limit=0, state=state)
        for url, member in self._members.items():
            gone = member.left_at is not None and url not in self._candidates
            if gone and (member.in_flight or now - (member.left_at or 0.0) <= _REMEMBERED):
                yield member.monitor.health(now=now, in_flight=member.in_flight, limit=0, state="left")

    async def _let_in(self, url: str) -> None:
        """Ask a server until it serves the model, and let it in; one that refuses is told of once."""
        wait = _FIRST_WAIT
        while True:
            try:
                endpoint = await self.discovery.connect(url)
                break
            except EndpointError as error:
                if isinstance(error, PermanentEndpointError):
                    wait = _LONGEST_WAIT
                    if str(self._why_not.get(url)) != str(error):
                        self._note("refused", url, str(error))
                self._why_not[url] = error
            self._announce()
            await self._clock.sleep(wait)
            wait = min(2.0 * wait, _LONGEST_WAIT)
        del self._candidates[url]
        self._why_not.pop(url, None)
        self._join(url, endpoint)

    def _join(self, url: str, endpoint: Endpoint) -> None:
        member = self._members.get(url)
        if member is None:
            member = self._members[url] = self._enrol(endpoint)
        else:
            member.endpoint, member.presence = endpoint, Presence()
        self._pool.join(member, now=self._clock.now())
        self._note("joined", url)

    def _note(self, what: What, url: str, words: str = "") -> None:
        self._changes.append(Change(self.model, what, url, words))
        self._announce()
