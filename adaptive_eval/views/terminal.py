"""A run on a terminal: the live view, and the summary at its end, by rich's tables."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from types import MappingProxyType
from typing import Literal, NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from adaptive_eval.views.budgets import BudgetUse, budget_name
from adaptive_eval.views.column_types import Column, Row, Shown, Unit, selected, shown_to_people
from adaptive_eval.views.columns import BUDGETS, ENDPOINTS, PAIRS, pair_rows
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.inert import cut, distinct_labels, inert
from adaptive_eval.views.model_columns import MODELS, model_rows
from adaptive_eval.views.numbers import (
    amount,
    count,
    decimals_for,
    duration,
    listing,
    percent,
    short,
)
from adaptive_eval.views.plots import Axis, scale_over
from adaptive_eval.views.run_sentences import (
    chances_words,
    exact_sentences,
    outlook_phrases,
    saved_words,
    settings_words,
    spent_words,
    waiting_answers,
)
from adaptive_eval.views.sentences import condition_words, score_decimals, score_name
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.verdicts import (
    of_kind,
    pair_name,
    rank_column,
    tie_words,
    tied_groups,
)

# Standard colours that are legible on dark and on light backgrounds; each only repeats what a word says.
GOOD, BAD, TIED, HEADING = "green", "red", "magenta", "bold"
_STYLES = {"stopped": BAD, "active": GOOD, "running": GOOD, "interrupted": BAD}

COMPACT_HEIGHT = 16
"""Lines that the compact view takes at most."""

_ONE_LINE = 20  # height below which the budgets have one line together
_ROWS = 5  # rows of the leaderboard at the least
_LARGE = 1_000_000  # numbers of trials from which they are shortened
_WIDE = 90  # from this width the heading of the score says what it is the mean of
_BAR = 24
_NO_WORDS: Mapping[str, str] = MappingProxyType({})
_GAP = 2
_CURSOR = 1  # the line below a view redrawn in place, which would scroll its first line away


@dataclass(frozen=True, slots=True)
class FittedView:
    """A rich renderable that is drawn for the width and height of the console, and cut at the height."""

    lines: Callable[[Console, ConsoleOptions], list[list[Segment]]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Draw the lines."""
        for line in self.lines(console, options.update(height=None)):
            yield from line
            yield Segment.line()


