"""One run's page for any number of readers, at a pace that costs the run next to nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from adaptive_eval.errors import RunNotFound
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup
from adaptive_eval.store.run_files import RunFiles
from adaptive_eval.views.details import Course, read_details
from adaptive_eval.views.page import Live, page, to_html
from adaptive_eval.views.reading import Attachment, files_mark, is_running
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.trials import no_targets

LOOK_EVERY = 1.0
"""Seconds between two looks at the least: a running process stores a snapshot about every second."""

SHARE = 0.01
"""Part of one core that a page may take: one that costs more is rendered less often."""

_LONGEST = 60.0  # seconds between two renderings however much one costs


@dataclass(frozen=True, slots=True)
class Rendered:
    """The page at one moment."""

    tag: str  # differs between two pages
    html: bytes


class Watch:
    """Reads and renders one run, from any thread."""

    def __init__(
        self,
        directory: Path,
        *,
        listed: bool = False,
        targets: Callable[[RunReader], TargetLookup] = no_targets,
        ticks: Callable[[], float] = time.monotonic,
        effort: Callable[[], float] = time.thread_time,
        running: Callable[[Path, float], bool] = is_running,
    ) -> None:
        self.directory = directory
        self._files = RunFiles(directory)
        self._listed, self._targets, self._running = listed, targets, running
        self._ticks, self._effort = ticks, effort
        self._lock = threading.RLock()
        self._rendered: Rendered | None = None
        self._mark: tuple[object, ...] = ()
        self._names: list[str] = []
        self._due = 0.0
        self._open()

    def _open(self) -> None:
        self._identity = self._files.identity()
        self._reader = RunReader(self.directory)
        self._attachment = Attachment(self._reader, time.time, self._running)
        self._target = self._targets(self._reader)
        self._course: Course | None = None

    def close(self) -> None:
        """Close the run file."""
        with self._lock:
            self._reader.close()

    def page(self) -> Rendered:
        """Return the page as it is now, or as it was a moment ago if it is too early to look again."""
        with self._lock:
            now = self._ticks()
            if self._rendered is not None and now < self._due:
                return self._rendered
            before, first = self._effort(), self._rendered is None
            self._follow_replacement()
            mark = files_mark(self.directory), self._running(self.directory, 0.0)
            if self._rendered is None or mark != self._mark:
                self._mark = mark
                summary = self._attachment.summary()
                self._names = sorted(line.model for line in summary.results.models)
                number = 1 if self._rendered is None else int(self._rendered.tag.split("-")[1]) + 1
                self._rendered = Rendered(f"{id(self):x}-{number}", self._render(summary).encode())
            spent = self._effort() - before
            # The first reading reads the whole run and says nothing about the next ones.
            pause = LOOK_EVERY if first else max(LOOK_EVERY, min(_LONGEST, spent / SHARE))
            self._due = now + pause
            return self._rendered

    def models(self) -> list[str]:
        """Return the names of the models in the order in which addresses number them."""
        self.page()
        return self._names

    def _render(self, summary: Summary) -> str:
        if summary.state == "waiting":
            live = Live("../../", self._listed)
            return page("problem.html", live=live, title=summary.name, words=summary.headline)
        results = summary.results
        if self._course is None:
            self._course = Course(results)
        self._course.catch_up(self._reader)
        details = read_details(self._reader, results, examples_with=self._target, course=self._course.moments)
        numbers = {name: number for number, name in enumerate(self._names)}
        return to_html(replace(summary, details=details), Live("../../", self._listed, numbers))

    def _follow_replacement(self) -> None:
        """Start over if another run has been put into the directory."""
        identity = self._files.identity()
        if identity is None:
            raise RunNotFound(f"no run at {self.directory} any more: it has been moved or deleted")
        if identity != self._identity:
            self._reader.close()
            self._open()
