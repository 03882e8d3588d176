"""Contrasts: the difference of two models at equal progress, and a model's own score, with their variances.

Over the c questions both models have answered by step t, with d_q the difference of their running means on
question q, the estimate is D = Σ d_q / c. Its variance goes over, as trials repeat, from the spread of the
d_q between questions to the noise within questions, because the target is the mean over these very questions
(``target="benchmark"``); with ``target="population"`` the questions are a sample themselves and only the
spread between them counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Bools, Floats, Integers, Ints
from scorio.sequential.clusters import Spread
from scorio.sequential.evidence import FLOOR, GUARD, tie_variance
from scorio.sequential.moments import ENOUGH_NOISE, PathBlock

Target = Literal["benchmark", "population"]
Noise = tuple[Floats, Floats, Floats, Floats]
"""w and u summed over models, the smaller G, the smaller R."""

TRUST = 8.0
"""Repeated trials at which within- and between-question variance weigh about evenly."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """What is compared: pairs of models, models with a number, or scores to be measured to a width.

    Of a pair it may be asked which model is better, or whether a claim holds: that the first is not worse
    than the second by more than a margin.

    Parameters
    ----------
    first, second : ndarray of int64, shape (P,)
        Models of each contrast; `second` is :attr:`SINGLE` if there is one only.
    value : ndarray of float, shape (P,)
        The number that a single model is compared with, in unit scores; 0 for a pair.
    width : ndarray of float, shape (P,)
        The width to which a score is to be measured, in unit scores; NaN for every other contrast.
    claim : ndarray of float, shape (P,)
        The margin of a claim about a pair, in unit scores; NaN for every other contrast.

    Examples
    --------
    >>> Contrasts.pairs(3).second.tolist()
    [1, 2, 2]
    """

    first: Ints
    second: Ints
    value: Floats
    width: Floats
    claim: Floats

    SINGLE: ClassVar[int] = -1
    """Second model of a contrast of one model with a number, or of a score to be measured."""

    @classmethod
    def pairs(cls, models: int) -> Contrasts:
        """Return all pairs of so many models."""
        first, second = np.triu_indices(models, 1)
        zero = np.zeros(first.size)
        none = np.full(first.size, np.nan)
        return cls(first, second, zero, none, none)

    @cached_property
    def single(self) -> Bools:
        """Contrasts of one model."""
        return np.asarray(self.second == Contrasts.SINGLE)

    @cached_property
    def partner(self) -> Ints:
        """The second model; the first again if there is no other."""
        return np.where(self.single, self.first, self.second)

    @cached_property
    def measured(self) -> Bools:
        """Contrasts that are settled by the width of an interval: nothing is claimed that could be wrong."""
        return ~np.isnan(self.width)

    @cached_property
    def widths(self) -> Ints:
        """To how many widths the first model of each contrast is measured, at least 1: these share α."""
        models = int(self.first.max(initial=0)) + 1
        return np.maximum(np.bincount(self.first[self.measured], minlength=models), 1)[self.first]

    @cached_property
    def claimed(self) -> Bools:
        """Contrasts that are claims: they hold, which is the verdict *better*, or fail, *worse*."""
        return ~np.isnan(self.claim)

    @property
    def hypotheses(self) -> int:
        """Contrasts that can get a winner: the family of the error control."""
        return int((~self.measured & ~self.claimed).sum())

    @property
    def claims(self) -> int:
        """The claims, which are a family of their own in each direction."""
        return int(self.claimed.sum())


class ContrastBlock(NamedTuple):
    """Estimates along a piece of the trial sequence; every array has shape (contrasts, steps).

    Parameters
    ----------
    difference : ndarray of float
        D, in unit scores.
    variance : ndarray of float
        V, for calling a winner.
    guarded : ndarray of float
        V_κ, the same with the continuity term always, for intervals.
    margin : ndarray of float
        The variance that D would have at the equivalence margin, for calling a tie; V_κ if there is none.
    avg_variance : ndarray of float
        Variance of D from the paper's avg@N variances alone; at complete passes D² over it is the paper's z².
    questions : ndarray of int
        c, the questions both have answered.
    trials : ndarray of float
        Trials with an answer of the model that has fewer; infinite if answers have no noise.
    slack : ndarray of float
        How far lost answers, each anything from 0 to 1, could have moved D: no call that this could turn.
    bets : ndarray of float
        Log winnings of bets, on clusters (:mod:`scorio.sequential.clusters`) or on answers
        (:mod:`scorio.sequential.answer_bets`); minus infinity if they say nothing.
    staked : ndarray of float
        Share of the stake that is bet so; 0 if nothing is.
    """

    difference: Floats
    variance: Floats
    guarded: Floats
    margin: Floats
    avg_variance: Floats
    questions: Ints
    trials: Floats
    slack: Floats
    bets: Floats
    staked: Floats

    def less(self, value: Floats, equivalence: Floats | None = None) -> ContrastBlock:
        """Return scores held against `value`, of shape (contrasts, 1).

        The variance at the margin grows as that of right-or-wrong answers: p(1 − p) there over p(1 − p) here.
        """
        if equivalence is None:
            return self._replace(difference=self.difference - value)
        here = self.difference * (1.0 - self.difference)
        there = np.maximum(*(end * (1.0 - end) for end in (value - equivalence, value + equivalence)))
        grown = np.maximum(there / np.maximum(here, self.guarded), 1.0)
        return self._replace(difference=self.difference - value, margin=self.guarded * grown)

    def for_ties(
        self, equivalence: Floats, target: Target, trials: Floats, spread: Floats, step: Floats
    ) -> ContrastBlock:
        """Return the block with the variance with which ties are called, and claims with these margins.

        `trials` are those of each model, infinite if answers have no noise, and `spread` is the sum of
        their p(1 − p), the largest variances of scores with these means; for `step` see
        :func:`scorio.sequential.evidence.margin_variance`.
        """
        n, variance = self.questions, self.variance
        if target == "benchmark":
            n = np.maximum(np.where(np.isinf(trials), self.questions, trials), 1.0)
            variance = np.minimum(variance, (self.difference**2 + spread) / n)
        return self._replace(
            margin=tie_variance(self.difference, variance, self.guarded, n, equivalence, step)
        )

    def widened(self, other: ContrastBlock) -> ContrastBlock:
        """Return the block with the larger variances of this and another reading of the same answers."""
        return self._replace(
            variance=np.maximum(self.variance, other.variance),
            guarded=np.maximum(self.guarded, other.guarded),
            margin=np.maximum(self.margin, other.margin),
            avg_variance=np.maximum(self.avg_variance, other.avg_variance),
        )

    def take(self, rows: Integers) -> ContrastBlock:
        """Return some contrasts."""
        return ContrastBlock._make(values[rows] for values in self)

    def columns(self, columns: Integers) -> ContrastBlock:
        """Return some steps."""
        return ContrastBlock._make(values[:, columns] for values in self)

    def put(self, rows: Integers, block: ContrastBlock) -> None:
        """Replace the only step of `rows` by the last one of a block."""
        for mine, others in zip(self, block, strict=True):
            mine[rows, 0] = others[:, -1]


def joined(blocks: Sequence[ContrastBlock], axis: int) -> ContrastBlock:
    """Return blocks of several contrasts at the same steps (axis 0), or of following steps (axis 1)."""
    return ContrastBlock._make(np.concatenate(parts, axis=axis) for parts in zip(*blocks, strict=True))


def combined(weights: Sequence[float], blocks: Sequence[ContrastBlock]) -> ContrastBlock:
    """Return the estimates over several tasks of these weights; the fewest questions of a task count."""
    if len(blocks) == 1:
        return blocks[0]
    parts = list(zip(weights, blocks, strict=True))

    def total(name: str, power: int) -> Floats:
        return np.asarray(sum(weight**power * getattr(block, name) for weight, block in parts))

    questions = np.minimum.reduce([block.questions for block in blocks])
    trials = np.sum([block.trials for block in blocks], axis=0)
    return ContrastBlock(
        total("difference", 1),
        total("variance", 2),
        total("guarded", 2),
        total("margin", 2),
        total("avg_variance", 2),
        questions,
        trials,
        total("slack", 1),
        *no_bets(blocks[0].difference.shape),
    )


def no_bets(shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the winnings of bets, and their share of the stake, if none are placed."""
    return np.full(shape, -np.inf), np.zeros(shape)


