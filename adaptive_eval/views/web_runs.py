"""The runs that the web page shows, one or all in a folder, at a pace that costs a run next to nothing."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from adaptive_eval.errors import RunFileError, RunNotFound, UsageError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup, TrialRecord
from adaptive_eval.store.run_files import RunFiles
from adaptive_eval.views.blocks import Block, Para, WholePage, note
from adaptive_eval.views.column_types import Column, Unit
from adaptive_eval.views.details import WatchedCourse, read_details
from adaptive_eval.views.inert import cut, inert
from adaptive_eval.views.page import Live, problem, to_html
from adaptive_eval.views.reading import Attachment, files_mark, is_running
from adaptive_eval.views.sentences import used
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.tables import column, table_of
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


class WatchedRun:
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
        self._listed = listed
        self._targets = targets
        self._running = running
        self.top = 1  # the highest category
        self._ticks, self._effort = ticks, effort
        self._lock, self._target_lock = threading.RLock(), threading.Lock()
        self._rendered: Rendered | None = None
        self._mark: tuple[object, ...] = ()
        self._names: list[str] = []
        self._due = 0.0
        self._open()

    def _open(self) -> None:
        self._identity = self._files.identity()
        self._reader = RunReader(self.directory)
        self._attachment = Attachment(self._reader, time.time, self._running)
        self._course: WatchedCourse | None = None
        self._target: TargetLookup | None = None

    def target(self, record: TrialRecord) -> str | None:
        """Return the expected answer of a trial; None if it is not known."""
        with self._target_lock:  # reading a dataset takes longer than the page may wait
            if self._target is None:
                with RunReader(self.directory) as reader:
                    self._target = self._targets(reader)
            return self._target(record)

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
            before = self._effort()
            first = self._rendered is None
            self._follow_replacement()
            mark = files_mark(self.directory), self._running(self.directory, 0.0)
            if self._rendered is None or mark != self._mark:
                self._mark = mark
                summary = self._attachment.summary()
                self._names = sorted(line.model for line in summary.results.models)
                number = 1
                if self._rendered is not None:
                    number = int(self._rendered.tag.split("-")[1]) + 1
                self._rendered = Rendered(f"{id(self):x}-{number}", self._render(summary).encode())
            spent = self._effort() - before
            # The first reading reads the whole run and says nothing about the next ones.
            pause = LOOK_EVERY
            if not first:
                pause = max(LOOK_EVERY, min(_LONGEST, spent / SHARE))
            self._due = now + pause
            return self._rendered

    def models(self) -> list[str]:
        """Return the names of the models in the order in which addresses number them."""
        self.page()
        return self._names

    def _render(self, summary: RunSummary) -> str:
        if summary.state == "waiting":
            live = Live("../../", self._listed)
            return problem(summary.name, summary.headline, live)
        results = summary.results
        if self._course is None:
            self._course = WatchedCourse(results)
        self._course.catch_up(self._reader)
        details = read_details(self._reader, results, course=self._course.moments)
        self.top = max(1, *(len(one.categories) - 1 for one in details.models))
        return to_html(replace(summary, details=details), Live("../../", self._listed))

    def _follow_replacement(self) -> None:
        """Start over if another run has been put into the directory."""
        identity = self._files.identity()
        if identity is None:
            raise RunNotFound(f"no run at {self.directory} any more: it has been moved or deleted")
        if identity != self._identity:
            self._reader.close()
            self._open()


LIST_EVERY = 2.0
"""Seconds between two looks into the folder at the least."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in the list."""

    key: str  # its directory's name
    summary: RunSummary | None  # the run now; None if it cannot be read
    error: str = ""  # why it cannot be read

    @property
    def label(self) -> str:
        """The name to show."""
        return cut(inert(self.key), 60)

    @property
    def url(self) -> str:
        """The directory's name as part of an address."""
        return in_address(self.key)


def runs_page(rows: Sequence[RunRow], directory: str) -> WholePage:
    """Return the list of runs."""
    blocks: list[Block] = [note(directory)]
    if rows:
        ids = [f"run-{row.url}" for row in rows]
        table = table_of("Runs in this folder, the latest change first", _COLUMNS, rows, ids=ids)
        listed = []
        for row, (head, *cells) in zip(rows, table.rows, strict=True):
            listed.append([replace(head, link=f"runs/{row.url}/"), *cells])
        blocks.append(replace(table, rows=listed))
    else:
        words = "There is no run in this folder yet. Start one with adaptive-eval run CONFIG"
        blocks.append(Para(f"{words}; it appears here by itself."))
    return WholePage(title="Runs", window="Runs: adaptive-eval", intro=blocks, is_front=True)


def _state(row: RunRow) -> str:
    if row.summary is None:
        return "unreadable"
    if row.summary.stop:
        return row.summary.stop.reason.replace("_", " ")
    return row.summary.state


