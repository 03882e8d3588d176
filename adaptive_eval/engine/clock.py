"""Time: the machine's clocks, running time, one-shot timers, and how long a run may take."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adaptive_eval.core.results import BudgetLine
from adaptive_eval.engine.protocols import Clock

__all__ = ["Alarm", "Deadlines", "Stopwatch", "SystemClock"]


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


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Limits of running time, in seconds, earlier sittings included.

    Parameters
    ----------
    run : float, optional
        Of the run.
    tasks : mapping of str to float
        Of single tasks. Every model walks all tasks side by side, so the first of these ends the run too.
    models : mapping of str to float
        Of single models, which stop at it; the run goes on with the others.

    Examples
    --------
    >>> deadlines = Deadlines(run=3600.0, models={"slow": 600.0})
    >>> deadlines.remaining(60.0, {"slow", "fast"}), deadlines.remaining(60.0, {"fast"})
    (540.0, 3540.0)
    >>> deadlines.over(600.0), deadlines.models_over(600.0)
    (None, ['slow'])
    """

    run: float | None = None
    tasks: Mapping[str, float] = field(default_factory=dict)
    models: Mapping[str, float] = field(default_factory=dict)

    def remaining(self, elapsed: float, models: Collection[str]) -> float:
        """Return the seconds until the next of them that concerns the run or one of `models`; or infinity."""
        limits = [limit for limit, _ in self._of_the_run()]
        limits += [limit for model, limit in self.models.items() if model in models]
        return min(limits, default=math.inf) - elapsed

    def over(self, elapsed: float) -> dict[str, Any] | None:
        """Return the limit that ends the run by now, as evidence of the stop; None where none does."""
        for limit, task in self._of_the_run():
            if elapsed >= limit:
                used = {"wall_clock": [elapsed, limit]}
                return {"scope": "task" if task else "run", "owner": task, "used": used}
        return None

    def models_over(self, elapsed: float) -> list[str]:
        """Return the models whose time is up."""
        return [model for model, limit in self.models.items() if elapsed >= limit]

    def lines(self, elapsed: float) -> Sequence[BudgetLine]:
        """Return what is used of each of them."""
        time = [] if self.run is None else [BudgetLine("wall_clock", elapsed, 0.0, self.run)]
        for task, limit in self.tasks.items():
            time.append(BudgetLine("wall_clock", elapsed, 0.0, limit, "task", task))
        for model, limit in self.models.items():
            time.append(BudgetLine("wall_clock", min(elapsed, limit), 0.0, limit, "model", model))
        return time

    def _of_the_run(self) -> list[tuple[float, str]]:
        own = [] if self.run is None else [(self.run, "")]
        return sorted([*own, *((limit, task) for task, limit in self.tasks.items())])
