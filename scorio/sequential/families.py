"""Error control over many pairs: when a pair's e-value is large enough, given how many pairs are watched.

``holm`` controls the probability of any wrong winner on the board (closed testing with e-values, [1]_),
``pair`` only each pair on its own. :class:`TopSet` controls that of a wrong set of the best k: only a pair
across the true cut can make it wrong, so its family has k(L − k) pairs, whichever they are. Dividing α by
L − 1, as if only neighbours were compared, is invalid and not offered.

References
----------
.. [1] Vovk, Wang, "E-values: calibration, combination and applications", Annals of Statistics 49 (2021).
.. [2] Mogstad, Romano, Shaikh, Wilhelm, "Inference for ranks", Review of Economic Studies 91 (2024).
"""

from collections.abc import Iterable
from math import log
from typing import Protocol

from scorio._arguments import one_of, whole


class Family(Protocol):
    """A rule that says which of the open pairs are winners."""

    def threshold(self, won: int, pairs: int, alpha: float) -> float:
        """Return the log e-value at which the next single winner would be called."""


class Holm:
    """Family-wise error: a winner when its e-value ever reached (pairs − won)/α.

    Examples
    --------
    >>> Holm().threshold(won=1, pairs=3, alpha=0.05) == log(2 / 0.05)
    True
    """

    def threshold(self, won: int, pairs: int, alpha: float) -> float:
        """Return log((pairs − won)/α)."""
        return log(max(pairs - won, 1) / alpha)


class PerPair:
    """No correction: the level holds for each pair on its own, and any of many may be wrong."""

    def threshold(self, won: int, pairs: int, alpha: float) -> float:
        """Return log(1/α)."""
        return log(1.0 / alpha)


class TopSet:
    """A wrong set of the best k: the union bound over the k(L − k) pairs that cross the cut.

    Examples
    --------
    >>> TopSet(best=1, models=8).threshold(won=3, pairs=28, alpha=0.05) == log(7 / 0.05)
    True
    """

    def __init__(self, best: int, models: int) -> None:
        self._pairs = max(best * (models - best), 1)

    def threshold(self, won: int, pairs: int, alpha: float) -> float:
        """Return log(k(L − k)/α)."""
        return log(self._pairs / alpha)


_FAMILIES: dict[str, type[Family]] = {"holm": Holm, "pair": PerPair}


def family(name: str) -> Family:
    """Return the family called `name`.

    Raises
    ------
    ValueError
        If there is no such family.

    Examples
    --------
    >>> family("holm").threshold(won=0, pairs=10, alpha=0.05)
    5.298317366548036
    """
    one_of("family", name, _FAMILIES)
    return _FAMILIES[name]()


def rank_intervals(models: int, better: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Rank interval of every model from the declared winners.

    Parameters
    ----------
    models : int
        Number of models L.
    better : iterable of (int, int)
        Pairs (winner, loser) that were declared.

    Returns
    -------
    list of (int, int)
        For each model ``(1 + number declared better, L − number declared worse)``; simultaneous at the
        level of the family that declared the winners (Mogstad et al. 2024).

    Raises
    ------
    ValueError
        If a pair is not of two different models in 0..L - 1.

    Examples
    --------
    >>> rank_intervals(3, [(0, 1), (0, 2)])
    [(1, 1), (2, 3), (2, 3)]
    """
    low, high = [1] * whole("models", models), [models] * models
    for winner, loser in set(better):
        if winner == loser or not (0 <= winner < models and 0 <= loser < models):
            raise ValueError(
                f"better must have pairs of different models in 0..{models - 1}; got {(winner, loser)}"
            )
        low[loser] += 1
        high[winner] -= 1
    return list(zip(low, high, strict=True))