def contrast_variance(
    square: Floats,
    kappa: Floats | float,
    questions: Floats,
    total: int,
    noise: Noise,
    target: Target,
) -> Floats:
    """Variance of the mean of per-question values.

    Parameters
    ----------
    square : ndarray of float
        Q, the sum of squared values over seen questions.
    kappa : float or ndarray of float
        Continuity term: κ times the squared size of a cluster, over the squared number of questions if
        they vary, of trials if these do.
    questions : ndarray of float
        c, the number of seen questions, at least 1.
    total : int
        M, the number of questions.
    noise : tuple of ndarray
        w (summed over the models), u (summed), G (the smaller), R (the smaller).
    target : {'benchmark', 'population'}
        Whether the questions are the target or a sample.

    Returns
    -------
    ndarray of float
        V of ``STATISTICS.md`` section 5.

    Examples
    --------
    >>> one = np.ones(1)
    >>> noise = (0.5 * one, one, 5 * one, 0 * one)
    >>> contrast_variance(6 * one, 0.0, 15 * one, 30, noise, "benchmark").round(6)
    array([0.026667])
    """
    w, u, g, r = noise
    between = (square + kappa) / (questions * questions)
    if target == "population":
        return np.maximum(between, FLOOR)
    trust = 1.0 - (TRUST / (TRUST + r)) ** 2
    noise_of_trials = w / questions + kappa / (questions + r) ** 2
    within = np.where(
        g >= ENOUGH_NOISE,
        (1.0 - trust) * between + trust * noise_of_trials,
        np.minimum(between, np.maximum(w, u) / questions),
    )
    # Single answers without noise: while questions are left, they are a sample; then they are known.
    fraction = np.where(np.isinf(r) & (questions < total), 0.0, questions / total)
    return np.asarray(np.maximum((1.0 - fraction) * between + fraction * within, FLOOR))


