"""The plots of a run's course, laid out for SVG: scores, evidence and cost over the trials."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Self

import numpy as np

from adaptive_eval.core.results import ModelResult, PairResult, Results
from adaptive_eval.views.details import Moment, PairPoint, ScorePoint
from adaptive_eval.views.numbers import NOTHING, amount, fixed, interval, short, trimmed
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.verdicts import flipped

_SMALLEST = 1e-6  # closer values are drawn at one place

MOST_PAIRS, MOST_TIES, MOST_DECISIONS = 100, 20, 200
"""Most rows of these tables; the whole is in report.json and the CSV files."""

MATRIX = 60
"""Most models for which the matrix of pairs is drawn; beyond, the table says it."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`, drawn from 0 to 100."""

    # the values at the ends; `low` < `high`
    low: float
    high: float

    def at(self, value: float) -> float:
        """Return the position of `value`, from 0 to 100; a value outside is drawn at the end.

        Examples
        --------
        >>> Axis(0.0, 0.5).at(0.25), Axis(0.0, 0.5).at(2.0)
        (50.0, 100.0)
        """
        share = (value - self.low) / (self.high - self.low)
        return round(100.0 * min(1.0, max(0.0, share)), 2)

    @property
    def ticks(self) -> tuple[float, ...]:
        """Both ends and the middle."""
        return self.low, (self.low + self.high) / 2, self.high

    @classmethod
    def around_zero(cls, values: Iterable[float | None]) -> Self:
        """Return the scale that reaches equally far on both sides of 0 and holds all `values`."""
        largest = max((abs(value) for value in _finite(values)), default=0.0)
        reach = 1.0
        if largest > _SMALLEST:
            reach = _round_up(largest)
        return cls(-reach, reach)


def scale_over(values: Iterable[float | None]) -> Axis:
    """Return a scale with round ends that holds all `values`; never more than needed within [0, 1].

    Examples
    --------
    >>> scale_over([0.83, 0.71, None]), scale_over([0.02, 0.97]), scale_over([])
    (Axis(low=0.7, high=0.9), Axis(low=0.0, high=1.0), Axis(low=0.0, high=1.0))
    """
    finite = list(_finite(values))
    if not finite:
        return Axis(0.0, 1.0)
    low, high = min(finite), max(finite)
    step = _step(max(high - low, _SMALLEST))
    first = math.floor(low / step + 1e-9) * step
    last = math.ceil(high / step - 1e-9) * step
    if last > first:
        end = last
    else:
        end = first + step
    return Axis(round(first, 9), round(end, 9))


def _finite(values: Iterable[float | None]) -> Iterable[float]:
    return (value for value in values if value is not None and math.isfinite(value))


def _step(span: float) -> float:
    """Return the power of ten at or below `span`."""
    return float(10.0 ** math.floor(math.log10(span) + 1e-9))


def _round_up(value: float) -> float:
    """Return the next number with one significant digit."""
    step = _step(value)
    return round(math.ceil(value / step - 1e-9) * step, 9)


@dataclass(frozen=True, slots=True)
class ShownPairs:
    """The pairs that a report shows, in leaderboard order, and in words which they are; empty for all."""

    shown: tuple[PairResult, ...]
    words: str = ""


def shown_pairs(results: Results, most: int = MOST_PAIRS) -> ShownPairs:
    """Return all pairs of a small board; of a large one those that are open, then tied, then closest."""
    if len(results.pairs) <= most:
        return ShownPairs(results.pairs)

    def order(pair: PairResult) -> tuple[int, float]:
        if pair.verdict == "open" and pair.needed:
            return 0, -pair.evidence / max(pair.threshold, 1e-9)
        gap = min(
            (abs(end) for end in (pair.difference_low, pair.difference_high) if end is not None),
            default=math.inf,
        )
        return 1 if pair.verdict == "tie" else 2, gap

    chosen = set(nsmallest(most, range(len(results.pairs)), key=lambda i: order(results.pairs[i])))
    words = (
        f"{most} of {len(results.pairs):,} pairs: those that are open, nearest to a verdict, then ties, then "
        "the closest of the separated. All are in report/pairs.csv."
    )
    return ShownPairs(tuple(pair for i, pair in enumerate(results.pairs) if i in chosen), words)


