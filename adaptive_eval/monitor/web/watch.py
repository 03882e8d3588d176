"""One run as the web page sees it: what has been read is kept, and only what is new is read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaptive_eval.errors import RunNotFound
from adaptive_eval.monitor.attach import Attachment
from adaptive_eval.monitor.liveness import is_running
from adaptive_eval.monitor.snapshot import RunView
from adaptive_eval.monitor.web.history import History
from adaptive_eval.monitor.web.tally import Tally
from adaptive_eval.store import RunReader
from adaptive_eval.store.run_files import RunFiles

__all__ = ["LOOK_EVERY", "RunWatch", "Seen"]

LOOK_EVERY = 1.0
"""Seconds between two looks at the least: a running process stores a snapshot about every second."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A view of the run; `version` grows whenever something has changed."""

    version: int
    view: RunView


class RunWatch:
    """Watches one run for any number of pages, from any thread.

    Parameters
    ----------
    directory : Path
        The run's directory. A run put in its place (``run --new``) is noticed.
    clock, ticks : callable
        Unix time; seconds on a clock that only moves forward.
    running : callable
        (directory, seconds since the latest snapshot) -> whether a process is running the run.

    Raises
    ------
    RunNotFound, RunTooNew, RunFileError
        If there is no run, or it cannot be read.
    """

    def __init__(
        self,
        directory: Path,
        *,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        running: Callable[[Path, float], bool] = is_running,
    ) -> None:
        self.directory = directory
        self._files = RunFiles(directory)
        self._clock = clock
        self._ticks = ticks
        self._running = running
        self._lock = threading.RLock()
        self._seen: Seen | None = None
        self._due = 0.0
        self._open()

    def _open(self) -> None:
        identity = self._files.identity()
        self._reader = RunReader(self.directory)
        self._identity = identity
        self._attachment = Attachment(self._reader, self._clock, self._running)
        self._history = History()
        self._tally = Tally()

    def close(self) -> None:
        """Close the run file."""
        with self._lock:
            self._reader.close()

    def look(self) -> Seen:
        """Return the run as it is now, or as it was a moment ago where that is too recent to look again.

        Raises
        ------
        RunFileError
            If the run is gone or cannot be read.
        """
        with self._lock:
            now = self._ticks()
            if self._seen is not None and now < self._due:
                return self._seen
            self._follow_replacement()
            view = self._attachment.view()
            if self._seen is None:
                self._seen = Seen(1, view)
            elif _mark(view) != _mark(self._seen.view):
                self._seen = Seen(self._seen.version + 1, view)
            self._due = now + LOOK_EVERY
            return self._seen

    def counted(self) -> Tally:
        """Return the counts as far as they have been read, without reading."""
        with self._lock:
            return self._tally.copy()

    @contextmanager
    def past(self) -> Iterator[tuple[Seen, History, Tally]]:
        """Give the run as it is now with how it came there and its counts, brought up to date.

        Both are shared: use them inside the block only.

        Raises
        ------
        RunFileError
            If the run is gone or cannot be read.
        """
        with self._lock:
            seen = self.look()
            self._history.catch_up(self._reader)
            self._tally.catch_up(self._reader)
            yield seen, self._history, self._tally

    def _follow_replacement(self) -> None:
        """Start over where another run has been put into the directory."""
        identity = self._files.identity()
        if identity is None:
            raise RunNotFound(f"no run at {self.directory} any more: it has been moved or deleted")
        if identity != self._identity:
            reader = self._reader
            self._open()
            reader.close()


def _mark(view: RunView) -> tuple[object, ...]:
    return view.at, view.state, view.results.trials, len(view.decisions)
