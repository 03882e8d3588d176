"""The clock on the wall."""

from __future__ import annotations

import asyncio
import time

__all__ = ["SystemClock"]


class SystemClock:
    """The machine's clocks, and asyncio's sleep.

    Examples
    --------
    >>> clock = SystemClock()
    >>> clock.now() <= clock.now()
    True
    """

    def now(self) -> float:
        """Return seconds on the monotonic clock."""
        return time.monotonic()

    def time(self) -> float:
        """Return Unix time."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait without holding up the event loop."""
        await asyncio.sleep(seconds)
