"""The metrics of :mod:`scorio.eval` that take rewards, as rankings: avg@N, Bayes@N and Max@k."""

from __future__ import annotations

from numbers import Real
from typing import Any

from numpy.typing import ArrayLike

from scorio._labels import Outcomes
from scorio.eval._inputs import Missing, read_categories, read_prior
from scorio.eval._kernels import _categories
from scorio.rank._ranked import Ranking, keeps_names, ranked
from scorio.rank._ties import TieMethod


@keeps_names
def max_at_k(
    R: Outcomes | None,
    k: int,
    w: ArrayLike | None = None,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by Max@k: the expected best reward among `k` of a question's trials.

    Parameters
    ----------
    R, w, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Bagirov et al. (2025). The Best of N Worlds: Aligning Reinforcement Learning with Best-of-N
       Sampling via max@k Optimization. arXiv:2510.23393.

    Examples
    --------
    >>> max_at_k([[[0, 2, 0]], [[1, 1, 1]]], 2, w=[0.0, 0.5, 1.0], return_scores=True)
    (array([1, 2]), array([0.66666667, 0.5       ]))
    """
    trials = read_categories(R, w, counts, missing, question_weights, models=True)
    scores = _categories.max_at_k(trials.counts, trials.draws(k), trials.w, trials.question_weights)
    return ranked(scores, method, return_scores, trials.size)


@keeps_names
def avg(
    R: Outcomes | None,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    w: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by avg@N: their mean reward over questions and trials.

    Every model needs a trial of every question.

    Parameters
    ----------
    R, method, return_scores, w, counts, missing, question_weights
        As in :func:`bayes`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> avg([[[1, 0, 1], [0, 0, 1]], [[1, 1, 1], [0, 1, 1]], [[0, 0, 0], [0, 1, 0]]])
    array([2, 1, 3])
    """
    trials = read_categories(R, w, counts, missing, question_weights, models=True)
    trials.require_trials("avg")
    scores = _categories.avg_mean(trials.counts, trials.w, trials.question_weights)
    return ranked(scores, method, return_scores, trials.size)


@keeps_names
def bayes(
    R: Outcomes | None,
    w: ArrayLike | None = None,
    R0: ArrayLike | None = None,
    quantile: float | None = None,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    prior_counts: ArrayLike | None = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by Bayes@N: their posterior mean, or a quantile of their posterior.

    A model's score is μ, or μ + Φ⁻¹(q) σ with `quantile` q, taking its posterior as normal; μ and σ are those
    of :func:`scorio.eval.bayes` (Algorithm 1 of [1]_). A quantile below 0.5 ranks cautiously: of two models
    with the same mean, the one that is known better comes first.

    Parameters
    ----------
    R : array_like of int, shape (L, M, N) or (L, M), mapping of names to matrices (M, N), or None
        Outcomes 0 or 1 of L models on M questions in N trials; (L, M) means N = 1. None with
        `counts`.
    R0 : array_like of int, shape (M, D) or (L, M, D), optional
        Categories of prior trials, the same for all models or of each model.
    prior_counts : array_like of int, shape (M, C + 1) or (L, M, C + 1), optional
        Prior trials in each category, in place of `R0`.
    quantile : float, optional
        In (0, 1).
    w : array_like, shape (C + 1,), optional
        Rewards of the categories, in any order and of any sign; default [0, 1] for outcomes 0 and 1. With `w`
        the trials in `R` are categories 0..C.
    method : {'competition', 'competition_max', 'dense', 'avg', 'ordinal'}
        Ranks of tied models (:func:`rank_scores`).
    return_scores : bool
        Also return the scores.
    counts : array_like of int, shape (L, M, C + 1), optional
        Trials in each category (wrong and correct ones: C = 1), in place of `R`; questions may differ in
        their number of trials.
    missing : number or array_like of bool, optional
        A value in `R`, such as −1, or a mask of its shape: trials that were not made.
    question_weights : array_like, shape (M,), optional
        At least 0, with sum 1; default 1/M each.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best; int64, for ``method="avg"`` float64.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.bayes`.

    For a mapping, or labels of xarray or pandas, a :class:`NamedRanking` of names, ranks and scores.

    Raises
    ------
    ValueError
        If an argument is malformed or out of range; the message names it, the value and what is allowed.

    Notes
    -----
    With unequal numbers of trials the uniform prior pulls models with fewer trials closer to its mean, so the
    order of μ is biased; the order is that of :func:`avg` where all numbers are equal and there is no
    prior (Appendix B of [1]_).

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski and Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
       Language Model Evaluation. arXiv:2510.04265.

    Examples
    --------
    >>> R = [[[1, 0, 1], [0, 0, 1]], [[1, 1, 1], [0, 1, 1]], [[0, 0, 0], [0, 1, 0]]]
    >>> bayes(R)
    array([2, 1, 3])
    >>> ranks, scores = bayes(R, quantile=0.05, return_scores=True)
    >>> scores.round(4)
    array([0.2674, 0.4877, 0.0877])
    """
    trials = read_categories(R, w, counts, missing, question_weights, models=True)
    prior = read_prior(R0, prior_counts, trials, missing)
    if quantile is None:
        scores = _categories.bayes_mean(trials.counts, trials.w, prior, trials.question_weights)
    else:
        mu, sigma = _categories.bayes(trials.counts, trials.w, prior, trials.question_weights)
        scores = mu + _normal_quantile(quantile) * sigma
    return ranked(scores, method, return_scores, trials.size)


def _normal_quantile(quantile: Any) -> float:
    # True and False are real numbers to Python, but 0 and 1: outside the range.
    level = float(quantile) if isinstance(quantile, Real) else 0.0
    if not 0.0 < level < 1.0:
        raise ValueError(f"quantile must be a number in (0, 1); got {quantile!r}")
    from scipy.special import ndtri

    return float(ndtri(level))
