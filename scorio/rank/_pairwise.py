"""Rankings by strengths fitted to paired comparisons: Bradley-Terry and its relatives.

Model i beats model j in a trial if i is right and j is wrong; if both are right or both wrong they tie.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import finite, positive
from scorio._named import Outcomes
from scorio.arrays import Floats, product
from scorio.eval._inputs import Missing, read_observed
from scorio.rank._fitting import (
    Derivatives,
    Prior,
    UniformPrior,
    convex_minimum,
    read_prior_penalty,
    require_connected,
)
from scorio.rank._ranked import ByName, Marked, NamedRanking, Ranking, ScoredRanks, fitted, keeps_names
from scorio.rank._ties import Ranks, TieMethod


def pair_counts(R: Outcomes, missing: Missing = None) -> tuple[Floats, Floats]:
    """Return wins[i, j], where i is right and j wrong, and ties[i, j], of trials that both made, (L, L)."""
    outcomes, absent = read_observed(R, missing)
    right = outcomes.reshape(len(outcomes), -1).astype(np.float64)
    if absent is None:
        wins = product(right, (1.0 - right).T)
        ties = right.shape[1] - wins - wins.T
    else:
        made = 1.0 - absent.reshape(right.shape)
        wins = product(right, (made - right).T)
        ties = product(made, made.T) - wins - wins.T
    np.fill_diagonal(ties, 0.0)
    return wins, ties


def _threshold(wins: Floats, kappa: float, prior: Prior, max_iter: int, name: str) -> Floats:
    """Centred log-strengths under P(i beats j) = pi_i / (pi_i + kappa pi_j)."""
    if isinstance(prior, UniformPrior):
        if not wins.any():
            return np.zeros(len(wins))
        require_connected(wins, name)
    handicap = np.log(kappa)

    def likelihood(theta: Floats) -> Derivatives:
        behind = theta + handicap - theta[:, None]
        chance = np.exp(-np.logaddexp(0.0, -behind))
        lost = wins * chance
        value = float((wins * np.logaddexp(0.0, behind)).sum())
        return Derivatives(value, lost.sum(0) - lost.sum(1), _of_pairs(lost * (1.0 - chance)))

    start = np.log(wins.sum(1) + 0.5) - np.log(wins.sum(0) + 0.5)
    theta = convex_minimum(likelihood, start, prior, len(wins), max_iter, name)
    return np.asarray(theta - theta.mean())


def _of_pairs(curvature: Floats) -> Floats:
    """Return the second derivatives by models' strengths from those by the leads of row over column."""
    both = curvature + curvature.T
    return np.diag(both.sum(axis=1)) - both


def _davidson(wins: Floats, ties: Floats, prior: Prior, max_iter: int, name: str) -> Floats:
    """Centred log-strengths under Davidson's model, the tie parameter fitted with them."""
    models = len(wins)
    if not (wins.any() and ties.any()):
        return _threshold(wins, 1.0, prior, max_iter, name)
    if isinstance(prior, UniformPrior):
        require_connected(wins + ties, name)
    pairs = wins + wins.T + ties

    def likelihood(x: Floats) -> Derivatives:
        theta = x[:-1]
        log_nu = x[-1]
        gap = theta[:, None] - theta
        # Derivatives of the denominator relative to sqrt(pi_i pi_j): the winner i, the winner j, the tie.
        denominator = np.logaddexp(np.logaddexp(gap / 2.0, -gap / 2.0), log_nu)
        first = np.exp(gap / 2.0 - denominator)
        tie = np.exp(log_nu - denominator)
        lead = (first - first.T) / 2.0
        tied = pairs * tie
        value = (pairs * denominator).sum() / 2.0 - (wins * gap).sum() / 2.0 - ties.sum() / 2.0 * log_nu
        slope = (pairs * lead).sum(1) - 0.5 * (wins - wins.T).sum(1)
        curvature = np.empty((models + 1, models + 1))
        curvature[:-1, :-1] = _of_pairs(pairs * ((1.0 - tie) / 4.0 - lead**2) / 2.0)
        curvature[-1, :-1] = curvature[:-1, -1] = -(tied * lead).sum(1)
        curvature[-1, -1] = (tied * (1.0 - tie)).sum() / 2.0
        return Derivatives(float(value), np.append(slope, (tied.sum() - ties.sum()) / 2.0), curvature)

    start = np.append(np.log(wins.sum(1) + 0.5) - np.log(wins.sum(0) + 0.5), 0.0)
    theta = convex_minimum(likelihood, start, prior, models, max_iter, name)[:-1]
    return np.asarray(theta - theta.mean())


