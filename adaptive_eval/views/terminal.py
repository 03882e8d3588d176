"""A run on a terminal: the live view, and the summary at its end, by rich's tables."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Literal, NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from adaptive_eval.core.results import ModelResult
from adaptive_eval.views.budgets import BudgetUse, budget_name, used_words
from adaptive_eval.views.inert import cut, distinct_labels, inert
from adaptive_eval.views.numbers import (
    amount,
    count,
    decimals_for,
    duration,
    fixed,
    interval,
    listing,
    percent,
    short,
    usd,
)
from adaptive_eval.views.plots import Scale, scale_over
from adaptive_eval.views.sentences import (
    bayes_words,
    condition_words,
    describe,
    difference_words,
    said,
    say,
    score_decimals,
    score_name,
    span_words,
)
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.verdicts import (
    of_kind,
    pair_name,
    rank_column,
    state_word,
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
_FEWEST, _SHARE = 5, 0.1  # answers that are none, and their share, from which a column counts them
_BAR = 24
_GAP = 2
_CURSOR = 1  # the line below a view redrawn in place, which would scroll its first line away


@dataclass(frozen=True, slots=True)
class Drawn:
    """A rich renderable that is drawn for the width and height of the console, and cut at the height."""

    lines: Callable[[Console, ConsoleOptions], list[list[Segment]]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Draw the lines."""
        for line in self.lines(console, options.update(height=None)):
            yield from line
            yield Segment.line()


