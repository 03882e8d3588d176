"""Evidence that a model's outcomes on the same questions change over time, valid however often one looks.

While a model stays the same, the outcomes of one question are exchangeable: any order of them is as likely
as any other. So the rank of each outcome among the earlier ones of its question, with ties broken at random,
is uniform and independent of the ranks before it (a conformal p-value [1]_). A change moves the ranks to one
side. The evidence bets on such a shift. Because the time of a change is unknown, a small part of the stake
starts a new bet at every outcome. The result is a test martingale [2]_.

References
----------
.. [1] Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2nd ed., Springer (2022), part III.
.. [2] Ramdas, Grünwald, Vovk, Shafer, "Game-theoretic statistics and safe anytime-valid inference",
   Statistical Science 38 (2023).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, log
from typing import Final

_BETS: Final = (-0.9, -0.6, -0.3, 0.3, 0.6, 0.9)
"""Slopes of the bets: below 0 on outcomes that become smaller, above 0 on larger ones."""

_SCALE: Final = 50.0
"""The capital waits: the bets that begin at outcome s get 50 / ((s + 50)(s + 51)) of it, in all 1."""


def rank_among(value: float, earlier: Mapping[float, int], uniform: float) -> float:
    """Return the rank of an outcome among the earlier ones of its question, as a share.

    Parameters
    ----------
    value : float
        The outcome.
    earlier : mapping of float to int
        How often each outcome came before.
    uniform : float
        A uniform random number in [0, 1) that breaks ties, independent of everything else.

    Returns
    -------
    float
        Uniform on [0, 1] if the outcomes are exchangeable.

    Examples
    --------
    >>> rank_among(0.0, {1.0: 9}, 0.5), rank_among(1.0, {1.0: 9}, 0.5), rank_among(1.0, {0.0: 9}, 0.5)
    (0.05, 0.5, 0.95)
    """
    below = sum(count for other, count in earlier.items() if other < value)
    same = earlier.get(value, 0) + 1
    return (below + uniform * same) / (sum(earlier.values()) + 1)


@dataclass(frozen=True, slots=True)
class Segment:
    """Some outcomes in a row: how many, and their mean."""

    outcomes: int
    mean: float


class DriftEvidence:
    """A test martingale against the exchangeability of outcomes within each question.

    A bet with slope b multiplies its capital by 1 + b (2r − 1) for a rank r: on average by 1 if the rank
    is uniform. So the whole capital exceeds 1/α at any time with probability at most α (Ville's inequality).

    Attributes
    ----------
    outcomes : int
        Outcomes taken in.
    peak : float
        Largest capital so far; infinity once it is beyond all doubt.

    Examples
    --------
    >>> from math import sqrt
    >>> steady, falling = DriftEvidence(), DriftEvidence()
    >>> for n in range(400):
    ...     spread = (n * (sqrt(5) - 1) / 2) % 1.0
    ...     steady.add(spread, value=1.0)
    ...     falling.add(spread if n < 200 else spread / 2, value=float(n < 200))
    >>> steady.peak < 20, falling.peak > 1000, falling.change > 150
    (True, True, True)
    """

    def __init__(self) -> None:
        self.outcomes = 0
        self.peak = 1.0
        self._sum = 0.0
        self._capital = [0.0] * len(_BETS)
        self._waiting = 1.0
        self._logs = [0.0] * len(_BETS)
        self._lowest = [0.0] * len(_BETS)
        self._since = [(0, 0.0)] * len(_BETS)

    def add(self, rank: float, *, value: float) -> None:
        """Take in one outcome by its rank among the earlier ones; its `value` is only for the means."""
        stake = _SCALE / ((self.outcomes + _SCALE) * (self.outcomes + _SCALE + 1.0)) / len(_BETS)
        self.outcomes += 1
        self._sum += value
        self._waiting -= stake * len(_BETS)
        tilt = 2.0 * rank - 1.0
        for place, bet in enumerate(_BETS):
            factor = 1.0 + bet * tilt
            self._capital[place] = min((self._capital[place] + stake) * factor, 1e300)
            self._logs[place] += log(factor)
            if self._logs[place] < self._lowest[place]:
                self._lowest[place] = self._logs[place]
                self._since[place] = (self.outcomes, self._sum)
        self.peak = max(self.peak, self._waiting + sum(self._capital))
        if self.peak >= 1e300:
            self.peak = inf

    def add_among(self, level: float, earlier: Mapping[float, int], uniform: float, *, value: float) -> None:
        """Take in one outcome by its rank: see :func:`rank_among`."""
        self.add(rank_among(level, earlier, uniform), value=value)

    @property
    def change(self) -> int:
        """Number of outcomes before the change, by the bet that has won most."""
        return self._since[self._best][0]

    def segments(self) -> tuple[Segment, Segment]:
        """Return the outcomes before the change and those after it."""
        count, total = self._since[self._best]
        after = self.outcomes - count
        return Segment(count, total / max(count, 1)), Segment(after, (self._sum - total) / max(after, 1))

    @property
    def _best(self) -> int:
        return max(range(len(_BETS)), key=self._capital.__getitem__)
