"""Processes of this machine, as executors of :mod:`concurrent.futures`."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait
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
    threading.Thread(target=_end_with_caller, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:] = path


def _end_with_caller() -> None:
    """End this process when its caller has, which a signal may kill: it would wait for work for ever."""
    caller = multiprocessing.parent_process()
    if caller is not None:
        wait([caller.sentinel])
        os._exit(1)
