"""What the pages of one run are told while they are open, at a pace that costs the run next to nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from adaptive_eval.monitor.web.pages import render_parts, run_context
from adaptive_eval.monitor.web.plots import plots_data
from adaptive_eval.monitor.web.watch import RunWatch
from adaptive_eval.text.decision_words import describe

__all__ = ["PARTS_EVERY", "PLOTS_EVERY", "SHARE", "Feed", "News"]

PARTS_EVERY, PLOTS_EVERY = 1.0, 5.0
"""Seconds between two updates of the page's text and of its plots at the least."""

SHARE = 0.005
"""Part of one core that each of the two may take: what costs more comes less often."""

_LONGEST = 15.0  # seconds between two updates however much one costs


@dataclass(frozen=True, slots=True)
class News:
    """The page as it should be now.

    Parameters
    ----------
    parts : mapping of str to str
        HTML by name of the part.
    plots : int
        Version of the plots that can be fetched; larger than before where they have something new.
    decisions : tuple of str
        Every decision so far in words, for those who cannot see the page change.
    """

    parts: dict[str, str]
    plots: int
    decisions: tuple[str, ...]


class Feed:
    """One run's pages: rendered once however many are open, from any thread.

    Parameters
    ----------
    directory : Path
        The run's directory.
    ticks, effort : callable
        Seconds on a clock that only moves forward; seconds of CPU time of this thread.

    Raises
    ------
    RunFileError
        If there is no run, or it cannot be read.
    """

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
        """Return the page as it is now, or as it was a moment ago where that is too recent.

        Raises
        ------
        RunFileError
            If the run is gone or cannot be read.
        """
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
        """Return the numbers behind the plots as JSON.

        Raises
        ------
        RunFileError
            If the run is gone or cannot be read.
        """
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
