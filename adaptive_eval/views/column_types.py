"""A column of a table of a run: its key, heading, unit, value, and where it is shown.

The tables themselves are in :mod:`adaptive_eval.views.columns`. All outputs read them from there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Any, Generic, NamedTuple, TypeVar

from adaptive_eval.views.numbers import NOTHING, fixed, interval, signed, stamp, usd

Row = TypeVar("Row")


class Shown(Flag):
    """Where a column is shown; the last ones are the tables of the report as a page and as Markdown."""

    JSON = auto()
    MONITOR = auto()  # the lines of ``monitor --json``, where they have more than the report
    CSV = auto()
    TERMINAL = auto()
    BAYES = auto()  # a terminal that was asked for Bayes@N
    PAPER = auto()
    PROMETHEUS = auto()
    TRACKER = auto()
    RANKING = auto()
    ANSWERS = auto()
    COST = auto()
    PAIRS = auto()
    OPEN = auto()
    BUDGETS = auto()
    RUNNING = auto()  # further columns of the budgets while the run asks
    DECISIONS = auto()
    ENDPOINTS = auto()


class Unit(Enum):
    """How a figure is written, and its type in JSON."""

    NAME = "name"
    MODEL = "model"
    WORDS = "words"
    TEXT = "text"  # sentences, which take several lines
    FLAG = "flag"
    COUNT = "count"
    RANK = "rank"
    SCORE = "score"
    DIFFERENCE = "difference"
    NUMBER = "number"
    SHARE = "share"
    USD = "usd"
    SECONDS = "seconds"
    TIME = "time"
    NAMES = "names"
    COUNTS = "counts"
    DATA = "data"
    PART = "part"  # an object, whose columns are named
    ROWS = "rows"  # a list of objects, whose columns are named
    # Only for people: made of several figures.
    INTERVAL = "interval"
    SIGNED_INTERVAL = "signed interval"
    PLUS_MINUS = "plus or minus"
    PAIR = "pair"
    VERDICT = "verdict"


class Span(NamedTuple):
    """An estimate with the ends of its interval."""

    low: float | None
    point: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[Row]):
    """One column."""

    key: str  # the one name of the figure: in JSON, CSV, Prometheus, trackers
    unit: Unit
    value: Callable[[Row], Any]
    outlets: Shown
    meaning: str = ""  # for the JSON schema, the docs and Prometheus
    heading: str = ""  # for people; the key's words by default. In braces the words of the table.
    short: str = ""  # the heading on a terminal, if it is another
    text: Callable[[Row], str] | None = None  # how it is written for people, if not by its unit alone
    optional: bool = False  # whether it can be null
    need: int = 0  # on a narrow terminal columns of greater need are left out first
    spare: bool = False  # whether a page leaves it out on a phone
    kind: Callable[[Row], str] | None = None  # the colour of a verdict, a bar or a meter: a class
    summed: bool = False  # whether a table of a page ends with the sum
    hover: str = ""  # what a short heading stands for
    when: Callable[[Sequence[Row]], bool] | None = None  # whether people are shown it
    columns: tuple["Column[Any]", ...] = ()  # those of a part or of rows

    def head(self, words: Mapping[str, str], *, short: bool = False) -> str:
        """Return the heading, with the words of the table filled in."""
        if short and self.short:
            heading = self.short
        else:
            heading = self.heading
        if heading:
            return heading.format_map(words)
        return self.key.replace("_", " ")

    def written(self, row: Row, digits: int = 3) -> str:
        """Return the value of a row as people read it."""
        if self.text is None:
            return written(self.unit, self.value(row), digits)
        return self.text(row)


def written(unit: Unit, value: Any, digits: int = 3) -> str:
    """Return a value as people read it.

    Examples
    --------
    >>> written(Unit.COUNT, 12_000), written(Unit.SCORE, 0.5), written(Unit.USD, None)
    ('12,000', '0.500', '–')
    >>> written(Unit.INTERVAL, Span(0.4, 0.5, 0.6), 2)
    '[0.40, 0.60]'
    """
    if value is None:
        return NOTHING
    match unit:
        case Unit.COUNT:
            return f"{value:,}"
        case Unit.SCORE:
            return fixed(value, digits)
        case Unit.DIFFERENCE:
            return signed(value, digits)
        case Unit.INTERVAL | Unit.SIGNED_INTERVAL:
            return interval(value.low, value.high, digits, sign=unit is Unit.SIGNED_INTERVAL)
        case Unit.PLUS_MINUS:
            middle, spread = value
            if middle is None:
                return NOTHING
            return f"{fixed(middle, digits)} ± {fixed(spread, digits)}"
        case Unit.USD:
            return usd(value)
        case Unit.SECONDS:
            return f"{value:.2f} s"
        case Unit.TIME:
            return stamp(value)
    return str(value)


def selected(columns: Iterable[Column[Row]], outlet: Shown) -> list[Column[Row]]:
    """Return the columns that an outlet shows."""
    return [column for column in columns if column.outlets & outlet]


def shown_to_people(columns: Iterable[Column[Row]], outlet: Shown, rows: Sequence[Row]) -> list[Column[Row]]:
    """Return the columns of an outlet without those that say nothing about these rows."""
    return [one for one in selected(columns, outlet) if one.when is None or (rows and one.when(rows))]


def data_of(columns: Iterable[Column[Row]], row: Row, outlet: Shown = Shown.JSON) -> dict[str, Any]:
    """Return a row as JSON-able data."""
    found: dict[str, Any] = {}
    for column in selected(columns, outlet):
        value = column.value(row)
        if column.unit is Unit.PART and value is not None:
            value = data_of(column.columns, value, outlet)
        elif column.unit is Unit.ROWS and value is not None:
            value = [data_of(column.columns, one, outlet) for one in value]
        found[column.key] = value
    return found


_STRING, _NUMBER = {"type": "string"}, {"type": "number"}
_TYPES: Mapping[Unit, Mapping[str, Any]] = {
    Unit.NAME: _STRING,
    Unit.MODEL: _STRING,
    Unit.WORDS: _STRING,
    Unit.TEXT: _STRING,
    Unit.VERDICT: _STRING,
    Unit.FLAG: {"type": "boolean"},
    Unit.COUNT: {"type": "integer", "minimum": 0},
    Unit.RANK: {"type": "integer", "minimum": 1},
    Unit.SCORE: _NUMBER,
    Unit.DIFFERENCE: _NUMBER,
    Unit.NUMBER: _NUMBER,
    Unit.SHARE: _NUMBER,
    Unit.USD: _NUMBER,
    Unit.SECONDS: _NUMBER,
    Unit.TIME: _NUMBER,
    Unit.NAMES: {"type": "array", "items": _STRING},
    Unit.COUNTS: {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
    Unit.DATA: {},
}


def schema_of(columns: Iterable[Column[Any]], outlet: Shown = Shown.JSON) -> dict[str, Any]:
    """Return the JSON schema of a row."""
    properties = {column.key: _schema(column, outlet) for column in selected(columns, outlet)}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _schema(column: Column[Any], outlet: Shown) -> dict[str, Any]:
    if column.unit is Unit.PART:
        made = schema_of(column.columns, outlet)
    elif column.unit is Unit.ROWS:
        made = {"type": "array", "items": schema_of(column.columns, outlet)}
    else:
        made = dict(_TYPES[column.unit])
    if column.optional and "type" in made:
        made["type"] = [made["type"], "null"]
    if column.meaning:
        return {"description": column.meaning, **made}
    return made
