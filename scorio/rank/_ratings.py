"""Ratings of models by their paired comparisons without a likelihood: Elo, PageRank and rank centrality."""

from __future__ import annotations

from math import log, tanh
from typing import Literal, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import finite, numbers, one_of, positive, whole
from scorio._named import Outcomes
from scorio.arrays import Floats, Integers, floats
from scorio.eval._inputs import read_outcomes
from scorio.rank._fitting import require_connected
from scorio.rank._pairwise import pair_counts
from scorio.rank._ranked import ByName, NamedRanking, Ranking, ScoredRanks, keeps_names, ranked
from scorio.rank._ties import Ranks, TieMethod

DrawHandling = Literal["skip", "draw", "correct_draw_only"]
TieHandling = Literal["half", "ignore"]
MOST_IN_PAIRS = 12
"""Models up to which Elo is faster pair by pair than by arrays of all pairs."""
_HALF_SCALE = log(10.0) / 800.0
"""From a lead in ratings to half of the log-odds of a win."""


@overload
def elo(
    R: ByName,
    K: float = ...,
    initial_rating: float = ...,
    tie_handling: DrawHandling = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
) -> NamedRanking: ...


@overload
def elo(
    R: ArrayLike,
    K: float = ...,
    initial_rating: float = ...,
    tie_handling: DrawHandling = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
) -> ScoredRanks: ...


@overload
def elo(
    R: ArrayLike,
    K: float = ...,
    initial_rating: float = ...,
    tie_handling: DrawHandling = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
) -> Ranks: ...


@overload
def elo(
    R: ArrayLike,
    K: float = ...,
    initial_rating: float = ...,
    tie_handling: DrawHandling = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
) -> Ranks | ScoredRanks: ...


@keeps_names
def elo(
    R: Outcomes,
    K: float = 32.0,
    initial_rating: float = 1500.0,
    tie_handling: DrawHandling = "correct_draw_only",
    method: TieMethod = "competition",
    return_scores: bool = False,
) -> Ranking:
    r"""Rank models by Elo ratings, updated question by question within trial after trial [1]_.

    After a pair's outcome S in {0, ½, 1} the rating changes by
    :math:`K (S - 1 / (1 + 10^{(r_j - r_i)/400}))`; all pairs of one question and trial start from the same
    ratings. The ratings depend on the order of the trials and never settle: for a fixed set of outcomes
    prefer :func:`bradley_terry_map`. Cost: O(L²MN).

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.
    K : float
        Step, positive.
    initial_rating : float
        Rating of every model before the first trial.
    tie_handling : {'correct_draw_only', 'draw', 'skip'}
        Which ties are draws: those of two right answers, all, or none; the other ties are left out.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Elo (1978). The Rating of Chessplayers, Past and Present.

    Examples
    --------
    >>> elo([[[1, 1]], [[0, 1]]], return_scores=True)[1].round(2)
    array([1514.53, 1485.47])
    """
    step = positive("K", K)
    ratings_before = finite("initial_rating", initial_rating)
    games, drawn = read_games(R, tie_handling)
    play = _play_together
    if games.shape[1] <= MOST_IN_PAIRS:
        play = _play_in_pairs
    ratings = play(games, ratings_before, step, drawn)
    return ranked(ratings, method, return_scores, max(abs(ratings_before), step))


def read_games(R: Outcomes, tie_handling: str) -> tuple[Integers, tuple[bool, bool]]:
    """Return games, question by question within trial after trial, and whether two wrong, or right, draw."""
    one_of("tie_handling", tie_handling, get_args(DrawHandling))
    outcomes = read_outcomes(R)
    drawn = {"skip": (False, False), "draw": (True, True)}.get(tie_handling, (False, True))
    return outcomes.transpose(2, 1, 0).reshape(-1, len(outcomes)), drawn


