"""Confidence sequences of contrasts and scores at the run's confidence, in unit scores."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.goals import BETTER, TIE, WORSE, Goal
from scorio.sequential.evidence import (
    FLOOR,
    confidence_radius,
    difference_radius,
    log_evidence,
    score_radius,
)

EXACT = 2.0 * FLOOR
"""Variance of a difference of scores that are known: all questions answered by models without noise."""

_LARGEST = 1e12
"""Variances are cut to it, for an infinite one has no radius."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Rows = slice | list[int]


@dataclass(frozen=True, eq=False)
class Intervals:
    """The confidence sequences of a session."""

    goal: Goal
    bets: Bools  # contrasts that are called by a bet
    alpha: float  # 1 minus the confidence
    margin: float | None  # equivalence margin in unit scores

    def of(
        self,
        rows: Rows,
        verdict: Ints,
        difference: Floats,
        variance: Floats,
        guarded: Floats,
        slack: Floats,
        trials: Ints,
    ) -> tuple[Floats, Floats]:
        """Return both ends of the confidence sequences of the contrasts `rows`, with their estimates.

        Its variance is V₂, `guarded`. V itself measures how far the answers are from agreement, so it is
        right for the hypothesis that the models agree and for no other: intervals from V would miss a
        difference of 0.1 near a score of 0.9 in one run of six. If a winner was called with V but V₂ has not
        rejected 0 yet, the interval ends at 0. Likewise the interval of a tie ends at ±ε.
        """
        radius = self._radius(rows, difference, np.minimum(guarded, _LARGEST), trials) + slack
        low, high = difference - radius, difference + radius
        bet = self.bets[rows]
        evidence = log_evidence(difference, np.minimum(variance, _LARGEST), self.margin)
        rejected = bet | (evidence > -log(self.alpha))
        better = (verdict == BETTER) & rejected & (bet | (difference > 0.0))
        worse = (verdict == WORSE) & rejected & (bet | (difference < 0.0))
        low, high = np.where(better, np.maximum(low, 0.0), low), np.where(worse, np.minimum(high, 0.0), high)
        if self.margin is not None:
            tie = (verdict == TIE) & ~self.goal.measured[rows]
            low = np.where(tie, np.maximum(low, -self.margin), low)
            high = np.where(tie, np.minimum(high, self.margin), high)
        return low, high

    def _radius(self, rows: Rows, difference: Floats, variance: Floats, trials: Ints) -> Floats:
        """Half-width of the confidence sequences."""
        measured, single = self.goal.measured[rows], self.goal.single[rows]
        known = variance <= EXACT
        plain = single | known
        radius = np.empty_like(variance)
        if plain.any():
            radius = confidence_radius(variance, self.alpha, self.margin)
        if not plain.all():
            of_pairs = difference_radius(difference, variance, trials, self.alpha, self.margin)
            radius = np.where(plain, radius, of_pairs)
        if measured.any():
            radius = np.where(measured, self.of_scores(difference, variance), radius)
        held = single & ~measured & ~known
        if held.any():
            score = difference + np.where(held, self.goal.value[rows], 0.0)
            radius = np.where(held, score_radius(score, variance, self.alpha, self.margin), radius)
        return np.asarray(radius)

    def of_scores(self, score: Floats, variance: Floats) -> Floats:
        """Return half-widths of the anytime intervals of models' own scores."""
        return score_radius(score, np.minimum(variance, _LARGEST), self.alpha)
