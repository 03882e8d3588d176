"""Confidence sequences of contrasts and scores at the run's confidence, in unit scores."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.goals import BETTER, TIE, WORSE, Goal
from scorio.sequential.evidence import FLOOR, confidence_radius, log_evidence

EXACT = 2.0 * FLOOR
"""Variance of a difference of scores that are known: all questions answered by models without noise."""

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
    ) -> tuple[Floats, Floats]:
        """Return both ends of the confidence sequences of the contrasts `rows`, with their estimates.

        Its variance is V_κ, `guarded`. V itself measures how far the answers are from agreement, so it is
        right for the hypothesis that the models agree and for no other: intervals from V would miss a
        difference of 0.1 near a score of 0.9 in one run of six. If a winner was called with V but V_κ has not
        rejected 0 yet, the interval ends at 0. Likewise the interval of a tie ends at ±ε.
        """
        radius = confidence_radius(guarded, self.alpha, self.margin)
        measured = self.goal.measured[rows]
        if measured.any():
            radius = np.where(measured, self.of_scores(variance), radius)
        radius = radius + slack
        low, high = difference - radius, difference + radius
        bet = self.bets[rows]
        evidence = log_evidence(difference, variance, self.margin)
        rejected = bet | (evidence > -log(self.alpha))
        better = (verdict == BETTER) & rejected & (bet | (difference > 0.0))
        worse = (verdict == WORSE) & rejected & (bet | (difference < 0.0))
        low, high = np.where(better, np.maximum(low, 0.0), low), np.where(worse, np.minimum(high, 0.0), high)
        if self.margin is not None:
            tie = (verdict == TIE) & ~measured
            low = np.where(tie, np.maximum(low, -self.margin), low)
            high = np.where(tie, np.minimum(high, self.margin), high)
        return low, high

    def of_scores(self, variance: Floats) -> Floats:
        """Return half-widths of the anytime intervals of models' own scores."""
        return confidence_radius(variance, self.alpha)
