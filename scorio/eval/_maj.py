"""Maj@k: strict majority of correct trials."""

from __future__ import annotations

from numpy.typing import ArrayLike

from . import _kernels
from ._arguments import positive
from ._inputs import Missing, read_binary
from ._interval import credible_interval

__all__ = ["maj_at_k", "maj_at_k_ci"]


def maj_at_k(
    R: ArrayLike | None,
    k: int,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""Maj@k: probability that more than half of `k` of a question's trials, drawn at random, are correct.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.

    Returns
    -------
    float
        Mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        As `pass_at_k`.

    See Also
    --------
    g_pass_at_k_tau : The same with a threshold of ``tau = (k // 2 + 1) / k``.

    Notes
    -----
    The number X of correct trials among the `k` is hypergeometric; :math:`P(X \ge \lfloor k / 2 \rfloor +
    1)`. It stands in for majority voting where the answers themselves are not known.

    Examples
    --------
    >>> from scorio.eval import maj_at_k
    >>> round(maj_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.85
    """
    trials = read_binary(R, counts, missing, question_weights)
    return float(_kernels.maj_at_k(trials.correct, trials.n, trials.draws(k), trials.question_weights))


def maj_at_k_ci(
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
    r"""Posterior summary of Maj@k on `k` new trials of each question.

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
    As `pass_at_k_ci` with :math:`g(p) = P(X \ge \lfloor k / 2 \rfloor + 1)`, X binomial with parameters k and
    p.

    Examples
    --------
    >>> from scorio.eval import maj_at_k_ci
    >>> mu, sigma, lo, hi = maj_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)
    >>> round(mu, 6), round(sigma, 6), round(lo, 4), round(hi, 4)
    (0.684524, 0.151958, 0.3867, 0.9824)
    """
    trials = read_binary(R, counts, missing, question_weights)
    mu, sigma = _kernels.maj_at_k_posterior(
        trials.correct,
        trials.n,
        trials.budget(k),
        positive("alpha0", alpha0),
        positive("beta0", beta0),
        trials.question_weights,
    )
    return credible_interval(mu, sigma, confidence, bounds)
