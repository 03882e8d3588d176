"""avg@N: mean reward with the Bayesian deviation on its scale."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ._inputs import Missing, read_categories
from ._interval import credible_interval
from ._kernels import _categories


def avg(
    R: ArrayLike | None,
    w: ArrayLike | None = None,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> tuple[float, float]:
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
    return float(a), float(sigma)


def avg_ci(
    R: ArrayLike | None,
    w: ArrayLike | None = None,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> tuple[float, float, float, float]:
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