def _play_in_pairs(games: Integers, start: float, step: float, drawn: tuple[bool, bool]) -> Floats:
    """Return ratings after all games, pair by pair; `drawn` says whether two wrong, and two right, draw."""
    models = range(games.shape[1])
    ratings = [start] * games.shape[1]
    for right in games.tolist():
        before = ratings.copy()
        for i in models:
            for j in range(i):
                if right[i] == right[j] and not drawn[right[i]]:
                    continue
                lead = tanh((before[i] - before[j]) * _HALF_SCALE)  # of the chance to win over that to lose
                gain = 0.5 * step * (right[i] - right[j] - lead)
                ratings[i] += gain
                ratings[j] -= gain
    return floats(ratings)


def _play_together(games: Integers, start: float, step: float, drawn: tuple[bool, bool]) -> Floats:
    """Return the same, all pairs of a game at once."""
    ratings = np.full(games.shape[1], start)
    draws = np.array(drawn)
    for game in games:
        right = game.astype(np.float64)
        counted = (game != game[:, None]) | draws[game]
        lead = np.tanh((ratings[:, None] - ratings) * _HALF_SCALE)
        change = 0.5 * (right[:, None] - right - lead)
        ratings = ratings + step * np.where(counted, change, 0.0).sum(axis=1)
    return ratings


@overload
def pagerank(
    R: ByName,
    damping: float = ...,
    max_iter: int = ...,
    tol: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    teleport: ArrayLike | None = ...,
) -> NamedRanking: ...


@overload
def pagerank(
    R: ArrayLike,
    damping: float = ...,
    max_iter: int = ...,
    tol: float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    teleport: ArrayLike | None = ...,
) -> ScoredRanks: ...


@overload
def pagerank(
    R: ArrayLike,
    damping: float = ...,
    max_iter: int = ...,
    tol: float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    teleport: ArrayLike | None = ...,
) -> Ranks: ...


@overload
def pagerank(
    R: ArrayLike,
    damping: float = ...,
    max_iter: int = ...,
    tol: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    teleport: ArrayLike | None = ...,
) -> Ranks | ScoredRanks: ...


@keeps_names
def pagerank(
    R: Outcomes,
    damping: float = 0.85,
    max_iter: int = 100,
    tol: float = 1e-06,
    method: TieMethod = "competition",
    return_scores: bool = False,
    teleport: ArrayLike | None = None,
) -> Ranking:
    r"""Rank models by PageRank on the graph of pairwise win probabilities [1]_.

    With the share :math:`\hat P_{ij}` of comparisons that i wins against j (ties count half) the score solves
    :math:`r = d Q r + (1 - d) e`, where :math:`Q_{ij} = \hat P_{ij} / (L - 1)` off the diagonal and
    :math:`Q_{ii}` is the mean of i's own win shares. Solved exactly: O(L³).

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.
    damping : float
        d, in (0, 1).
    max_iter, tol : int, float
        Accepted for compatibility; nothing is iterated.
    teleport : array_like, shape (L,), optional
        Weights e, at least 0; default uniform.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Page, Brin, Motwani and Winograd (1999). The PageRank Citation Ranking. Stanford InfoLab.

    Examples
    --------
    >>> pagerank([[[1, 1], [1, 1]], [[0, 0], [0, 0]]], return_scores=True)
    (array([1, 2]), array([0.925, 0.075]))
    """
    if not 0.0 < finite("damping", damping) < 1.0:
        raise ValueError(f"damping must be in (0, 1); got {damping!r}")
    whole("max_iter", max_iter), positive("tol", tol)
    wins, ties = pair_counts(R)
    models = len(wins)
    if teleport is None:
        base = np.ones(models)
    else:
        base = _numbers(teleport, models)
    shares = (wins + 0.5 * ties) / max(1.0, (wins + wins.T + ties)[0, 1])
    np.fill_diagonal(shares, 0.0)
    np.fill_diagonal(shares, shares.sum(1))
    step = np.eye(models) - damping * shares / (models - 1)
    scores = np.linalg.solve(step, (1.0 - damping) * base / base.sum())
    return ranked(scores, method, return_scores)


