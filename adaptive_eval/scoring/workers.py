"""Work on an answer that may hang, crash or eat the machine, in processes of its own under a time limit."""

from __future__ import annotations

import atexit
import os
import pickle
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import spawn
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from threading import Lock, Thread, get_ident
from typing import Any, NamedTuple, TypeVar

from adaptive_eval.errors import ScorerUnavailable, UsageError
from adaptive_eval.scoring.library import library
from adaptive_eval.scoring.scorer import Undecided

__all__ = ["LIMIT", "Home", "bound_workers", "in_worker", "require_workers"]

LIMIT = 5.0
"""Seconds that the comparison of one answer may take."""

MEMORY = 4 * 2**30
"""Bytes of address space that a worker may have; an expression that asks for more fails."""

_HOMES = 4
"""Homes of own functions whose processes are kept: a notebook may try many, one after the other."""

_STARTS = 3
"""Times that a pool is started for one answer; then something else than the answer is wrong."""

_DEATHS = 2
"""Processes that may die over one answer: one may have been killed for another reason, two are its fault."""

_GLANCE = 1.0
"""Seconds between two looks at whether the pool that has the work is still there."""

Result = TypeVar("Result")

_most: int | None = None


def bound_workers(most: int) -> None:
    """Let scorers have no more than `most` processes of their own from now on, whatever the machine has."""
    global _most
    _most = most


@dataclass(frozen=True, slots=True)
class Home:
    """Where a function of one's own is at home: what its process has to find as the caller does.

    Parameters
    ----------
    path : tuple of str
        Where modules are looked for, in this order.
    folder : str
        The current folder, from which it may read files; empty where there is none.
    sources : tuple of (str, int, int)
        The Python files in the first folder of `path`, with time and size: an edited one is another home, so
        that the processes that know the old one are left.
    """

    path: tuple[str, ...]
    folder: str
    sources: tuple[tuple[str, int, int], ...]

    @classmethod
    def here(cls) -> Home:
        """Return the home of functions that would be imported here and now."""
        path, folder = tuple(map(str, sys.path)), ""
        with suppress(OSError):  # the folder may have been deleted
            folder = str(Path.cwd())
        sources: list[tuple[str, int, int]] = []
        with suppress(OSError), os.scandir(path[0] or ".") as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found = entry.stat()
                    sources.append((entry.name, found.st_mtime_ns, found.st_size))
        return cls(path, folder, tuple(sorted(sources)))


def in_worker(
    function: Callable[..., Result],
    *arguments: Any,
    limit: float = LIMIT,
    imports: str = "",
    home: Home | None = None,
) -> Result:
    """Return ``function(*arguments)``, worked out in another process. Waits; may be called from any thread.

    A process that is killed while it works, as by a system that runs out of memory, says nothing about the
    answer: it is tried again in a fresh one, and so is one that has slept with the machine.

    Parameters
    ----------
    function : callable
        Of a module's top level.
    *arguments
        What can be pickled, as what the function returns.
    limit : float
        Seconds; then the process is killed.
    imports : str
        A module that the process imports when it starts, so that no answer's time is spent on it.
    home : Home, optional
        Where the process looks for modules and files; default: wherever it began.

    Raises
    ------
    Undecided
        If it takes too long, raises, or its process dies again and again.
    UsageError
        As the function raised it: the mistake is not one of the answer.
    ScorerUnavailable
        If no process can be started: the answer can still be scored later.

    Examples
    --------
    >>> in_worker(divmod, 7, 2)
    (3, 1)
    """
    expired = library("pebble", "this scorer", "pebble").ProcessExpired
    key = _Key(imports, _most, home, () if home is None else tuple(sorted(os.environ.items())))
    try:
        work = pickle.dumps((function, arguments))
    except RecursionError as error:  # an answer may be nested as deeply as it likes
        raise Undecided(_words(error)) from None
    starts = deaths = 0
    while True:
        pool, begun = _pool(key), time.monotonic()
        try:
            told = _worked_out(pool, limit, work)
        except _PoolBroken:
            _retire(key, pool)
            starts += 1
            if starts == _STARTS:
                raise _unavailable() from None
        except TimeoutError:
            if time.monotonic() - begun >= limit:  # else the machine has slept, or its clock was set
                raise Undecided(f"took longer than {limit:g} s") from None
        except expired as error:
            deaths += 1
            if deaths == _DEATHS:
                raise Undecided(_words(error)) from None
        else:
            if told.failed is not None:
                raise told.failed(told.words)
            result: Result = told.result
            return result


def require_workers(needed_by: str) -> None:
    """Refuse, with what to install, where processes cannot be used.

    Raises
    ------
    UsageError
        If the library is missing.
    """
    library("pebble", needed_by, "pebble")


class _PoolBroken(Exception):
    """The pool is gone and its work with it; this says nothing about the work."""


