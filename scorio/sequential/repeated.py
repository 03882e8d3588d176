"""Evidence that a judge's scores of the same answers change from pass to pass, valid at every look.

While the judge stays the same, its scores of one answer are exchangeable, however much they vary. So given
how often each score of an answer came, in whatever order, the sum of a pass has a known distribution, and
its p-value, with ties broken at random, is uniform and independent of those before it [1]_. A change moves
sums to one side. Bets on small p-values of either side are a test martingale; because the time of a change is
unknown, a part of the stake starts a new bet at every pass.

References
----------
.. [1] Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2nd ed., Springer (2022), part III.
"""

from collections.abc import Mapping
from math import gcd, log
from typing import Final

import numpy as np

from scorio.sequential.drift import Segment

_POWERS: Final = (0.2, 0.5)
"""A bet of power k on a p-value pays k p^(k − 1)."""

_AT_RISK: Final = 0.9
"""Part of a bet's capital that it risks in a pass: a change is surest in the first pass after it."""

_SCALE: Final = 4.0
"""The capital waits: the bets that begin at pass s get 4 / ((s + 4)(s + 5)) of it, in all 1."""

_LEAST: Final = 1e-12
"""Least p-value that is bet on."""


class RepeatedScores:
    """A test martingale against the exchangeability of scores of the same items.

    Attributes
    ----------
    scores : int
        Scores taken in.
    peak : float
        Largest capital so far; it exceeds 1/α with probability at most α.

    Examples
    --------
    >>> evidence = RepeatedScores()
    >>> for _ in range(6):
    ...     evidence.add({item: item % 2 for item in range(30)}, 0.5)
    >>> evidence.peak < 2
    True
    >>> evidence.add({item: 1 for item in range(30)}, 0.5)
    >>> before, after = evidence.segments()
    >>> evidence.peak > 100, before.outcomes, before.mean, after.mean
    (True, 180, 0.5, 1.0)
    """

    def __init__(self) -> None:
        self.scores = 0
        self.peak = 1.0
        self._seen: dict[int, dict[int, int]] = {}
        self._sum, self._passes = 0.0, 0
        self._capital = [0.0] * (2 * len(_POWERS))
        self._logs = [0.0] * len(self._capital)
        self._lowest = [0.0] * len(self._capital)
        self._since = [(0, 0.0)] * len(self._capital)
        self._waiting = 1.0

    def add(self, scores: Mapping[int, int], uniform: float) -> None:
        """Take in one score of each of some items.

        Parameters
        ----------
        scores : mapping of int to int
            By item its score, a whole number of at least 0.
        uniform : float
            A uniform random number in [0, 1) that breaks ties, independent of everything else.
        """
        larger = self._p_value(scores, uniform)
        for item, score in scores.items():
            counts = self._seen.setdefault(item, {})
            counts[score] = counts.get(score, 0) + 1
        if larger is not None and not self._passes:
            self._since = [(self.scores, self._sum)] * len(self._capital)
        self.scores += len(scores)
        self._sum += float(sum(scores.values()))
        if larger is not None:
            self._bet(larger)

    def _p_value(self, scores: Mapping[int, int], uniform: float) -> float | None:
        """Return the p-value of a large sum; None if no item was seen before."""
        known = {value for item in scores for value in self._seen.get(item, ())}
        unit = gcd(*scores.values(), *known) or 1  # right or wrong is 0 or 100
        chances, found = np.ones(1), 0
        for item, score in scores.items():
            earlier = self._seen.get(item)
            if not earlier:
                continue
            counts = np.zeros(max(*earlier, score) // unit + 1)
            for value, times in earlier.items():
                counts[value // unit] = times
            counts[score // unit] += 1.0
            chances = np.convolve(chances, counts / counts.sum())
            found += score // unit
        if chances.size == 1:
            return None
        above = float(chances[found + 1 :].sum())
        return above + uniform * float(chances[found])

    def _bet(self, larger: float) -> None:
        stake = _SCALE / ((self._passes + _SCALE) * (self._passes + _SCALE + 1.0))
        self._passes += 1
        self._waiting -= stake
        each = stake / len(self._capital)
        for place in range(len(self._capital)):
            power = _POWERS[place // 2]
            tail = larger
            if place % 2 != 0:
                tail = 1.0 - larger
            p_value = max(tail, _LEAST)
            factor = 1.0 - _AT_RISK + _AT_RISK * power * p_value ** (power - 1.0)
            self._capital[place] = min((self._capital[place] + each) * factor, 1e300)
            self._logs[place] += log(factor)
            if self._logs[place] < self._lowest[place]:
                self._lowest[place] = self._logs[place]
                self._since[place] = (self.scores, self._sum)
        self.peak = max(self.peak, self._waiting + sum(self._capital))

    def segments(self) -> tuple[Segment, Segment]:
        """Return the scores before the change and those after it, by the bet that has won most."""
        best = max(range(len(self._capital)), key=self._capital.__getitem__)
        count, total = self._since[best]
        after = self.scores - count
        return Segment(count, total / max(count, 1)), Segment(after, (self._sum - total) / max(after, 1))
