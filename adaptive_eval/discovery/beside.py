"""Work that blocks, in a thread of its own: a hung file server or resolver holds up neither run nor exit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

__all__ = ["Beside"]

T = TypeVar("T")


class Beside(Generic[T]):
    """Does a piece of work in a thread, never twice at once.

    The thread is none of a pool: the end of a process waits for the threads of pools, however long they hang.

    Parameters
    ----------
    work : callable
        Done in the thread; may raise OSError or ValueError.
    timeout : float
        Seconds for which :meth:`result` waits.

    Examples
    --------
    >>> asyncio.run(Beside(lambda: 6 * 7, timeout=60.0).result())
    42
    """

    def __init__(self, work: Callable[[], T], timeout: float) -> None:
        self._work = work
        self._timeout = timeout
        self._pending: Future[T] | None = None

    async def result(self) -> T:
        """Do the work and return its result; where the last time still hangs, wait for that.

        Raises
        ------
        TimeoutError
            It takes too long. It goes on, and the next call waits for it again.
        OSError, ValueError
            The work has raised it.
        """
        pending = self._pending = self._pending or self._begin()
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.wrap_future(pending)
        finally:
            if pending.done():
                self._pending = None

    def _begin(self) -> Future[T]:
        future: Future[T] = Future()
        # From now on it cannot be cancelled: who waits may give up, the thread goes on.
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                result = self._work()
            except (OSError, ValueError) as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=run, daemon=True).start()
        return future
