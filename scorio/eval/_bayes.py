"""Bayes@N: posterior mean and deviation of the mean reward."""

from numpy.typing import ArrayLike

from ._inputs import Missing, read_categories, read_prior
from ._interval import Estimate, Interval, credible_interval
from ._kernels import _categories


def bayes(
    R: ArrayLike | None,
    w: ArrayLike | None = None,
    R0: ArrayLike | None = None,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    prior_counts: ArrayLike | None = None,
    question_weights: ArrayLike | None = None,
) -> Estimate:
    r"""Bayes@N: mean and standard deviation of the mean reward under a Dirichlet posterior per question.

    Parameters
    ----------
    R : array_like of int, shape (M, N) or (N,)
        Categories ``0..C``; None with `counts`.
    w : array_like of float, shape (C + 1,), optional
        Reward of each category; by default `R` is binary with rewards 0 and 1.
    R0 : array_like of int, shape (M, D), optional
        Categories of earlier trials, added to the uniform prior. One-dimensional input is one question's
        trials or, for ``M > 1``, one trial of each question.
    counts, missing, question_weights
        Unequal trial counts and question weights, see `scorio.eval`; a value of `missing` holds for `R0` too.
    prior_counts : array_like of int, shape (M, C + 1), optional
        Earlier trials of each question in each category, in place of `R0`.

    Returns
    -------
    mu, sigma : float
        Posterior mean and standard deviation.

    Raises
    ------
    ValueError
        Outcomes that are no integers or have no reward, `R0` of another number of rows, non-finite rewards.

    See Also
    --------
    bayes_ci : With a credible interval.

    Notes
    -----
    With :math:`\nu_{qk} = 1 + n_{qk} + n^0_{qk}`, :math:`T_q = \sum_k \nu_{qk}`,
    :math:`a_q = \sum_k \nu_{qk} w_k / T_q` and :math:`b_q = \sum_k \nu_{qk} w_k^2 / T_q`,

    .. math:: \mu = \sum_q \omega_q a_q, \qquad
              \sigma^2 = \sum_q \omega_q^2 \frac{b_q - a_q^2}{T_q + 1}.

    For equal counts and weights this is Eq. 15 (Appendix A) of [1]_. Questions are independent, so the form
    with a :math:`T_q` per question needs no new argument.

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski & Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
       Language Model Evaluation. ICLR 2026, arXiv:2510.04265.

    Examples
    --------
    >>> from scorio.eval import bayes
    >>> mu, sigma = bayes([[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]], w=[0.0, 0.5, 1.0])
    >>> round(mu, 6), round(sigma, 6)
    (0.5625, 0.091998)
    >>> mu, sigma = bayes(None, counts=[[2, 3], [0, 1]])
    >>> round(mu, 6), round(sigma, 6)
    (0.619048, 0.146772)
    """
    trials = read_categories(R, w, counts, missing, question_weights)
    prior = read_prior(R0, prior_counts, trials, missing)
    mu, sigma = _categories.bayes(trials.counts, trials.w, prior, trials.question_weights)
    return Estimate(float(mu), float(sigma))


def bayes_ci(
    R: ArrayLike | None,
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
    r"""Bayes@N with a credible interval ``mu -/+ z sigma``.

    Parameters
    ----------
    R, w, R0, counts, missing, prior_counts, question_weights
        As in `bayes`.
    confidence : float, default 0.95
        Credibility level of the interval, in (0, 1).
    bounds : (float, float), optional
        The interval is clipped to these.

    Returns
    -------
    mu, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `bayes`; `confidence` outside (0, 1), `bounds` out of order.

    Notes
    -----
    For many questions the posterior of the mean is close to normal (section 2.5 of arXiv:2510.04265). The
    uniform prior pulls every question towards the mean reward: with many questions and few trials each, the
    interval misses the mean score, and `avg_ci` is the one to report.

    Examples
    --------
    >>> from scorio.eval import bayes_ci
    >>> mu, sigma, lo, hi = bayes_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], bounds=(0.0, 1.0))
    >>> round(mu, 6), round(sigma, 6), round(lo, 4), round(hi, 4)
    (0.642857, 0.118451, 0.4107, 0.875)
    """
    mu, sigma = bayes(
        R,
        w,
        R0,
        counts=counts,
        missing=missing,
        prior_counts=prior_counts,
        question_weights=question_weights,
    )
    return credible_interval(mu, sigma, confidence, bounds)


def avg(
    R: ArrayLike | None,
    w: ArrayLike | None = None,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Estimate:
    r"""avg@N: mean reward, with the Bayes@N deviation under a uniform prior rescaled to it.

    Parameters
    ----------
    R : array_like of int, shape (M, N) or (N,)
        Categories ``0..C``; None with `counts`.
    w : array_like of float, shape (C + 1,), optional
        Reward of each category; by default `R` is binary with rewards 0 and 1.
    counts, missing, question_weights
        Unequal trial counts and question weights, see `scorio.eval`; every question has at least one trial.

    Returns
    -------
    a, sigma : float
        Mean over questions of their mean rewards, and its Bayesian standard deviation.

    Raises
    ------
    ValueError
        Outcomes that are no integers or have no reward, non-finite rewards, a question without trials.

    See Also
    --------
    bayes : The posterior mean, which orders models identically at equal counts.

    Notes
    -----
    With :math:`T_q = 1 + C + n_q` and the posterior variance :math:`s_q^2` of question q under a uniform
    prior,

    .. math:: a = \sum_q \omega_q \frac{1}{n_q} \sum_k n_{qk} w_k, \qquad
              \sigma_a^2 = \sum_q \omega_q^2 \left(\frac{T_q}{n_q}\right)^2 s_q^2.

    For equal counts and weights these are Eqs. 18 and 20 (Appendix B) of [1]_.

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski & Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
       Language Model Evaluation. ICLR 2026, arXiv:2510.04265.

    Examples
    --------
    >>> from scorio.eval import avg
    >>> a, sigma = avg([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]])
    >>> round(a, 6), round(sigma, 6)
    (0.7, 0.165831)
    >>> a, sigma = avg([[0, 1, 1, 0, 1], [1, 1, -1, -1, -1]], missing=-1)
    >>> round(a, 6)
    0.8
    """
    trials = read_categories(R, w, counts, missing, question_weights)
    trials.require_trials("avg")
    a, sigma = _categories.avg(trials.counts, trials.w, trials.question_weights)
    return Estimate(float(a), float(sigma))


def avg_ci(
    R: ArrayLike | None,
    w: ArrayLike | None = None,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Interval:
    r"""avg@N with a credible interval ``a -/+ z sigma_a``.

    Parameters
    ----------
    R, w, counts, missing, question_weights
        As in `avg`.
    confidence : float, default 0.95
        Credibility level of the interval, in (0, 1).
    bounds : (float, float), optional
        The interval is clipped to these.

    Returns
    -------
    a, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `avg`; `confidence` outside (0, 1), `bounds` out of order.

    Examples
    --------
    >>> from scorio.eval import avg_ci
    >>> a, sigma, lo, hi = avg_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], bounds=(0.0, 1.0))
    >>> round(a, 4), round(sigma, 4), round(lo, 4), round(hi, 4)
    (0.7, 0.1658, 0.375, 1.0)
    """
    a, sigma = avg(R, w, counts=counts, missing=missing, question_weights=question_weights)
    return credible_interval(a, sigma, confidence, bounds)
