"""Showing a run while it runs: redrawn in place on a terminal, as lines anywhere else."""

import codecs
import io
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, Self, TextIO, TypeAlias, get_args

from rich.console import Console
from rich.control import Control
from rich.live import Live
from rich.text import Text

from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import count
from adaptive_eval.views.run_sentences import end_words, progress_words, start_words
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.terminal import run_display

Display: TypeAlias = Literal["full", "compact", "plain", "none"]
DISPLAYS: tuple[Display, ...] = get_args(Display)


_ASCII = "adaptive-eval-ascii"
_STAND_INS = str.maketrans("━├┤─●·–−…±μσ⋯×", "#||-o.--~~us~x")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII for characters that an encoding lacks.

    Examples
    --------
    >>> "├─●─┤ 0.5 ± 0.1 漢".encode("ascii", _ASCII)
    b'|-o-| 0.5 ~ 0.1 ?'
    """
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(_STAND_INS)
    return text.encode("ascii", "replace").decode(), error.end


codecs.register_error(_ASCII, _in_ascii)


def make_console(file: TextIO | None = None) -> Console:
    """Return a console on `file` (standard output by default) that never fails on a character.

    Colour follows the terminal; ``NO_COLOR`` and ``TERM=dumb`` are respected. If the encoding is not a
    Unicode one, what it lacks is written in ASCII.
    """
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    if console.width == 0:  # COLUMNS=0, with which nothing would be printed
        console.width = 80
    stream = console.file
    if isinstance(stream, io.TextIOWrapper) and not console.encoding.startswith("utf"):
        stream.reconfigure(errors=_ASCII)
    return console


def choose_display(wanted: str | None, console: Console) -> Display:
    """Return how to show a run on `console`.

    ``full`` and ``compact`` redraw in place and need a terminal that can; on anything else they become
    ``plain``. Without a wish it is ``full`` if that works.
    """
    if wanted is not None and wanted not in DISPLAYS:
        raise ValueError(f"display is {wanted!r}: choose one of {', '.join(DISPLAYS)}")
    able = console.is_terminal and not console.is_dumb_terminal
    display = wanted or "full"
    if able or display in ("plain", "none"):
        return display
    return "plain"


_FIGURES = re.compile(r"[\d.,]+")


class PlainLines:
    """Turns successive views of one run into lines; each thing is said once.

    Lines begin with a time (UTC), of a decision when it was made, else of the snapshot, and a keyword:
    ``start``, ``decision``, ``warning``, ``progress`` or ``end``.
    """

    def __init__(self, every: float = 10.0) -> None:
        self._every = every
        self._started = False
        self._ended = False
        self._decisions = 0
        self._warned: set[str] = set()
        self._last_progress = 0.0

    def lines(self, summary: RunSummary, now: float) -> list[str]:
        """Return the lines that `summary` adds."""
        if summary.state == "waiting":
            return []
        said: list[tuple[float | None, str]] = []
        at = summary.updated
        if not self._started:
            self._started = True
            self._last_progress = now
            said.append((at, start_words(summary)))
        for number in range(self._decisions, len(summary.decisions)):
            one = summary.decisions[number]
            made = summary.times[number] if summary.times else at
            said.append((made, f"decision at {count(one.trials, 'trial')}: {describe(one)}"))
        self._decisions = len(summary.decisions)
        for text in summary.warnings:
            what = _FIGURES.sub("", text)  # a warning whose figures alone have moved is not a new one
            if what not in self._warned:
                self._warned.add(what)
                said.append((at, f"warning {text}"))
        running = summary.state == "running"
        if running and now - self._last_progress >= self._every:
            self._last_progress = now
            said.append((at, progress_words(summary)))
        if not running and not self._ended:
            said.append((at, end_words(summary)))
        self._ended = not running
        return [inert(f"{_stamp(when)} {text}") for when, text in said]


def _stamp(at: float | None) -> str:
    return f"{datetime.fromtimestamp(at or 0.0, UTC):%Y-%m-%dT%H:%M:%SZ}"


class LiveView:
    """Shows the views it is given, drawing at most every `refresh` seconds.

    Examples
    --------
    >>> from adaptive_eval.views.summary import RunHeader, waiting_summary
    >>> with LiveView("none") as live:
    ...     live.update(waiting_summary(RunHeader("demo")))
    """

    def __init__(
        self,
        display: str | None = None,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        refresh: float = 0.25,
        progress_every: float = 10.0,
        bayes: bool = False,
    ) -> None:
        if console is not None:
            self.console = console
        else:
            self.console = make_console()
        self.display = choose_display(display, self.console)
        self._clock = clock
        self._refresh = refresh
        self._plain = PlainLines(progress_every)
        self._bayes = bayes
        self._pending: RunSummary | None = None
        self._drawn_at: float | None = None
        self._drawn_on = self.console.size
        self._live: Live | None = None
        if self.display in ("full", "compact"):
            self._live = Live(console=self.console, auto_refresh=False, transient=True)

    @property
    def due(self) -> bool:
        """Whether an update would be drawn now; until then a caller need not build a summary."""
        if self.display == "none":
            return False
        return self._drawn_at is None or self._clock() - self._drawn_at >= self._refresh

    def update(self, summary: RunSummary) -> None:
        """Take the newest summary, and draw it when it is time."""
        self._pending = summary
        if self.due:
            self._draw()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            if self.display != "none" and self._pending is not None:
                self._draw()
        finally:
            if self._live is not None:
                self._live.stop()

    def _draw(self) -> None:
        summary, self._pending = self._pending, None
        if summary is None:
            return
        self._drawn_at = self._clock()
        if self._live is not None:
            if self.console.size != self._drawn_on:
                # The terminal has wrapped the old frame again, so its number of lines is unknown.
                self._drawn_on = self.console.size
                self.console.control(Control.clear(), Control.home())
            compact = self.display == "compact"
            self._live.update(run_display(summary, compact=compact, bayes=self._bayes), refresh=True)
            return
        for words in self._plain.lines(summary, self._drawn_at):
            self.console.print(Text(words), soft_wrap=True)
