"""Time: the machine's clocks, running time, one-shot timers, deadlines, and the pace of snapshots."""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from adaptive_eval.core.results import BudgetLine
from adaptive_eval.engine.protocols import Clock
from adaptive_eval.errors import Coded


class SystemClock:
    """The machine's clocks, and asyncio's sleep.

    Examples
    --------
    >>> clock = SystemClock()
    >>> clock.now() <= clock.now()
    True
    """

    now = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        """Wait without holding up the event loop."""
        await asyncio.sleep(seconds)


TICK = 1.0
"""Seconds after which a run looks at the time, at the processor time, and at what a snapshot would show."""

MINUTE = 60.0

LONGEST_WAIT = 30.0
"""Most seconds between two looks at what may change: a server that is out, results that are shown."""

LONGEST_PAUSE = 10.0
"""Seconds between two readings beyond which the processor time is looked at: it reads about once a second."""


def backoff(failures: int) -> float:
    """Return the seconds to wait after so many failures: 0, 1, 2, 4, up to the longest wait.

    Examples
    --------
    >>> [backoff(failures) for failures in range(8)]
    [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    """
    if failures == 0:
        return 0.0
    return min(LONGEST_WAIT, TICK * 2.0 ** min(failures - 1, 64))  # 2.0 ** 1024 is no float


class _Heartbeat:
    """Counts seconds in its own thread, which a blocked event loop does not delay."""

    def __init__(self) -> None:
        self._count = 0
        self._thread: Thread | None = None

    def __call__(self) -> int:
        """Return the seconds counted so far; the first call starts the thread."""
        if self._thread is None or not self._thread.is_alive():  # a forked process has no thread
            self._thread = Thread(target=self._beat, name="heartbeat", daemon=True)
            self._thread.start()
        return self._count

    def _beat(self) -> None:
        while True:
            time.sleep(1.0)
            self._count += 1


_HEARTBEAT = _Heartbeat()


