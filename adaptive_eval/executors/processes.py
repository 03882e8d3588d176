"""Processes of this machine, as executors of :mod:`concurrent.futures`."""

import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path


def available_cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def process_pool(workers: int | Executor) -> Iterator[Executor]:
    """Yield the executor given, or one with so many processes, which end with the block."""
    if isinstance(workers, Executor):
        yield workers
        return
    # A forked copy of a process with threads may lock up; the fork server has none.
    method = "spawn"
    if os.name == "posix":
        method = "forkserver"
    context = multiprocessing.get_context(method)
    here = dict(os.environ), Path.cwd(), list(sys.path)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=here) as pool:
        yield pool


def _begin(environment: dict[str, str], folder: Path, path: list[str]) -> None:
    """Give a process what its caller has now: the fork server keeps what there was when it began."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:] = path
