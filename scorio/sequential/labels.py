"""Bets on scores of a judge that are corrected by labels of a random share of the answers.

A judge gives every answer a score j in [0, 1]. An answer has a label y, by people or by a dearer judge, if
it was chosen for one, at random with a chance π before anything about it was known (ξ = 1 if chosen). Then

    Δ = ρ j + (ξ/π) (y − ρ j)

has the mean of y whatever the judge says and for every ρ that depends on earlier answers only: the labels
take out the judge's bias, and the judge takes out noise of the labels ([1]_, [2]_). ρ is the least-squares
slope of earlier labels on the judge's scores, within 0 and 1; ρ = 0 is labels alone. Of two models the
difference d = Δ_A − Δ_B lies within ±((1 + ρ)/π − ρ) if the answers of both are chosen together. Bets on d
are e-values as bets on answers are (:mod:`scorio.sequential.answer_bets`): with one λ for the whole run the
product of 1 + λd over a complete pass has expectation at most 1 if the models score the same, because a
product of positive factors with a given mean is largest when they are equal. So has a mean over λ. Looks
within a pass, and looks after further answers were chosen for labels, were checked by simulation
(``benchmarks/labels.py``).

References
----------
.. [1] Angelopoulos, Bates, Fannjiang, Jordan, Zrnic, "Prediction-powered inference", Science 382 (2023).
.. [2] Robins, Rotnitzky, Zhao, "Estimation of regression coefficients when some regressors are not always
   observed", JASA 89 (1994).
.. [3] Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 86 (2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Bools, Floats
from scorio.sequential.clusters import RATES
from scorio.sequential.evidence import log_mean


@dataclass(frozen=True)
class LabelBets:
    """Bets on corrected scores, of one model or of the difference of two.

    Parameters
    ----------
    low, high : ndarray of float, shape (T,)
        Ends of Δ, or of Δ_A − Δ_B, of each question in the order asked. They are the same number unless an
        answer or its label is lost.
    slope : ndarray of float, shape (T,)
        ρ at each.
    stake : ndarray of float, shape (T,)
        What a question weighs, at most 1.
    bound : float
        What Δ, less a number that a score may be, does not exceed.
    groups : ndarray of int, shape (2, T), or None
        If questions are a sample, the question and its cluster.
    doubted : ndarray of bool, shape (T,), or None
        Answers that may be copies of earlier ones: they count only if they lower the winnings.
    """

    low: Floats
    high: Floats
    slope: Floats
    stake: Floats
    bound: float
    groups: ArrayLike | None = None
    doubted: ArrayLike | None = None

    @property
    def estimate(self) -> float:
        """The mean of Δ, or of the difference, lost ones at the middle of their range; NaN without any."""
        if not self.low.size:
            return float("nan")
        return float(np.average(0.5 * (self.low + self.high), weights=self.stake))

    def log_e(self, against: float = 0.0, side: int = 0) -> Floats:
        """Return log e-values against the claim that the mean is a number.

        Parameters
        ----------
        against : float
            The number, a score in [0, 1] or a difference in [−1, 1].
        side : {0, 1, -1}
            0: evidence for any other mean; 1 or −1: for a larger, or a smaller mean alone.

        Returns
        -------
        ndarray of float, shape (T,)
            After each question.
        """
        return log_mean(self._won(against, side))

    def last(self, against: float = 0.0, side: int = 0) -> float:
        """Return the log e-value after the last question; 0 before the first."""
        if self.groups is None:
            return float(log_mean(self._logs(against, side).sum(axis=0)))
        won = self._won(against, side)
        if len(won):
            return float(log_mean(won[-1]))
        return 0.0

    def _won(self, against: float, side: int) -> Floats:
        """Return log winnings after each question, at each λ."""
        if self.groups is None:
            return np.cumsum(self._logs(against, side), axis=0)
        rates = self._rates(side)
        return self._won_by_group(self._ends(rates, against), rates)

    def _rates(self, side: int) -> Floats:
        rates = RATES
        if side != 0:
            rates = RATES[RATES * side > 0.0]
        return rates / self.bound

    def _ends(self, rates: Floats, against: float) -> Floats:
        """Return for each λ what is bet on, at the end of its range that is worse for the bet."""
        ends = np.where(rates > 0.0, self.low[:, None], self.high[:, None]) - against
        return np.asarray(ends * self.stake[:, None])

    def _logs(self, against: float, side: int) -> Floats:
        """Return the logarithm of the factor of each question, at each λ."""
        rates = self._rates(side)
        logs = np.log1p(rates * self._ends(rates, against))
        if self.doubted is not None:
            logs = np.where(np.asarray(self.doubted)[:, None], np.minimum(logs, 0.0), logs)
        return logs

    def _won_by_group(self, ends: Floats, rates: Floats) -> Floats:
        """Bet once on each cluster: on the sum of the means of its questions, over the largest cluster."""
        question, cluster = (np.unique(one, return_inverse=True)[1] for one in np.asarray(self.groups))
        homes = np.unique(np.stack([question, cluster]), axis=1)[1]
        largest = np.bincount(homes).max(initial=1)
        asked = np.zeros(question.max(initial=0) + 1)
        total, mean = np.zeros((2, asked.size, rates.size))
        sums = np.zeros((cluster.max(initial=0) + 1, rates.size))
        logs = np.zeros(rates.size)
        won = np.empty(ends.shape)
        for step, (of, home) in enumerate(zip(question.tolist(), cluster.tolist(), strict=True)):
            asked[of] += 1.0
            total[of] += ends[step]
            before = sums[home].copy()
            now = total[of] / asked[of]
            sums[home] += now - mean[of]
            mean[of] = now
            logs = logs + np.log1p(rates * sums[home] / largest) - np.log1p(rates * before / largest)
            won[step] = logs
        return won

    def interval(self, level: float, lowest: float = -1.0, highest: float = 1.0) -> tuple[float, float]:
        """Return the numbers that are not refuted: a confidence sequence of the mean.

        Parameters
        ----------
        level : float
            α; the interval misses the mean with probability at most α.
        lowest, highest : float
            What the mean may be.
        """
        if not self.low.size:
            return lowest, highest
        middle = float(np.clip(self.estimate, lowest, highest))
        needed = -log(level)
        return self._end(middle, lowest, needed), self._end(middle, highest, needed)

    def _end(self, inside: float, outside: float, needed: float) -> float:
        from scipy.optimize import brentq

        if self.last(outside) < needed:
            return outside
        if self.last(inside) >= needed:
            return inside
        return float(brentq(lambda value: self.last(value) - needed, inside, outside))


def label_bets(
    judge: ArrayLike,
    label: ArrayLike,
    chance: ArrayLike,
    *,
    chosen: ArrayLike | None = None,
    stake: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    doubted: ArrayLike | None = None,
    slope: float | None = None,
) -> LabelBets:
    """Correct a judge's scores by labels of a random share of the answers, for bets on their means.

    Parameters
    ----------
    judge : array_like of float, shape (m, T)
        The judge's scores in [0, 1] of m = 1 or 2 models, in the order of asking; NaN if there is no
        answer, which may then be worth anything from 0 to 1.
    label : array_like of float, shape (m, T)
        Labels in [0, 1]; NaN if there is none.
    chance : float or array_like of float, shape (T,)
        π in (0, 1], the chance at which the answers to each question were chosen for labels.
    chosen : array_like of bool, shape (T,), optional
        ξ. An answer that was chosen and has no label may be worth anything. Default: those with a label.
    stake : array_like of float, shape (T,), optional
        What each question weighs over what the heaviest weighs. Default: all the same.
    groups : array_like of int, shape (2, T), optional
        Question and cluster, if questions are a sample: each cluster is bet on once.
    doubted : array_like of bool, shape (T,), optional
        Answers that may be copies of earlier ones; of no effect with `groups`, whose means are right anyhow.
    slope : float, optional
        ρ in [0, 1]. Default: learned from earlier labels; 0 is labels alone.

    Returns
    -------
    LabelBets
        Its :meth:`~LabelBets.log_e` are log e-values after each question.

    Raises
    ------
    ValueError
        If shapes differ, a score is outside [0, 1], or a chance outside (0, 1].

    Notes
    -----
    Δ = ρ j + (ξ/π)(y − ρ j). A bet risks λ/B of its stake for a unit of d, with λ in (−1, 1) fixed for the
    whole run and B = m/π at the least chance, which d less a number that it may be does not exceed.

    Examples
    --------
    Two equal models and a judge that adds 15 points to the first; one answer in five has a label.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> right = rng.random((2, 2000)) < 0.6
    >>> judge = right | (rng.random((2, 2000)) < [[0.375], [0.0]])
    >>> chosen = rng.random(2000) < 0.2
    >>> label = np.where(chosen, right, np.nan)
    >>> bets = label_bets(judge, label, 0.2)
    >>> bool(bets.log_e().max() < np.log(20)), [round(end, 2) for end in bets.interval(0.05)]
    (True, [-0.06, 0.08])
    >>> alone = label_bets(judge, judge, 1.0)  # as if the judge were right
    >>> bool(alone.log_e().max() > np.log(20))
    True
    """
    scores = np.atleast_2d(np.asarray(judge, dtype=float))
    labels = np.asarray(label, dtype=float)
    labels = np.atleast_2d(labels)
    models, steps = scores.shape
    if labels.shape != scores.shape or models not in (1, 2):
        raise ValueError(
            f"judge and label need one shape, (1 or 2, T); they have {scores.shape}, {labels.shape}"
        )
    for name, values in (("judge", scores), ("label", labels)):
        if ((values < 0.0) | (values > 1.0)).any():
            raise ValueError(f"{name}: scores lie in [0, 1]; found {values[(values < 0) | (values > 1)][0]}")
    chances = np.broadcast_to(np.asarray(chance, dtype=float), (steps,))
    if not ((chances > 0.0) & (chances <= 1.0)).all():
        raise ValueError("chance: give numbers above 0 and up to 1, those at which answers were chosen")
    if chosen is None:
        marked = ~np.isnan(labels).all(axis=0)
    else:
        marked = np.asarray(chosen, dtype=bool)
    if slope is None:
        rho = _slopes(scores, labels, marked)
    else:
        rho = np.full(steps, float(slope))
    ends = [_corrected(scores, labels, marked, chances, rho, worth) for worth in (0.0, 1.0)]
    low, high = ends[0][0], ends[1][0]
    if models == 2:
        low, high = low - ends[1][1], high - ends[0][1]
    if stake is None:
        weight = np.ones(steps)
    else:
        weight = np.asarray(stake, dtype=float)
    return LabelBets(low, high, rho, weight, models / float(chances.min(initial=1.0)), groups, doubted)


def expected_log_e(predicted: Floats, label: Floats, stake: Floats, share: float, steps: int) -> float:
    """Return the log e-value to expect of bets on two models, of so many questions like some with labels.

    Parameters
    ----------
    predicted, label : ndarray of float, shape (n,)
        ρ times the difference of the judge's scores, and the difference of the labels, of each question.
    stake : ndarray of float, shape (n,)
        What each weighs, at most 1.
    share : float
        Chance of a label.
    steps : int
        Questions asked.

    Examples
    --------
    >>> one = np.ones(4)
    >>> expected_log_e(one, one, one, 0.1, 40) < expected_log_e(one, one, one, 1.0, 40)
    True
    """
    rates = RATES[:, None] * (0.5 * share) * stake  # the bets' bound is 2 over the chance
    with_label = np.log1p(rates * (predicted + (label - predicted) / share))
    growth = share * with_label + (1.0 - share) * np.log1p(rates * predicted)
    return float(log_mean(steps * growth.mean(axis=1)))


def _corrected(
    judge: Floats, label: Floats, chosen: Bools, chance: Floats, rho: Floats, worth: float
) -> Floats:
    """Return Δ of each answer, with lost answers and labels worth 0 or 1."""
    predicted = rho * judge
    known = np.where(np.isnan(label), worth, label)
    delta = predicted + np.where(chosen, (known - predicted) / chance, 0.0)
    return np.where(np.isnan(judge), worth, delta)


def _slopes(judge: Floats, label: Floats, chosen: Bools) -> Floats:
    """Return before each question the slope of the labels, or of their differences, on the judge's."""
    x, y = judge[0], label[0]
    if len(judge) == 2:
        x, y = x - judge[1], y - label[1]
    known = chosen & ~np.isnan(x + y)
    x, y = np.where(known, x, 0.0), np.where(known, y, 0.0)
    products, squares = (np.concatenate([[0.0], np.cumsum(one)[:-1]]) for one in (x * y, x * x))
    # Before there are labels, a slope of 0 counts as if the judge had scored one answer with 1, its label 0.
    return np.clip(products / (squares + 1.0), 0.0, 1.0)[: x.size]
