"""The files of one run: how they are made and opened, and the disk space that they need.

A run is a directory with ``run.db``. While it is written, SQLite keeps its write-ahead log ``run.db-wal`` and
``run.db-shm`` next to it, and ``run.lock`` says who writes. A run that was closed is ``run.db`` alone, in
SQLite's plain mode: it can be copied as one file and read on any medium. A directory without ``run.db`` is no
run, whatever else it holds.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from importlib.resources import files as resources
from pathlib import Path
from typing import Any, Literal, TypeAlias

from adaptive_eval.errors import RunDamaged, RunExists, RunFileError, RunNotFound, RunOfOtherVersion
from adaptive_eval.store.codec import packed, unpack
from adaptive_eval.store.file_errors import translated

Durability: TypeAlias = Literal["full", "normal"]
"""``full``: a commit survives power loss. ``normal``: it survives the death of the process; power loss may
undo the last commits, never part of one."""

RUN_FILE = "run.db"
"""The run file in a run's directory."""

_SCHEMA = resources("adaptive_eval.store").joinpath("schema.sql").read_text(encoding="utf-8")

APPLICATION_ID = 0x41455652
"""``AEVR``: marks a SQLite file as a run file (see ``file(1)`` and ``PRAGMA application_id``)."""

FILE_VERSION = int(_SCHEMA.partition("user_version = ")[2].partition(";")[0])
"""The version of the schema, in the file's ``user_version``: no other one is read or written."""

OBJECTS = "SELECT type, name, coalesce(sql, '') FROM sqlite_master WHERE type != 'index' OR sql IS NOT NULL"
_BUSY_SECONDS = 5.0
_ONE_THREAD_ONLY = sqlite3.threadsafety != 3  # 3: this SQLite serialises calls itself, as nearly all do
_PAGE_BYTES = 8192  # on SQLite's 4096 two answers of 4 KB fit, compressed, and a fifth stays empty
_RUNS_NAMED = 8
_WAL_KEPT_BYTES = 64 * 1024 * 1024  # a log grown behind a slow reader is cut back to this


def holds_runs(place: Path) -> bool:
    """Return whether a directory is no run itself and holds runs."""
    return not (place / RUN_FILE).exists() and any(place.glob(f"*/{RUN_FILE}"))


@dataclass(frozen=True)
class RunFiles:
    """The paths of one run.

    Examples
    --------
    >>> RunFiles(Path("runs/a")).database.name
    'run.db'
    """

    directory: Path

    @cached_property
    def database(self) -> Path:
        """The run file."""
        return self.directory / RUN_FILE

    @cached_property
    def wal(self) -> Path:
        """SQLite's write-ahead log of the run file."""
        return self.directory / "run.db-wal"

    @property
    def journal(self) -> Path:
        """SQLite's rollback journal of the run file: there only after a crash while it was closed."""
        return self.directory / "run.db-journal"

    @property
    def lock(self) -> Path:
        """The file the writer locks."""
        return self.directory / "run.lock"

    @property
    def draft(self) -> Path:
        """A run file being created."""
        return self.directory / "run.db.new"

    def identity(self) -> tuple[int, int] | None:
        """Return what tells the run file from another of its name, or None if it is gone."""
        return identity(self.database)

    def require_absent(self) -> None:
        """Raise RunExists if there is a run, or the unmerged log of one whose file is gone."""
        if self.database.exists():
            raise RunExists(
                f"{self.directory} already holds a run. Continue it with "
                f"`adaptive-eval run {self.directory}`, or choose another name"
            )
        for log in self.unmerged():  # SQLite would replay it into the new file
            raise RunExists(
                f"{log} belongs to a run whose run.db is gone. Put run.db back, or move {log.name} away"
            )

    def unmerged(self) -> list[Path]:
        """Return the logs that hold changes of the run file."""
        return [log for log in (self.wal, self.journal) if log.exists() and log.stat().st_size]

    def require_present(self) -> None:
        """Raise RunNotFound if there is no run."""
        with translated(self.directory, "reading"):
            is_there = self.database.is_file()  # reading a named pipe would never end
        if not is_there:
            raise RunNotFound(f"no run at {self.directory}: {self._in_place_of_a_run()}")

    def _in_place_of_a_run(self) -> str:
        """Describe a folder without a run, and what to do."""
        if self.directory.is_file():
            if self.directory.name == self.database.name:
                return f"a run is named by its directory, {self.directory.parent}"
            if self.directory.suffix in (".yaml", ".yml"):
                return f"it is a file. A config is run with `adaptive-eval run {self.directory}`"
            return "it is a file; name the directory of a run"
        if not self.directory.exists():
            return "there is no such directory"
        if self.draft.exists():
            return "it has no run.db. Its creation was interrupted: start it again"
        runs = sorted(path.parent.name for path in self.directory.glob("*/run.db") if path.is_file())
        if runs:
            more = ""
            if len(runs) > _RUNS_NAMED:
                more = f" and {len(runs) - _RUNS_NAMED} more"
            return (
                f"it has no run.db, but holds runs: {', '.join(runs[:_RUNS_NAMED])}{more}. Name one of them"
            )
        return "it has no run.db"


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of its name, or None if it is gone."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _uri(path: Path, query: str) -> str:
    return f"{path.absolute().as_uri()}?{query}"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_database(files: RunFiles, meta: Mapping[str, str]) -> None:
    """Make the run file with its schema and `meta`: whole, or not at all.

    It is built under another name and renamed when it is on the disk, so that a crash at any moment leaves
    nothing that looks like a run. The caller holds the run's lock.
    """
    with translated(files.draft, "creating"):
        for leftover in (files.draft, files.draft.with_name("run.db.new-journal")):
            leftover.unlink(missing_ok=True)
        with closing(sqlite3.connect(_uri(files.draft, "mode=rwc"), uri=True, isolation_level=None)) as db:
            db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            db.executescript(f"BEGIN;\n{_SCHEMA}")
            db.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", map(packed, meta.items()))
            seal(db)
            db.execute("COMMIT")
            _use_wal(db, files.draft)
        _sync(files.draft)
        files.draft.rename(files.database)
        _sync(files.directory)
        _sync(files.directory.absolute().parent)


