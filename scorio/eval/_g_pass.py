"""G-Pass@k, G-Pass@k_tau and mG-Pass@k."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ._arguments import beta_prior, unit
from ._inputs import Missing, read_binary
from ._interval import credible_interval
from ._kernels import _bank_metrics, _posteriors


def g_pass_at_k_tau(
    R: ArrayLike | None,
    k: int,
    tau: float,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""G-Pass@k_tau: probability that at least a share `tau` of `k` of a question's trials is correct.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.
    tau : float
        Share in [0, 1] of the `k` trials that is to be correct. 0 is Pass@k (at least one), 1 is Pass^k.

    Returns
    -------
    float
        Mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        As `pass_at_k`; `tau` outside [0, 1].

    Notes
    -----
    The number X of correct trials among the `k` is hypergeometric; :math:`P(X \ge j_0)` with :math:`j_0 =
    \max(1, \lceil \tau k \rceil)` [1]_, the smallest j with ``j / k >= tau`` in double precision. (The
    product would ask for 12 of 20 trials at ``tau = 0.55``, because ``0.55 * 20`` rounds to more than 11.)

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> from scorio.eval import g_pass_at_k_tau
    >>> R = [[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]]
    >>> round(g_pass_at_k_tau(R, 2, 0.5), 6), round(g_pass_at_k_tau(R, 2, 1.0), 6)
    (0.95, 0.45)
    """
    trials = read_binary(R, counts, missing, question_weights)
    k = trials.draws(k)
    return float(_bank_metrics.g_pass_at_k_tau(trials, k, unit("tau", tau)))


def g_pass_at_k_tau_ci(
    R: ArrayLike | None,
    k: int,
    tau: float,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    alpha0: float = 1.0,
    beta0: float = 1.0,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> tuple[float, float, float, float]:
    r"""Posterior summary of G-Pass@k_tau on `k` new trials of each question.

    Parameters
    ----------
    R, k, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.
    tau : float
        As in `g_pass_at_k_tau`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `pass_at_k_ci`; `tau` outside [0, 1].

    Notes
    -----
    As `pass_at_k_ci` with :math:`g(p) = P(X \ge j_0)`, X binomial with parameters k and p.

    Examples
    --------
    >>> from scorio.eval import g_pass_at_k_tau_ci
    >>> mu, sigma, lo, hi = g_pass_at_k_tau_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3, 0.5)
    >>> round(mu, 6), round(sigma, 6)
    (0.684524, 0.151958)
    """
    trials = read_binary(R, counts, missing, question_weights)
    mu, sigma = _posteriors.g_pass_at_k_tau_posterior(
        trials, trials.budget(k), unit("tau", tau), beta_prior(alpha0, beta0)
    )
    return credible_interval(mu, sigma, confidence, bounds)
