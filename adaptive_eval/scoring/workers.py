"""Work that may hang, crash or use up memory, done in other processes under a time limit."""

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

from adaptive_eval.errors import ScorerUnavailable, UsageError, last_line, user_code
from adaptive_eval.scoring.scorer import ScorerFailed, Undecided

LIMIT = 5.0
"""Seconds of CPU time that one comparison may take."""

MEMORY = 4 * 2**30
"""Bytes of address space of a worker; an expression that needs more fails."""

_HOMES = 4
"""Homes of user functions whose processes are kept; a notebook may try many functions in turn."""

_STARTS = 3
"""Starts of a pool for one answer; after them the answer is not the cause."""

_DEATHS = 2
"""Processes that may die over one answer: the first may have been killed for another reason."""

_PATIENCE = 10.0
"""Wall-clock time that work may take, as a multiple of its CPU time: a busy machine makes no answer wrong."""

_GLANCE = 1.0
"""Seconds between two checks that the pool with the work is alive."""

Result = TypeVar("Result")

_most: int | None = None


def bound_workers(most: int) -> None:
    """Bound the processes of each pool that starts from now on."""
    global _most
    _most = most


@dataclass(frozen=True, slots=True)
class Home:
    """Module path and current folder, which the process of a user function shares with its caller.

    `sources` are the Python files in the first folder of `path`, with time and size. An edited file makes
    another home, with new processes.
    """

    path: tuple[str, ...]
    folder: str
    sources: tuple[tuple[str, int, int], ...]

    @classmethod
    def here(cls, first: Path | None = None) -> Home:
        """Return the home of a function that is imported now, from the folder `first` if that has it."""
        path = tuple(map(str, sys.path if first is None else (first, *sys.path)))
        folder = ""
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
    """Return ``function(*arguments)``, computed in another process. Blocks; any thread may call it.

    A process that is killed while it works (as by a system without memory) says nothing about the answer: the
    work is repeated in a new one. So is work during which the machine slept.

    Examples
    --------
    >>> in_worker(divmod, 7, 2)
    (3, 1)
    """
    from pebble import ProcessExpired

    if home is not None:
        variables = tuple(sorted(os.environ.items()))
    else:
        variables = ()
    key = _Key(imports, _most, home, variables)
    try:
        work = pickle.dumps((function, arguments))
    except RecursionError as error:  # an answer may be nested to any depth
        raise Undecided(_words(error)) from None
    starts = deaths = 0
    wall, cpu = (_PATIENCE * limit, limit) if home is None else (limit, None)
    while True:
        pool = _pool(key)
        begun = time.monotonic()
        try:
            reply = _reply_of(pool, work, wall, cpu)
        except _PoolBroken:
            _retire(key, pool)
            starts += 1
            if starts == _STARTS:
                raise _unavailable() from None
        except TimeoutError:
            if time.monotonic() - begun >= wall:  # else the machine slept, or its clock was set
                raise Undecided(f"took longer than {limit:g} s") from None
        except ProcessExpired as error:
            if error.exitcode == -signal.SIGPROF:
                raise Undecided(f"took longer than {limit:g} s") from None
            deaths += 1
            if deaths == _DEATHS:
                raise Undecided(_words(error)) from None
        else:
            if reply.failed is not None:
                raise reply.failed(reply.words)
            result: Result = reply.result
            return result


class _PoolBroken(Exception):
    """The pool has ended with its work; this says nothing about the work."""


class _Reply(NamedTuple):
    """A worker's reply: a result, or the failure as text, because not every exception can be pickled."""

    result: Any
    failed: type[Exception] | None = None
    words: str = ""


class _Key(NamedTuple):
    """The settings of a pool's processes."""

    imports: str
    most: int | None
    home: Home | None
    environment: tuple[tuple[str, str], ...]


def _reply_of(pool: Any, work: bytes, wall: float, cpu: float | None) -> _Reply:
    """Return the reply of a worker of `pool`; an exception is about the worker, not about the function.

    Work and reply are bytes: an object that the pool cannot pickle would break it.
    """
    try:
        future: Future[bytes] = pool.schedule(_reply_to, args=(work, cpu), timeout=wall)
    except RuntimeError:  # it broke or was retired after it was found
        raise _PoolBroken from None
    is_left = False
    while True:
        try:
            error = future.exception(timeout=_GLANCE)
        except TimeoutError:  # of this check; a pool that breaks can lose new work
            if is_left:
                raise _PoolBroken from None
            is_left = not pool.active
            continue
        if error is None:
            reply: _Reply = pickle.loads(future.result())  # noqa: S301 - of our own worker
            return reply
        if isinstance(error, RuntimeError):  # BrokenProcessPool is one
            raise _PoolBroken from error
        raise error


def _reply_to(work: bytes, cpu: float | None) -> bytes:
    signal.setitimer(signal.ITIMER_PROF, cpu or 0.0)  # its signal ends the process
    try:
        function, arguments = pickle.loads(work)  # noqa: S301 - of our own process
        with user_code():
            return pickle.dumps(_Reply(function(*arguments)))
    except (Undecided, UsageError, ScorerFailed) as error:
        failed = UsageError if isinstance(error, UsageError) else type(error)
        reply = _Reply(None, failed, str(error))
    except (MemoryError, RecursionError) as error:  # the answer is too large
        reply = _Reply(None, Undecided, _words(error))
    except Exception as error:  # noqa: BLE001 - any function
        reply = _Reply(None, ScorerFailed, last_line(error))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return pickle.dumps(reply)


def _words(error: BaseException) -> str:
    text = str(error).strip()
    words = ""
    if text:
        words = f": {text.splitlines()[0][:200]}"
    return f"failed with {type(error).__name__}" + words


def _unavailable() -> ScorerUnavailable:
    return ScorerUnavailable(
        "the processes that score answers do not start, or are killed at once; their messages are on the "
        "error output; the machine may be out of memory or of processes",
        kind="worker",
    )


_pools: dict[_Key, Any] = {}
_retired: list[Thread] = []
_lock = Lock()


def _pool(key: _Key) -> Any:
    """Return the pool for `key`, with one process per core, at most eight, or as bounded."""
    from pebble import ProcessPool

    if sys.platform == "win32":
        raise UsageError("scorers that work in other processes need Linux or macOS")
    with _lock:
        pool = _pools.pop(key, None)
        if pool is None:
            context = _Context()
            if key.imports:  # by the server too, if it has not started: then the next worker starts at once
                context.set_forkserver_preload([key.imports])
            pool = ProcessPool(
                max_workers=key.most or min(8, os.cpu_count() or 1),
                max_tasks=5000,
                context=context,
                initializer=_begin,
                initargs=[key.imports, key.home, dict(key.environment)],
            )
        _pools[key] = pool  # in the order of use
        at_home = [one for one in _pools.items() if one[0].home is not None]
    if len(at_home) > _HOMES:
        _retire(*at_home[0])
    return pool


def _retire(key: _Key, pool: Any) -> None:
    """Let `pool` finish its work and end; the next caller gets a new one."""
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
    """A process that does not import the user's script.

    A script without ``if __name__ == "__main__"`` would run again in every worker, and ask its models.
    """

    def start(self) -> None:
        with _without_main():
            super().start()


class _Context(ForkServerContext):
    Process = _Worker


_starting = Lock()


@contextmanager
def _without_main() -> Iterator[None]:
    """Start this thread's processes without the main module."""
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
    """Prepare a worker: leave Ctrl-C to the run, limit the memory, import the needed module."""
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