class _Told(NamedTuple):
    """What a worker says: a result, or how it failed. An exception itself might not survive the way here."""

    result: Any
    failed: type[Exception] | None = None
    words: str = ""


class _Key(NamedTuple):
    """What the processes of a pool have in common."""

    imports: str
    most: int | None
    home: Home | None
    environment: tuple[tuple[str, str], ...]


def _worked_out(pool: Any, limit: float, work: bytes) -> _Told:
    """Return what a worker of `pool` says; what it raises is about the worker, not about the function.

    Both ways go bytes: what the pool itself cannot pickle, or make again, breaks it.
    """
    try:
        future: Future[bytes] = pool.schedule(_tell, args=(work,), timeout=limit)
    except RuntimeError:  # it has broken, or was retired, since it was looked up
        raise _PoolBroken from None
    is_left = False
    while True:
        try:
            error = future.exception(timeout=_GLANCE)
        except TimeoutError:  # of this look; a pool that breaks can lose what it was just given
            if is_left:
                raise _PoolBroken from None
            is_left = not pool.active
            continue
        if error is None:
            told: _Told = pickle.loads(future.result())  # noqa: S301 - of our own worker
            return told
        if isinstance(error, RuntimeError):  # BrokenProcessPool is one
            raise _PoolBroken from error
        raise error


def _tell(work: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(work)  # noqa: S301 - of our own process
        return pickle.dumps(_Told(function(*arguments)))
    except Undecided as error:
        told = _Told(None, Undecided, str(error))
    except UsageError as error:
        told = _Told(None, UsageError, str(error))
    except Exception as error:  # noqa: BLE001 - a function of anybody's
        told = _Told(None, Undecided, _words(error))
    return pickle.dumps(told)


def _words(error: BaseException) -> str:
    text = str(error).strip()
    return f"failed with {type(error).__name__}" + (f": {text.splitlines()[0][:200]}" if text else "")


def _unavailable() -> ScorerUnavailable:
    return ScorerUnavailable(
        "the processes that score answers do not start, or are killed at once: what they said is on the "
        "error output; the machine may be out of memory or of processes",
        kind="worker",
    )


_pools: dict[_Key, Any] = {}
_retired: list[Thread] = []
_lock = Lock()


def _pool(key: _Key) -> Any:
    """Return the pool of processes for `key`; one a core, at most eight, or as bounded."""
    if sys.platform == "win32":
        raise UsageError("scorers that work in processes of their own need Linux or macOS")
    with _lock:
        pool = _pools.pop(key, None)
        if pool is None:
            pool = library("pebble", "this scorer", "pebble").ProcessPool(
                max_workers=key.most or min(8, os.cpu_count() or 1),
                max_tasks=5000,
                context=_Context(),
                initializer=_begin,
                initargs=[key.imports, key.home, dict(key.environment)],
            )
        _pools[key] = pool  # the last one used is the last one
        at_home = [one for one in _pools.items() if one[0].home is not None]
    if len(at_home) > _HOMES:
        _retire(*at_home[0])
    return pool


def _retire(key: _Key, pool: Any) -> None:
    """Let `pool` finish what it has, and end it; whoever comes next gets a fresh one."""
    with _lock:
        if _pools.get(key) is not pool:
            return
        del _pools[key]
        _retired[:] = [*filter(Thread.is_alive, _retired), Thread(target=_end_of, args=(pool,), daemon=True)]
        _retired[-1].start()


def _end_of(pool: Any) -> None:
    pool.close()
    pool.join()


@atexit.register
def _end() -> None:
    while _pools:
        pool = _pools.popitem()[1]
        pool.stop()
        pool.join()
    for thread in _retired:
        thread.join(_GLANCE)


class _Worker(ForkServerProcess):
    """A process that does not import the script that the user has started.

    Nothing of it is needed, and a script that does not guard itself by ``if __name__ == "__main__"`` would
    run again in every worker, and ask its models.
    """

    def start(self) -> None:
        with _without_main():
            super().start()


class _Context(ForkServerContext):
    Process = _Worker


_starting = Lock()


@contextmanager
def _without_main() -> Iterator[None]:
    """Let processes that this thread starts meanwhile begin without the main module."""
    own = get_ident()
    with _starting:
        prepare = spawn.get_preparation_data

        def prepared(name: str) -> dict[str, Any]:
            data: dict[str, Any] = prepare(name)
            if get_ident() != own:
                return data
            return {what: value for what, value in data.items() if not what.startswith("init_main")}

        spawn.get_preparation_data = prepared
        try:
            yield
        finally:
            spawn.get_preparation_data = prepare


def _begin(imports: str, home: Home | None, environment: dict[str, str]) -> None:
    """Prepare a worker: leave Ctrl-C to the run, bound its memory, import what its work needs."""
    if home is not None:
        sys.path[:] = home.path
        os.environ.clear()
        os.environ.update(environment)
        with suppress(OSError):
            os.chdir(home.folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if imports:
        import_module(imports)