@dataclass(frozen=True, slots=True)
class Bin:
    """Questions with a fraction correct between `low` and `high`; `share` of the fullest bin, in [0, 1]."""

    low: float
    high: float
    count: int
    share: float

    @property
    def words(self) -> str:
        """The number of questions."""
        return f"{self.count:,}"

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends."""
        return trimmed(self.low), trimmed(self.high)

    @property
    def height(self) -> float:
        """The height of its bar, of at most 65."""
        return round(65 * self.share, 1)

    @property
    def top(self) -> float:
        """The upper end of its bar."""
        return round(65 - self.height, 1)


def histogram(fractions: Sequence[float], bins: int = 10) -> tuple[Bin, ...]:
    """Return how many of the `fractions` in [0, 1] fall into each of `bins` equal parts.

    Examples
    --------
    >>> [part.count for part in histogram([0.0, 0.1, 0.6, 1.0], bins=2)]
    [2, 2]
    """
    counts, edges = np.histogram(fractions, bins=bins, range=(0.0, 1.0))
    largest = max(1, int(counts.max(initial=0)))
    return tuple(
        Bin(float(low), float(high), int(n), int(n) / largest)
        for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True)
    )


def pair_matrix(results: Results) -> list[list[PairResult | None]] | None:
    """Return the pairs as rows of a matrix in leaderboard order, each seen from its row.

    None if there are no pairs or too many models; an entry is None on the diagonal and where the goal does
    not ask about the pair.
    """
    names = [line.model for line in results.models]
    if not results.pairs or len(names) > MATRIX:
        return None
    place = {name: number for number, name in enumerate(names)}
    found: list[list[PairResult | None]] = [[None] * len(names) for _ in names]
    for pair in results.pairs:
        if pair.first in place and pair.second in place:
            row = place[pair.first]
            column = place[pair.second]
            found[row][column], found[column][row] = pair, flipped(pair)
    return found


WIDTH, HEIGHT = 400.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 10.0, 10.0, 34.0

LINES = 8
"""Lines in a plot at most, and kinds of line that the style sheet tells apart."""

_ROWS = 12
"""Rows of a plot's table at most."""

_ABOVE = 1.6
"""How far the axis of evidence goes, as a multiple of the value that calls a winner."""

_UNKNOWN = ScorePoint(None, None, None)


