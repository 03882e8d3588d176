"""Wakes whoever waits for a moment in time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from adaptive_eval.engine.protocols import Clock

__all__ = ["Alarm"]


class Alarm:
    """Rings at the earliest of the moments it is set to; after that it has to be set again.

    Parameters
    ----------
    clock : Clock
        Waits.
    ring : callable
        Called at that moment.
    """

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._at = math.inf
        self._task: asyncio.Task[None] | None = None

    def set(self, at: float, tasks: asyncio.TaskGroup) -> None:
        """Ring at monotonic time `at`, unless it rings before; infinity is never."""
        if at < self._at:
            self.close()
            self._at = at
            self._task = tasks.create_task(self._wait())

    def close(self) -> None:
        """Ring no more."""
        self._at = math.inf
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _wait(self) -> None:
        await self._clock.sleep(max(0.0, self._at - self._clock.now()))
        self._at, self._task = math.inf, None
        self._ring()
