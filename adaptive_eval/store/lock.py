"""One writer a run: a lock that the kernel releases, however the holder ends.

SQLite's own lock lasts for one transaction; this one lasts as long as the writer. It is a ``flock`` on a file
next to the database, so no stale lock outlives a ``kill -9``. The file says who holds it and stays there when
released: deleting it would let two processes lock two files of one name.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import weakref
from pathlib import Path

from adaptive_eval.errors import RunFileError, RunLocked
from adaptive_eval.store.file_errors import translated


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
        """Take the lock at `path` without waiting, creating the file where there is none."""
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
