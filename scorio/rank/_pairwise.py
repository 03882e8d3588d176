"""Rankings from paired comparisons on the same question and trial: Bradley-Terry and its relatives.

Model i beats model j in a trial where i is right and j is wrong; where both are right or both wrong they tie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.eval._arguments import finite, numbers, positive, whole
from scorio.eval._inputs import read_outcomes
from scorio.rank._priors import GaussianPrior, Prior, UniformPrior, read_prior_penalty
from scorio.rank._ranked import Ranking, documented, fitted, ranked
from scorio.rank._ties import TieMethod

__all__ = [
    "bradley_terry",
    "bradley_terry_davidson",
    "bradley_terry_davidson_map",
    "bradley_terry_map",
    "elo",
    "pagerank",
    "plackett_luce",
    "plackett_luce_map",
    "rank_centrality",
    "rao_kupper",
    "rao_kupper_map",
]

Matrix: TypeAlias = NDArray[np.float64]
Objective: TypeAlias = Callable[[Matrix], tuple[float, Matrix]]
DrawHandling = Literal["skip", "draw", "correct_draw_only"]
TieHandling = Literal["half", "ignore"]


def pair_counts(R: ArrayLike) -> tuple[Matrix, Matrix]:
    """Return wins[i, j], where i is right and j wrong, and ties[i, j], both (L, L)."""
    outcomes = read_outcomes(R)
    right = outcomes.reshape(len(outcomes), -1).astype(np.float64)
    wins = right @ (1.0 - right).T
    ties = right.shape[1] - wins - wins.T
    np.fill_diagonal(ties, 0.0)
    return wins, ties


def minimum(
    objective: Objective,
    start: Matrix,
    max_iter: int,
    method: str,
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
) -> Matrix:
    """Return the minimum of `objective` (value and gradient); ValueError where it is not reached."""
    from scipy.optimize import minimize

    scale = max(1.0, abs(objective(start)[0]))

    def scaled(x: Matrix) -> tuple[float, Matrix]:
        value, gradient = objective(x)
        return value / scale, gradient / scale

    # Bounds are those of 2PL, whose flat valleys take thousands of iterations to the last digits.
    accuracy = 1e-15 if bounds is None else 1e-12
    options: Any = {"maxiter": whole("max_iter", max_iter), "ftol": accuracy, "gtol": 1e-9}
    found = minimize(scaled, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    # A line search that cannot improve any more ends at the minimum too, without success.
    if not found.success and found.nit >= max_iter:
        raise ValueError(f"{method} has not converged in max_iter = {max_iter} iterations; allow more")
    return np.asarray(found.x)


def penalised(likelihood: Objective, prior: Prior, models: int, *, centred: bool = True) -> Objective:
    """Add the penalty of the first `models` parameters, centred or not, to minus a log-likelihood."""
    if isinstance(prior, UniformPrior):
        return likelihood

    def objective(x: Matrix) -> tuple[float, Matrix]:
        value, gradient = likelihood(x)
        theta = x[:models] - (x[:models].mean() if centred else 0.0)
        slope = _slope(prior, theta)
        added = np.zeros(x.size)
        added[:models] = slope - (slope.mean() if centred else 0.0)
        return value + prior.penalty(theta), gradient + added

    return objective


def _slope(prior: Prior, theta: Matrix) -> Matrix:
    if isinstance(prior, GaussianPrior):
        return (theta - prior.mean) / prior.var
    step = 1e-6
    moved = theta + step * np.vstack([np.eye(theta.size), -np.eye(theta.size)])
    values = np.array([prior.penalty(row) for row in moved])
    return np.asarray((values[: theta.size] - values[theta.size :]) / (2.0 * step))


def require_connected(wins: Matrix, method: str) -> None:
    """Raise ValueError where maximum likelihood has no finite solution (Ford 1957)."""
    from scipy.sparse.csgraph import connected_components

    if connected_components(wins > 0, directed=True, connection="strong")[0] > 1:
        raise ValueError(
            f"R must connect all models by wins in both directions, or {method} has no finite "
            f"maximum-likelihood solution; use {method}_map"
        )


def _threshold(wins: Matrix, kappa: float, prior: Prior, max_iter: int, name: str) -> Matrix:
    """Centred log-strengths under P(i beats j) = pi_i / (pi_i + kappa pi_j)."""
    if isinstance(prior, UniformPrior):
        if not wins.any():
            return np.zeros(len(wins))
        require_connected(wins, name)
    handicap = np.log(kappa)

    def likelihood(theta: Matrix) -> tuple[float, Matrix]:
        behind = theta + handicap - theta[:, None]
        lost = wins * np.exp(-np.logaddexp(0.0, -behind))
        return float((wins * np.logaddexp(0.0, behind)).sum()), lost.sum(0) - lost.sum(1)

    start = np.log(wins.sum(1) + 0.5) - np.log(wins.sum(0) + 0.5)
    theta = minimum(penalised(likelihood, prior, len(wins)), start, max_iter, name)
    return np.asarray(theta - theta.mean())


def _davidson(wins: Matrix, ties: Matrix, prior: Prior, max_iter: int, name: str) -> Matrix:
    """Centred log-strengths under Davidson's model, the tie parameter fitted with them."""
    models = len(wins)
    if not (wins.any() and ties.any()):
        return _threshold(wins, 1.0, prior, max_iter, name)
    if isinstance(prior, UniformPrior):
        require_connected(wins + ties, name)
    pairs = wins + wins.T + ties

    def likelihood(x: Matrix) -> tuple[float, Matrix]:
        theta, log_nu = x[:-1], x[-1]
        gap = theta[:, None] - theta
        # Terms of the denominator relative to sqrt(pi_i pi_j): the winner i, the winner j, the tie.
        denominator = np.logaddexp(np.logaddexp(gap / 2.0, -gap / 2.0), log_nu)
        first = np.exp(gap / 2.0 - denominator)
        tie = np.exp(log_nu - denominator)
        value = (pairs * denominator).sum() / 2.0 - (wins * gap).sum() / 2.0 - ties.sum() / 2.0 * log_nu
        slope = 0.5 * ((pairs * (first - first.T)).sum(1) - (wins - wins.T).sum(1))
        return float(value), np.append(slope, ((pairs * tie).sum() - ties.sum()) / 2.0)

    start = np.append(np.log(wins.sum(1) + 0.5) - np.log(wins.sum(0) + 0.5), 0.0)
    theta = minimum(penalised(likelihood, prior, models), start, max_iter, name)[:-1]
    return np.asarray(theta - theta.mean())


