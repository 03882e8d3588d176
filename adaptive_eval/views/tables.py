"""Tables as people read them, made from declared columns; the same one for a page, Markdown and LaTeX."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from adaptive_eval.views.column_types import Column, Row, Shown, Span, Unit, written
from adaptive_eval.views.inert import clipped, inert, md
from adaptive_eval.views.numbers import NOTHING, trimmed
from adaptive_eval.views.plots import Axis
from adaptive_eval.views.verdicts import pair_name

NAME = 200
"""Characters that are shown of a name."""

_NAMES = (Unit.MODEL, Unit.PAIR, Unit.NAME)
_INTERVALS = (Unit.INTERVAL, Unit.SIGNED_INTERVAL)
_LEFT = (*_NAMES, Unit.WORDS, Unit.TEXT, Unit.FLAG, Unit.TIME, Unit.SHARE, Unit.VERDICT, Unit.COUNTS)
_CLASSES = {Unit.TEXT: "text", Unit.TIME: "time", Unit.PAIR: "pair", Unit.MODEL: "model"}
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval drawn on a scale from 0 to 100, with a band of the margin around 0."""

    scale: Axis
    span: Span | None
    margin: float | None = None
    kind: str = ""

    @property
    def boxes(self) -> list[tuple[str, float, float, int, int]]:
        """What is filled: class, left end and width, upper end and height."""
        found, at = [], self.scale.at
        if self.margin is not None:
            found.append(("band", at(-self.margin), round(at(self.margin) - at(-self.margin), 2), 0, 10))
        span = self.span
        if span is not None and span.low is not None and span.high is not None:
            found.append(("span", at(span.low), max(round(at(span.high) - at(span.low), 2), 0.4), 3, 4))
        return found

    @property
    def lines(self) -> list[tuple[str, float, int, int]]:
        """What is a line: class, place, upper and lower end."""
        found = []
        if self.scale.low < 0 < self.scale.high:
            found.append(("zero", self.scale.at(0), 0, 10))
        if self.span is not None and self.span.point is not None:
            found.append(("mark", self.scale.at(self.span.point), 1, 9))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell, whose texts are not yet escaped."""

    text: str
    classes: str = ""
    whole: str = ""  # what a shortened text stands for
    hidden: str = ""  # what is read aloud in the place of a sign
    narrow: str = ""  # a second line on a phone
    badge: str | None = None  # its colour
    bar: Bar | None = None  # drawn in a column before the text
    meter: float | None = None  # drawn before the text
    kind: str = ""  # the meter's colour
    link: str = ""
    is_head: bool = False
    is_number: bool = False
    ticks: tuple[str, ...] = ()  # of the head of a column of bars

    @property
    def full(self) -> str:
        """The text with nothing left out of a name."""
        return self.whole or self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: its caption, the heads of its columns, its rows, and a last one of sums."""

    caption: str
    heads: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    total: Sequence[Cell] = ()
    classes: str = "wide"
    ids: Sequence[str] = ()  # of the rows, where they are known again
    kind: str = "table"


