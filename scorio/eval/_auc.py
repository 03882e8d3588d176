"""AUC@K: the mean of Pass@1 .. Pass@k."""

from __future__ import annotations

from numpy.typing import ArrayLike

from . import _kernels
from ._arguments import positive
from ._inputs import Missing, read_binary
from ._interval import credible_interval

__all__ = ["auc_at_k", "auc_at_k_ci"]


def auc_at_k(
    R: ArrayLike | None,
    k: int,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""AUC@K: area under the Pass@j curve from 1 to `k`, by the trapezoidal rule and scaled to [0, 1].

    Parameters
    ----------
    R, counts, missing, question_weights
        As in `pass_at_k`.
    k : int
        Largest number of draws, ``1 <= k <= N``; ``k = 1`` is Pass@1.

    Returns
    -------
    float
        Mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        As `pass_at_k`.

    Notes
    -----
    For ``k > 1``, :math:`\frac{1}{k - 1} \sum_{j=1}^{k-1} \frac{\mathrm{Pass@}j + \mathrm{Pass@}(j + 1)}{2}`
    [1]_. The sum telescopes: :math:`\sum_{j=0}^{k} \binom{m}{j} / \binom{n}{j} = \frac{n + 1}{n + 1 - m}
    \bigl(1 - \binom{m}{k + 1} / \binom{n + 1}{k + 1}\bigr)`, so the cost does not grow with `k`.

    References
    ----------
    .. [1] Hu et al. (2026). Rewarding the Rare: Uniqueness-Aware RL for Creative Problem Solving in LLMs.
       arXiv:2601.08763.

    Examples
    --------
    >>> from scorio.eval import auc_at_k
    >>> round(auc_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.9
    """
    trials = read_binary(R, counts, missing, question_weights)
    return float(_kernels.auc_at_k(trials.correct, trials.n, trials.draws(k), trials.question_weights))


def auc_at_k_ci(
    R: ArrayLike | None,
    k: int,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    alpha0: float = 1.0,
    beta0: float = 1.0,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> tuple[float, float, float, float]:
    r"""Posterior summary of AUC@K on new trials of each question.

    Parameters
    ----------
    R, k, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `pass_at_k_ci`.

    Notes
    -----
    As `pass_at_k_ci` with the trapezoidal mean over j of :math:`1 - (1 - p)^j` in place of :math:`g(p)`.

    Examples
    --------
    >>> from scorio.eval import auc_at_k_ci
    >>> mu, sigma, lo, hi = auc_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)
    >>> round(mu, 6), round(sigma, 6)
    (0.809524, 0.09506)
    """
    trials = read_binary(R, counts, missing, question_weights)
    mu, sigma = _kernels.auc_at_k_posterior(
        trials.correct,
        trials.n,
        trials.budget(k),
        positive("alpha0", alpha0),
        positive("beta0", beta0),
        trials.question_weights,
    )
    return credible_interval(mu, sigma, confidence, bounds)
