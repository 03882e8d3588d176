"""Showing a run while it runs: redrawn in place on a terminal, as lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.control import Control
from rich.live import Live
from rich.text import Text

from adaptive_eval.monitor.console import choose_display, make_console
from adaptive_eval.monitor.lines import to_ascii
from adaptive_eval.monitor.plain_lines import PlainLines
from adaptive_eval.monitor.snapshot import RunView
from adaptive_eval.monitor.terminal import RunDisplay

__all__ = ["LiveView"]


class LiveView:
    """Shows the views it is given, drawing at most every `refresh` seconds.

    Parameters
    ----------
    display : {'full', 'compact', 'plain', 'none'}, optional
        How to show the run; by default what the console is able to (:func:`choose_display`).
    console : rich.console.Console, optional
        Where to; standard output by default.
    clock : callable
        Seconds on a clock that only moves forward.
    refresh : float
        Seconds between two drawings.
    progress_every : float
        Seconds between two lines of progress in ``plain``.
    transient : bool
        Whether a view redrawn in place is erased at the end (a summary follows) or left standing.
    bayes : bool
        Whether to show Bayes@N mu ± sigma next to the decision score.

    Raises
    ------
    ValueError
        If `display` is none of these.

    Examples
    --------
    >>> from adaptive_eval.monitor.snapshot import RunHeader, waiting_view
    >>> with LiveView("none") as live:
    ...     live.update(waiting_view(RunHeader("demo")))
    """

    def __init__(
        self,
        display: str | None = None,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        refresh: float = 0.25,
        progress_every: float = 10.0,
        transient: bool = True,
        bayes: bool = False,
    ) -> None:
        self.console = console if console is not None else make_console()
        self.display = choose_display(display, self.console)
        self._clock = clock
        self._refresh = refresh
        self._plain = PlainLines(progress_every)
        self._bayes = bayes
        self._pending: RunView | None = None
        self._drawn_at: float | None = None
        self._drawn_on = self.console.size
        self._live: Live | None = None
        if self.display in ("full", "compact"):
            self._live = Live(console=self.console, auto_refresh=False, transient=transient)

    @property
    def due(self) -> bool:
        """Whether an update would be drawn now; a caller need not build a view before it is."""
        if self.display == "none":
            return False
        return self._drawn_at is None or self._clock() - self._drawn_at >= self._refresh

    def update(self, view: RunView) -> None:
        """Take the newest view, and draw it when it is time."""
        self._pending = view
        if self.due:
            self._draw()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.display != "none" and self._pending is not None:
                self._draw()
        finally:
            if self._live is not None:
                self._live.stop()

    def _draw(self) -> None:
        view, self._pending = self._pending, None
        if view is None:
            return
        self._drawn_at = self._clock()
        if self._live is not None:
            if self.console.size != self._drawn_on:
                # The terminal has wrapped the old frame anew, so nobody knows how many lines it takes now.
                self._drawn_on = self.console.size
                self.console.control(Control.clear(), Control.home())
            compact = self.display == "compact"
            self._live.update(RunDisplay(view, compact=compact, bayes=self._bayes), refresh=True)
            return
        for words in self._plain.lines(view, self._drawn_at):
            text = Text(words)
            shown = to_ascii(text) if self.console.options.ascii_only else text
            self.console.print(shown, soft_wrap=True)