@dataclass(frozen=True)
class Plot:
    """Values over trials or steps, as a drawing and as a table; names are not yet safe to show."""

    key: str
    title: str
    words: str  # what is to be seen
    steps: Sequence[float]
    courses: Mapping[str, Sequence[ScorePoint]]  # a value at each step, or none, by the name of a line
    up: Axis
    shown: Callable[[ScorePoint], str]  # a value in the table
    unit: str = ""
    limit: Sequence[float | None] = ()  # a dashed line: a threshold or a limit
    limit_name: str = ""
    along: str = "trials"  # what the steps are

    @property
    def across(self) -> Axis:
        """The axis of the steps; that of trials begins with the first trial."""
        start = 0.0
        if self.along != "trials":
            start = self.steps[0]
        return Axis(start, float(self.steps[-1]))

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """The name of each line, its points, and the outline of its band of intervals."""
        found = []
        for name, points in self.courses.items():
            scores, lows, highs = zip(*points, strict=True)
            there = self.places(highs)
            back = self.places(lows)[::-1]
            found.append((name, " ".join(self.places(scores)), " ".join(there + back)))
        return found

    @property
    def rule(self) -> str:
        """The points of the dashed line."""
        if self.limit:
            return " ".join(self.places(self.limit))
        return ""

    @property
    def ticks_across(self) -> list[tuple[float, str]]:
        """Places and texts of the ticks from left to right."""
        return [(_x(self.across, step), _step_words(step)) for step in self.across.ticks]

    @property
    def ticks_up(self) -> list[tuple[float, str]]:
        """Places and texts of the ticks from bottom to top."""
        found = []
        for value in self.up.ticks:
            if self.unit:
                text = amount(value, self.unit)
            else:
                text = f"{value:.3g}"
            found.append((_y(self.up, value), text))
        return found

    @property
    def axis(self) -> str:
        """The words below the axis of the steps."""
        if self.along == "trials":
            return "trials of the run"
        return self.along

    @property
    def rows(self) -> list[list[str]]:
        """The same figures as a table: a head, and rows of some of the steps."""
        columns = dict(self.courses)
        if self.limit:
            limits = [ScorePoint(value, None, None) for value in self.limit]
            columns = {self.limit_name: limits, **columns}
        shown = [list(map(self.shown, points)) for points in columns.values()]
        rows = [[self.along, *columns]]
        for n in _sparse(len(self.steps)):
            texts = [column[n] for column in shown]
            rows.append([f"{self.steps[n]:,}", *texts])
        return rows

    def places(self, values: Sequence[float | None]) -> list[str]:
        """Return where values are drawn."""
        known = zip(self.steps, values, strict=True)
        across = self.across
        return [f"{_x(across, step):.1f},{_y(self.up, one):.1f}" for step, one in known if one is not None]


def _step_words(step: float) -> str:
    if step >= 10:
        return short(step)
    return f"{step:.3g}"


