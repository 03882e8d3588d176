"""Confidence in a ranking: pairwise z-scores, ranking confidence, and shared ranks if z is too small."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Floats, floats
from scorio.rank._ties import Ranks, TieMethod, check_method, rank_groups


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseConfidence:
    """Absolute z-scores and ranking confidences of all pairs of models.

    Parameters
    ----------
    z : float array, shape (L, L)
        Symmetric, 0 on the diagonal, infinite if two models differ and neither is uncertain.
    rho : float array, shape (L, L)
        Probability that the order of each pair by posterior mean is right; 0.5 on the diagonal.
    """

    z: Floats
    rho: Floats


def pairwise_confidence(mu: ArrayLike, sigma: ArrayLike) -> PairwiseConfidence:
    """Return z and the ranking confidence ρ of every pair of models.

    z = |μ − μ'| / √(σ² + σ'²) and ρ = ½ (1 + erf(z/√2)), taking the posteriors as normal (section 2.5
    of [1]_). Each pair is judged on its own and for one look at the data: neither the number of pairs nor
    repeated looks are accounted for.

    Parameters
    ----------
    mu, sigma : array_like, shape (L,)
        Posterior means and standard deviations, as :func:`scorio.eval.bayes` returns for each model.

    Returns
    -------
    PairwiseConfidence
        Matrices `z` and `rho`.

    Raises
    ------
    ValueError
        If shapes differ or are not 1-D, a value is not finite, or a standard deviation is negative.

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski and Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
       Language Model Evaluation. arXiv:2510.04265.

    Examples
    --------
    >>> pairs = pairwise_confidence([0.60, 0.55], [0.03, 0.04])
    >>> print(pairs.z[0, 1].round(6), pairs.rho[0, 1].round(6))
    1.0 0.841345
    """
    means, deviations = _posteriors(mu, sigma)
    z = _absolute_z(means[:, None], deviations[:, None], means, deviations)
    return PairwiseConfidence(z, ranking_confidence(z))


def ranking_confidence(z: ArrayLike) -> Floats:
    """Return ρ = ½ (1 + erf(z/√2)), the probability that a pair's order is right, for absolute z.

    Parameters
    ----------
    z : array_like
        Absolute z-scores, any shape; infinity gives 1.

    Returns
    -------
    numpy.ndarray
        Values in [0.5, 1].

    Raises
    ------
    ValueError
        If a value is negative or NaN.

    Examples
    --------
    >>> ranking_confidence([0.0, 1.645]).round(4)
    array([0.5 , 0.95])
    """
    from scipy.special import ndtr

    values = floats(z)
    if not (values >= 0).all():
        raise ValueError(f"z must be absolute z-scores, not negative; got {values[~(values >= 0)].flat[0]}")
    return floats(ndtr(values))


def rank_with_confidence(
    mu: ArrayLike,
    sigma: ArrayLike,
    confidence: float = 0.95,
    method: TieMethod = "dense",
    *,
    z: float | None = None,
) -> Ranks:
    """Rank models by posterior mean, letting neighbours share a rank that their z cannot part.

    The paper's ranking with credible intervals (section 2.9 and Table 1 of [1]_): order the means from
    highest to lowest and give two consecutive models the same rank when their absolute z-score is below
    the threshold.

    Only neighbours are compared, so a rank may span a chain of models whose ends do differ. It is a view
    of one fixed amount of data, not a decision with an error rate over all pairs or over repeated looks.

    Parameters
    ----------
    mu, sigma : array_like, shape (L,)
        Posterior means and standard deviations.
    confidence : float
        Ranking confidence ρ that parts two neighbours, in (0.5, 1); 0.95 is z = 1.645 as in the paper.
    method : {'dense', 'competition', 'competition_max', 'avg', 'ordinal'}
        Ranks of a group (:func:`rank_scores`); the paper's tables use ``dense``.
    z : float, optional
        Threshold of z itself, positive; replaces `confidence`.

    Returns
    -------
    numpy.ndarray, shape (L,)
        Ranks in the order of the input, 1 is best; int64, for ``avg`` float64.

    Raises
    ------
    ValueError
        If means and deviations are not 1-D of one length, finite and not negative, or an option is out
        of range.

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski and Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
       Language Model Evaluation. arXiv:2510.04265.

    Examples
    --------
    >>> rank_with_confidence([0.50, 0.72, 0.70], [0.02, 0.02, 0.02])
    array([2, 1, 1])
    """
    check_method(method)
    means, deviations = _posteriors(mu, sigma)
    threshold = _threshold(confidence, z)
    order = np.argsort(-means, kind="stable")
    means = means[order]
    deviations = deviations[order]
    neighbours = _absolute_z(means[:-1], deviations[:-1], means[1:], deviations[1:])
    return rank_groups(order, neighbours >= threshold, method)


def _threshold(confidence: float, z: float | None) -> float:
    if z is not None:
        if not 0 < z < np.inf:
            raise ValueError(f"z must be a positive number, got {z}")
        return z
    if not 0.5 < confidence < 1:
        raise ValueError(f"confidence must be in (0.5, 1), got {confidence}")
    from scipy.special import ndtri

    return float(ndtri(confidence))


def _absolute_z(mean: Floats, deviation: Floats, mean2: Floats, deviation2: Floats) -> Floats:
    """Return |difference| over its standard deviation: 0 for equal means, infinity without uncertainty."""
    difference = np.abs(mean - mean2)
    spread = np.hypot(deviation, deviation2)
    without = np.where(difference > 0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.divide(difference, spread, out=without, where=spread > 0)


def _posteriors(mu: ArrayLike, sigma: ArrayLike) -> tuple[Floats, Floats]:
    means = floats(mu)
    deviations = floats(sigma)
    if means.ndim != 1 or means.size == 0 or means.shape != deviations.shape:
        raise ValueError(
            "mu and sigma must be 1-D with one value per model, "
            f"got shapes {means.shape} and {deviations.shape}"
        )
    if not np.isfinite(means).all():
        raise ValueError(f"mu must be finite, got {means[~np.isfinite(means)][0]}")
    bad = ~(np.isfinite(deviations) & (deviations >= 0))
    if bad.any():
        raise ValueError(f"sigma must be finite and not negative, got {deviations[bad][0]}")
    return means, deviations