@overload
def rank_centrality(
    R: ByName,
    method: TieMethod = ...,
    return_scores: bool = ...,
    tie_handling: TieHandling = ...,
    smoothing: float = ...,
    teleport: float = ...,
    max_iter: int = ...,
    tol: float = ...,
) -> NamedRanking: ...


@overload
def rank_centrality(
    R: ArrayLike,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    tie_handling: TieHandling = ...,
    smoothing: float = ...,
    teleport: float = ...,
    max_iter: int = ...,
    tol: float = ...,
) -> ScoredRanks: ...


@overload
def rank_centrality(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    tie_handling: TieHandling = ...,
    smoothing: float = ...,
    teleport: float = ...,
    max_iter: int = ...,
    tol: float = ...,
) -> Ranks: ...


@overload
def rank_centrality(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    tie_handling: TieHandling = ...,
    smoothing: float = ...,
    teleport: float = ...,
    max_iter: int = ...,
    tol: float = ...,
) -> Ranks | ScoredRanks: ...


@keeps_names
def rank_centrality(
    R: Outcomes,
    method: TieMethod = "competition",
    return_scores: bool = False,
    tie_handling: TieHandling = "half",
    smoothing: float = 0.0,
    teleport: float = 0.0,
    max_iter: int = 10000,
    tol: float = 1e-12,
) -> Ranking:
    r"""Rank models by the stationary distribution of a random walk towards winners [1]_.

    From model i the chain moves to j with probability :math:`\hat P_{ji} / d_{max}`, the share of comparisons
    that j wins against i over the largest number of opponents. Solved exactly: O(L³).

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.
    tie_handling : {'half', 'ignore'}
        Ties count half a win for each side, or are left out.
    smoothing : float
        Wins added to each direction of each pair, at least 0.
    teleport : float
        Probability of a jump to a uniformly drawn model, in [0, 1).
    max_iter, tol : int, float
        Accepted for compatibility; nothing is iterated.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Negahban, Oh and Shah (2017). Rank Centrality: Ranking from Pairwise Comparisons. Operations
       Research 65, 266-287.

    Examples
    --------
    >>> rank_centrality([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    one_of("tie_handling", tie_handling, get_args(TieHandling))
    if finite("smoothing", smoothing) < 0.0:
        raise ValueError(f"smoothing must be at least 0; got {smoothing!r}")
    if not 0.0 <= finite("teleport", teleport) < 1.0:
        raise ValueError(f"teleport must be in [0, 1); got {teleport!r}")
    whole("max_iter", max_iter), positive("tol", tol)
    wins, ties = pair_counts(R)
    models = len(wins)
    wins = wins + (0.5 * ties if tie_handling == "half" else 0.0) + smoothing
    np.fill_diagonal(wins, 0.0)
    compared = wins + wins.T
    beaten = np.divide(wins.T, compared, out=np.zeros((models, models)), where=compared > 0)
    if tie_handling == "ignore" and smoothing == teleport == 0.0:
        require_connected(beaten, "rank_centrality")
    opponents = max(1, int((compared > 0).sum(1).max()))
    chain = beaten / opponents
    np.fill_diagonal(chain, 1.0 - chain.sum(1))
    chain = (1.0 - teleport) * chain + teleport / models
    # One balance equation follows from the others and gives way to that of the sum.
    system = np.vstack([(np.eye(models) - chain).T[:-1], np.ones(models)])
    scores = np.linalg.solve(system, np.append(np.zeros(models - 1), 1.0))
    return ranked(np.maximum(scores, 0.0), method, return_scores)


def _numbers(teleport: ArrayLike, models: int) -> Floats:
    weights = numbers("teleport", teleport, "one weight a model", models, least=0.0)
    if not weights.any():
        raise ValueError("teleport must have a weight above 0")
    return weights
