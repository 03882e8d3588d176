"""Where a commit is made: beside the event loop, which goes on while the disk works."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

__all__ = ["Committer", "ThreadCommitter"]


class Committer(Protocol):
    """Makes commits, one at a time."""

    async def commit(self, commit: Callable[[], int]) -> None:
        """Call `commit` and return when it has returned; raise what it raises.

        Even when cancelled it does not return before: what follows must not meet a commit under way.
        """
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...


class ThreadCommitter:
    """Makes commits in a thread of its own: a sync to the disk takes milliseconds, and seconds on a bad day.

    Examples
    --------
    >>> async def main():
    ...     committer = ThreadCommitter()
    ...     await committer.commit(lambda: print("on the disk") or 0)
    ...     committer.close()
    >>> asyncio.run(main())
    on the disk
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "commit")

    async def commit(self, commit: Callable[[], int]) -> None:
        """Call `commit` in the thread."""
        work = asyncio.get_running_loop().run_in_executor(self._thread, commit)
        cancelled: asyncio.CancelledError | None = None
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError as error:
                cancelled = error
        failure = work.exception()
        if cancelled is not None:
            raise cancelled
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()
