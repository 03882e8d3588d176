"""The console that views are drawn on, and how much it can show."""

from __future__ import annotations

import io
from typing import Literal, TextIO, TypeAlias, get_args

from rich.console import Console

Display: TypeAlias = Literal["full", "compact", "plain", "none"]
DISPLAYS: tuple[Display, ...] = get_args(Display)


def make_console(file: TextIO | None = None) -> Console:
    """Return a console on `file` (standard output by default) that never fails on a character.

    Colour follows the terminal; ``NO_COLOR`` and ``TERM=dumb`` are respected. Where the encoding is not a
    Unicode one, what it lacks is written as ``?``.
    """
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    if console.width == 0:  # COLUMNS=0, with which nothing would be printed
        console.width = 80
    stream = console.file
    if isinstance(stream, io.TextIOWrapper) and not console.encoding.startswith("utf"):
        stream.reconfigure(errors="replace")
    return console


def choose_display(wanted: str | None, console: Console) -> Display:
    """Return how to show a run on `console`.

    ``full`` and ``compact`` redraw in place and need a terminal that can; on anything else they become
    ``plain``. Without a wish it is ``full`` where that works.
    """
    if wanted is not None and wanted not in DISPLAYS:
        raise ValueError(f"display is {wanted!r}: choose one of {', '.join(DISPLAYS)}")
    able = console.is_terminal and not console.is_dumb_terminal
    display = wanted or "full"
    return display if able or display in ("plain", "none") else "plain"