@documented
def bradley_terry(
    R: ArrayLike, method: TieMethod = "competition", return_scores: bool = False, max_iter: int = 500
) -> Ranking:
    r"""Rank models by Bradley-Terry strengths of maximum likelihood [1]_.

    :math:`P(i \succ j) = \pi_i / (\pi_i + \pi_j)`; ties are left out. Scores are the strengths, with
    geometric mean 1. Comparisons are taken as independent, although all pairs share a model's trials. A
    finite solution needs a chain of wins from every model to every other. Cost: O(L²) an iteration.

    References
    ----------
    .. [1] Bradley and Terry (1952). Rank analysis of incomplete block designs. Biometrika 39, 324-345.

    Examples
    --------
    >>> ranks, strengths = bradley_terry([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]], return_scores=True)
    >>> ranks, strengths.round(4)
    (array([1, 2, 2]), array([1.5874, 0.7937, 0.7937]))
    """
    theta = _threshold(pair_counts(R)[0], 1.0, UniformPrior(), max_iter, "bradley_terry")
    return fitted(theta, np.exp(theta), method, return_scores)


@documented
def bradley_terry_map(
    R: ArrayLike,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
) -> Ranking:
    """Rank models by Bradley-Terry strengths with a prior of their logarithms (maximum a posteriori).

    As :func:`bradley_terry`, finite for all outcomes.

    Examples
    --------
    >>> bradley_terry_map([[1, 1, 1], [0, 1, 0], [0, 0, 0]])
    array([1, 2, 3])
    """
    penalty = read_prior_penalty(prior)
    theta = _threshold(pair_counts(R)[0], 1.0, penalty, max_iter, "bradley_terry")
    return fitted(theta, np.exp(theta), method, return_scores)