def _x(scale: Axis, value: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * scale.at(value) / 100


def _y(scale: Axis, value: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * scale.at(value) / 100


def _sparse(count: int) -> list[int]:
    """Return at most as many of the numbers below `count` as a table has rows, the first and the last too."""
    rows = min(_ROWS, count)
    places = {round(row * (count - 1) / max(1, rows - 1)) for row in range(rows)}
    return sorted(places)


def course_plots(summary: RunSummary) -> list[Plot]:
    """Return the plots that have something to show."""
    moments = [moment for moment in summary.whole_details.course if moment.trials]
    if len(moments) < 2:
        return []
    trials = [moment.trials for moment in moments]
    found = [draw(summary, moments, trials) for draw in (_scores, _evidence, _cost)]
    return [plot for plot in found if plot is not None]


def _scores(summary: RunSummary, moments: Sequence[Moment], trials: Sequence[int]) -> Plot | None:
    names = [line.model for line in summary.results.models if line.score is not None][:LINES]
    if not names:
        return None
    courses: dict[str, list[ScorePoint]] = {}
    drawn: list[float | None] = []
    for name in names:
        courses[name] = points = [moment.models.get(name, _UNKNOWN) for moment in moments]
        drawn += [*points[-1], *(point.score for point in points)]
    more = ""
    if len(summary.results.models) > LINES:
        more = f"; the {LINES} best models"
    return Plot("scores", "Scores", _SCORES + more, trials, courses, scale_over(drawn), _score_words)


_SCORES = "Mean of question means, with the anytime interval"


def _score_words(point: ScorePoint) -> str:
    if point.score is None:
        return NOTHING
    return f"{fixed(point.score)} {interval(point.low, point.high)}"


_STEP = re.compile(r"(\d+(?:\.\d+)?)")
_SERIES = 3
"""Models that differ in one number of their names, from which they are drawn as a series."""


def series_plot(key: str, models: Iterable[ModelResult]) -> Plot | None:
    """Return the scores of models over a number in their names, such as a checkpoint's step; None for few.

    Of models of one name the last is drawn.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> ends = {"score_low": None, "score_high": None}
    >>> models = [SimpleNamespace(model=f"step-{n}", score=0.1 * n, **ends) for n in (3, 1, 2)]
    >>> [row[0] for row in series_plot("checkpoints", models).rows]
    ['number in the name', '1', '2', '3']
    """
    found: dict[str, dict[float, ScorePoint]] = {}
    for line in models:
        parts = _STEP.split(line.model)
        for place in range(1, len(parts), 2):
            name = "".join([*parts[:place], "…", *parts[place + 1 :]])
            points = found.setdefault(name, {})
            step = float(parts[place])
            whole_step = step
            if step.is_integer():
                whole_step = int(step)
            points[whole_step] = ScorePoint(line.score, line.score_low, line.score_high)
    series = {name: points for name, points in found.items() if len(points) >= _SERIES}
    largest = sorted(series, key=lambda name: -len(series[name]))[:LINES]
    steps = sorted({step for name in largest for step in series[name]})
    if not steps:
        return None
    courses = {}
    for name in largest:
        courses[name] = [series[name].get(step, _UNKNOWN) for step in steps]
    up = scale_over(value for points in courses.values() for point in points for value in point)
    words = f"{_SCORES}, over the number in the name: {', '.join(largest)}"
    return Plot(key, "Scores", words, steps, courses, up, _score_words, along="number in the name")


def _evidence(summary: RunSummary, moments: Sequence[Moment], trials: Sequence[int]) -> Plot | None:
    latest = sorted(summary.decided_pairs, key=lambda pair: -(pair.decided_at or 0))
    wanted = [*(one.pair for one in summary.open_pairs), *latest]
    courses = {}
    for pair in [pair for pair in wanted if pair.kind != "width"][:LINES]:
        points = _until_called([moment.pairs.get(pair.key) for moment in moments])
        if any(point.score is not None for point in points):
            courses[_difference(pair)] = points
    thresholds = list(map(_threshold, moments))
    highest = max((value for value in thresholds if value is not None), default=0.0)
    if not courses or highest <= 0:
        return None
    return Plot(
        "evidence",
        "Evidence",
        "Ln e-value of the pairs nearest to a verdict, and of those decided last",
        trials,
        courses,
        Axis(0.0, _ABOVE * highest),
        lambda point: fixed(point.score, 2),
        limit=thresholds,
        limit_name="calls a winner",
    )


def _threshold(moment: Moment) -> float | None:
    return max((one.threshold for one in moment.pairs.values()), default=None)


def _difference(pair: PairResult) -> str:
    """Return the difference that is above 0 where `first` is called better, or its claim holds."""
    words = f"{pair.first} − {pair.second}"
    if pair.margin is not None:
        words += f" + {pair.margin:g}"
    return words


def _until_called(points: Sequence[PairPoint | None]) -> list[ScorePoint]:
    """Return the evidence of a pair up to the moment at which it was called."""
    found: list[ScorePoint] = []
    called = False
    for point in points:
        if point is None or called:
            found.append(_UNKNOWN)
        else:
            found.append(ScorePoint(point.evidence, None, None))
        called = called or (point is not None and not point.open)
    return found


def _cost(summary: RunSummary, moments: Sequence[Moment], trials: Sequence[int]) -> Plot:
    unit, name, words = "tokens", "tokens", "Tokens of all models"
    if any(moment.usd is not None for moment in moments):
        unit, name, words = "usd", "USD", "USD spent by all models"
    spent = [float(getattr(moment, unit) or 0.0) for moment in moments]
    limits = [one.limit for one in summary.results.budgets if (one.name, one.scope) == (unit, "run")]
    near = [limit for limit in limits if limit is not None and limit <= 2 * max(spent)]
    return Plot(
        "spent",
        "Cost",
        words,
        trials,
        {name: [ScorePoint(value, None, None) for value in spent]},
        Axis(0.0, max(*spent, *near, 1e-9)),
        lambda point: amount(point.score, unit),
        unit,
        limit=near * len(moments),
        limit_name="limit",
    )
