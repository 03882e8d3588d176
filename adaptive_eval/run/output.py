"""Standard output that may go away while a run goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO, cast

from rich.console import Console

from adaptive_eval.monitor.console import make_console

__all__ = ["Output", "console_on"]


class Output:
    """A stream that falls silent, rather than fail, when nobody reads it any more.

    A pipe into ``head`` and a terminal that was closed do not end a run at once: answers that are out are
    paid for, and are stored first.

    Parameters
    ----------
    stream : TextIO
        Where to write.

    Attributes
    ----------
    on_lost : callable
        Called once, when the reader is found to have gone.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost = False
        self.on_lost: Callable[[], None] = lambda: None

    def write(self, text: str) -> int:
        """Write `text`, if anyone is there."""
        if not self._lost:
            try:
                return self._stream.write(text)
            except OSError:
                self._lose()
        return len(text)

    def flush(self) -> None:
        """Flush, if anyone is there."""
        if not self._lost:
            try:
                self._stream.flush()
            except OSError:
                self._lose()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _lose(self) -> None:
        self._lost = True
        # Whatever is still buffered, or printed by others, must not fail either.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        self.on_lost()


def console_on(stream: TextIO | None = None) -> tuple[Console, Output]:
    """Return a console whose output may go away, and that output; by default on standard output."""
    console = make_console(stream)
    output = Output(stream if stream is not None else sys.stdout)
    console.file = cast("TextIO", output)
    return console, output