def column(
    heading: str,
    value: Callable[[Row], Any],
    unit: Unit = Unit.WORDS,
    *,
    text: Callable[[Row], str] | None = None,
    kind: Callable[[Row], str] | None = None,
    spare: bool = False,
    hover: str = "",
) -> Column[Row]:
    """Return a column of a table that only people read, headed by a text from outside."""
    return Column(
        key=heading,
        heading=heading.replace("{", "{{").replace("}", "}}"),
        unit=unit,
        value=value,
        outlets=Shown(0),
        text=text,
        kind=kind,
        spare=spare,
        hover=hover,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How the figures of a table are shown."""

    digits: int = 3
    words: Mapping[str, str] = field(default_factory=dict)  # that stand in headings
    names: Mapping[str, str] = field(default_factory=dict)  # labels in the place of the names of models
    scale: Axis = field(default_factory=lambda: Axis(0.0, 1.0))  # of bars
    margin: float | None = None  # drawn behind bars


_PLAIN = Look()


def table_of(
    caption: str,
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    look: Look = _PLAIN,
    *,
    classes: str = "wide",
    ids: Sequence[str] = (),
) -> Table:
    """Return a table of these rows."""
    listed = list(rows)
    headed = next((place for place, one in enumerate(columns) if one.unit in _NAMES), None)
    made = []
    for row in listed:
        cells = [_cell(one, row, look) for one in columns]
        if headed is not None:
            cells[headed] = replace(cells[headed], is_head=True)
        made.append(_with_narrow(cells))
    total: list[Cell] = []
    if any(one.summed for one in columns):
        total = [_sum(one, listed, look) for one in columns]
    heads = [_head(one, look) for one in columns]
    return Table(caption=caption, heads=heads, rows=made, total=total, classes=classes, ids=ids)


def _classes(one: Column[Any]) -> str:
    usual = "n"
    if one.unit in _LEFT:
        usual = ""
    side = _CLASSES.get(one.unit, usual)
    if one.spare or one.unit in _INTERVALS:
        return f"{side} spare".strip()
    return side


def _head(one: Column[Any], look: Look) -> Cell:
    is_number = one.unit not in _LEFT
    classes = "n" if is_number else ""
    if one.spare:
        classes += " spare"
    elif one.unit in _NAMES:
        classes += " pin"
    words = clipped(one.head(look.words), NAME)
    if one.unit in _INTERVALS:
        ticks = tuple(map(trimmed, look.scale.ticks))
        return Cell(text=words, classes="draw", ticks=ticks, is_head=True, is_number=True)
    return Cell(
        text=words, classes=classes.strip(), whole=clipped(one.hover, NAME), is_head=True, is_number=is_number
    )


def _cell(one: Column[Row], row: Row, look: Look) -> Cell:
    value = one.value(row)
    unit = one.unit
    classes = _classes(one)
    kind = ""
    if one.kind is not None:
        kind = one.kind(row)
    if unit is Unit.MODEL:
        return named(str(value), look.names, classes)
    if unit is Unit.PAIR:
        return _told(pair_name(value, look.names), pair_name(value), classes)
    text = one.written(row, look.digits)
    if unit is Unit.NAME:
        return Cell(text=clipped(text, NAME), classes=classes)
    if unit is Unit.VERDICT:
        return Cell(text=text, classes=classes, badge=kind)
    if unit is Unit.SHARE and isinstance(value, int | float):
        return Cell(text=text, classes=classes, meter=round(100 * value, 1), kind=kind)
    if unit in _INTERVALS:
        bar = Bar(look.scale, value, look.margin, kind)
        return Cell(text=text, classes=classes, bar=bar, is_number=True)
    return Cell(text=text, classes=f"{classes} {kind}".strip(), is_number=unit not in _LEFT)


def named(name: str, names: Mapping[str, str] = _NONE, classes: str = "") -> Cell:
    """Return a cell with the label of a model, whole on hover."""
    return _told(names.get(name, name), name, classes)


def _told(label: str, whole: str, classes: str) -> Cell:
    short = clipped(label, NAME)
    full = clipped(whole, NAME)
    return Cell(text=short, classes=classes, whole="" if short == full else full)


def _with_narrow(cells: list[Cell]) -> list[Cell]:
    """Put an interval below the figure before it as well, if a phone leaves its column out."""
    for place in range(1, len(cells)):
        interval = cells[place]
        if interval.bar is not None and interval.text != NOTHING:
            cells[place - 1] = replace(cells[place - 1], narrow=interval.text)
    return cells


def _sum(one: Column[Row], rows: Sequence[Row], look: Look) -> Cell:
    if one.unit in _NAMES:
        return Cell(text="all", is_head=True)
    if not one.summed:
        return Cell(text="", classes=_classes(one))
    known = [value for value in map(one.value, rows) if value is not None]
    total = None
    if known:
        total = sum(known)
    text = written(one.unit, total, look.digits)
    return Cell(text=text, classes=_classes(one), is_number=True)


_RULES = {True: "--:", False: ":--"}
_SIDES = {True: "r", False: "l"}
"""How a column is aligned in Markdown and LaTeX, by whether it holds numbers."""


def markdown_table(table: Table) -> str:
    """Return a table as Markdown; names stand whole."""
    rows = [[md(head.full) for head in table.heads]]
    rows.append([_RULES[head.is_number] for head in table.heads])
    rows.extend(list(map(_markdown, row)) for row in table.rows)
    if table.total:
        rows.append(list(map(_markdown_total, table.total)))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _markdown(cell: Cell) -> str:
    text = md(cell.full)
    if cell.is_number:
        return text.replace("\\[", "[").replace("\\]", "]")
    return text


def _markdown_total(cell: Cell) -> str:
    if cell.is_head:
        return f"**{cell.text}**"
    return _markdown(cell)


def latex_table(table: Table, caption: str, tex: Callable[[str], str]) -> str:
    """Return a table as LaTeX for the package booktabs, names escaped."""
    sides = "".join(_SIDES[head.is_number] for head in table.heads)
    rows = []
    for cells in [table.heads, *table.rows]:
        shown = [tex(inert(cell.full)) for cell in cells]
        rows.append(f"    {' & '.join(shown)} \\\\")
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{tex(caption)}}}",
            rf"  \begin{{tabular}}{{{sides}}}",
            r"    \toprule",
            rows[0],
            r"    \midrule",
            *rows[1:],
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]
    )
