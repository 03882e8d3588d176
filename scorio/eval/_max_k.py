"""Max@k: the best reward among k trials."""

from numpy.typing import ArrayLike

from scorio._arguments import resamples

from ._inputs import Missing, read_categories, read_prior
from ._interval import Interval, credible_interval
from ._kernels import _categories


def max_at_k(
    R: ArrayLike | None,
    k: int,
    w: ArrayLike | None = None,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""Max@k: expected best reward among `k` of a question's trials, drawn at random.

    Parameters
    ----------
    R : array_like of int, shape (M, N) or (N,)
        Categories ``0..C``; None with `counts`.
    k : int
        Trials to draw, ``1 <= k <= N``.
    w : array_like of float, shape (C + 1,), optional
        Reward of each category, in any order; by default `R` is binary with rewards 0 and 1, which is Pass@k.
    counts, missing, question_weights
        Unequal trial counts and question weights, see `scorio.eval`; every question has at least `k` trials.

    Returns
    -------
    float
        Mean over questions.

    Raises
    ------
    ValueError
        Outcomes that are no integers or have no reward, non-finite rewards; `k` no integer or out of range.

    See Also
    --------
    max_at_k_ci : Posterior summary for new trials.

    Notes
    -----
    With a question's rewards in order, :math:`g_1 \le \dots \le g_n`, the unbiased estimator is
    :math:`\binom{n}{k}^{-1} \sum_{i=k}^{n} \binom{i - 1}{k - 1} g_i` [1]_. Summed by parts over the distinct
    rewards :math:`r_1 < \dots < r_L` it is :math:`r_L - \sum_{\ell < L} (r_{\ell + 1} - r_\ell)
    \binom{m_\ell}{k} / \binom{n}{k}`, where :math:`m_\ell` trials have a reward of at most :math:`r_\ell`.

    References
    ----------
    .. [1] Bagirov et al. (2025). The Best of N Worlds: Aligning Reinforcement Learning with Best-of-N
       Sampling via max@k Optimization. arXiv:2510.23393, Appendix C.1.

    Examples
    --------
    >>> from scorio.eval import max_at_k
    >>> round(max_at_k([[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]], 2, w=[0.0, 0.5, 1.0]), 6)
    0.85
    """
    trials = read_categories(R, w, counts, missing, question_weights)
    k = trials.draws(k)
    return float(_categories.max_at_k(trials.counts, k, trials.w, trials.question_weights))


def max_at_k_ci(
    R: ArrayLike | None,
    k: int,
    w: ArrayLike | None = None,
    R0: ArrayLike | None = None,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    prior_counts: ArrayLike | None = None,
    question_weights: ArrayLike | None = None,
) -> Interval:
    r"""Posterior summary of the expected best reward of `k` new trials of each question.

    Parameters
    ----------
    R, w, R0, counts, missing, prior_counts, question_weights
        As in `bayes`.
    k : int
        New trials, any ``k >= 1``; ``k = 1`` has the mean and the deviation of `bayes_ci`.
    confidence : float, default 0.95
        Credibility level of the interval, in (0, 1).
    bounds : (float, float), optional
        The interval is clipped to these; by default to the smallest and largest reward.

    Returns
    -------
    mu, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `bayes`; `k` no integer or below 1, `confidence` outside (0, 1), `bounds` out of order.

    Notes
    -----
    With a Dirichlet(1, ..., 1) prior as in `bayes` and :math:`A_{q\ell}` the probability of a reward of at
    most :math:`r_\ell`, the latent target is :math:`g_q = r_L - \sum_{\ell < L} (r_{\ell + 1} - r_\ell)
    A_{q\ell}^k`. The cumulative sums are Beta variables with :math:`A_{q\ell} / A_{qm}` independent of
    :math:`A_{qm}` for :math:`\ell < m`, which gives :math:`\mathrm{Cov}(A_\ell^k, A_m^k) =
    \mathrm{E}[A_\ell^k] \, \mathrm{Var}(A_m^k) / \mathrm{E}[A_m^k]` in closed form.

    Examples
    --------
    >>> from scorio.eval import max_at_k_ci
    >>> mu, sigma, lo, hi = max_at_k_ci([[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]], 2, w=[0.0, 0.5, 1.0])
    >>> round(mu, 6), round(sigma, 6), round(lo, 4), round(hi, 4)
    (0.75, 0.08812, 0.5773, 0.9227)
    """
    trials = read_categories(R, w, counts, missing, question_weights)
    prior = read_prior(R0, prior_counts, trials, missing)
    mu, sigma = _categories.max_at_k_posterior(
        trials.counts, resamples(k), trials.w, prior, trials.question_weights
    )
    if bounds is None:
        bounds = float(trials.w.min()), float(trials.w.max())
    return credible_interval(mu, sigma, confidence, bounds)