def run_display(summary: RunSummary, *, compact: bool = False, bayes: bool = False) -> FittedView:
    """Return a run drawn to fit the console: the leaderboard has the lines that the other parts leave."""

    def lines(console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        width = options.max_width
        height = max(1, options.size.height - _CURSOR)
        if compact:
            height = min(height, COMPACT_HEIGHT)
        models = summary.results.models
        words = summary.headline_within(_label(width))
        head = _lines(console, options, [_title(summary, width), Text(inert(words), style=HEADING)])
        rest = _lines(console, options, _parts(summary, width, height))
        rows = max(_ROWS, height - len(head) - len(rest) - 1)
        if models:
            board = [leaderboard(summary, width, rows, bayes=bayes)]
        else:
            board = []
        drawn = _lines(console, options, board)
        return [*head, *drawn, *rest, *_lines(console, options, _extras(summary, width))][:height]

    return FittedView(lines)


def render_summary(
    summary: RunSummary, report: str | PathLike[str] | None, *, bayes: bool = False
) -> FittedView:
    """Return the summary of a run that has ended, for any width."""

    def lines(console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        results, width = summary.results, options.max_width
        words = summary.headline_within(_label(width))
        shown: list[RenderableType] = [Text(inert(words), style=HEADING)]
        shown.append(Text(spent_words(results, summary.elapsed)))
        if results.models:
            shown += ["", leaderboard(summary, width, len(results.models), bayes=bayes)]
        if results.pairs:
            shown += ["", *_open_pairs(summary, width, 10), _tally(summary, width)]
        for remarks in (waiting_answers, exact_sentences, saved_words, chances_words):
            for remark in remarks(results):
                shown += ["", Text(inert(remark))]
        if summary.warnings:
            shown += ["", *_warnings(summary, 10)]
        if report is not None:
            shown += ["", Text.assemble(("Report  ", HEADING), inert(fspath(report)), overflow="fold")]
        return _lines(console, options, shown)

    return FittedView(lines)


def _lines(console: Console, options: ConsoleOptions, parts: Sequence[RenderableType]) -> list[list[Segment]]:
    if parts:
        return console.render_lines(Group(*parts), options, pad=False)
    return []


def _parts(summary: RunSummary, width: int, height: int) -> list[RenderableType]:
    """Return what is shown below the leaderboard, the most needed first."""
    parts = [*_open_pairs(summary, width, max(3, height // 6))]
    if summary.results.pairs:
        parts.append(_tally(summary, width))
    if summary.outlook is not None:
        parts.append(_cut("Forecast (approx.) " + " · ".join(outlook_phrases(summary.outlook)), width))
    if summary.rates.budgets:
        parts.append(_budgets(summary, width, one_line=height < _ONE_LINE))
    parts += _errors(summary, width)
    parts += [_cut(line, width) for line in _warnings(summary, 4)]
    for one in summary.decisions[: -height // 6 : -1]:
        parts.append(_cut(f"{one.trials:>7,} trials: {inert(describe(one))}", width))
    return parts


def _extras(summary: RunSummary, width: int) -> list[RenderableType]:
    """Return what is shown in the lines that the leaderboard and the parts below it leave."""
    extras: list[RenderableType] = []
    if summary.endpoints and summary.state == "running":
        extras.append(_endpoints(summary, width))
    if summary.results.models:
        extras.append(_cut(settings_words(summary.results), width))
    return extras


def _cut(line: Text | str, width: int) -> Text:
    text = Text(inert(line)) if isinstance(line, str) else line
    text.truncate(width, overflow="ellipsis")
    return text


def _label(width: int) -> int:
    """Return the cells of a model's name in the verdict."""
    return max(8, min(28, width // 4))


class _Shown(NamedTuple):
    """A column of a table: its heading, its cells, how much it is needed (0: always), and its side."""

    head: str
    cells: list[str]
    need: int = 0
    words: bool = False

    @property
    def width(self) -> int:
        """The cells that it takes, with the gap after it."""
        return max(map(cell_len, (self.head, *self.cells))) + _GAP


_WORDS = (Unit.NAME, Unit.MODEL, Unit.WORDS, Unit.PAIR, Unit.COUNTS)


def _shown(
    columns: Iterable[Column[Row]], rows: Sequence[Row], digits: int = 3, words: Mapping[str, str] = _NO_WORDS
) -> list[_Shown]:
    """Return columns as a terminal shows them."""
    found = []
    for column in columns:
        cells = [_cell(column, row, digits) for row in rows]
        found.append(_Shown(column.head(words, short=True), cells, column.need, column.unit in _WORDS))
    return found


def _cell(column: Column[Row], row: Row, digits: int) -> str:
    if column.unit is Unit.SHARE:
        return progress_bar(column.value(row))
    if column.unit is Unit.COUNT and column.text is None:
        number = column.value(row)
        if number >= _LARGE:
            return short(number)
        return f"{number:,}"
    return inert(column.written(row, digits))


def _table(columns: Sequence[_Shown], width: int) -> Table:
    """Return a table of the columns that fit, the most needed first, each in its place."""
    left, fitting = width + _GAP, []
    for column in sorted(columns, key=lambda one: one.need):
        if column.need == 0 or column.width <= left:
            left -= column.width
            fitting.append(column)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style=HEADING)
    ordered = [column for column in columns if column in fitting]
    for column in ordered:
        justify: Literal["left", "right"] = "right"
        if column.words:
            justify = "left"
        table.add_column(column.head, justify=justify, no_wrap=True, overflow="ellipsis")
    for cells in zip(*(column.cells for column in ordered), strict=True):
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
    return table


def _room(columns: Sequence[_Shown], width: int, need: int = 1) -> int:
    """Return the cells that the columns of less `need` leave of the width."""
    return width - sum(column.width for column in columns if column.need < need)


def _title(summary: RunSummary, width: int) -> Text:
    state: str = summary.state
    if summary.state == "interrupted":
        state = "interrupted: no process runs it"
    if summary.stop is not None:
        state = f"{summary.state}: {inert(summary.stop.reason.replace('_', ' '))}"
    words = f"  {duration(summary.elapsed)}  {count(summary.results.trials, 'trial')}"
    rates = summary.rates
    if summary.state == "running" and rates.trials is not None:
        words += f"  {rates.trials:.1f} trials/s  {short(rates.tokens or 0.0)} tokens/s"
    name = cut(inert(summary.name), max(8, width // 3))
    style = _STYLES.get(summary.state, "")
    return _cut(Text.assemble((name, HEADING), "  ", (state, style), words), width)


def leaderboard(summary: RunSummary, width: int, rows: int, *, bayes: bool = False) -> RenderableType:
    """Draw as many rows of the leaderboard; the narrower, the fewer columns."""
    results = summary.results
    ranks = rank_column(results)
    digits = score_decimals(results.models)
    every = model_rows(results, running=summary.state == "running")
    lines = every if len(every) <= rows else every[: rows - 1]
    if bayes:
        outlet = Shown.TERMINAL | Shown.BAYES
    else:
        outlet = Shown.TERMINAL
    score = "score"
    if width >= _WIDE:
        score = score_name(results)
    columns = shown_to_people(MODELS, outlet, every)
    shown = _shown(columns, lines, digits, {"standing": ranks.head, "short_score": score})
    for place, column in reversed(list(enumerate(columns))):
        if column.unit is Unit.RANK:
            shown[place] = shown[place]._replace(words=not ranks.ranked)
        elif column.unit is Unit.INTERVAL:
            scale = scale_over(end for row in every for end in column.value(row))
            bars = [interval_bar(scale, *column.value(row)) for row in lines]
            shown.insert(place + 1, _Shown(_axis(scale), bars, column.need + 1, words=True))
        elif column.unit is Unit.MODEL:
            room = _room([*shown[:place], *shown[place + 1 :]], width)
            labels = distinct_labels((row.line.model for row in lines), max(5, min(48, room)))
            shown[place] = shown[place]._replace(cells=list(labels.values()))
    return _with_rest(_table(shown, width), len(every) - len(lines), "below", width)


def _with_rest(table: Table, more: int, where: str, width: int) -> RenderableType:
    if more:
        return Group(table, _cut(f"⋯ {more} more {where}", width))
    return table


def _axis(scale: Axis) -> str:
    low, high = f"{scale.low:g}", f"{scale.high:g}"
    return low + " " * max(1, _BAR - len(low) - len(high)) + high


def interval_bar(scale: Axis, low: float | None, point: float | None, high: float | None) -> str:
    """Draw one interval on an axis; blank without a point.

    Examples
    --------
    >>> interval_bar(Axis(0.0, 1.0), 0.2, 0.5, 0.8)
    '    ├───────●──────┤    '
    """
    if point is None:
        return " " * _BAR
    cells = [" "] * _BAR
    if low is not None and high is not None:
        left = _place(scale, low)
        right = _place(scale, high)
        cells[left : right + 1] = "─" * (right + 1 - left)
        cells[left], cells[right] = "├", "┤"
    cells[_place(scale, point)] = "●"
    return "".join(cells)


def _place(scale: Axis, value: float) -> int:
    return min(_BAR - 1, int(scale.at(value) * _BAR / 100))


def progress_bar(fraction: float | None, width: int = 8) -> str:
    """Draw a fraction as filled cells, with its per cent; only a whole one fills the bar.

    Examples
    --------
    >>> progress_bar(0.5), progress_bar(0.99), progress_bar(None)
    ('━━━━····  50 %', '━━━━━━━·  99 %', '')
    """
    if fraction is None:
        return ""
    filled = int(min(1.0, max(0.0, fraction)) * width + 1e-9)
    return f"{'━' * filled}{'·' * (width - filled)} {percent(fraction):>5}"


def _open_pairs(summary: RunSummary, width: int, rows: int) -> list[RenderableType]:
    """Draw the open pairs, nearest to a verdict first, with their evidence and closeness to a tie."""
    every = summary.open_pairs
    if not every:
        return []
    if len(every) <= rows:
        shown = every
    else:
        shown = every[: rows - 1]
    pairs = [one.pair for one in shown]
    models = dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second))
    lines = pair_rows(pairs, summary.results, decimals_for(pair.difference for pair in pairs))
    columns = _shown(selected(PAIRS, Shown.TERMINAL), lines)
    room = _room(columns[1:], width, need=3)
    names = distinct_labels(models, max(4, min(24, room // 2 - 3)))
    columns[0] = columns[0]._replace(cells=[pair_name(pair, names) for pair in pairs])
    where = "open, further from a verdict"
    return [_with_rest(_table(columns, width), len(every) - len(shown), where, width)]


def _tally(summary: RunSummary, width: int) -> Text:
    """Return one line that counts the verdicts and names the tied models."""
    widths = of_kind(summary.results, "width").pairs
    measured = sum(pair.verdict != "open" for pair in widths)
    ties = sum(pair.verdict == "tie" for pair in summary.decided_pairs) - measured
    claims = Counter(pair.verdict for pair in of_kind(summary.results, "not-worse").pairs)
    called = len(summary.decided_pairs) - claims["better"] - claims["worse"]
    text = Text()
    if len(widths) + claims.total() < len(summary.results.pairs):
        text.append(f"{called - ties - measured} separated  ", GOOD)
        text.append(f"{ties} tied  ", TIED)
    if claims:
        text.append(f"{claims['better']} not worse  ", GOOD)
        text.append(f"{claims['worse']} worse  ", TIED)
    if widths:
        text.append(f"{measured} measured  ", GOOD)
    text.append(f"{len(summary.open_pairs)} open")
    names = summary.labels(16)
    groups = [" = ".join(map(names.__getitem__, group)) for group in tied_groups(summary.results)]
    if groups:
        text.append(f"   {listing(groups)} {tie_words(summary.results.equivalence)}")
    return _cut(text, width)


def _budgets(summary: RunSummary, width: int, *, one_line: bool) -> RenderableType:
    """Return a table of the budgets, or one line if there is no room for it."""
    uses = summary.rates.budgets
    if one_line:
        return _cut(Text.assemble(("Budget ", HEADING), inert("  ·  ".join(map(_spent, uses)))), width)
    if summary.state == "running":
        outlet = Shown.TERMINAL | Shown.RUNNING
    else:
        outlet = Shown.TERMINAL
    return _table(_shown(selected(BUDGETS, outlet), uses), width)


def _spent(use: BudgetUse) -> str:
    words = f"{budget_name(use.line)} {amount(use.line.spent, use.line.name)}"
    if use.fraction is None:
        return words
    return f"{words} of {amount(use.line.limit, use.line.name)} ({percent(use.fraction)})"


def _errors(summary: RunSummary, width: int) -> list[Text]:
    """Return one line that names the endpoints with errors, none without any."""
    names = distinct_labels(dict.fromkeys(health.model for health in summary.endpoints), 20)
    words = []
    for health in summary.endpoints:
        condition = condition_words(health)
        if condition and (health.state != "left" or any(health.errors.values())):
            words.append(f"{names[health.model]} {condition}")
    if words:
        return [_cut(Text.assemble(("Endpoint errors: ", BAD), "; ".join(words)), width)]
    return []


def _warnings(summary: RunSummary, most: int) -> list[Text]:
    """Return the warnings, of too many the first of each kind, and how many there are more."""
    warnings: Sequence[str] = summary.warnings
    if len(warnings) > most:
        warnings = summary.warnings_by_kind[0][:most]
    lines = [Text.assemble(("Warning: ", BAD), inert(text)) for text in warnings]
    more = len(summary.warnings) - len(warnings)
    if more > 0:
        return [*lines, Text(f"⋯ {count(more, 'more warning')}")]
    return lines


def _endpoints(summary: RunSummary, width: int) -> RenderableType:
    """Return a table of the endpoints, those with errors first."""
    healths = sorted(summary.endpoints, key=lambda health: not condition_words(health))
    names = distinct_labels(dict.fromkeys(health.model for health in healths), 20)
    shown = _shown(selected(ENDPOINTS, Shown.TERMINAL), healths)
    shown[0] = shown[0]._replace(cells=[names[one.model] for one in healths])
    return _table(shown, width)