@dataclass(eq=False)
class Stopwatch:
    """Running time of the process, without time in which the machine slept.

    A long pause between two readings counts if the event loop was held up: the process used the processor
    meanwhile, or another thread of it ran on while the loop waited for a disk, say. Otherwise the machine was
    suspended or the process stopped, and the pause does not count, whether the clock ran on or not: on Linux
    and macOS it stands still in sleep. Changes of the wall clock make no difference.

    Examples
    --------
    >>> class Clock:
    ...     seconds = 0.0
    ...     def now(self):
    ...         return self.seconds
    >>> clock, used = Clock(), [0.0]
    >>> watch = Stopwatch(clock, elapsed=100.0, processor=lambda: used[0])
    >>> clock.seconds += 5.0
    >>> watch.running_time()
    105.0
    >>> clock.seconds += 8 * 3600.0  # asleep
    >>> watch.running_time()
    105.0
    >>> clock.seconds, used[0] = clock.seconds + 60.0, 50.0  # held up
    >>> watch.running_time(), watch.longest_stall
    (165.0, 60.0)
    """

    # share of a long pause for which a process whose event loop is held up used the processor, at least, or
    # for which another thread counted seconds
    lived = 0.1

    clock: Clock
    elapsed: float = 0.0
    processor: Callable[[], float] = time.process_time
    heartbeat: Callable[[], float] = _HEARTBEAT
    longest_stall: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin to count now."""
        self._last = self._looked = self.clock.now()
        self._used, self._beats = self.processor(), self.heartbeat()

    def running_time(self) -> float:
        """Return seconds of running time, those of previous sessions included."""
        now = self.clock.now()
        pause = now - self._last
        self._last = now
        if now - self._looked >= TICK:  # not at every reading: it is a call of the system
            used, beats = self.processor(), self.heartbeat()
            lived = max(used - self._used, beats - self._beats)
            self._looked, self._used, self._beats = now, used, beats
            if pause > LONGEST_PAUSE and lived >= self.lived * pause:
                self.longest_stall = max(self.longest_stall, pause)
                self.elapsed += pause
        if 0.0 < pause <= LONGEST_PAUSE:
            self.elapsed += pause
        return self.elapsed


class Alarm:
    """One-shot timer: calls `ring` at the earliest moment it was set to."""

    def __init__(self, clock: Clock, tasks: asyncio.TaskGroup, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._tasks = tasks
        self._ring = ring
        self._at = math.inf
        self._task: asyncio.Task[None] | None = None

    def set(self, at: float) -> None:
        """Call at monotonic time `at`, unless an earlier moment is set; infinity means never."""
        if at < self._at:
            self.close()
            self._at = at
            self._task = self._tasks.create_task(self._wait())

    def close(self) -> None:
        """Cancel the timer."""
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
    """Limits of running time in seconds, previous sessions of the run included.

    Examples
    --------
    >>> deadlines = Deadlines(run=3600.0, models={"slow": 600.0})
    >>> deadlines.remaining(60.0, {"slow", "fast"}), deadlines.remaining(60.0, {"fast"})
    (540.0, 3540.0)
    >>> deadlines.over(600.0), deadlines.models_over(600.0)
    (None, ['slow'])
    """

    run: float | None = None
    # of single tasks. All models answer all tasks in parallel, so the first of these limits ends the run.
    tasks: Mapping[str, float] = field(default_factory=dict)
    # of single models, which stop then; the run continues with the others
    models: Mapping[str, float] = field(default_factory=dict)

    def remaining(self, elapsed: float, models: Collection[str]) -> float:
        """Return the seconds until the next of them that concerns the run or one of `models`; or infinity."""
        limits = [limit for limit, _ in self._of_the_run()]
        limits += [limit for model, limit in self.models.items() if model in models]
        return min(limits, default=math.inf) - elapsed

    def over(self, elapsed: float) -> dict[str, Any] | None:
        """Return the limit that ends the run by now, as evidence of the stop; None if none does."""
        for limit, task in self._of_the_run():
            if elapsed >= limit:
                used = {"wall_clock": [elapsed, limit]}
                scope = "run"
                if task:
                    scope = "task"
                return {"scope": scope, "owner": task, "used": used}
        return None

    def models_over(self, elapsed: float) -> list[str]:
        """Return the models whose time is up."""
        return [model for model, limit in self.models.items() if elapsed >= limit]

    def lines(self, elapsed: float) -> Sequence[BudgetLine]:
        """Return the time used of each."""
        if self.run is not None:
            time = [BudgetLine("wall_clock", elapsed, 0.0, self.run)]
        else:
            time = []
        for task, limit in self.tasks.items():
            time.append(BudgetLine("wall_clock", elapsed, 0.0, limit, "task", task))
        for model, limit in self.models.items():
            time.append(BudgetLine("wall_clock", min(elapsed, limit), 0.0, limit, "model", model))
        return time

    def _of_the_run(self) -> list[tuple[float, str]]:
        if self.run is not None:
            own = [(self.run, "")]
        else:
            own = []
        return sorted([*own, *((limit, task) for task, limit in self.tasks.items())])


class Pace:
    """The pace of a run: snapshots take at most a twentieth of its time."""

    share = 20.0  # seconds of the run for a second of snapshots, at least

    def __init__(self, clock: Clock, elapsed: float) -> None:
        self.clock = clock
        self._running = Stopwatch(clock, elapsed)
        self._began = self._due = clock.now()
        self._cost = 0.0
        self._lag = 0.0
        self.trials = 0  # of the latest snapshot

    def start(self) -> None:
        """Begin to count now."""
        self._running.start()
        self._due = self.clock.now()

    @property
    def due(self) -> bool:
        """Whether it is time for a snapshot."""
        return self.clock.now() >= self._due

    def elapsed(self) -> float:
        """Return the seconds of running time, those of previous sessions included."""
        return self._running.running_time()

    def late(self, seconds: float) -> None:
        """Take in by how much the event loop was late; more than a pause is the stopwatch's matter."""
        if seconds <= LONGEST_PAUSE:
            self._lag = max(self._lag, seconds)

    def begin(self) -> None:
        """Begin a snapshot."""
        self._began = self.clock.now()
        self._due = self._began + TICK

    def end_of_lag(self) -> float:
        """Return the most seconds by which the event loop was late since the last call."""
        lag, self._lag = self._lag, 0.0
        return lag

    def end(self, trials: int) -> None:
        """End a snapshot of a run of so many trials.

        One of hundreds of models takes a good part of a second. One alone says nothing: the first forecast of
        a process loads what it computes with.
        """
        self.trials = trials
        before = self._cost
        self._cost = self.clock.now() - self._began
        pause = min(self.share * min(self._cost, before), LONGEST_WAIT)
        self._due = self._began + max(TICK, pause)

    def warnings(self) -> Iterator[str]:
        """Yield what is to be said about a process that was held up."""
        stall = self._running.longest_stall
        if stall:
            yield Coded(
                "warning/busy",
                f"this process was held up for {stall:.0f} s, so a limit of running time may have been "
                "exceeded by as much; fewer requests in flight, or workers (executor), help",
            )
