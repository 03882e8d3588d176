"""The events sent to the open pages of one run, at a pace that costs the run next to nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaptive_eval.errors import RunNotFound
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.run_files import RunFiles
from adaptive_eval.views.attach import Attachment, is_running
from adaptive_eval.views.decisions import describe
from adaptive_eval.views.snapshot import RunView
from adaptive_eval.views.web.history import History
from adaptive_eval.views.web.pages import render_parts, run_context
from adaptive_eval.views.web.plots import plots_data
from adaptive_eval.views.web.tally import Tally

LOOK_EVERY = 1.0
"""Seconds between two looks at the least: a running process stores a snapshot about every second."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A view of the run; `version` grows whenever something has changed."""

    version: int
    view: RunView


class RunWatch:
    """Watches one run for any number of pages, from any thread."""

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
        """Return the run as it is now, or as it was a moment ago where that is too recent to look again."""
        with self._lock:
            now = self._ticks()
            if self._seen is not None and now < self._due:
                return self._seen
            self._follow_replacement()
            view = self._attachment.view()
            if self._seen is None:
                self._seen = Seen(1, view)
            elif view.mark != self._seen.view.mark:
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


PARTS_EVERY, PLOTS_EVERY = 1.0, 5.0
"""Seconds between two updates of the page's text and of its plots at the least."""

SHARE = 0.005
"""Part of one core that each of the two may take: what costs more comes less often."""

_LONGEST = 15.0  # seconds between two updates however much one costs


@dataclass(frozen=True, slots=True)
class News:
    """The page as it should be now."""

    parts: dict[str, str]  # HTML by name of the part
    plots: int  # version of the plots that can be fetched; larger than before where they have something new
    decisions: tuple[str, ...]  # every decision so far in words, for those who cannot see the page change


class Feed:
    """One run's pages: rendered once however many are open, from any thread."""

    def __init__(
        self,
        directory: Path,
        *,
        ticks: Callable[[], float] = time.monotonic,
        effort: Callable[[], float] = time.thread_time,
    ) -> None:
        self.watch = RunWatch(directory, ticks=ticks)
        self._ticks = ticks
        self._effort = effort
        self._lock = threading.Lock()
        self._news = News({}, 0, ())
        self._version = -1
        self._parts_due = self._plots_due = 0.0
        self._plots_version = -1
        self._plots = b"{}"

    def close(self) -> None:
        """Close the run file."""
        self.watch.close()

    def news(self) -> News:
        """Return the page as it is now, or as it was a moment ago where that is too recent."""
        with self._lock:
            now = self._ticks()
            if now < self._parts_due:
                return self._news
            effort, first = self._effort(), self._version < 0
            with self.watch.past() as (seen, _, tally):
                if seen.version != self._version:
                    parts = render_parts(run_context(seen.view, tally))
                    decisions = tuple(describe(decision) for decision in seen.view.decisions)
                    self._news = News(parts, self._news.plots, decisions)
                    self._version = seen.version
            if now >= self._plots_due and self._version != self._plots_version:
                self._news = News(self._news.parts, self._version, self._news.decisions)
            self._parts_due = now + self._pause(PARTS_EVERY, effort, first)
            return self._news

    def plots(self) -> bytes:
        """Return the numbers behind the plots as JSON."""
        with self._lock:
            now = self._ticks()
            if now < self._plots_due:
                return self._plots
            effort, first = self._effort(), self._plots_version < 0
            with self.watch.past() as (seen, history, tally):
                if seen.version != self._plots_version:
                    data = plots_data(seen.view, history.moments, tally)
                    self._plots = json.dumps(data, allow_nan=False, separators=(",", ":")).encode()
                    self._plots_version = seen.version
            self._plots_due = now + self._pause(PLOTS_EVERY, effort, first)
            return self._plots

    def _pause(self, least: float, began: float, first: bool) -> float:
        """Return the seconds until the next update; the first one read the whole run and says nothing."""
        if first:
            return least
        return max(least, min(_LONGEST, (self._effort() - began) / SHARE))