def score_block(
    path: PathBlock,
    questions: int,
    target: Target = "benchmark",
    spread: Spread | None = None,
    repeat_weight: float = 1.0,
    asked: ArrayLike | None = None,
    guard: float = GUARD,
) -> ContrastBlock:
    """Each model's own mean score with its variance, along a piece of its trial sequence.

    The square sum is centred, with a continuity term always: an estimate at 0 or 1 has a variance too.

    Parameters
    ----------
    path : PathBlock
        From :meth:`scorio.sequential.cells.Cells.path` or ``latest``.
    questions : int
        M, the number of questions.
    target : {'benchmark', 'population'}
        Target of the estimate.
    spread : Spread, optional
        Of the centred means over clusters of questions.
    repeat_weight : float
        As in :class:`scorio.sequential.cells.Cells`.
    asked : array_like of int, optional
        Questions asked by then, if some may have no answer.
    guard : float
        κ, ln(1/level) of the strictest level that the score is read at.

    Returns
    -------
    ContrastBlock
        `difference` is the mean score.
    """
    seen = np.maximum(path.seen, 1.0)
    centred = np.maximum(path.square - path.total**2 / seen, 0.0)
    size = np.ones(1)
    if spread is not None:
        centred, size = spread.square, spread.size
    noise = (path.w, path.u, path.g, repeat_weight * path.r)
    variance = contrast_variance(centred, guard * size, seen, questions, noise, target)
    count = path.seen.astype(np.int64)
    low, high = path.bounds(path.seen if asked is None else asked)
    score = path.mean
    slack = np.maximum(score - low, high - score)
    bets = no_bets(score.shape)
    return ContrastBlock(score, variance, variance, variance, path.u / seen, count, path.trials, slack, *bets)