CHECKSUM = "checksum"
"""The key of the description's checksum in itself."""


def checksum_of(db: sqlite3.Connection) -> str:
    """Return the checksum of a run's description, that entry left out."""
    entries = {unpack(key): unpack(value) for key, value in db.execute("SELECT key, value FROM meta")}
    entries.pop(CHECKSUM, None)
    return blake2b(json.dumps(entries, sort_keys=True).encode(), digest_size=16).hexdigest()


def seal(db: sqlite3.Connection) -> None:
    """Store the checksum of the description, within the caller's transaction."""
    db.execute("REPLACE INTO meta (key, value) VALUES (?, ?)", packed((CHECKSUM, checksum_of(db))))


def _use_wal(db: sqlite3.Connection, path: Path) -> None:
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise RunFileError(
            f"{path} cannot use a write-ahead log (SQLite stays in mode {mode}): the file system lacks "
            "shared memory or locks, as network file systems do. Put the run on a local disk",
            code="run/no-locks",
        )


def open_for_writing(files: RunFiles, durability: Durability) -> sqlite3.Connection:
    """Open the run file for its one writer."""
    with translated(files.database, "opening"):
        uri = _uri(files.database, "mode=rw")
        db = sqlite3.connect(
            uri,
            uri=True,
            isolation_level=None,
            timeout=_BUSY_SECONDS,
            check_same_thread=False,  # the writer's calls never overlap, whichever thread they come from
        )
        try:
            _require_run_file(db, files.database)
            _use_wal(db, files.database)
            db.execute(f"PRAGMA synchronous = {durability.upper()}")
            # macOS: fsync alone leaves data in the drive's cache; elsewhere these do nothing
            db.execute(f"PRAGMA fullfsync = {durability == 'full':d}")
            db.execute(f"PRAGMA checkpoint_fullfsync = {durability == 'full':d}")
            db.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
        except BaseException:
            db.close()
            raise
    return db


def merge_log(db: sqlite3.Connection) -> None:
    """Merge the write-ahead log into the file and return to SQLite's plain mode, as far as readers let it.

    Nothing depends on it: if a reader is attached, or the disk is full, everything is durable in the log,
    and the next writer continues from there.
    """
    for milliseconds, statement in (
        (1000, "PRAGMA wal_checkpoint(TRUNCATE)"),
        (0, "PRAGMA journal_mode = DELETE"),  # refused while a reader is attached: no use in waiting
    ):
        try:
            db.execute(f"PRAGMA busy_timeout = {milliseconds}")
            db.execute(statement).fetchone()
        except sqlite3.OperationalError:
            return


def open_for_reading(files: RunFiles) -> sqlite3.Connection:
    """Open the run file read-only, whether it is live, finished, left by a crash or in a read-only place.

    The file may be a stranger's: nothing in it is executed, and no query takes much longer than its size
    explains.
    """
    files.require_present()
    with translated(files.database, "reading"):
        db = _open_anywhere(files)
        try:
            _require_run_file(db, files.database)
        except BaseException:
            db.close()
            raise
    return db


def _open_anywhere(files: RunFiles) -> sqlite3.Connection:
    try:
        return _connect(files.database, "mode=ro")
    except sqlite3.OperationalError as error:
        # in a directory it may not write to, SQLite can neither make run.db-shm nor roll a journal back
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
    logs = files.unmerged()
    if not logs:
        return _connect(files.database, "mode=ro&immutable=1")
    scratch = tempfile.TemporaryDirectory(prefix="adaptive-eval-")
    try:
        for source in (files.database, *logs):
            shutil.copyfile(source, Path(scratch.name, source.name))  # without the read-only mode
        db = _connect(Path(scratch.name, files.database.name), "mode=rw")
    except BaseException:
        scratch.cleanup()
        raise
    db.scratch = scratch
    return db


