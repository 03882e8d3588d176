"""Positions in the small charts of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from adaptive_eval.core.results import PairResult, Results
from adaptive_eval.views.verdicts import flipped

_SMALLEST = 1e-6  # closer values are drawn at one place

MOST_PAIRS, MOST_TIES, MOST_DECISIONS = 100, 20, 200
"""Most rows of these tables; the whole is in report.json and the CSV files."""

MATRIX = 30
"""Most models for which the matrix of pairs is drawn; beyond, the table says it."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high`, drawn from 0 to 100."""

    # the values at the ends; `low` < `high`
    low: float
    high: float

    def at(self, value: float) -> float:
        """Return the position of `value`, from 0 to 100; a value outside is drawn at the end.

        Examples
        --------
        >>> Scale(0.0, 0.5).at(0.25), Scale(0.0, 0.5).at(2.0)
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
        reach = _round_up(largest) if largest > _SMALLEST else 1.0
        return cls(-reach, reach)


def scale_over(values: Iterable[float | None]) -> Scale:
    """Return a scale with round ends that holds all `values`; never more than needed within [0, 1].

    Examples
    --------
    >>> scale_over([0.83, 0.71, None]), scale_over([0.02, 0.97]), scale_over([])
    (Scale(low=0.7, high=0.9), Scale(low=0.0, high=1.0), Scale(low=0.0, high=1.0))
    """
    finite = list(_finite(values))
    if not finite:
        return Scale(0.0, 1.0)
    low, high = min(finite), max(finite)
    step = _step(max(high - low, _SMALLEST))
    first, last = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Scale(round(first, 9), round(last if last > first else first + step, 9))


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
        kind = 0 if pair.verdict == "open" and pair.needed else 1 if pair.verdict == "tie" else 2
        gap = min((abs(end) for end in (pair.low, pair.high) if end is not None), default=math.inf)
        return kind, -pair.evidence / max(pair.threshold, 1e-9) if kind == 0 else gap

    chosen = set(sorted(range(len(results.pairs)), key=lambda i: order(results.pairs[i]))[:most])
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

    None where there are no pairs or too many models; an entry is None on the diagonal and where the goal does
    not ask about the pair.
    """
    names = [line.model for line in results.models]
    if not results.pairs or len(names) > MATRIX:
        return None
    known = {(pair.first, pair.second): pair for pair in results.pairs}
    known |= {(pair.second, pair.first): flipped(pair) for pair in results.pairs}
    return [[known.get((row, column)) for column in names] for row in names]


MOST = 40
"""Most models that are drawn; beyond, the table says it."""

_COLUMN, _ROW, _TOP = 150.0, 26.0, 34.0
_LETTER, _LETTERS = 8.0, 28
"""Width of a letter of a label at most, and letters of the longest label."""

_COLOURS = 8
"""Kinds of line that the style sheet tells apart."""


@dataclass(frozen=True, slots=True)
class RankLine:
    """One model's line."""

    model: str
    kind: int  # which of the kinds of line, from 0
    points: tuple[tuple[float, float], ...]  # places of its ranks
    # heights of its label on the left and on the right; models that share a rank are set apart
    start: float
    end: float

    @property
    def path(self) -> str:
        """The line as SVG wants it."""
        return " ".join(f"{x:g},{y:g}" for x, y in self.points)


@dataclass(frozen=True, slots=True)
class RankPlot:
    """A drawing: its size, the place and name of every ranking, the lines, and where labels begin and end."""

    width: float
    height: float
    columns: tuple[tuple[float, str], ...]
    lines: tuple[RankLine, ...]
    left: float
    right: float


def rank_plot(rankings: Sequence[tuple[str, Results]]) -> RankPlot | None:
    """Lay out a line for every model through its rank under each of the rankings, the best on top."""
    models = [line.model for line in sorted(rankings[0][1].models, key=lambda line: (line.rank, line.model))]
    if len(rankings) < 2 or len(models) > MOST:
        return None
    places = [_places(results, models) for _, results in rankings]
    side = max(_COLUMN / 2, 24.0 + _LETTER * min(_LETTERS, max(map(len, models))))
    xs = [side + _COLUMN * place for place in range(len(rankings))]
    lines = tuple(
        RankLine(
            model,
            number % _COLOURS,
            tuple((x, _height(ranks[model][0])) for x, ranks in zip(xs, places, strict=True)),
            _height(places[0][model][1]),
            _height(places[-1][model][1]),
        )
        for number, model in enumerate(models)
    )
    width = xs[-1] + side
    columns = tuple((x, name) for x, (name, _) in zip(xs, rankings, strict=True))
    return RankPlot(width, _height(len(models) + 1), columns, lines, xs[0], xs[-1])


def _places(results: Results, models: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return rank and row of every model: models of one rank follow each other in rows."""
    ranks = {line.model: line.rank for line in results.models if line.model in models}
    rows = sorted(ranks, key=lambda model: (ranks[model], models.index(model)))
    return {model: (float(ranks[model]), float(row)) for row, model in enumerate(rows, start=1)}


def _height(rank: float) -> float:
    return _TOP + _ROW * (rank - 0.5)
