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
from math import gcd, sqrt

import numpy as np

from scorio.sequential.drift import ChangeBets, Segment
from scorio.sequential.evidence import ROUNDING


class RepeatedScores(ChangeBets):
    """A test martingale against the exchangeability of scores of the same items.

    A bet multiplies its capital by 1/(2√p), p the p-value of a large sum, or of a small one.

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

    wait = 4.0

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[int, dict[int, int]] = {}
        self._ends = [(0, 0.0)]  # scores and their sum, before the first turn and after each

    @property
    def scores(self) -> int:
        """Scores taken in."""
        return self._ends[-1][0]

    def factors(self, p_value: float) -> list[float]:
        """Return 1/(2√p); nothing below rounding is believed."""
        return [0.5 / sqrt(max(p_value, ROUNDING))]

    def add(self, scores: Mapping[int, int], uniform: float) -> None:
        """Take in one score of each of some items.

        Parameters
        ----------
        scores : mapping of int to int
            By item its score, a whole number of at least 0.
        uniform : float
            A uniform random number in [0, 1) that breaks ties, independent of everything else.
        """
        p_value = self._p_value(scores, uniform)
        for item, score in scores.items():
            counts = self._seen.setdefault(item, {})
            counts[score] = counts.get(score, 0) + 1
        count, total = self._ends[-1]
        end = count + len(scores), total + sum(scores.values())
        if p_value is None:
            self._ends[-1] = end
        else:
            self._ends.append(end)
            self.bet(p_value)

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

    def segments(self) -> tuple[Segment, Segment]:
        """Return the scores before the change and those after it, by the bet that has won most."""
        (before, total), (scores, whole) = self._ends[self.change], self._ends[-1]
        return Segment.from_sum(before, total), Segment.from_sum(scores - before, whole - total)
