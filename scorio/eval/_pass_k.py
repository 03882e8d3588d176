"""Pass@k and Pass^k."""

from __future__ import annotations

from numpy.typing import ArrayLike

from . import _kernels
from ._arguments import positive
from ._inputs import Missing, read_binary
from ._interval import credible_interval

__all__ = [
    "pass_at_k",
    "pass_at_k_ci",
    "pass_hat_k",
    "pass_hat_k_ci",
    "unanimous_at_k",
    "unanimous_at_k_ci",
]


def pass_at_k(
    R: ArrayLike | None,
    k: int,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""Pass@k: probability that at least one of `k` of a question's trials, drawn at random, is correct.

    Parameters
    ----------
    R : array_like of int, shape (M, N) or (N,)
        Outcomes 0 and 1; None with `counts`.
    k : int
        Trials to draw, ``1 <= k <= N``.
    counts, missing, question_weights
        Unequal trial counts and question weights, see `scorio.eval`; every question has at least `k` trials.

    Returns
    -------
    float
        Mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        Outcomes other than 0 and 1; `k` no integer or out of range.

    See Also
    --------
    pass_at_k_ci : Posterior summary for new trials.

    Notes
    -----
    With :math:`c_q` correct among :math:`n_q` trials, :math:`1 - \binom{n_q - c_q}{k} / \binom{n_q}{k}` [1]_.

    References
    ----------
    .. [1] Chen et al. (2021). Evaluating Large Language Models Trained on Code. arXiv:2107.03374.

    Examples
    --------
    >>> from scorio.eval import pass_at_k
    >>> round(pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.95
    """
    trials = read_binary(R, counts, missing, question_weights)
    return float(_kernels.pass_at_k(trials.correct, trials.n, trials.draws(k), trials.question_weights))


def pass_hat_k(
    R: ArrayLike | None,
    k: int,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""Pass^k: probability that all of `k` of a question's trials, drawn at random, are correct.

    Also under the names `unanimous_at_k` and `g_pass_at_k`.

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
    pass_hat_k_ci : Posterior summary for new trials.

    Notes
    -----
    With :math:`c_q` correct among :math:`n_q` trials, :math:`\binom{c_q}{k} / \binom{n_q}{k}` [1]_.

    References
    ----------
    .. [1] Yao, Shinn, Razavi & Narasimhan (2024). tau-bench: A Benchmark for Tool-Agent-User Interaction in
       Real-World Domains. arXiv:2406.12045.

    Examples
    --------
    >>> from scorio.eval import pass_hat_k
    >>> round(pass_hat_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.45
    """
    trials = read_binary(R, counts, missing, question_weights)
    return float(_kernels.pass_hat_k(trials.correct, trials.n, trials.draws(k), trials.question_weights))


def pass_at_k_ci(
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
    r"""Posterior summary of Pass@k on `k` new trials of each question.

    Parameters
    ----------
    R, counts, missing, question_weights
        As in `pass_at_k`.
    k : int
        New trials, ``1 <= k <= N``; N is the largest number of trials of any question.
    confidence : float, default 0.95
        Credibility level of the interval, in (0, 1).
    bounds : (float, float) or None, default (0, 1)
        The interval is clipped to these.
    alpha0, beta0 : float, default 1
        Parameters of the Beta prior of a question's probability of success, positive.

    Returns
    -------
    mu, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `pass_at_k`; `confidence`, `bounds`, `alpha0` or `beta0` out of range.

    Notes
    -----
    With :math:`p_q \sim \mathrm{Beta}(\alpha_q, \beta_q)`, :math:`\alpha_q = \alpha_0 + c_q`,
    :math:`\beta_q = \beta_0 + n_q - c_q`, the metric is :math:`g(p_q) = 1 - (1 - p_q)^k` and

    .. math:: \mu = \sum_q \omega_q \mathrm{E}[g(p_q)], \qquad
              \sigma^2 = \sum_q \omega_q^2 \mathrm{Var}[g(p_q)], \qquad
              \mathrm{E}[g(p_q)] = 1 - \frac{B(\alpha_q, \beta_q + k)}{B(\alpha_q, \beta_q)}.

    The variance is evaluated as a square times a sum of positive terms, not as a difference of moments.

    Examples
    --------
    >>> from scorio.eval import pass_at_k_ci
    >>> mu, sigma, lo, hi = pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)
    >>> round(mu, 6), round(sigma, 6), round(lo, 4), round(hi, 4)
    (0.839286, 0.097263, 0.6487, 1.0)
    """
    trials = read_binary(R, counts, missing, question_weights)
    mu, sigma = _kernels.pass_at_k_posterior(
        trials.correct,
        trials.n,
        trials.budget(k),
        positive("alpha0", alpha0),
        positive("beta0", beta0),
        trials.question_weights,
    )
    return credible_interval(mu, sigma, confidence, bounds)


def pass_hat_k_ci(
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
    r"""Posterior summary of Pass^k on `k` new trials of each question.

    Also under the names `unanimous_at_k_ci` and `g_pass_at_k_ci`.

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
    As `pass_at_k_ci` with :math:`g(p) = p^k`, :math:`\mathrm{E}[g(p_q)] = B(\alpha_q + k, \beta_q) /
    B(\alpha_q, \beta_q)`.

    Examples
    --------
    >>> from scorio.eval import pass_hat_k_ci
    >>> mu, sigma, lo, hi = pass_hat_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)
    >>> round(mu, 6), round(sigma, 6), round(lo, 4), round(hi, 4)
    (0.446429, 0.146167, 0.1599, 0.7329)
    """
    trials = read_binary(R, counts, missing, question_weights)
    mu, sigma = _kernels.pass_hat_k_posterior(
        trials.correct,
        trials.n,
        trials.budget(k),
        positive("alpha0", alpha0),
        positive("beta0", beta0),
        trials.question_weights,
    )
    return credible_interval(mu, sigma, confidence, bounds)


unanimous_at_k = pass_hat_k
unanimous_at_k_ci = pass_hat_k_ci
