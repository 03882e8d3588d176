"""A run on a terminal: the live view, and the summary at its end, by rich's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Literal, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from adaptive_eval.core.results import ModelResult
from adaptive_eval.views.budgets import BudgetUse, budget_name
from adaptive_eval.views.decisions import describe
from adaptive_eval.views.headline import headline
from adaptive_eval.views.inert import inert
from adaptive_eval.views.labels import cut, distinct_labels
from adaptive_eval.views.numbers import (
    NOTHING,
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
from adaptive_eval.views.outlook import chances_words, outlook_parts
from adaptive_eval.views.phrases import (
    bayes_words,
    difference_words,
    score_decimals,
    score_name,
    settings_words,
    span_words,
)
from adaptive_eval.views.plots import Scale, scale_over
from adaptive_eval.views.run_words import condition_words, spent_words
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.verdicts import (
    exact_pairs,
    fixed_words,
    of_kind,
    pair_name,
    rank_column,
    saved_words,
    state_word,
    tie_words,
    tied_groups,
)

Item = TypeVar("Item")

# Standard colours that are legible on dark and on light backgrounds; each only repeats what a word says.
GOOD, BAD, TIED, HEADING = "green", "red", "magenta", "bold"

_STYLES = {"stopped": BAD, "active": GOOD}

COMPACT_HEIGHT = 16
"""Lines that the compact view takes at most."""

_TWO_COLUMNS = 150  # cells from which the view has two
_FEWEST, _SHARE = 5, 0.1  # answers that are none, and their share, from which a column counts them
_BAR = 24
_GAP = 2
_MOST = 10_000
_CURSOR = 1  # the line below a view redrawn in place, which would scroll its first line away
_ASCII = str.maketrans("━├┤─●·–−…±μσ⋯×", "#||-o.--~~us~x")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a view: lines that it needs at least, and those it would use."""

    draw: Callable[[int], RenderableType]
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """A rich renderable: parts one below the other in the room of the console, ASCII if it has no more."""

    parts: Callable[[Console, int, int], RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Draw the parts for the console's width and height."""
        drawn = self.parts(console, options.max_width, options.height or options.max_height)
        for segment in console.render(drawn, options.update(height=None)):
            text = to_ascii(segment.text) if options.ascii_only else segment.text
            yield Segment(text, segment.style, segment.control)


def to_ascii(text: str) -> str:
    """Return `text` with ASCII stand-ins, for terminals whose encoding has nothing else.

    Examples
    --------
    >>> to_ascii("├─●─┤ 0.5 ± 0.1 漢")
    '|-o-| 0.5 ~ 0.1 ?'
    """
    return "".join(char if char.isascii() else "?" for char in text.translate(_ASCII))


def run_display(summary: Summary, *, compact: bool = False, bayes: bool = False) -> Drawn:
    """Return a run drawn to fit the console."""
    most = COMPACT_HEIGHT if compact else _MOST

    def parts(console: Console, width: int, height: int) -> RenderableType:
        return _view(console, summary, width, min(max(1, height - _CURSOR), most), bayes)

    return Drawn(parts)


def render_summary(
    summary: Summary, report: str | PathLike[str] | None = None, *, bayes: bool = False
) -> Drawn:
    """Return the summary of a run that has ended, for any width."""

    def parts(console: Console, width: int, height: int) -> RenderableType:
        results = summary.results
        models = results.models
        labels = _labels(summary, width)
        shown: list[RenderableType] = [Text(inert(headline(results, labels)), style=HEADING)]
        shown.append(Text(spent_words(results, summary.elapsed)))
        shown += [Text(), leaderboard(summary, width, len(models), bayes=bayes)] if models else []
        if results.pairs:
            shown += [Text(), *_open_and_tally(summary, width)]
        remarks = [saved_words(results), fixed_words(results), chances_words(results)]
        for words in [*exact_pairs(results), *filter(None, remarks)]:
            shown += [Text(), Text(inert(words))]
        shown += [Text(), *_warnings(summary, 10)] if summary.warnings else []
        if report is not None:
            shown += [Text(), Text.assemble(("Report  ", HEADING), inert(fspath(report)), overflow="fold")]
        return Group(*shown)

    return Drawn(parts)


def _open_and_tally(summary: Summary, width: int) -> list[RenderableType]:
    shown: list[RenderableType] = [open_pairs(summary, width, 10)] if summary.open_pairs else []
    return [*shown, _tally(summary, width)]


def _view(console: Console, summary: Summary, width: int, height: int, bayes: bool) -> RenderableType:
    labels = _labels(summary, width)
    words = headline(summary.results, labels) if summary.results.models else summary.headline
    verdict = Text(inert(words), style=HEADING)
    lines = verdict.wrap(console, width)
    top = [_line(_title(summary, width))]
    top.append(Part(lambda rows: Group(*lines[:rows]), 1, len(lines)))
    models = len(summary.results.models)
    left_width = width * 11 // 20 if width >= _TWO_COLUMNS else width
    least, most = min(6, models + 1), models + 1
    board = Part(lambda rows: leaderboard(summary, left_width, rows - 1, bayes=bayes), least, most)
    if left_width == width or not models:
        parts = [*top, *([board] if models else []), *_rest(summary, width)]
        return Group(*fit(parts, height))
    head = fit(top, 4)
    below = height - len(top) - len(lines) - 1
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(width=left_width)
    grid.add_column(width=width - left_width - 3)
    right = fit(_rest(summary, width - left_width - 3), below)
    grid.add_row(Group(*fit([board], below)), Group(*right))
    return Group(*head, Text(), grid)


def fit(parts: Sequence[Part], height: int) -> list[RenderableType]:
    """Draw parts in at most `height` lines: first what each needs, in order, then what each would use."""
    rows = [0] * len(parts)
    left = height
    for wanted in ([part.least for part in parts], [part.most for part in parts]):
        for number, most in enumerate(wanted):
            more = min(max(0, most - rows[number]), left)
            rows[number] += more
            left -= more
    return [part.draw(lines) for part, lines in zip(parts, rows, strict=True) if lines > 0]


def _rest(summary: Summary, width: int) -> list[Part]:
    """Return the parts below or beside the leaderboard, the most needed first."""
    parts = []
    still_open, decisions = len(summary.open_pairs), len(summary.decisions)
    if still_open:
        parts.append(Part(lambda rows: open_pairs(summary, width, rows - 1), 3, min(8, still_open) + 1))
    if summary.results.pairs:
        parts.append(_line(_tally(summary, width)))
    if summary.outlook is not None:
        words = "Forecast (approx.) " + " · ".join(outlook_parts(summary.outlook))
        parts.append(_line(_cut(Text(inert(words)), width)))
    if summary.rates.budgets:
        most = len(summary.rates.budgets) + 1
        parts.append(Part(lambda rows: _budgets(summary, width, rows), 1, most))
    errors = _errors(summary)
    if errors is not None:
        parts.append(_line(_cut(errors, width)))
    warned = _warnings(summary, 4, width)
    parts.append(Part(lambda rows: Group(*warned[:rows]), min(1, len(warned)), len(warned)))
    if decisions:
        parts.append(Part(lambda rows: _decisions(summary, width, rows), 1, min(9, decisions + 1)))
    if summary.endpoints and summary.state == "running":
        parts.append(Part(lambda rows: _endpoints(summary, width, rows - 1), 0, len(summary.endpoints) + 1))
    if summary.results.models:
        parts.append(_line(_cut(Text(inert(settings_words(summary.results))), width)))
    return parts


def _line(text: Text) -> Part:
    return Part(lambda rows: text, 1, 1)


def _cut(text: Text, width: int) -> Text:
    text.no_wrap = True
    text.truncate(width, overflow="ellipsis")
    return text


def _labels(summary: Summary, width: int) -> dict[str, str]:
    names = [line.model for line in summary.results.models]
    return dict(distinct_labels(names, max(8, min(28, width // 4))))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its cells, whether they are words, and how much it is needed (0: always)."""

    head: str
    cells: Sequence[str]
    need: int = 0
    words: bool = False

    @property
    def width(self) -> int:
        """Cells that it takes, with the gap after it."""
        return max(cell_len(text) for text in (self.head, *self.cells)) + _GAP


def _table(columns: Sequence[Column], width: int) -> Table:
    """Return a table of the columns that fit, the most needed first, each in its place."""
    left, shown = width + _GAP, []
    for column in sorted(columns, key=lambda one: one.need):
        if column.need == 0 or column.width <= left:
            left -= column.width
            shown.append(column)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style=HEADING)
    ordered = [column for column in columns if column in shown]
    for column in ordered:
        justify: Literal["left", "right"] = "left" if column.words else "right"
        table.add_column(column.head, justify=justify, no_wrap=True, overflow="ellipsis")
    for cells in zip(*(column.cells for column in ordered), strict=True):
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
    return table


def _title(summary: Summary, width: int) -> Text:
    style = {"running": GOOD, "stopped": HEADING, "interrupted": BAD, "waiting": ""}[summary.state]
    state: str = summary.state
    if summary.state == "interrupted":
        state = "interrupted: no process runs it"
    if summary.stop is not None:
        state = f"{summary.state}: {inert(summary.stop.reason.replace('_', ' '))}"
    name = cut(inert(summary.name), max(8, width // 3))
    words = f"  {duration(summary.elapsed)}  {count(summary.results.trials, 'trial')}{_rates(summary)}"
    return _cut(Text.assemble((name, HEADING), "  ", (state, style), words), width)


def _rates(summary: Summary) -> str:
    if summary.state != "running" or summary.rates.trials is None:
        return ""
    tokens = summary.rates.tokens
    return f"  {summary.rates.trials:.1f} trials/s" + (f"  {short(tokens)} tokens/s" if tokens else "")


def leaderboard(summary: Summary, width: int, rows: int, *, bayes: bool = False) -> RenderableType:
    """Draw as many rows of the leaderboard; the narrower, the fewer columns."""
    results = summary.results
    lines = _first(results.models, rows)
    ranks, running = rank_column(results), summary.state == "running"
    decimals = score_decimals(results.models)
    ends = [value for line in results.models for value in (line.low, line.score, line.high)]
    scale = scale_over(ends)
    bars = [interval_bar(scale, line.low, line.score, line.high) for line in lines]
    score = score_name(results) if width >= 90 else "score"
    columns = [
        Column(ranks.head, [ranks.of[line.model] for line in lines], words=not ranks.ranked),
        Column(score, [fixed(line.score, decimals) for line in lines]),
        Column("interval", [interval(line.low, line.high, decimals) for line in lines], 4),
        Column(_axis(scale), bars, 5, words=True),
        Column("trials", [_trials(line.trials) for line in lines]),
        Column("tokens", [short(line.prompt_tokens + line.completion_tokens) for line in lines], 6),
        Column("state", [state_word(line, results, running=running) for line in lines], words=True),
    ]
    if bayes:
        columns.insert(2, Column("Bayes@N", [bayes_words(line, decimals) for line in lines], 1))
    if results.usd is not None:
        columns.insert(-1, Column("cost", [usd(line.usd) for line in lines], 7))
    if any(line.missing for line in results.models):
        columns.insert(-1, Column("missing", [f"{line.missing:,}" for line in lines], 3))
    if _often_without_answer(results.models):
        columns.insert(-1, Column("no answer", [f"{line.no_answer:,}" for line in lines], 2))
    room = width - sum(column.width for column in columns if column.need == 0)
    names = distinct_labels((line.model for line in lines), max(5, min(48, room)))
    columns.insert(1, Column("model", [names[line.model] for line in lines], words=True))
    more = len(results.models) - len(lines)
    return _with_rest(_table(columns, width), rows, more, "below", width)


def _often_without_answer(lines: Sequence[ModelResult]) -> bool:
    """Return whether the answers of a model are often none, so that its score is about something else."""
    return any(line.no_answer >= max(_FEWEST, _SHARE * line.trials) for line in lines)


def _first(items: Sequence[Item], rows: int) -> Sequence[Item]:
    """Return the items that are shown in so many rows, the last of which may have to say what is left out."""
    return items if len(items) <= rows else items[: max(1, rows - 1)]


def _with_rest(table: Table, rows: int, more: int, where: str, width: int) -> RenderableType:
    if more and rows > 1:
        return Group(table, _cut(Text(f"⋯ {more} more {where}"), width))
    return table if rows > 0 else Text()


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


def progress_bar(fraction: float, width: int = 8) -> str:
    """Draw a fraction as filled cells, with its per cent; only a whole one fills the bar.

    Examples
    --------
    >>> progress_bar(0.5), progress_bar(0.99)
    ('━━━━····  50 %', '━━━━━━━·  99 %')
    """
    filled = int(min(1.0, max(0.0, fraction)) * width + 1e-9)
    return f"{'━' * filled}{'·' * (width - filled)} {percent(fraction):>5}"


def open_pairs(summary: Summary, width: int, rows: int) -> RenderableType:
    """Draw the open pairs, nearest to a verdict first, with their evidence and closeness to a tie."""
    shown = _first(summary.open_pairs, rows)
    pairs = [one.pair for one in shown]
    models = dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second))
    decimals = decimals_for(pair.difference for pair in pairs)
    ties = ["" if one.tie is None else progress_bar(one.tie) for one in shown]
    evidence = ["" if one.pair.kind == "width" else progress_bar(one.progress) for one in shown]
    columns = [
        Column("difference", [difference_words(pair, decimals) for pair in pairs]),
        Column("interval", [span_words(pair, decimals) for pair in pairs], 3),
        Column("evidence", evidence, 1),
        Column("tie or width", ties, 2),
        Column("trials each", [short(pair.trials) for pair in pairs], 4),
    ]
    room = width - sum(column.width for column in columns if column.need < 3)
    names = distinct_labels(models, max(4, min(24, room // 2 - 3)))
    columns.insert(0, Column("open", [pair_name(pair, names) for pair in pairs], words=True))
    more = len(summary.open_pairs) - len(shown)
    return _with_rest(_table(columns, width), rows, more, "open, further from a verdict", width)


def _tally(summary: Summary, width: int) -> Text:
    """Return one line that counts the verdicts and names the tied models."""
    widths = of_kind(summary.results, "width").pairs
    measured = sum(pair.verdict != "open" for pair in widths)
    ties = sum(pair.verdict == "tie" for pair in summary.decided_pairs) - measured
    text = Text()
    if len(widths) < len(summary.results.pairs):
        text.append(f"{len(summary.decided_pairs) - ties - measured} separated", GOOD)
        text.append("  ")
        text.append(f"{ties} tied  ", TIED)
    if widths:
        text.append(f"{measured} measured  ", GOOD)
    text.append(f"{len(summary.open_pairs)} open")
    names = distinct_labels((line.model for line in summary.results.models), 16)
    groups = [" = ".join(names[model] for model in group) for group in tied_groups(summary.results)]
    if groups:
        text.append(f"   {listing(groups)} {tie_words(summary.results.equivalence)}")
    return _cut(text, width)


def _budgets(summary: Summary, width: int, rows: int) -> RenderableType:
    """Return a table of the budgets, or one line if there is no room for it."""
    uses = summary.rates.budgets
    if rows <= len(uses):
        words = "  ·  ".join(_spent(use) for use in uses)
        return _cut(Text.assemble(("Budget ", HEADING), inert(words)), width)
    lines = [use.line for use in uses]
    used = [NOTHING if use.fraction is None else percent(use.fraction) for use in uses]
    columns = [
        Column("budget", [inert(budget_name(line)) for line in lines], words=True),
        Column("spent", [amount(line.spent, line.name) for line in lines]),
        Column("in flight", [amount(line.reserved, line.name) for line in lines], 3),
        Column("limit", [amount(line.limit, line.name) for line in lines], 1),
        Column("used", used, 2),
    ]
    if summary.state == "running":
        columns.append(Column("lasts at this rate", [duration(use.seconds_left) for use in uses], 4))
    return _table(columns, width)


def _spent(use: BudgetUse) -> str:
    words = f"{budget_name(use.line)} {amount(use.line.spent, use.line.name)}"
    if use.fraction is None:
        return words
    return f"{words} of {amount(use.line.limit, use.line.name)} ({percent(use.fraction)})"


def _errors(summary: Summary) -> Text | None:
    """Return one line that names the endpoints with errors, None without any."""
    names = distinct_labels(dict.fromkeys(health.model for health in summary.endpoints), 20)
    words = []
    for health in summary.endpoints:
        condition = condition_words(health)
        if condition and (health.state != "left" or any(health.errors.values())):
            words.append(f"{names[health.model]} {condition}")
    return Text.assemble(("Endpoint errors: ", BAD), "; ".join(words)) if words else None


def _warnings(summary: Summary, most: int, width: int | None = None) -> list[Text]:
    """Return the warnings, each on one line of `width` cells or whole, and how many there are more."""
    lines = []
    for text in summary.warnings[:most]:
        line = Text.assemble(("Warning: ", BAD), inert(text))
        lines.append(line if width is None else _cut(line, width))
    more = len(summary.warnings) - most
    return [*lines, Text(f"⋯ {count(more, 'more warning')}")] if more > 0 else lines


def _decisions(summary: Summary, width: int, rows: int) -> RenderableType:
    """Return the last decisions, the latest first."""
    lines = [Text(" trials  decisions, latest first", style=HEADING)] if rows > 2 else []
    latest = summary.decisions[: -(rows - len(lines)) - 1 : -1]
    lines += [_cut(Text(f"{one.trials:>7,}  {inert(describe(one))}"), width) for one in latest]
    return Group(*lines)


def _endpoints(summary: Summary, width: int, rows: int) -> RenderableType:
    """Return a table of the endpoints, those with errors first."""
    healths = sorted(summary.endpoints, key=lambda health: not condition_words(health))[:rows]
    names = distinct_labels(dict.fromkeys(health.model for health in healths), 20)
    columns = [
        Column("endpoint of", [names[health.model] for health in healths], words=True),
        Column("address", [cut(inert(health.endpoint), 48) for health in healths], 3, words=True),
        Column("in flight", [f"{health.in_flight}/{health.limit}" for health in healths]),
        Column("req/s", [fixed(health.requests_per_second, 1) for health in healths], 2),
        Column("tok/s", [short(health.tokens_per_second) for health in healths], 4),
        Column("p50 s", [fixed(health.p50, 2) for health in healths], 5),
        Column("p95 s", [fixed(health.p95, 2) for health in healths], 5),
        Column("errors", [condition_words(health) or "none" for health in healths], 1, words=True),
    ]
    return _table(columns, width)
