"""An event loop that owns its clock: when nothing is ready, time jumps to the next timer.

Nobody sleeps, a day passes in a millisecond, and every timing is exact. Real sockets and threads have no
place in it: their events come in real time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

UNIX_EPOCH_OF_RUN = 1_700_000_000.0


class NothingWillHappen(Exception):
    """Every task waits for something that no timer and no ready callback will bring about."""


class _JumpingSelector(selectors.DefaultSelector):
    loop: OwnedClockLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise NothingWillHappen
        self.loop.elapsed += max(0.0, timeout)
        return []


class OwnedClockLoop(asyncio.SelectorEventLoop):
    """Starts at time 0."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)
        # Timers fire when due, not when nearly due.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self.elapsed


class OwnedClock:
    """The clock of the running :class:`OwnedClockLoop`, as the engine takes it."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def time(self) -> float:
        return UNIX_EPOCH_OF_RUN + self.now()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_owned(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in an owned-clock loop; raise :class:`NothingWillHappen` where it would hang."""
    with asyncio.Runner(loop_factory=OwnedClockLoop) as runner:
        return runner.run(main)
