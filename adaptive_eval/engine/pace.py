"""Running time, lateness of the event loop, and when the next snapshot is due."""

from __future__ import annotations

from collections.abc import Iterator

from adaptive_eval.engine.clock import LONGEST_PAUSE, Stopwatch
from adaptive_eval.engine.protocols import Clock
from adaptive_eval.errors import Coded


class Pace:
    """The pace of a run: snapshots take at most a twentieth of its time."""

    share = 20.0  # seconds of the run for a second of snapshots, at least
    longest = 30.0  # most seconds between two snapshots, whatever they cost
    busy = 10.0  # seconds by which the event loop is late where a view warns of it

    def __init__(self, clock: Clock, every: float, elapsed: float) -> None:
        self._clock = clock
        self._every = every
        self._running = Stopwatch(clock, elapsed)
        self._began = self._due = clock.now()
        self._cost = 0.0
        self._lag = 0.0
        self.trials = 0  # of the latest snapshot

    def start(self) -> None:
        """Begin to count now."""
        self._running.start()
        self._due = self._clock.now()

    @property
    def due(self) -> bool:
        """Whether it is time for a snapshot."""
        return self._clock.now() >= self._due

    def elapsed(self) -> float:
        """Return the seconds of running time, those of previous sessions included."""
        return self._running.read()

    def late(self, seconds: float) -> None:
        """Take in by how much the event loop was late; more than a pause is the stopwatch's matter."""
        if seconds <= LONGEST_PAUSE:
            self._lag = max(self._lag, seconds)

    def begin(self) -> None:
        """Begin a snapshot."""
        self._began = self._clock.now()
        self._due = self._began + self._every

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
        before, self._cost = self._cost, self._clock.now() - self._began
        pause = min(self.share * min(self._cost, before), self.longest)
        self._due = self._began + max(self._every, pause)

    def warnings(self) -> Iterator[str]:
        """Yield what is to be said about a process that is held up."""
        if self._lag >= self.busy:
            yield Coded(
                "warning/busy",
                f"this process is busy: its event loop was late by {self._lag:.1f} s; fewer requests in "
                "flight, or workers (executor), help",
            )
        stall = self._running.longest_stall
        if stall:
            yield Coded(
                "warning/busy",
                f"this process was held up for {stall:.0f} s, so a limit of running time may have been "
                "exceeded by as much",
            )
