"""The plots of a run's course, laid out for SVG: scores, evidence and cost over the trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from adaptive_eval.core.results import PairResult
from adaptive_eval.views.charts import Scale, scale_over
from adaptive_eval.views.course import Moment, PairPoint
from adaptive_eval.views.numbers import NOTHING, amount, fixed, interval, short
from adaptive_eval.views.summary import Summary

WIDTH, HEIGHT = 400.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 10.0, 10.0, 34.0

LINES = 8
"""Lines in a plot at most, and kinds of line that the style sheet tells apart."""

_ROWS = 12
"""Rows of a plot's table at most."""

_ABOVE = 1.6
"""How far the axis of evidence goes, as a multiple of the value that calls a winner."""

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One line of a plot: its name, its points, and the outline of its band of intervals."""

    name: str
    points: str
    band: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with the same figures as a table; names are not yet safe to show."""

    key: str
    title: str
    words: str  # what is to be seen
    lines: tuple[PlotLine, ...]
    # places and texts of the ticks
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    rows: tuple[tuple[str, ...], ...]
    rule: str = ""  # a dashed line: a threshold or a limit
    rule_name: str = ""


@dataclass(frozen=True, slots=True)
class _Frame:
    """The axes of one plot: trials across, and what the plot shows up."""

    x: Scale
    y: Scale
    moments: tuple[Moment, ...]

    def place(self, trials: float, value: float) -> str:
        return f"{_across(self.x, trials):.1f},{_height(self.y, value):.1f}"

    def line(self, values: Values) -> str:
        known = zip(self.moments, values, strict=True)
        return " ".join(self.place(moment.trials, value) for moment, value in known if value is not None)

    def band(self, lows: Values, highs: Values) -> str:
        there, back = [], []
        for moment, low, high in zip(self.moments, lows, highs, strict=True):
            if low is not None and high is not None:
                there.append(self.place(moment.trials, high))
                back.append(self.place(moment.trials, low))
        return " ".join(there + back[::-1])

    def across(self) -> tuple[tuple[float, str], ...]:
        return tuple((_across(self.x, trials), short(trials)) for trials in self.x.ticks)

    def up(self, unit: str = "") -> tuple[tuple[float, str], ...]:
        words = [amount(value, unit) if unit else f"{value:.3g}" for value in self.y.ticks]
        return tuple((_height(self.y, value), text) for value, text in zip(self.y.ticks, words, strict=True))