@documented
def bradley_terry_davidson(
    R: ArrayLike, method: TieMethod = "competition", return_scores: bool = False, max_iter: int = 500
) -> Ranking:
    r"""Rank models by Davidson's extension of Bradley-Terry to ties [1]_.

    :math:`P(i \sim j) = \nu \sqrt{\pi_i \pi_j} / (\pi_i + \pi_j + \nu \sqrt{\pi_i \pi_j})`, the tie parameter
    ν fitted with the strengths. Cost: O(L²) an iteration.

    References
    ----------
    .. [1] Davidson (1970). On extending the Bradley-Terry model to accommodate ties in paired comparison
       experiments. Journal of the American Statistical Association 65, 317-328.

    Examples
    --------
    >>> bradley_terry_davidson([[[1, 1], [1, 0]], [[1, 0], [0, 0]]])
    array([1, 2])
    """
    theta = _davidson(*pair_counts(R), UniformPrior(), max_iter, "bradley_terry_davidson")
    return fitted(theta, np.exp(theta), method, return_scores)


@documented
def bradley_terry_davidson_map(
    R: ArrayLike,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
) -> Ranking:
    """Rank models by :func:`bradley_terry_davidson` with a prior of the log-strengths.

    Examples
    --------
    >>> bradley_terry_davidson_map([[[1, 1], [1, 0]], [[1, 0], [0, 0]]], prior=2.0)
    array([1, 2])
    """
    penalty = read_prior_penalty(prior)
    theta = _davidson(*pair_counts(R), penalty, max_iter, "bradley_terry_davidson")
    return fitted(theta, np.exp(theta), method, return_scores)


@documented
def rao_kupper(
    R: ArrayLike,
    tie_strength: float = 1.1,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
) -> Ranking:
    r"""Rank models by the Rao-Kupper model of ties with a given threshold [1]_.

    :math:`P(i \succ j) = \pi_i / (\pi_i + \kappa \pi_j)`, and a tie otherwise. Cost: O(L²) an iteration.

    Parameters
    ----------
    tie_strength : float
        κ, at least 1; with 1 ties are left out (:func:`bradley_terry`).

    References
    ----------
    .. [1] Rao and Kupper (1967). Ties in paired-comparison experiments. Journal of the American Statistical
       Association 62, 194-204.

    Examples
    --------
    >>> rao_kupper([[[1, 1], [1, 0]], [[1, 0], [0, 0]]])
    array([1, 2])
    """
    return _rao_kupper(R, tie_strength, UniformPrior(), method, return_scores, max_iter)


@documented
def rao_kupper_map(
    R: ArrayLike,
    tie_strength: float = 1.1,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
) -> Ranking:
    """Rank models by :func:`rao_kupper` with a prior of the log-strengths.

    Parameters
    ----------
    tie_strength : float
        κ, at least 1; with 1 ties are left out.

    Examples
    --------
    >>> rao_kupper_map([[[1, 1], [1, 0]], [[1, 0], [0, 0]]], prior=0.5)
    array([1, 2])
    """
    return _rao_kupper(R, tie_strength, read_prior_penalty(prior), method, return_scores, max_iter)


def _rao_kupper(
    R: ArrayLike, tie_strength: Any, prior: Prior, method: TieMethod, return_scores: bool, max_iter: int
) -> Ranking:
    kappa = finite("tie_strength", tie_strength)
    if kappa < 1.0:
        raise ValueError(f"tie_strength must be at least 1; got {tie_strength!r}")
    wins, ties = pair_counts(R)
    # A tie is a pair of which neither beats the other: it contributes the factors of both wins.
    counted = wins if kappa == 1.0 or not wins.any() else wins + ties
    theta = _threshold(counted, kappa, prior, max_iter, "rao_kupper")
    return fitted(theta, np.exp(theta), method, return_scores)


@documented
def plackett_luce(
    R: ArrayLike,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 10_000,
    tol: float = 1e-8,
) -> Ranking:
    """Rank models by Plackett-Luce strengths of the decisive pairs [1]_.

    Outcomes 0 and 1 have no more order than pairs have, so these are :func:`bradley_terry` strengths, with
    sum 1. Cost: O(L²) an iteration.

    Parameters
    ----------
    tol : float
        Accepted for compatibility; the solution is exact to rounding.

    References
    ----------
    .. [1] Luce (1959). Individual Choice Behavior; Plackett (1975). The analysis of permutations. Applied
       Statistics 24, 193-202; Hunter (2004). MM algorithms for generalized Bradley-Terry models. Annals of
       Statistics 32, 384-406.

    Examples
    --------
    >>> plackett_luce([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]], return_scores=True)[1].round(4)
    array([0.5 , 0.25, 0.25])
    """
    positive("tol", tol)
    theta = _threshold(pair_counts(R)[0], 1.0, UniformPrior(), max_iter, "plackett_luce")
    strengths = np.exp(theta - theta.max())
    return fitted(theta, strengths / strengths.sum(), method, return_scores)


