"""Where a run reports: the protocol of consoles, one that only logs, and the line of progress from Python."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, TextIO

from adaptive_eval.core.results import Decision
from adaptive_eval.engine.events import Event, Observer, Progress
from adaptive_eval.views.numbers import duration
from adaptive_eval.views.verdicts import resolved_words


class Console(Protocol):
    """Shows a run to a person."""

    def say(self, text: str) -> None:
        """Show a remark."""

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Return a context that shows `text` while it lasts."""

    def stoppable(self, stop: Callable[[], None]) -> AbstractContextManager[object]:
        """Return a context in which an interrupt calls `stop`, in the thread of the event loop."""

    def watch(
        self, name: str, started_at: float | None, decisions: Sequence[Decision]
    ) -> AbstractContextManager[Observer]:
        """Return a context with an observer that shows the events of the run `name`."""


class LogConsole:
    """Writes remarks to the logger ``adaptive_eval`` and shows nothing else."""

    _log = logging.getLogger("adaptive_eval")

    def say(self, text: str) -> None:
        """Log a remark."""
        self._log.info("%s", text)

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Show nothing."""
        return nullcontext()

    def stoppable(self, stop: Callable[[], None]) -> AbstractContextManager[object]:
        """Leave interrupts to the caller."""
        return nullcontext()

    def watch(
        self, name: str, started_at: float | None, decisions: Sequence[Decision]
    ) -> AbstractContextManager[Observer]:
        """Show nothing."""
        return nullcontext(lambda event: None)


_WIDTH = 78


@contextmanager
def shown_progress(wanted: bool | None, observer: Observer | None) -> Iterator[Observer | None]:
    """Give an observer that also shows a line of progress, and clears it at the end.

    Parameters
    ----------
    wanted : bool or None
        None: where a person is watching, in a terminal or a notebook.
    observer : callable or None
        The caller's observer.
    """
    stream = _place(wanted)
    if stream is None:
        yield observer
        return

    def observe(event: Event) -> None:
        if observer is not None:
            observer(event)
        if isinstance(event, Progress):
            results = event.results
            words = f"{results.trials:,} trials, {resolved_words(results)}, {duration(event.elapsed)}"
            print(f"\r{words[:_WIDTH]:<{_WIDTH}}", end="", file=stream, flush=True)

    try:
        yield observe
    finally:
        print(f"\r{'':<{_WIDTH}}\r", end="", file=stream, flush=True)


def _place(wanted: bool | None) -> TextIO | None:
    """Return the stream for the line; None for no line."""
    if type(sys.stdout).__module__.startswith("ipykernel"):
        return None if wanted is False else sys.stdout
    watched = sys.stderr is not None and sys.stderr.isatty()
    return sys.stderr if (watched if wanted is None else wanted) else None
