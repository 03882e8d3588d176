"""Running time, which a machine that was asleep has not spent."""

from __future__ import annotations

from adaptive_eval.engine.protocols import Clock

__all__ = ["Stopwatch"]

LONGEST_PAUSE = 30.0
"""Seconds between two readings beyond which the process cannot have run: it reads about once a second."""


class Stopwatch:
    """Counts the time in which the process runs.

    While a laptop sleeps, a virtual machine is suspended or the process is stopped, the monotonic clock goes
    on on some systems and stands still on others. Here it never counts: a pause between two readings that is
    too long for a process that runs is left out. Changes of the clock on the wall make no difference.

    Parameters
    ----------
    clock : Clock
        The clock; read about once a second.
    elapsed : float
        Seconds of running time of earlier sittings.

    Examples
    --------
    >>> class Clock:
    ...     seconds = 0.0
    ...     def now(self):
    ...         return self.seconds
    >>> clock = Clock()
    >>> watch = Stopwatch(clock, elapsed=100.0)
    >>> clock.seconds += 5.0
    >>> watch.read()
    105.0
    >>> clock.seconds += 8 * 3600.0
    >>> watch.read()
    105.0
    """

    def __init__(self, clock: Clock, elapsed: float = 0.0) -> None:
        self._clock = clock
        self._elapsed = elapsed
        self._last = clock.now()

    def start(self) -> None:
        """Begin to count now."""
        self._last = self._clock.now()

    def read(self) -> float:
        """Return seconds of running time, earlier sittings included."""
        now = self._clock.now()
        pause, self._last = now - self._last, now
        if 0.0 < pause <= LONGEST_PAUSE:
            self._elapsed += pause
        return self._elapsed