@documented
def plackett_luce_map(
    R: ArrayLike,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
) -> Ranking:
    """Rank models by Plackett-Luce strengths with a prior: :func:`bradley_terry_map`.

    Examples
    --------
    >>> plackett_luce_map([[1, 1, 1], [0, 1, 0], [0, 0, 0]])
    array([1, 2, 3])
    """
    return bradley_terry_map(R, prior, method, return_scores, max_iter)


@documented
def elo(
    R: ArrayLike,
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
    K : float
        Step, positive.
    initial_rating : float
        Rating of every model before the first trial.
    tie_handling : {'correct_draw_only', 'draw', 'skip'}
        Which ties are draws: those of two right answers, all, or none; the other ties are left out.

    References
    ----------
    .. [1] Elo (1978). The Rating of Chessplayers, Past and Present.

    Examples
    --------
    >>> elo([[[1, 1]], [[0, 1]]], return_scores=True)[1].round(2)
    array([1514.53, 1485.47])
    """
    step, ratings_before = positive("K", K), finite("initial_rating", initial_rating)
    _one_of("tie_handling", tie_handling, ("skip", "draw", "correct_draw_only"))
    outcomes = read_outcomes(R)
    ratings = np.full(len(outcomes), ratings_before)
    for right in outcomes.transpose(2, 1, 0).reshape(-1, len(outcomes)).astype(np.float64):
        same = right == right[:, None]
        drawn = {"skip": False, "draw": True}.get(tie_handling, right > 0)
        expected = 1.0 / (1.0 + 10.0 ** ((ratings - ratings[:, None]) / 400.0))
        change = 0.5 * (1.0 + right[:, None] - right) - expected
        ratings = ratings + step * np.where(same & ~np.broadcast_to(drawn, same.shape), 0.0, change).sum(1)
    return ranked(ratings, method, return_scores)


@documented
def pagerank(
    R: ArrayLike,
    damping: float = 0.85,
    max_iter: int = 100,
    tol: float = 1e-6,
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
    damping : float
        d, in (0, 1).
    max_iter, tol : int, float
        Accepted for compatibility; nothing is iterated.
    teleport : array_like, shape (L,), optional
        Weights e, at least 0; default uniform.

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
    base = np.ones(models) if teleport is None else _numbers(teleport, models)
    shares = (wins + 0.5 * ties) / max(1.0, (wins + wins.T + ties)[0, 1])
    np.fill_diagonal(shares, 0.0)
    np.fill_diagonal(shares, shares.sum(1))
    step = np.eye(models) - damping * shares / (models - 1)
    scores = np.linalg.solve(step, (1.0 - damping) * base / base.sum())
    return ranked(scores, method, return_scores)


@documented
def rank_centrality(
    R: ArrayLike,
    method: TieMethod = "competition",
    return_scores: bool = False,
    tie_handling: TieHandling = "half",
    smoothing: float = 0.0,
    teleport: float = 0.0,
    max_iter: int = 10_000,
    tol: float = 1e-12,
) -> Ranking:
    r"""Rank models by the stationary distribution of a random walk towards winners [1]_.

    From model i the chain moves to j with probability :math:`\hat P_{ji} / d_{max}`, the share of comparisons
    that j wins against i over the largest number of opponents. Solved exactly: O(L³).

    Parameters
    ----------
    tie_handling : {'half', 'ignore'}
        Ties count half a win for each side, or are left out.
    smoothing : float
        Wins added to each direction of each pair, at least 0.
    teleport : float
        Probability of a jump to a uniformly drawn model, in [0, 1).
    max_iter, tol : int, float
        Accepted for compatibility; nothing is iterated.

    References
    ----------
    .. [1] Negahban, Oh and Shah (2017). Rank Centrality: Ranking from Pairwise Comparisons. Operations
       Research 65, 266-287.

    Examples
    --------
    >>> rank_centrality([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    _one_of("tie_handling", tie_handling, ("half", "ignore"))
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


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")


def _numbers(teleport: ArrayLike, models: int) -> Matrix:
    weights = numbers("teleport", teleport, "one weight a model", models, least=0.0)
    if not weights.any():
        raise ValueError("teleport must have a weight above 0")
    return weights