@overload
def bradley_terry(
    R: ByName,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def bradley_terry(
    R: ArrayLike,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def bradley_terry(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def bradley_terry(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks: ...


@keeps_names
def bradley_terry(
    R: Outcomes,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    *,
    missing: Missing = None,
) -> Ranking:
    r"""Rank models by Bradley-Terry strengths of maximum likelihood [1]_.

    :math:`P(i \succ j) = \pi_i / (\pi_i + \pi_j)`; ties are left out. Scores are the strengths, with
    geometric mean 1. Comparisons are taken as independent, although all pairs share a model's trials. A
    finite solution needs a chain of wins from every model to every other. Cost: O(L²) an iteration.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    max_iter : int
        Largest number of iterations; RuntimeError if the fit has not converged by then.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Bradley and Terry (1952). Rank analysis of incomplete block designs. Biometrika 39, 324-345.

    Examples
    --------
    >>> ranks, strengths = bradley_terry([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]], return_scores=True)
    >>> ranks, strengths.round(4)
    (array([1, 2, 2]), array([1.5874, 0.7937, 0.7937]))
    """
    wins = pair_counts(R, missing)[0]
    theta = _threshold(wins, 1.0, UniformPrior(), max_iter, "bradley_terry")
    return fitted(theta, np.exp(theta), method, return_scores)


@overload
def bradley_terry_map(
    R: ByName,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def bradley_terry_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def bradley_terry_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def bradley_terry_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks: ...


@keeps_names
def bradley_terry_map(
    R: Outcomes,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    *,
    missing: Missing = None,
) -> Ranking:
    """Rank models by Bradley-Terry strengths with a prior of their logarithms (maximum a posteriori).

    As :func:`bradley_terry`, finite for all outcomes.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    prior : float or object with a ``penalty(theta)`` method
        Variance of a normal prior around 0 of the centred log-strengths, or a prior such as
        :class:`GaussianPrior`, :class:`LaplacePrior`, :class:`CauchyPrior` or :class:`EmpiricalPrior`.
    max_iter
        As in :func:`bradley_terry`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> bradley_terry_map([[1, 1, 1], [0, 1, 0], [0, 0, 0]])
    array([1, 2, 3])
    """
    wins = pair_counts(R, missing)[0]
    theta = _threshold(wins, 1.0, read_prior_penalty(prior), max_iter, "bradley_terry")
    return fitted(theta, np.exp(theta), method, return_scores)


@overload
def bradley_terry_davidson(
    R: ByName,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def bradley_terry_davidson(
    R: ArrayLike,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def bradley_terry_davidson(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def bradley_terry_davidson(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks: ...


@keeps_names
def bradley_terry_davidson(
    R: Outcomes,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    *,
    missing: Missing = None,
) -> Ranking:
    r"""Rank models by Davidson's extension of Bradley-Terry to ties [1]_.

    :math:`P(i \sim j) = \nu \sqrt{\pi_i \pi_j} / (\pi_i + \pi_j + \nu \sqrt{\pi_i \pi_j})`, the tie parameter
    ν fitted with the strengths. Cost: O(L²) an iteration.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    max_iter
        As in :func:`bradley_terry`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Davidson (1970). On extending the Bradley-Terry model to accommodate ties in paired comparison
       experiments. Journal of the American Statistical Association 65, 317-328.

    Examples
    --------
    >>> bradley_terry_davidson([[[1, 1], [1, 0]], [[1, 0], [0, 0]]])
    array([1, 2])
    """
    wins, ties = pair_counts(R, missing)
    theta = _davidson(wins, ties, UniformPrior(), max_iter, "bradley_terry_davidson")
    return fitted(theta, np.exp(theta), method, return_scores)


@overload
def bradley_terry_davidson_map(
    R: ByName,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def bradley_terry_davidson_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def bradley_terry_davidson_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def bradley_terry_davidson_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks: ...


@keeps_names
def bradley_terry_davidson_map(
    R: Outcomes,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    *,
    missing: Missing = None,
) -> Ranking:
    """Rank models by :func:`bradley_terry_davidson` with a prior of the log-strengths.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    prior
        As in :func:`bradley_terry_map`.
    max_iter
        As in :func:`bradley_terry`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> bradley_terry_davidson_map([[[1, 1], [1, 0]], [[1, 0], [0, 0]]], prior=2.0)
    array([1, 2])
    """
    wins, ties = pair_counts(R, missing)
    theta = _davidson(wins, ties, read_prior_penalty(prior), max_iter, "bradley_terry_davidson")
    return fitted(theta, np.exp(theta), method, return_scores)


@overload
def rao_kupper(
    R: ByName,
    tie_strength: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def rao_kupper(
    R: ArrayLike,
    tie_strength: float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def rao_kupper(
    R: ArrayLike,
    tie_strength: float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def rao_kupper(
    R: ArrayLike,
    tie_strength: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks: ...


@keeps_names
def rao_kupper(
    R: Outcomes,
    tie_strength: float = 1.1,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    *,
    missing: Missing = None,
) -> Ranking:
    r"""Rank models by the Rao-Kupper model of ties with a given threshold [1]_.

    :math:`P(i \succ j) = \pi_i / (\pi_i + \kappa \pi_j)`, and a tie otherwise. Cost: O(L²) an iteration.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    tie_strength : float
        κ, at least 1; with 1 ties are left out (:func:`bradley_terry`).
    max_iter
        As in :func:`bradley_terry`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Rao and Kupper (1967). Ties in paired-comparison experiments. Journal of the American Statistical
       Association 62, 194-204.

    Examples
    --------
    >>> rao_kupper([[[1, 1], [1, 0]], [[1, 0], [0, 0]]])
    array([1, 2])
    """
    wins, ties = pair_counts(R, missing)
    theta = _rao_kupper(wins, ties, tie_strength, UniformPrior(), max_iter)
    return fitted(theta, np.exp(theta), method, return_scores)


@overload
def rao_kupper_map(
    R: ByName,
    tie_strength: float = ...,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def rao_kupper_map(
    R: ArrayLike,
    tie_strength: float = ...,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def rao_kupper_map(
    R: ArrayLike,
    tie_strength: float = ...,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def rao_kupper_map(
    R: ArrayLike,
    tie_strength: float = ...,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks: ...


@keeps_names
def rao_kupper_map(
    R: Outcomes,
    tie_strength: float = 1.1,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    *,
    missing: Missing = None,
) -> Ranking:
    """Rank models by :func:`rao_kupper` with a prior of the log-strengths.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    tie_strength : float
        κ, at least 1; with 1 ties are left out.
    prior
        As in :func:`bradley_terry_map`.
    max_iter
        As in :func:`bradley_terry`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> rao_kupper_map([[[1, 1], [1, 0]], [[1, 0], [0, 0]]], prior=0.5)
    array([1, 2])
    """
    wins, ties = pair_counts(R, missing)
    theta = _rao_kupper(wins, ties, tie_strength, read_prior_penalty(prior), max_iter)
    return fitted(theta, np.exp(theta), method, return_scores)


def _rao_kupper(wins: Floats, ties: Floats, tie_strength: Any, prior: Prior, max_iter: int) -> Floats:
    kappa = finite("tie_strength", tie_strength)
    if kappa < 1.0:
        raise ValueError(f"tie_strength must be at least 1; got {tie_strength!r}")
    # A tie is a pair of which neither beats the other: it contributes the factors of both wins.
    if kappa == 1.0 or not wins.any():
        counted = wins
    else:
        counted = wins + ties
    return _threshold(counted, kappa, prior, max_iter, "rao_kupper")


@overload
def plackett_luce(
    R: ByName,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    tol: float = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def plackett_luce(
    R: ArrayLike,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    tol: float = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def plackett_luce(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    tol: float = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def plackett_luce(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    tol: float = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks: ...


@keeps_names
def plackett_luce(
    R: Outcomes,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 10000,
    tol: float = 1e-08,
    *,
    missing: Missing = None,
) -> Ranking:
    """Rank models by Plackett-Luce strengths of the decisive pairs [1]_.

    Outcomes 0 and 1 have no more order than pairs have, so these are :func:`bradley_terry` strengths, with
    sum 1. Cost: O(L²) an iteration.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    tol : float
        Accepted for compatibility; the solution is exact to rounding.
    max_iter
        As in :func:`bradley_terry`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

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
    theta = _threshold(pair_counts(R, missing)[0], 1.0, UniformPrior(), max_iter, "plackett_luce")
    strengths = np.exp(theta - theta.max())
    return fitted(theta, strengths / strengths.sum(), method, return_scores)


@overload
def plackett_luce_map(
    R: ByName,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def plackett_luce_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def plackett_luce_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def plackett_luce_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks: ...


@keeps_names
def plackett_luce_map(
    R: Outcomes,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    *,
    missing: Missing = None,
) -> Ranking:
    """Rank models by Plackett-Luce strengths with a prior: :func:`bradley_terry_map`.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    prior
        As in :func:`bradley_terry_map`.
    max_iter
        As in :func:`bradley_terry`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> plackett_luce_map([[1, 1, 1], [0, 1, 0], [0, 0, 0]])
    array([1, 2, 3])
    """
    wins = pair_counts(R, missing)[0]
    theta = _threshold(wins, 1.0, read_prior_penalty(prior), max_iter, "plackett_luce")
    return fitted(theta, np.exp(theta), method, return_scores)