def _colour(row: RunRow) -> str:
    state = "interrupted"
    if row.summary is not None:
        state = row.summary.state
    return {"running": "better", "interrupted": "worse"}.get(state, "")


def _decided(row: RunRow) -> float | None:
    if row.summary is not None:
        pairs = row.summary.results.pairs
    else:
        pairs = ()
    if row.summary is not None and pairs:
        return len(row.summary.decided_pairs) / len(pairs)
    return None


def _decided_words(row: RunRow) -> str:
    if row.summary is None or not row.summary.results.pairs:
        return ""
    return f"{len(row.summary.decided_pairs):,} of {len(row.summary.results.pairs):,}"


_COLUMNS: tuple[Column[RunRow], ...] = (
    column("run", lambda row: row.label, Unit.NAME),
    column("state", _state, Unit.VERDICT, kind=_colour),
    column("verdict", lambda row: row.summary.headline_within() if row.summary else row.error, Unit.TEXT),
    column("decided", _decided, Unit.SHARE, text=_decided_words, spare=True),
    column("trials", lambda row: row.summary and row.summary.results.trials, Unit.COUNT, spare=True),
    column("used", lambda row: row.summary and used(row.summary.results), Unit.NUMBER, spare=True),
    column("last change", lambda row: row.summary and row.summary.updated, Unit.TIME, spare=True),
)


class Folder:
    """Runs by the name of their directory, each watched from the moment its page is first opened."""

    def __init__(
        self, path: Path, *, single: bool, targets: Callable[[RunReader], TargetLookup] = no_targets
    ) -> None:
        self.path = path
        self.single = single
        self._targets = targets
        self._watches: dict[str, WatchedRun] = {}
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[object, RunRow]] = {}
        self._rows: list[RunRow] = []
        self._due = 0.0

    def runs(self) -> dict[str, Path]:
        """Return the directories of the runs there are now, by name."""
        if self.single:
            return {self.path.resolve().name or "run": self.path}
        return {found.parent.name: found.parent for found in sorted(self.path.glob("*/run.db"))}

    def watch(self, name: str) -> WatchedRun:
        """Return what reads and renders a run."""
        with self._lock:
            if name not in self._watches:
                directory = self.runs().get(name)  # never a path from outside
                if directory is None:
                    raise RunNotFound(f"no run {name!r} in {self.path}")
                self._watches[name] = WatchedRun(directory, listed=not self.single, targets=self._targets)
            return self._watches[name]

    def render_single(self) -> None:
        """Render the page of a single run: its first reading is that of the whole file, and takes longest."""
        if self.single:
            with suppress(RunFileError):  # the page says so
                self.watch(next(iter(self.runs()))).page()

    def close(self) -> None:
        """Close every run file."""
        for watch in self._watches.values():
            watch.close()

    def rows(
        self, clock: Callable[[], float] = time.time, ticks: Callable[[], float] = time.monotonic
    ) -> list[RunRow]:
        """Return the list of runs, the latest change first; those that cannot be read say why."""
        with self._lock:
            if ticks() >= self._due:
                rows = [self._row(name, directory, clock) for name, directory in self.runs().items()]
                self._rows = sorted(rows, key=_last_change, reverse=True)
                self._due = ticks() + LIST_EVERY
            return self._rows

    def _row(self, name: str, directory: Path, clock: Callable[[], float]) -> RunRow:
        """Return one row; a run that has ended is not read again before its files change."""
        mark = files_mark(directory)
        kept = self._kept.get(name)
        if kept is not None and kept[0] == mark and _at_rest(kept[1]):
            return kept[1]
        try:
            with RunReader(directory) as reader:
                row = RunRow(name, Attachment(reader, clock).summary())
        except RunFileError as error:
            row = RunRow(name, None, str(error))
        self._kept[name] = mark, row
        return row


def in_address(name: str) -> str:
    """Return a run's name as part of an address."""
    return quote(name, safe="", errors="surrogateescape")


def open_folder(path: Path, targets: Callable[[RunReader], TargetLookup] = no_targets) -> Folder:
    """Return the run at `path`, or the runs in it; `targets` looks up the expected answers of one."""
    if RunFiles(path).database.exists():
        RunReader(path).close()
        return Folder(path, single=True, targets=targets)
    if not path.is_dir():
        raise UsageError(
            f"{path} is neither a run nor a folder of runs: name a directory that run has made, or runs/"
        )
    return Folder(path, single=False, targets=targets)


def _last_change(row: RunRow) -> float:
    if row.summary is not None:
        return row.summary.updated or 0.0
    return 0.0


def _at_rest(row: RunRow) -> bool:
    """Return whether a row stays as it is as long as the run's files do; a living run can die silently."""
    return row.summary is None or row.summary.state in ("stopped", "interrupted")