def _connect(path: Path, query: str) -> _Bounded:
    db = sqlite3.connect(
        _uri(path, query),
        uri=True,
        isolation_level=None,
        timeout=_BUSY_SECONDS,
        check_same_thread=_ONE_THREAD_ONLY,
        factory=_Bounded,
    )
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA user_version").fetchone()  # opens file, log and shared memory, or fails here
        db.bound(path)
    except BaseException:
        db.close()
        raise
    return db


class _Bounded(sqlite3.Connection):
    """A connection whose statements end with an error after far more steps than their file explains."""

    scratch: tempfile.TemporaryDirectory[str] | None = None  # where its file is a copy
    _left = _most = 0

    def close(self) -> None:
        """Close the file, and delete it if it is a copy."""
        super().close()
        if self.scratch is not None:
            self.scratch.cleanup()

    def bound(self, path: Path) -> None:
        """Bound each further statement by the size of its file."""
        self._most = _LEAST_TICKS + path.stat().st_size * _STEPS_A_BYTE // _TICK
        self.set_progress_handler(self._tick, _TICK)

    def execute(self, *query: Any) -> sqlite3.Cursor:
        """Begin a statement."""
        self._left = self._most
        return super().execute(*query)

    def _tick(self) -> bool:
        self._left -= 1
        return self._left < 0


_TICK = 1_000_000
"""Steps of SQLite's virtual machine between two looks at how many there were."""

_LEAST_TICKS = 500
_STEPS_A_BYTE = 100
"""The most steps of a statement: some ten seconds, and thirty thousand for a trial of 300 bytes."""


@lru_cache
def known_objects() -> frozenset[tuple[str, str, str]]:
    """Return type, name and definition of each table and index of a run file."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_SCHEMA)
        return frozenset(db.execute(OBJECTS))


def _require_run_file(db: sqlite3.Connection, path: Path) -> None:
    """Raise unless a file is a run file of this version, with its tables and indexes and nothing else."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise RunDamaged(f"{path} is a SQLite file, but not a run file of adaptive-eval. Is the path right?")
    if version != FILE_VERSION:
        raise RunOfOtherVersion(
            f"{path} is a run file made by version {version}; this adaptive-eval reads version "
            f"{FILE_VERSION}. Use the adaptive-eval that wrote it, or start a new run"
        )
    foreign = set(db.execute(OBJECTS)) - known_objects()
    if foreign:
        kind, name, _ = min(foreign)
        raise RunDamaged(
            f"{path} holds a {kind} {name!r} that no run file has: it is damaged, or made to do something "
            "else when it is opened"
        )


ROW_BYTES = 300.0
"""A trial without its answer: launch, attempt, outcome and what they are found by."""

TOKEN_BYTES = 2.1
"""A token of an answer: about four characters, compressed, on pages that are nine tenths full."""

ALTERNATIVE_BYTES = 23.0
"""One token's log-probability as compressed JSON, for the token itself and for each alternative."""


def trial_bytes(completion_tokens: float, alternatives: int = 0) -> float:
    """Return about how many bytes a stored trial takes.

    The constants are measured, on 4,000 public answers of five models (1,700 characters on average). Code
    compresses better, and a language with letters of several bytes takes up to twice as much.

    Examples
    --------
    >>> trial_bytes(1000), trial_bytes(1000, alternatives=1)
    (2400.0, 25400.0)
    """
    return ROW_BYTES + completion_tokens * (TOKEN_BYTES + ALTERNATIVE_BYTES * alternatives)


def free_bytes(directory: Path | str) -> int:
    """Return how many bytes may be written where `directory` is or would be made."""
    with translated(Path(directory), "looking at the disk of"):
        return shutil.disk_usage(_existing(directory)).free


def require_writable(directory: Path | str) -> None:
    """Raise RunFileError, with the cause, if `directory` cannot be made or written to."""
    with translated(Path(directory), "writing to"):
        place = _existing(directory)
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{place} is a file")
        try:
            with tempfile.TemporaryDirectory(dir=place, prefix=".adaptive-eval-"):
                pass
        except FileNotFoundError as error:  # what /proc and its like say
            raise PermissionError(errno.EACCES, f"{place} takes no files") from error


def _existing(directory: Path | str) -> Path:
    """Return the directory, or the nearest one above it that exists."""
    place = Path(directory).absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return place


def stored_bytes(directory: Path | str) -> int:
    """Return how many bytes the run in `directory` takes, its write-ahead log included."""
    files = RunFiles(Path(directory))
    return sum(path.stat().st_size for path in (files.database, *files.unmerged()))


def in_words(size: float) -> str:
    """Return a size as people write it.

    Examples
    --------
    >>> in_words(512), in_words(2100), in_words(63_500_000), in_words(9.8e9)
    ('512 B', '2.1 kB', '63.5 MB', '9.8 GB')
    """
    for unit, suffix in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {suffix}"
    return f"{size:.0f} B"
