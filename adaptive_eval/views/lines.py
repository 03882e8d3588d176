"""Lines of styled text: aligned columns, blocks side by side, and a fall-back for terminals without Unicode.

Views are built line by line, never from markup, so that nothing in a name or a message can be read as
styling, and so that the height of every block is known before it is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal, TypeAlias, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text

# Standard colours that are legible on dark and on light backgrounds; each only repeats what a word says.
GOOD, BAD, TIED, HEADING = "green", "red", "magenta", "bold"

Cell: TypeAlias = str | Text
Item = TypeVar("Item")
_BREAKS = re.compile(r"(?<!\d) | (?!(?:s|min|h|d|%)(?![\w]))")  # spaces, but those between number and unit
_ASCII = str.maketrans("━├┤─●·–−…±μσ⋯", "#||-o.--~~us~")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an aligned block."""

    header: str  # heading
    cells: Sequence[Cell] = field(default_factory=tuple)  # one cell a row
    justify: Literal["left", "right"] = "left"  # alignment

    @property
    def width(self) -> int:
        """Cells that the widest entry takes, heading included."""
        return max(cell_len(self.header), *(_cell_len(cell) for cell in self.cells), 0)


def line(*parts: Cell | tuple[str, str], width: int | None = None) -> Text:
    """Return one line from parts (text, or text with a style), cut to `width` with an ellipsis.

    Examples
    --------
    >>> line("ab", ("cd", "bold")).plain, line("abcdef", width=4).plain
    ('abcd', 'abc…')
    """
    text = Text(no_wrap=True)
    for part in parts:
        if isinstance(part, tuple):
            text.append(*part)
        elif isinstance(part, Text):
            text.append_text(part)
        else:
            text.append(part)
    if width is not None:
        text.truncate(width, overflow="ellipsis")
    return text


GAP = 2
"""Cells between two columns."""


def columns(cols: Sequence[Column]) -> list[Text]:
    """Return aligned rows, the heading first.

    Examples
    --------
    >>> [row.plain for row in columns([Column("a", ["x", "yyy"]), Column("n", ["1", "20"], "right")])]
    ['a     n', 'x     1', 'yyy  20']
    """
    head: tuple[Cell, ...] = tuple(Text(col.header, style=HEADING) for col in cols)
    widths = [col.width for col in cols]
    return [_row(row, cols, widths) for row in (head, *zip(*(col.cells for col in cols), strict=True))]


def table(
    items: Sequence[Item],
    width: int,
    height: int,
    cols: Callable[[Sequence[Item]], Sequence[Column]],
    left_out: Callable[[Sequence[Item]], str],
) -> list[Text]:
    """Return a row an item, as many as fit below the heading, and a last line about those left out."""
    if not items or height < 2:
        return []
    shown = items if len(items) < height else items[: max(1, height - 2)]
    lines = [line(text, width=width) for text in columns(cols(shown))]
    if len(shown) < len(items) and len(lines) < height:
        lines.append(line(f"⋯ {left_out(items[len(shown) :])}", width=width))
    return lines


def side_by_side(left: Sequence[Text], right: Sequence[Text], left_width: int, gap: int = 3) -> list[Text]:
    """Return two blocks of lines side by side, the left one padded to `left_width` cells."""
    joined = []
    for a, b in zip_longest(left, right, fillvalue=None):
        text = Text(no_wrap=True)
        if a is not None:
            text.append_text(a)
        if b is not None:
            text.append(" " * max(0, left_width + gap - text.cell_len))
            text.append_text(b)
        joined.append(text)
    return joined


def wrapped(text: str, width: int, height: int = 1000, *, style: str = "") -> list[Text]:
    """Return `text` wrapped at spaces to `width` cells; the last of `height` lines is cut if it must be.

    A number stays with its unit.

    Examples
    --------
    >>> [row.plain for row in wrapped("it took 28 s", 10)]
    ['it took', '28 s']
    >>> [row.plain for row in wrapped("one two three four", 8)]
    ['one two', 'three', 'four']
    >>> [row.plain for row in wrapped("one two three four", 8, 2)]
    ['one two', 'three f…']
    """
    if not text:
        return []
    lines: list[str] = []
    current = ""
    for word in _BREAKS.split(text):
        longer = f"{current} {word}" if current else word
        if cell_len(longer) > width and current:
            lines.append(current)
            current = word
        else:
            current = longer
    lines.append(current)
    if len(lines) > height:
        lines = [*lines[: height - 1], " ".join(lines[height - 1 :])]
    return [line((one, style), width=width) for one in lines]


def to_ascii(text: Text) -> Text:
    """Return `text` with ASCII stand-ins, for terminals whose encoding has nothing else.

    Examples
    --------
    >>> to_ascii(Text("├─●─┤ 0.5 ± 0.1 漢")).plain
    '|-o-| 0.5 ~ 0.1 ?'
    """
    plain = text.plain.translate(_ASCII)
    copy = text.copy()
    copy.plain = "".join(char if char.isascii() else "?" for char in plain)
    return copy


@dataclass(frozen=True, slots=True)
class Drawn:
    """A rich renderable: lines drawn for the width and height of the console, ASCII where it has no more."""

    draw: Callable[[int, int], Sequence[Text]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for text in self.draw(options.max_width, options.height or options.max_height):
            yield to_ascii(text) if options.ascii_only else text


def _row(row: Sequence[Cell], cols: Sequence[Column], widths: Sequence[int]) -> Text:
    text = Text(no_wrap=True)
    for i, (cell, col, width) in enumerate(zip(row, cols, widths, strict=True)):
        pad = " " * (width - _cell_len(cell))
        text.append(" " * GAP if i else "")
        if col.justify == "right":
            text.append(pad)
        text.append(cell) if isinstance(cell, str) else text.append_text(cell)
        if col.justify == "left" and i < len(cols) - 1:
            text.append(pad)
    return text


def _cell_len(cell: Cell) -> int:
    return cell.cell_len if isinstance(cell, Text) else cell_len(cell)
