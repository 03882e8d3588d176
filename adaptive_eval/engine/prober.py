"""Asks servers that are out whether they are back, beside everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adaptive_eval.engine.pool import Member
from adaptive_eval.engine.protocols import Clock

__all__ = ["Prober"]


class Prober:
    """Probes every server that has gone out until it is back; one task for each.

    Parameters
    ----------
    clock : Clock
        Waits between probes.
    on_return : callable
        Called when a server is back.
    """

    def __init__(self, clock: Clock, on_return: Callable[[], None]) -> None:
        self._clock = clock
        self._on_return = on_return
        self._tasks: set[asyncio.Task[None]] = set()

    def watch(self, member: Member, tasks: asyncio.TaskGroup) -> None:
        """Probe `member`, which has just gone out, in a task of `tasks`."""
        task = tasks.create_task(self._until_back(member))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Probe no more."""
        for task in self._tasks:
            task.cancel()

    async def _until_back(self, member: Member) -> None:
        while member.left_at is None and member.presence.state == "out":
            await self._clock.sleep(member.presence.probe_wait)
            member.presence.probed(there=await member.endpoint.alive())
        self._on_return()