def run_display(summary: Summary, *, compact: bool = False, bayes: bool = False) -> Drawn:
    """Return a run drawn to fit the console: the leaderboard has the lines that the other parts leave."""

    def lines(console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        width, height = options.max_width, max(1, options.size.height - _CURSOR)
        if compact:
            height = min(height, COMPACT_HEIGHT)
        models, words = summary.results.models, summary.headline_within(_label(width))
        head = _lines(console, options, [_title(summary, width), Text(inert(words), style=HEADING)])
        rest = _lines(console, options, _parts(summary, width, height))
        rows = max(_ROWS, height - len(head) - len(rest) - 1)
        board = [leaderboard(summary, width, rows, bayes=bayes)] if models else []
        drawn = _lines(console, options, board)
        return [*head, *drawn, *rest, *_lines(console, options, _extras(summary, width))][:height]

    return Drawn(lines)


def render_summary(
    summary: Summary, report: str | PathLike[str] | None = None, *, bayes: bool = False
) -> Drawn:
    """Return the summary of a run that has ended, for any width."""

    def lines(console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        results, width = summary.results, options.max_width
        words = summary.headline_within(_label(width))
        shown: list[RenderableType] = [Text(inert(words), style=HEADING)]
        shown.append(Text(say("run.spent", results, summary.elapsed)))
        if results.models:
            shown += ["", leaderboard(summary, width, len(results.models), bayes=bayes)]
        if results.pairs:
            shown += ["", *_open_pairs(summary, width, 10), _tally(summary, width)]
        for remarks in ("run.waiting", "run.exact", "run.saved", "run.chances"):
            for remark in said(remarks, results):
                shown += ["", Text(inert(remark))]
        if summary.warnings:
            shown += ["", *_warnings(summary, 10)]
        if report is not None:
            shown += ["", Text.assemble(("Report  ", HEADING), inert(fspath(report)), overflow="fold")]
        return _lines(console, options, shown)

    return Drawn(lines)


def _lines(console: Console, options: ConsoleOptions, parts: Sequence[RenderableType]) -> list[list[Segment]]:
    return console.render_lines(Group(*parts), options, pad=False) if parts else []


def _parts(summary: Summary, width: int, height: int) -> list[RenderableType]:
    """Return what is shown below the leaderboard, the most needed first."""
    parts = [*_open_pairs(summary, width, max(3, height // 6))]
    if summary.results.pairs:
        parts.append(_tally(summary, width))
    if summary.outlook is not None:
        parts.append(_cut("Forecast (approx.) " + " · ".join(said("run.outlook", summary.outlook)), width))
    if summary.rates.budgets:
        parts.append(_budgets(summary, width, one_line=height < _ONE_LINE))
    parts += _errors(summary, width)
    parts += [_cut(line, width) for line in _warnings(summary, 4)]
    for one in summary.decisions[: -height // 6 : -1]:
        parts.append(_cut(f"{one.trials:>7,} trials: {inert(describe(one))}", width))
    return parts


def _extras(summary: Summary, width: int) -> list[RenderableType]:
    """Return what is shown where the leaderboard and the parts below it leave lines."""
    extras: list[RenderableType] = []
    if summary.endpoints and summary.state == "running":
        extras.append(_endpoints(summary, width))
    if summary.results.models:
        extras.append(_cut(say("run.settings", summary.results), width))
    return extras


def _cut(line: Text | str, width: int) -> Text:
    text = Text(inert(line)) if isinstance(line, str) else line
    text.truncate(width, overflow="ellipsis")
    return text


def _label(width: int) -> int:
    """Return the cells of a model's name in the verdict."""
    return max(8, min(28, width // 4))


class Column(NamedTuple):
    """A column of a table: its head, the cell of a row, how much it is needed (0: always), and its side."""

    head: str
    cell: Callable[[Any], str]
    need: int = 0
    words: bool = False

    def width(self, rows: Sequence[Any]) -> int:
        """Return the cells that it takes, with the gap after it."""
        return max(map(cell_len, (self.head, *map(self.cell, rows)))) + _GAP


def _table(columns: Sequence[Column], rows: Sequence[Any], width: int) -> Table:
    """Return a table of the columns that fit, the most needed first, each in its place."""
    left, shown = width + _GAP, []
    for column in sorted(columns, key=lambda one: one.need):
        taken = column.width(rows)
        if column.need == 0 or taken <= left:
            left -= taken
            shown.append(column.head)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style=HEADING)
    ordered = [column for column in columns if column.head in shown]
    for column in ordered:
        justify: Literal["left", "right"] = "left" if column.words else "right"
        table.add_column(column.head, justify=justify, no_wrap=True, overflow="ellipsis")
    for row in rows:
        cells = [column.cell(row) for column in ordered]
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
    return table


def _room(columns: Sequence[Column], rows: Sequence[Any], width: int, need: int = 1) -> int:
    """Return the cells that the columns of less `need` leave of the width."""
    return width - sum(column.width(rows) for column in columns if column.need < need)


def _title(summary: Summary, width: int) -> Text:
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


def leaderboard(summary: Summary, width: int, rows: int, *, bayes: bool = False) -> RenderableType:
    """Draw as many rows of the leaderboard; the narrower, the fewer columns."""
    results = summary.results
    every = results.models
    lines = every if len(every) <= rows else every[: rows - 1]
    ranks, running = rank_column(results), summary.state == "running"
    decimals = score_decimals(every)
    scale = scale_over(value for line in every for value in (line.score_low, line.score, line.score_high))
    columns = [
        Column(ranks.head, lambda line: ranks.of[line.model], words=not ranks.ranked),
        Column(score_name(results) if width >= 90 else "score", lambda line: fixed(line.score, decimals)),
        Column("interval", lambda line: interval(line.score_low, line.score_high, decimals), 4),
        Column(
            _axis(scale),
            lambda line: interval_bar(scale, line.score_low, line.score, line.score_high),
            5,
            words=True,
        ),
        Column("trials", lambda line: _trials(line.trials)),
        Column("tokens", lambda line: short(line.prompt_tokens + line.completion_tokens), 6),
        Column("state", lambda line: state_word(line, results, running=running), words=True),
    ]
    if bayes:
        columns.insert(2, Column("Bayes@N", lambda line: bayes_words(line, decimals), 1))
    if results.usd is not None:
        columns.insert(-1, Column("cost", lambda line: usd(line.usd), 7))
    if any(line.missing for line in every):
        columns.insert(-1, Column("missing", lambda line: f"{line.missing:,}", 3))
    if _often_without_answer(every):
        columns.insert(-1, Column("no answer", lambda line: f"{line.no_answer:,}", 2))
    room = _room(columns, lines, width)
    names = distinct_labels((line.model for line in lines), max(5, min(48, room)))
    columns.insert(1, Column("model", lambda line: names[line.model], words=True))
    return _with_rest(_table(columns, lines, width), len(every) - len(lines), "below", width)


def _often_without_answer(lines: Sequence[ModelResult]) -> bool:
    """Return whether the answers of a model are often none, so that its score is about something else."""
    return any(line.no_answer >= max(_FEWEST, _SHARE * line.trials) for line in lines)


def _with_rest(table: Table, more: int, where: str, width: int) -> RenderableType:
    return Group(table, _cut(f"⋯ {more} more {where}", width)) if more else table


def _trials(number: int) -> str:
    return f"{number:,}" if number < 1_000_000 else short(number)


def _axis(scale: Scale) -> str:
    low, high = f"{scale.low:g}", f"{scale.high:g}"
    return low + " " * max(1, _BAR - len(low) - len(high)) + high


def interval_bar(scale: Scale, low: float | None, point: float | None, high: float | None) -> str:
    """Draw one interval on an axis; blank without a point.

    Examples
    --------
    >>> interval_bar(Scale(0.0, 1.0), 0.2, 0.5, 0.8)
    '    ├───────●──────┤    '
    """
    if point is None:
        return " " * _BAR
    cells = [" "] * _BAR
    if low is not None and high is not None:
        left, right = _cell(scale, low), _cell(scale, high)
        cells[left : right + 1] = "─" * (right + 1 - left)
        cells[left], cells[right] = "├", "┤"
    cells[_cell(scale, point)] = "●"
    return "".join(cells)


def _cell(scale: Scale, value: float) -> int:
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


def _open_pairs(summary: Summary, width: int, rows: int) -> list[RenderableType]:
    """Draw the open pairs, nearest to a verdict first, with their evidence and closeness to a tie."""
    every = summary.open_pairs
    if not every:
        return []
    shown = every if len(every) <= rows else every[: rows - 1]
    pairs = [one.pair for one in shown]
    models = dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second))
    decimals = decimals_for(pair.difference for pair in pairs)
    columns = [
        Column("difference", lambda one: difference_words(one.pair, decimals)),
        Column("interval", lambda one: span_words(one.pair, decimals), 3),
        Column("evidence", lambda one: progress_bar(None if one.pair.kind == "width" else one.progress), 1),
        Column("tie or width", lambda one: progress_bar(one.tie), 2),
        Column("trials each", lambda one: short(one.pair.trials_each), 4),
    ]
    room = _room(columns, shown, width, need=3)
    names = distinct_labels(models, max(4, min(24, room // 2 - 3)))
    columns.insert(0, Column("open", lambda one: pair_name(one.pair, names), words=True))
    where = "open, further from a verdict"
    return [_with_rest(_table(columns, shown, width), len(every) - len(shown), where, width)]


def _tally(summary: Summary, width: int) -> Text:
    """Return one line that counts the verdicts and names the tied models."""
    widths = of_kind(summary.results, "width").pairs
    measured = sum(pair.verdict != "open" for pair in widths)
    ties = sum(pair.verdict == "tie" for pair in summary.decided_pairs) - measured
    text = Text()
    if len(widths) < len(summary.results.pairs):
        text.append(f"{len(summary.decided_pairs) - ties - measured} separated  ", GOOD)
        text.append(f"{ties} tied  ", TIED)
    if widths:
        text.append(f"{measured} measured  ", GOOD)
    text.append(f"{len(summary.open_pairs)} open")
    names = summary.labels(16)
    groups = [" = ".join(map(names.__getitem__, group)) for group in tied_groups(summary.results)]
    if groups:
        text.append(f"   {listing(groups)} {tie_words(summary.results.equivalence)}")
    return _cut(text, width)


def _budgets(summary: Summary, width: int, *, one_line: bool) -> RenderableType:
    """Return a table of the budgets, or one line if there is no room for it."""
    uses = summary.rates.budgets
    if one_line:
        return _cut(Text.assemble(("Budget ", HEADING), inert("  ·  ".join(map(_spent, uses)))), width)
    columns = [
        Column("budget", lambda use: inert(budget_name(use.line)), words=True),
        Column("spent", lambda use: amount(use.line.spent, use.line.name)),
        Column("in flight", lambda use: amount(use.line.reserved, use.line.name), 3),
        Column("limit", lambda use: amount(use.line.limit, use.line.name), 1),
        Column("used", lambda use: used_words(use.line), 2),
    ]
    if summary.state == "running":
        columns.append(Column("lasts at this rate", lambda use: duration(use.seconds_left), 4))
    return _table(columns, uses, width)


def _spent(use: BudgetUse) -> str:
    words = f"{budget_name(use.line)} {amount(use.line.spent, use.line.name)}"
    if use.fraction is None:
        return words
    return f"{words} of {amount(use.line.limit, use.line.name)} ({percent(use.fraction)})"


def _errors(summary: Summary, width: int) -> list[Text]:
    """Return one line that names the endpoints with errors, none without any."""
    names = distinct_labels(dict.fromkeys(health.model for health in summary.endpoints), 20)
    words = []
    for health in summary.endpoints:
        condition = condition_words(health)
        if condition and (health.state != "left" or any(health.errors.values())):
            words.append(f"{names[health.model]} {condition}")
    return [_cut(Text.assemble(("Endpoint errors: ", BAD), "; ".join(words)), width)] if words else []


def _warnings(summary: Summary, most: int) -> list[Text]:
    """Return the first warnings, and how many there are more."""
    lines = [Text.assemble(("Warning: ", BAD), inert(text)) for text in summary.warnings[:most]]
    more = len(summary.warnings) - most
    return [*lines, Text(f"⋯ {count(more, 'more warning')}")] if more > 0 else lines


def _endpoints(summary: Summary, width: int) -> RenderableType:
    """Return a table of the endpoints, those with errors first."""
    healths = sorted(summary.endpoints, key=lambda health: not condition_words(health))
    names = distinct_labels(dict.fromkeys(health.model for health in healths), 20)
    columns = [
        Column("endpoint of", lambda one: names[one.model], words=True),
        Column("address", lambda one: cut(inert(one.endpoint), 48), 3, words=True),
        Column("in flight", lambda one: f"{one.in_flight}/{one.limit}"),
        Column("req/s", lambda one: fixed(one.requests_per_second, 1), 2),
        Column("tok/s", lambda one: short(one.tokens_per_second), 4),
        Column("p50 s", lambda one: fixed(one.p50, 2), 5),
        Column("p95 s", lambda one: fixed(one.p95, 2), 5),
        Column("errors", lambda one: condition_words(one) or "none", 1, words=True),
    ]
    return _table(columns, healths, width)
