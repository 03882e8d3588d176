"""Errors of SQLite and the file system, in words that name the path, the cause and what to do."""

import errno
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import zstandard

from adaptive_eval.errors import Coded, RunDamaged, RunDiskFull, RunFileError, RunLocked, RunNotWritable

UNREADABLE = (
    sqlite3.DatabaseError,
    zlib.error,
    zstandard.ZstdError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors that reading damaged bytes can raise."""


_FULL = (RunDiskFull, "no space left on the disk. Free some space and try again; what was committed is safe")
_READ_ONLY = (
    RunNotWritable,
    "the file or its directory cannot be written to. Change its permissions, or put the run elsewhere",
)
_BUSY = (
    RunLocked,
    "another program holds the database's lock. Close what has it open (a database browser, a backup) "
    "and try again",
)
_NOT_OPEN = (
    RunNotWritable,
    "the file cannot be opened. Check that you may read the file and write to its directory "
    "(a run that is being written keeps run.db-wal and run.db-shm next to it)",
)
_NOT_DATABASE = (RunDamaged, "the file is not a run file. Is the path right?")
_CORRUPT = (
    RunDamaged,
    "the file is damaged. Keep a copy of it with its run.db-wal; "
    "`adaptive-eval validate RUN --salvage NEW` copies the undamaged trials to a new run",
)
_NO_LOCKS = (
    RunFileError,
    Coded(
        "run/no-locks",
        "the file system has no locks, as some network file systems. Put the run on a local disk",
    ),
)
_IO = (
    RunFileError,
    Coded(
        "run/disk-error",
        "the disk reported an error. Check the disk and the file system's log before going on",
    ),
)

_BY_SQLITE_CODE: dict[int, tuple[type[RunFileError], str]] = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_CANTOPEN: _NOT_OPEN,
    sqlite3.SQLITE_NOTADB: _NOT_DATABASE,
    sqlite3.SQLITE_CORRUPT: _CORRUPT,
    sqlite3.SQLITE_IOERR: _IO,
}

_BY_ERRNO: dict[int | None, tuple[type[RunFileError], str]] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EIO: _IO,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EROFS: _READ_ONLY,
    **dict.fromkeys((errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS), _NO_LOCKS),
    errno.EEXIST: (RunFileError, "a file of this name is where the run's directory should be"),
    errno.ENOTDIR: (RunFileError, "a part of the path is a file, not a directory. Choose another place"),
    errno.ENAMETOOLONG: (RunFileError, "the path, or a name in it, is too long. Choose a shorter one"),
    errno.EISDIR: (RunFileError, "a directory is where a file should be"),
}


@contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Turn errors of SQLite, codecs and the operating system into :class:`RunFileError` that name `path`.

    Examples
    --------
    >>> with translated(Path("runs/a/run.db"), "committing to"):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
        ...
    adaptive_eval.errors.RunDiskFull: error committing to runs/a/run.db: no space left on the disk. \
Free some space and try again; what was committed is safe (No space left on device)
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None and isinstance(error, sqlite3.ProgrammingError):
            raise  # a closed connection or a wrong thread: the caller's mistake, not the file's
        # Python's sqlite3 gives no code where a text is not UTF-8.
        refused = _CORRUPT if code is None else (RunFileError, "SQLite refused")
        kind, advice = _BY_SQLITE_CODE.get((code or 0) & 0xFF, refused)
        raise _made(kind, advice, f"error {doing} {path}: {advice} ({error})") from error
    except (zlib.error, zstandard.ZstdError, UnicodeDecodeError) as error:
        raise RunDamaged(f"error {doing} {path}: {_CORRUPT[1]} ({error})") from error
    except OSError as error:
        kind, advice = _BY_ERRNO.get(error.errno, (RunFileError, "the operating system refused"))
        words = f"error {doing} {path}: {advice} ({error.strerror or error})"
        raise _made(kind, advice, words) from error


def _made(kind: type[RunFileError], advice: str, words: str) -> RunFileError:
    """Return the error, under the code of its advice if that has one."""
    return kind(Coded(getattr(advice, "code", kind.code), words))


@contextmanager
def decoding(path: Path) -> Iterator[None]:
    """Turn every error of reading stored rows into :class:`RunFileError`: they are damaged."""
    with translated(path, "reading"):
        try:
            yield
        except sqlite3.Error:
            raise
        except UNREADABLE as error:
            raise RunDamaged(f"error reading {path}: {_CORRUPT[1]} ({error})") from error