def _across(scale: Scale, value: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * scale.at(value) / 100


def _height(scale: Scale, value: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * scale.at(value) / 100


def course_plots(summary: Summary) -> list[Plot]:
    """Return the plots that have something to show."""
    moments = tuple(moment for moment in summary.known.course if moment.trials)
    if len(moments) < 2:
        return []
    across = Scale(0.0, float(moments[-1].trials))
    found = [_scores(summary, moments, across), _evidence(summary, moments, across), _cost(summary, moments)]
    return [plot for plot in found if plot is not None]


def _scores(summary: Summary, moments: tuple[Moment, ...], across: Scale) -> Plot | None:
    names = [line.model for line in summary.results.models if line.score is not None][:LINES]
    courses = {name: [moment.models.get(name) for moment in moments] for name in names}
    scores = {name: [point and point.score for point in points] for name, points in courses.items()}
    last = [points[-1] for points in courses.values()]
    ends = [value for point in last if point is not None for value in point]
    if not names:
        return None
    frame = _Frame(across, scale_over([*ends, *(value for one in scores.values() for value in one)]), moments)
    lines = []
    for name, points in courses.items():
        lows, highs = [one and one.low for one in points], [one and one.high for one in points]
        lines.append(PlotLine(name, frame.line(scores[name]), frame.band(lows, highs)))
    rows = [("trials", *names)]
    for moment in (moments[number] for number in _sparse(len(moments))):
        seen = [moment.models.get(name) for name in names]
        cells = [f"{fixed(one.score)} {interval(one.low, one.high)}" if one else NOTHING for one in seen]
        rows.append((f"{moment.trials:,}", *cells))
    words = "Mean of question means, with the anytime interval"
    if len(summary.results.models) > LINES:
        words += f"; the {LINES} best models"
    return Plot("scores", "Scores", words, tuple(lines), frame.across(), frame.up(), tuple(rows))


def _evidence(summary: Summary, moments: tuple[Moment, ...], across: Scale) -> Plot | None:
    latest = sorted(summary.decided_pairs, key=lambda pair: -(pair.decided_at or 0))
    wanted = [*(one.pair for one in summary.open_pairs), *latest]
    courses = {}
    for pair in [pair for pair in wanted if pair.kind != "width"][:LINES]:
        values = _until_called([_of(moment, pair) for moment in moments])
        if any(value is not None for value in values):
            courses[f"{pair.first} − {pair.second}"] = values
    thresholds = [max((one.threshold for one in moment.pairs.values()), default=None) for moment in moments]
    highest = max((value for value in thresholds if value is not None), default=0.0)
    if not courses or highest <= 0:
        return None
    frame = _Frame(across, Scale(0.0, _ABOVE * highest), moments)
    lines = [PlotLine(name, frame.line(values)) for name, values in courses.items()]
    rows = [("trials", "calls a winner", *courses)]
    for number in _sparse(len(moments)):
        cells = [fixed(values[number], 2) for values in courses.values()]
        rows.append((f"{moments[number].trials:,}", fixed(thresholds[number], 2), *cells))
    words = "Ln e-value of the pairs nearest to a verdict, and of those decided last"
    plot = Plot("evidence", "Evidence", words, tuple(lines), frame.across(), frame.up(), tuple(rows))
    return replace(plot, rule=frame.line(thresholds), rule_name="calls a winner")


def _of(moment: Moment, pair: PairResult) -> PairPoint | None:
    return moment.pairs.get((pair.first, pair.second)) or moment.pairs.get((pair.second, pair.first))


def _until_called(points: Sequence[PairPoint | None]) -> Values:
    """Return the evidence of a pair up to the moment at which it was called."""
    values: list[float | None] = []
    called = False
    for point in points:
        values.append(None if point is None or called else point.evidence)
        called = called or (point is not None and not point.open)
    return values


def _cost(summary: Summary, moments: tuple[Moment, ...]) -> Plot:
    unit = "usd" if any(moment.usd is not None for moment in moments) else "tokens"
    spent = [float(getattr(moment, unit) or 0.0) for moment in moments]
    line = next((one for one in summary.results.budgets if (one.name, one.scope) == (unit, "run")), None)
    limit = None if line is None else line.limit
    shown_limit = limit if limit is not None and limit <= 2 * max(spent) else None
    highest = max(*spent, shown_limit or 0.0, 1e-9)
    across = Scale(0.0, float(moments[-1].trials))
    frame = _Frame(across, Scale(0.0, highest), moments)
    rows = [("trials", "USD" if unit == "usd" else unit)]
    rows += [(f"{moments[n].trials:,}", amount(spent[n], unit)) for n in _sparse(len(moments))]
    words = "USD spent by all models" if unit == "usd" else "Tokens of all models"
    lines = (PlotLine("spent", frame.line(spent)),)
    plot = Plot("spent", "Cost", words, lines, frame.across(), frame.up(unit), tuple(rows))
    if shown_limit is None:
        return plot
    return replace(plot, rule=frame.line([shown_limit] * len(moments)), rule_name="limit")


def _sparse(count: int) -> list[int]:
    """Return at most as many of the numbers below `count` as a table has rows, the first and the last too."""
    rows = min(_ROWS, count)
    places = {round(row * (count - 1) / max(1, rows - 1)) for row in range(rows)}
    return sorted(places)
