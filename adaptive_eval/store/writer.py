"""The one writer of a run file."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Self, get_args

from adaptive_eval.errors import RunFileError, RunLocked, RunMismatch
from adaptive_eval.store.file_errors import UNREADABLE, decoding, translated
from adaptive_eval.store.integrity import Damage, require_undamaged
from adaptive_eval.store.pending import Pending, add_scoring
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import AttemptRecord, Rescored, ScoringRecord, SnapshotRecord, TrialRecord
from adaptive_eval.store.run_files import (
    Durability,
    RunFiles,
    create_database,
    identity,
    merge_log,
    open_for_writing,
)
from adaptive_eval.trial import LAID_OUT, TrialRequest


class WriterLock:
    """The right to write to one run, held until :meth:`release` or the end of the process.

    Use :meth:`acquire`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     lock = WriterLock.acquire(Path(directory) / "run.lock")
    ...     lock.release()
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        _held.add(self)

    @classmethod
    def acquire(cls, path: Path) -> WriterLock:
        """Take the lock at `path` without waiting, creating the file if there is none."""
        if sys.platform == "win32":
            raise RunFileError(
                f"cannot lock {path}: Windows has no flock. Run adaptive-eval under WSL, on Linux or on "
                "macOS",
                code="run/no-locks",
            )
        import fcntl

        with translated(path, "locking"):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = _read_holder(descriptor)
                os.close(descriptor)
                raise RunLocked(
                    f"{path.parent} is being written by {holder}. Stop that process, wait for it, or choose "
                    "another run name; `adaptive-eval monitor` can watch the run meanwhile"
                ) from None
            except OSError:
                os.close(descriptor)
                raise
            os.ftruncate(descriptor, 0)
            note = {"pid": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}
            os.pwrite(descriptor, json.dumps(note).encode(), 0)
        return cls(descriptor)

    def release(self) -> None:
        """Give the lock back; releasing twice is harmless."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        _held.discard(self)
        os.ftruncate(descriptor, 0)
        os.close(descriptor)

    def forget(self) -> None:
        """Close this process's copy without releasing the lock, as a forked child must.

        A child that kept the descriptor would keep the run locked after its parent was killed.
        """
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _read_holder(descriptor: int) -> str:
    try:
        note = json.loads(os.pread(descriptor, 1000, 0))
        return f"process {note['pid']} on {note['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"  # it has the lock and has not yet said who it is


_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


def _forget_in_child() -> None:
    for lock in list(_held):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


_SALVAGED_AT_ONCE = 1000


class RunWriter:
    """Writes one run file; at most one writer per run lives at any time, on any process.

    Use :meth:`create` or :meth:`open`. Rows are gathered in memory and written by :meth:`commit` in one
    transaction: nothing counts before `commit` has returned, and then it survives ``kill -9`` (with
    durability ``full``, power loss too). Its calls may come from different threads but must not overlap. As
    a context manager it commits and closes at the end, also when the block fails: an answer that was paid
    for is kept.

    Examples
    --------
    >>> import tempfile
    >>> from adaptive_eval.trial import Completion, Score, TrialKey, Usage
    >>> request = TrialRequest(TrialKey("qwen3-4b", 0), "aime25", "I-1", repeat=0, seed=7)
    >>> with tempfile.TemporaryDirectory() as runs:
    ...     with RunWriter.create(Path(runs, "first"), meta={"seed": "1234"}) as writer:
    ...         writer.launch([request], at=1.7e9)
    ...         stored = writer.outcome(
    ...             TrialRecord(request, 1.7e9, Completion("42", "stop", Usage(90, 3)), Score(1, "42"))
    ...         )
    ...         committed = writer.commit()
    ...     with RunReader(Path(runs, "first")) as reader:
    ...         print(stored, committed, list(reader.log()))
    True 1 [[TrialOutcome(key=TrialKey(model='qwen3-4b', index=0), category=1, usage=Usage(prompt_tokens=90, \
completion_tokens=3, cached_tokens=0), answer=1825008443, repeats=False, discarded=())]]
    """

    def __init__(
        self, files: RunFiles, durability: Durability, meta: Mapping[str, str] | None = None
    ) -> None:
        """Continue a run or, with a description, create one."""
        self._files = files
        self._closed = False
        self._log: tuple[int, int] | None = None
        with ExitStack() as opened:
            opened.callback(WriterLock.acquire(files.lock).release)
            if meta is not None:
                files.require_absent()  # another process may have created it and gone
                create_database(files, meta)
            self._db = opened.enter_context(closing(open_for_writing(files, durability)))
            if meta is None:
                require_undamaged(self._db, files.database, whole=False)
            with decoding(files.database):
                self._identity = files.identity()
                self._pending = Pending(self._db)
            self._opened = opened.pop_all()

    @classmethod
    def create(
        cls, directory: Path | str, *, meta: Mapping[str, str], durability: Durability = "full"
    ) -> RunWriter:
        """Make a new run and open it.

        Parameters
        ----------
        directory : path
            The run's directory, made with its parents if missing; other files in it are left alone.
        meta : mapping of str to str
            What describes the run (config, hash, versions, seed), stored before the run can be seen.
        durability : {'full', 'normal'}
            The failures that a commit survives: power loss, or the death of the process only.

        Returns
        -------
        RunWriter
            Holding the run's lock.

        Raises
        ------
        RunExists
            If there is a run already.
        RunLocked
            If another process is creating it.
        RunFileError
            If the directory cannot be made or written to, or the disk is full.
        """
        files = _files(directory, durability)
        files.require_absent()
        with translated(files.directory, "creating"):
            files.directory.mkdir(parents=True, exist_ok=True)
        return cls(files, durability, meta)

    @classmethod
    def open(cls, directory: Path | str, *, durability: Durability = "full") -> RunWriter:
        """Continue an existing run.

        Parameters
        ----------
        directory : path
            The run's directory.
        durability : {'full', 'normal'}
            The failures that later commits survive.

        Raises
        ------
        RunNotFound
            If there is no run.
        RunLocked
            If another live process writes to it; the message names it.
        RunOfOtherVersion
            If another version of this package wrote it.
        RunFileError
            If the file cannot be written to, is damaged, or is no run file.
        """
        files = _files(directory, durability)
        files.require_present()
        return cls(files, durability)

    @property
    def directory(self) -> Path:
        """The run's directory."""
        return self._files.directory

    def reader(self) -> RunReader:
        """Return a new reader of this file; it sees what is committed."""
        return RunReader(self._files.directory)

    def launch(self, requests: Sequence[TrialRequest], at: float) -> None:
        """Log that these trials are being sent, at Unix time `at`."""
        self._pending.add_launches(requests, at)

    def attempt(self, record: AttemptRecord) -> None:
        """Log one attempt, successful or not."""
        self._pending.add_attempt(record)

    def outcome(self, record: TrialRecord) -> bool:
        """Add a finished trial.

        Returns
        -------
        bool
            True if it will be stored; False if this trial has an outcome already, which stays as it is.

        Raises
        ------
        RunMismatch
            If the stored trial of this key asked something else: another question, repeat or seed.
        ValueError, TypeError
            If a number cannot be stored, or logprobs, signals or body are not JSON-able. The trial is not
            added.
        """
        with translated(self._files.database, "reading"):
            return self._pending.add_outcome(record)

    def decision(self, at: float, trials: int, body: Mapping[str, Any]) -> None:
        """Log a decision made at Unix time `at`, when `trials` trials counted; `body` is JSON-able."""
        self._pending.add_decision(at, trials, body)

    def snapshot(self, record: SnapshotRecord) -> None:
        """Add a snapshot; older ones are thinned (:func:`~adaptive_eval.store.pending.expired_by`)."""
        self._pending.add_snapshot(record)

    def scoring(self, record: ScoringRecord, rows: Iterable[Rescored]) -> int:
        """Store another scoring of the stored answers, durably at once; return its id.

        Raises
        ------
        RunFileError
            If it cannot be written; nothing of it is in the file then.
        """
        with translated(self._files.database, "committing to"):
            return add_scoring(self._db, record, rows)

    def set_meta(self, key: str, value: str) -> None:
        """Set one value of the run's description."""
        self._pending.set_meta(key, value)

    def commit(self) -> int:
        """Make everything added so far durable, in one transaction.

        Returns
        -------
        int
            How many trials this made durable.

        Raises
        ------
        RunFileError
            If the disk is full or fails, or the file is locked or was deleted. Nothing of it is in the file
            then and all of it stays in memory: commit again once the cause is gone.
        """
        if not self._pending:
            return 0
        with translated(self._files.database, "committing to"):
            if self._files.identity() != self._identity:
                # SQLite would keep writing to the deleted file without an error
                raise RunFileError(
                    f"{self._files.database} was replaced or deleted while this process writes to it. "
                    "Nothing more can be stored there: restore the file from a copy, or start a new run",
                    code="run/replaced",
                )
            log = identity(self._files.wal)
            if self._log is not None and log != self._log:
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the deleted log is still open here
                raise RunFileError(
                    f"{self._files.wal} was deleted while this process writes to it. All that was "
                    "committed is merged into run.db; nothing more is safe. Continue with "
                    "`adaptive-eval run`",
                    code="run/replaced",
                )
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:  # commits, or rolls back whatever fails
                self._pending.write()
        self._log = log or identity(self._files.wal)
        committed = self._pending.trials
        self._pending.written()
        return committed

    def close(self) -> None:
        """Commit, leave the run as one plain file, and release the lock; closing twice is harmless.

        Raises
        ------
        RunFileError
            If the commit fails. The writer is closed all the same.
        """
        if self._closed:
            return
        self._closed = True
        with self._opened:
            self.commit()
            merge_log(self._db)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def salvage(source: Path | str, target: Path | str) -> Damage:
    """Copy the undamaged rows of a run to a new run, which can be continued; return the losses.

    Trials, launches, attempts and the description are copied; decisions are made again on resume, but for
    those that laid out rounds while answers were awaited.

    Raises
    ------
    RunDamaged
        The description, or the file as a whole, cannot be read.
    RunExists
        There is a run at `target`.
    """
    with RunReader(source) as reader, decoding(reader.directory / "run.db"):
        contents = reader.contents()
        with RunWriter.create(target, meta=reader.meta()) as writer:
            for request, at in contents.launches():
                with suppress(*UNREADABLE):
                    writer.launch([request], at)
            for attempt in contents.attempts():
                with suppress(*UNREADABLE):
                    writer.attempt(attempt)
            for place, record in enumerate(contents.trials(), start=1):
                with suppress(RunMismatch, *UNREADABLE):
                    writer.outcome(record)
                if place % _SALVAGED_AT_ONCE == 0:
                    writer.commit()
            with suppress(*UNREADABLE):
                for decision in reader.decisions():
                    if decision.body.get("kind") == LAID_OUT:
                        writer.decision(decision.at, decision.trials, decision.body)
    return contents.damage


def _files(directory: Path | str, durability: Durability) -> RunFiles:
    if durability not in get_args(Durability):
        raise ValueError(f"durability is {durability!r}: choose 'full' or 'normal'")
    return RunFiles(Path(directory).absolute())  # the process may change its folder while it writes
