"""Work on an answer that may hang, crash or eat the machine, in processes of its own under a time limit."""

from __future__ import annotations

import atexit
import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from multiprocessing import get_context
from typing import Any, TypeVar

from adaptive_eval.errors import UsageError
from adaptive_eval.scoring.library import library
from adaptive_eval.scoring.scorer import Undecided

__all__ = ["LIMIT", "bound_workers", "in_worker", "require_workers"]

LIMIT = 5.0
"""Seconds that the comparison of one answer may take."""

MEMORY = 4 * 2**30
"""Bytes of address space that a worker may have; an expression that asks for more fails."""

Result = TypeVar("Result")

_most: int | None = None


def bound_workers(most: int) -> None:
    """Let scorers have no more than `most` processes of their own from now on, whatever the machine has."""
    global _most
    _most = most


def in_worker(
    function: Callable[..., Result], *arguments: Any, limit: float = LIMIT, imports: str = ""
) -> Result:
    """Return ``function(*arguments)``, worked out in another process. Waits; may be called from any thread.

    Parameters
    ----------
    function : callable
        Of a module's top level.
    *arguments
        What can be pickled.
    limit : float
        Seconds; then the process is killed.
    imports : str
        A module that the process imports when it starts, so that no answer's time is spent on it.

    Raises
    ------
    Undecided
        If it takes too long, raises, or its process dies.
    UsageError
        As the function raised it: the mistake is not one of the answer.

    Examples
    --------
    >>> in_worker(divmod, 7, 2)
    (3, 1)
    """
    future = _pool(imports, tuple(sys.path)).schedule(function, args=arguments, timeout=limit)
    error = future.exception()
    if error is None:
        result: Result = future.result()
        return result
    if isinstance(error, UsageError):
        raise error
    if isinstance(error, TimeoutError):
        raise Undecided(f"took longer than {limit:g} s")
    what = "" if not str(error).strip() else f": {str(error).strip().splitlines()[0][:200]}"
    raise Undecided(f"failed with {type(error).__name__}{what}")


def require_workers(needed_by: str) -> None:
    """Refuse, with what to install, where processes cannot be used.

    Raises
    ------
    UsageError
        If the library is missing.
    """
    library("pebble", needed_by, "pebble")


@lru_cache
def _pool(imports: str, path: tuple[str, ...]) -> Any:
    """Return the pool of processes that have imported a module; one a core, at most eight, or as bounded.

    They look for modules along `path`. A pool that began before a config's folder was on it knows none of the
    functions there, and one that looked elsewhere first may know another function by the same name.
    """
    if sys.platform == "win32":
        raise UsageError("scorers that work in processes of their own need Linux or macOS")
    pool = library("pebble", "this scorer", "pebble").ProcessPool(
        max_workers=_most or min(8, os.cpu_count() or 1),
        max_tasks=5000,
        context=get_context("forkserver"),
        initializer=_begin,
        initargs=[imports, path],
    )
    atexit.register(_end, pool)
    return pool


def _begin(imports: str, path: tuple[str, ...]) -> None:
    """Prepare a worker: leave Ctrl-C to the run, bound its memory, import what its work needs."""
    sys.path[:] = path
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if imports:
        import_module(imports)


def _end(pool: Any) -> None:
    pool.stop()
    pool.join()
