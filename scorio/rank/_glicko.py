"""Ratings that know how sure they are, updated game by game: Glicko."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, sqrt, tanh
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import at_least, finite, positive
from scorio._named import Outcomes
from scorio.arrays import Floats, Integers, floats
from scorio.rank._ranked import ByName, NamedRanking, Ranking, Rated, ScoredRanks, keeps_names, ranked
from scorio.rank._ratings import DrawHandling, read_games
from scorio.rank._ties import Ranks, TieMethod, rank_scores

_SCALE = log(10.0) / 400.0
"""From a lead in ratings to the log-odds of a win."""


@overload
def glicko(
    R: ByName,
    initial_rating: float = ...,
    initial_rd: float = ...,
    c: float = ...,
    rd_max: float = ...,
    tie_handling: DrawHandling = ...,
    return_deviation: bool = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
) -> NamedRanking: ...


@overload
def glicko(
    R: ArrayLike,
    initial_rating: float = ...,
    initial_rd: float = ...,
    c: float = ...,
    rd_max: float = ...,
    tie_handling: DrawHandling = ...,
    *,
    return_deviation: Literal[True],
    method: TieMethod = ...,
    return_scores: bool = ...,
) -> Rated: ...


@overload
def glicko(
    R: ArrayLike,
    initial_rating: float = ...,
    initial_rd: float = ...,
    c: float = ...,
    rd_max: float = ...,
    tie_handling: DrawHandling = ...,
    return_deviation: Literal[False] = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
) -> ScoredRanks: ...


@overload
def glicko(
    R: ArrayLike,
    initial_rating: float = ...,
    initial_rd: float = ...,
    c: float = ...,
    rd_max: float = ...,
    tie_handling: DrawHandling = ...,
    return_deviation: Literal[False] = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
) -> Ranks: ...


@overload
def glicko(
    R: ArrayLike,
    initial_rating: float = ...,
    initial_rd: float = ...,
    c: float = ...,
    rd_max: float = ...,
    tie_handling: DrawHandling = ...,
    return_deviation: bool = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
) -> Ranks | ScoredRanks | Rated: ...


@keeps_names
def glicko(
    R: Outcomes,
    initial_rating: float = 1500.0,
    initial_rd: float = 350.0,
    c: float = 0.0,
    rd_max: float = 350.0,
    tie_handling: DrawHandling = "correct_draw_only",
    return_deviation: bool = False,
    method: TieMethod = "competition",
    return_scores: bool = False,
) -> Ranking:
    r"""Rank models by Glicko ratings [1]_: Elo with a deviation of each rating, which sets its steps.

    A question's games of one trial are a rating period. With :math:`q = \log(10) / 400`,
    :math:`g(d) = (1 + 3 q^2 d^2 / \pi^2)^{-1/2}` and the chance
    :math:`E_{ij} = 1 / (1 + 10^{-g(d_j) (r_i - r_j) / 400})`, a model's precision :math:`1 / d_i^2` grows by
    :math:`q^2 \sum_j g(d_j)^2 E_{ij} (1 - E_{ij})`, and its rating by :math:`q d_i^2 \sum_j g(d_j) (S_{ij} -
    E_{ij})` with the new :math:`d_i`. With c = 0 the deviations shrink and the ratings settle, unlike
    :func:`elo`'s. All pairs count as independent games: the deviations are too small. Cost: O(L²MN).

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.
    initial_rating, initial_rd : float
        Rating and deviation of every model before the first trial.
    c : float
        Growth of the deviation before each period, to :math:`\sqrt{d^2 + c^2}`; at least 0.
    rd_max : float
        Largest deviation.
    tie_handling
        As in :func:`elo`.
    return_deviation : bool
        Also return the deviations (and the scores).

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Glickman (1999). Parameter estimation in large dynamic paired comparison experiments. Journal of
       the Royal Statistical Society C 48, 377-394.

    Examples
    --------
    >>> ranks, ratings, deviations = glicko([[[1, 1]], [[0, 1]]], return_deviation=True)
    >>> ratings.round(1), deviations.round(1)
    (array([1576.7, 1423.3]), array([260.3, 260.3]))
    """
    start = finite("initial_rating", initial_rating)
    spread = positive("initial_rd", initial_rd)
    growth = at_least("c", c, 0.0)
    limit = positive("rd_max", rd_max)
    games, drawn = read_games(R, tie_handling)
    ratings, deviations = _play(games, start, min(spread, limit), growth, limit, drawn)
    scale = max(abs(start), spread)
    if return_deviation:
        return Rated(rank_scores(ratings, method, scale=scale), ratings, deviations)
    return ranked(ratings, method, return_scores, scale)


def _play(
    games: Integers, start: float, spread: float, growth: float, limit: float, drawn: tuple[bool, bool]
) -> tuple[Floats, Floats]:
    """Return ratings and deviations after all games; `drawn` says whether two wrong, and two right, draw."""
    ratings = [start] * games.shape[1]
    variances = [spread**2] * games.shape[1]
    for right in games.tolist():
        variances = [min(variance + growth**2, limit**2) for variance in variances]
        ratings, variances = after_period(right, ratings, variances, drawn)
    return floats(ratings), np.sqrt(variances)


def after_period(
    right: Sequence[int], ratings: Sequence[float], variances: Sequence[float], drawn: Sequence[bool]
) -> tuple[list[float], list[float]]:
    """Return ratings and their variances after the games of all pairs."""
    models = range(len(right))
    scales = [_SCALE / sqrt(1.0 + 3.0 * (_SCALE / pi) ** 2 * variance) for variance in variances]
    pulls = [0.0] * len(right)
    precisions = [1.0 / variance for variance in variances]
    for i in models:
        for j in range(i):
            if right[i] == right[j] and not drawn[right[i]]:
                continue
            # A model's step reckons with what is unknown of the other.
            for own, other in ((i, j), (j, i)):
                lead = tanh(0.5 * scales[other] * (ratings[own] - ratings[other]))
                pulls[own] += 0.5 * scales[other] * (right[own] - right[other] - lead)
                precisions[own] += 0.25 * scales[other] ** 2 * (1.0 - lead**2)
    steps = zip(ratings, pulls, precisions, strict=True)
    moved = [rating + pull / precision for rating, pull, precision in steps]
    return moved, [1.0 / precision for precision in precisions]
