"""The most evidence that a sample of questions can give: some are too few, however often they are asked.

If the questions, or clusters of them, are a sample (target ``population``), further answers to the same
questions say nothing more about others. The variance of a difference D keeps its guard, and at least D²/G for
G questions or clusters (Cauchy and Schwarz), and each of them is bet on once. So the evidence has a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Bools, Floats
from scorio.sequential.answer_bets import answers_share
from scorio.sequential.betting import most_winnings
from scorio.sequential.clusters import ON_CLUSTERS, RATES
from scorio.sequential.contrasts import Contrasts
from scorio.sequential.evidence import (
    TIE_FACTOR,
    confidence_radius,
    log_evidence,
    log_evidence_above,
    log_mean,
    log_tie_evidence,
    measured_radius,
)
from scorio.sequential.fold import Levels
from scorio.sequential.reference import LEAST_VARIANCE


@dataclass(frozen=True, eq=False)
class Sample:
    """Questions that are a sample.

    Parameters
    ----------
    sizes : sequence of ndarray of float
        Per task the number of questions of each cluster; ones without clusters.
    weights : sequence of float
        Weight of each task in the overall score; they sum to 1.
    clustered, binary : bool
        Whether questions are in clusters, and whether all answers are right or wrong.
    stored : bool
        Whether there are models with stored results.

    Examples
    --------
    >>> from scorio.sequential.families import family
    >>> from scorio.sequential.fold import Levels
    >>> each = family("pair")
    >>> levels = Levels(each, each, 1, 0.05, 0.05)
    >>> for clusters in (4, 12):
    ...     sample = Sample.from_sizes([10] * clusters)
    ...     print(sample.decidable(Contrasts.pairs(2), levels, None))
    [False]
    [ True]
    """

    sizes: Sequence[Floats]
    weights: Sequence[float]
    clustered: bool
    binary: bool
    stored: bool = False

    @classmethod
    def from_sizes(cls, sizes: ArrayLike, *, binary: bool = True) -> Sample:
        """Return the sample of one task, given the number of questions of each cluster."""
        numbers = np.asarray(sizes, dtype=np.float64)
        return cls([numbers], [1.0], bool((numbers > 1.0).any()), binary)

    @property
    def worth(self) -> Floats:
        """How many equal clusters those of each task are worth."""
        return np.array([size.sum() ** 2 / (size**2).sum() for size in self.sizes])

    def _guarded(self, kappa: float) -> float:
        """Return the least variance by a guard alone."""
        return float((np.square(self.weights) * kappa / self.worth**2).sum())

    def least_radius(self, alpha: float) -> float:
        """Return half the width of the interval of a score without spread."""
        return float(confidence_radius(self._guarded(log(1.0 / alpha)), alpha))

    @property
    def _left(self) -> float:
        """Share of the variance of a pair that is left at least: stored results may take some of it away."""
        if self.stored and not self.clustered:
            return LEAST_VARIANCE
        return 1.0

    def decidable(self, contrasts: Contrasts, levels: Levels, margin: float | None) -> Bools:
        """Return which contrasts can be decided: by some answers, at the first threshold.

        Parameters
        ----------
        contrasts : Contrasts
            What is compared.
        levels : Levels
            Thresholds of winners and ties.
        margin : float, optional
            Equivalence margin in unit scores.
        """
        tie = levels.tie(0)
        winner = levels.winner(0)
        single = self._guarded(levels.tie(0))
        pair = self._left * self._guarded(levels.guard)
        can = np.where(contrasts.single, False, self._most_of_pairs(levels.guard, margin) >= winner)
        if margin is not None:
            least = np.where(contrasts.single, single, TIE_FACTOR * pair)
            can |= log_tie_evidence(np.zeros(least.shape), least, margin) >= tie
            if levels.claims:
                above = log_evidence_above(np.ones(least.shape), least, margin)
                can |= ~contrasts.single & (above >= log(levels.claims / levels.alpha))
        can |= contrasts.claimed  # of claims no bound is known
        for row in np.flatnonzero(contrasts.single).tolist():
            if contrasts.measured[row]:
                radius = float(measured_radius(single, levels.alpha / contrasts.widths[row]))
                can[row] = 2.0 * radius <= contrasts.width[row]
            else:
                most = most_winnings(float(contrasts.value[row]), self.sizes, self.weights)
                can[row] |= most >= winner
        return can

    def _most_of_pairs(self, kappa: float, margin: float | None) -> float:
        """Return the largest log e-value of a pair: one model is right everywhere, the other nowhere."""
        early = self.binary and not self.clustered
        guard = 0.0
        if not early:
            guard = self._guarded(kappa)
        least = self._left * (guard + 1.0 / self.worth.sum())
        now = float(log_evidence(1.0, least, margin))
        questions = int(sum(size.sum() for size in self.sizes))
        share = answers_share(questions, sample=True)
        of_question = [weight / size.sum() for weight, size in zip(self.weights, self.sizes, strict=True)]
        if self.clustered:
            share = 0.0
            if len(self.sizes) == 1:
                share = ON_CLUSTERS
        won = np.zeros(RATES.size)
        for size, weight in zip(self.sizes, of_question, strict=True):
            if self.clustered:
                largest = size.max()
            else:
                largest = max(of_question) / weight
            won += np.log1p(RATES[:, None] * size / largest).sum(axis=1)
        bets = float(log_mean(won))
        with np.errstate(divide="ignore"):
            return float(np.logaddexp(np.log1p(-share) + now, np.log(share) + bets))
