"""Confidence sequences of contrasts and scores, in unit scores."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from scorio._arrays import Bools, Floats, Ints
from scorio.sequential.contrasts import ContrastBlock, Contrasts
from scorio.sequential.evidence import FLOOR, MIN_QUESTIONS, confidence_radius, log_evidence
from scorio.sequential.fold import BETTER, TIE, WORSE, Course

EXACT = 2.0 * FLOOR
"""Variance of a difference of scores that are known: all questions answered by models without noise."""

Rows = slice | list[int]


@dataclass(frozen=True, eq=False)
class Intervals:
    """The confidence sequences of a board."""

    contrasts: Contrasts
    bets: Bools  # contrasts that are called by a bet
    alpha: float  # 1 minus the confidence
    margin: float | None  # equivalence margin in unit scores

    def of(self, rows: Rows, verdict: Ints, latest: Course) -> tuple[Floats, Floats]:
        """Return both ends of the confidence sequences of the contrasts `rows`.

        Its variance is V_κ, `guarded`. V itself measures how far the answers are from agreement, so it is
        right for the hypothesis that the models agree and for no other: intervals from V would miss a
        difference of 0.1 near a score of 0.9 in one run of six. If a winner was called with V but V_κ has not
        rejected 0 yet, the interval ends at 0. Likewise the interval of a tie ends at ±ε.
        """
        difference, variance = latest.difference[rows], latest.variance[rows]
        radius = confidence_radius(latest.guarded[rows], self.alpha, self.margin)
        measured = self.contrasts.measured[rows]
        if measured.any():
            radius = np.where(measured, self.of_scores(variance), radius)
        radius = radius + latest.slack[rows]
        low, high = difference - radius, difference + radius
        bet = self.bets[rows]
        evidence = log_evidence(difference, variance, self.margin)
        rejected = bet | (evidence > -log(self.alpha))
        better = (verdict[rows] == BETTER) & rejected & (bet | (difference > 0.0))
        worse = (verdict[rows] == WORSE) & rejected & (bet | (difference < 0.0))
        least, most = np.where(better, 0.0, -np.inf), np.where(worse, 0.0, np.inf)
        if self.margin is not None:
            tie = (verdict[rows] == TIE) & ~measured
            least, most = np.where(tie, -self.margin, least), np.where(tie, self.margin, most)
        return np.maximum(low, least), np.minimum(high, most)

    def of_scores(self, variance: Floats) -> Floats:
        """Return half-widths of the anytime intervals of models' own scores."""
        return confidence_radius(variance, self.alpha)


def interval(
    block: ContrastBlock | Course, alpha: float, margin: float | None = None
) -> tuple[Floats, Floats]:
    """Return the confidence sequence of estimates; unbounded before the tenth question.

    Its variance is V_κ: V is right where two models agree and too small elsewhere.
    """
    radius = confidence_radius(block.guarded, alpha, margin) + block.slack
    radius = np.where(block.questions >= MIN_QUESTIONS, radius, np.inf)
    return block.difference - radius, block.difference + radius
