"""Asks servers how many requests wait in their own queue, where they say it, as a sign of enough."""

from __future__ import annotations

import asyncio

from adaptive_eval.engine.adaptive import AdaptiveConcurrency
from adaptive_eval.engine.pool import Member
from adaptive_eval.engine.protocols import Clock, QueueingEndpoint
from adaptive_eval.engine.server import Server

__all__ = ["QueueWatch"]

_EVERY = 5.0
"""Seconds between two questions."""

_SILENT = 3
"""A server that has not said it so many times in a row is not asked again."""


class QueueWatch:
    """Tells every limit that adapts itself how many requests wait at its server.

    Parameters
    ----------
    clock : Clock
        Waits between questions.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watches: dict[Server, asyncio.Task[None]] = {}

    def watch(self, member: Member, tasks: asyncio.TaskGroup) -> None:
        """Watch the server of `member`, in `tasks`, if its limit adapts itself and nobody watches it yet."""
        server, endpoint = member.server, member.endpoint
        if server.adaptive is None or server in self._watches or not isinstance(endpoint, QueueingEndpoint):
            return
        self._watches[server] = tasks.create_task(self._watch(server, server.adaptive, endpoint))

    def close(self) -> None:
        """Ask no more."""
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
