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

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import log
from typing import ClassVar, Final

_SLOPES: Final = (0.3, 0.6, 0.9)
"""Slopes of the bets, on larger outcomes and on smaller ones."""


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

    @classmethod
    def from_sum(cls, outcomes: int, total: float) -> Segment:
        """Return so many outcomes with this sum; of none the mean is 0."""
        return cls(outcomes, total / max(outcomes, 1))


class ChangeBets(ABC):
    """Bets on p-values, one a turn, that they become small, or large: a martingale while they are uniform.

    The time of a change is unknown, so a part of the stake starts new bets at every turn. The whole capital
    exceeds 1/α at any time with probability at most α (Ville's inequality).

    Attributes
    ----------
    peak : float
        Largest capital so far; infinity if it is beyond all numbers.
    """

    wait: ClassVar[float]
    """The bets that begin at turn s get wait/((s + wait)(s + wait + 1)) of the capital, in all 1."""

    def __init__(self) -> None:
        self.peak = 1.0
        self._p_values = array("d")
        self._waiting = 1.0
        self._capital = [0.0] * len(self._both(self.peak))

    @abstractmethod
    def factors(self, p_value: float) -> list[float]:
        """Return the factors of bets that p-values are small: 1 on average if they are uniform."""

    def _both(self, p_value: float) -> list[float]:
        """Return the factors of all bets, that p-values are small and that they are large."""
        return self.factors(p_value) + self.factors(1.0 - p_value)

    def bet(self, p_value: float) -> None:
        """Bet on the p-value of the next turn."""
        turn = len(self._p_values)
        stake = self.wait / ((turn + self.wait) * (turn + self.wait + 1.0))
        self._waiting -= stake
        self._p_values.append(p_value)
        each = stake / len(self._capital)
        bets = zip(self._capital, self._both(p_value), strict=True)
        self._capital = [(had + each) * factor for had, factor in bets]
        self.peak = max(self.peak, self._waiting + sum(self._capital))

    @property
    def change(self) -> int:
        """Number of turns before the change, by the bet that has won most."""
        best = self._capital.index(max(self._capital))
        won = list(accumulate((log(self._both(one)[best]) for one in self._p_values), initial=0.0))
        return won.index(min(won))


class DriftEvidence(ChangeBets):
    """A test martingale against the exchangeability of outcomes within each question.

    A bet with slope b multiplies its capital by 1 + b (2r − 1) for a rank r.

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

    wait = 50.0

    def __init__(self) -> None:
        super().__init__()
        self._values = array("d")

    def factors(self, p_value: float) -> list[float]:
        """Return 1 + b (2r − 1) of each slope, for the rank r of an outcome counted from the largest."""
        tilt = 1.0 - 2.0 * p_value
        return [1.0 + slope * tilt for slope in _SLOPES]

    def add(self, rank: float, *, value: float) -> None:
        """Take in one outcome by its rank among the earlier ones; its `value` is only for the means."""
        self._values.append(value)
        self.bet(rank)

    def add_among(self, level: float, earlier: Mapping[float, int], uniform: float, *, value: float) -> None:
        """Take in one outcome by its rank: see :func:`rank_among`."""
        self.add(rank_among(level, earlier, uniform), value=value)

    def segments(self) -> tuple[Segment, Segment]:
        """Return the outcomes before the change and those after it."""
        change = self.change
        before, after = self._values[:change], self._values[change:]
        return Segment.from_sum(len(before), sum(before)), Segment.from_sum(len(after), sum(after))
