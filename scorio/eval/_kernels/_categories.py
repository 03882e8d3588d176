"""Kernels of the metrics of categorical outcomes: Bayes@N, avg@N, Max@k."""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from scorio.arrays import Floats, Integers, Ints

from ._aggregate import mean, per_count, per_pair, row_sums, standard_deviation
from ._bank import hat_table
from ._beta import power_log_moments

Moments: TypeAlias = tuple[Floats, Floats, Floats, Floats]

_COMPARED_CATEGORIES = 4
_LEAST_QUESTIONS = 1 << 9
"""Up to so many categories, from so many questions on, comparing by category is faster than a histogram."""
_MANY = 4096
"""From so many questions on, counting equal questions is faster than sums over all."""


def category_counts(R: Integers, size: int) -> Ints:
    """Count the trials of each question in each category.

    Parameters
    ----------
    R : int array, shape (..., M, N)
        Categories in ``0..size - 1``; -1 marks a missing trial, which is not counted.
    size : int
        Number of categories, C + 1.

    Returns
    -------
    ndarray of int64, shape (..., M, size)
    """
    rows = R.reshape(math.prod(R.shape[:-1]), R.shape[-1])
    if size > _COMPARED_CATEGORIES or len(rows) < _LEAST_QUESTIONS:
        # The first bin of each row takes the missing trials.
        cells = rows.astype(np.int64)
        cells += 1 + (size + 1) * np.arange(len(rows))[:, None]
        bins = np.bincount(cells.ravel(), minlength=len(rows) * (size + 1))
        return bins.reshape(*R.shape[:-1], size + 1)[..., 1:]
    # Short integers added along the first axis: one vector operation adds many questions at once.
    kind = np.min_scalar_type(R.shape[-1])
    trials = np.ascontiguousarray(rows.astype(np.int8).T)
    counts = np.empty((size, len(rows)), dtype=np.int64)
    for k in range(size):
        counts[k] = (trials == k).view(np.uint8).sum(axis=0, dtype=kind)
    return counts.T.reshape(*R.shape[:-1], size)


def bayes(
    counts: Integers,
    w: Floats,
    prior_counts: Integers | None = None,
    question_weights: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Bayes@N: mean and standard deviation under Dirichlet(1, ..., 1) plus prior trials, per question.

    Parameters
    ----------
    counts : int array, shape (..., M, C + 1)
    w : float array, shape (C + 1,)
    prior_counts : int array that broadcasts to the shape of `counts`, optional
        Prior trials; the ``+ 1`` of the uniform prior is added here.
    question_weights : float array, shape (..., M), optional

    Returns
    -------
    mu, sigma : ndarray, shape (...)
    """
    w, unit = _in_range(w)
    trials = counts
    if prior_counts is not None:
        trials = counts + prior_counts

    def moments(columns: Floats) -> Moments:
        posterior = columns + 1.0
        total = _sum(posterior)
        value, variance = _dirichlet_moments(posterior, total, w)
        return posterior, total, value, variance

    return _summary(moments, trials, w, unit, question_weights)


def avg(counts: Integers, w: Floats, question_weights: Floats | None = None) -> tuple[Floats, Floats]:
    """avg@N: mean of the questions' mean rewards, with the uniform-prior deviation rescaled.

    Every question has at least one trial. A question's Bayes@N deviation is multiplied by
    ``(n + C + 1) / n``, which is Eq. 20 of the paper when all counts are equal.

    Parameters
    ----------
    counts : int array, shape (..., M, C + 1)
    w : float array, shape (C + 1,)
    question_weights : float array, shape (..., M), optional

    Returns
    -------
    a, sigma : ndarray, shape (...)
    """
    w, unit = _in_range(w)

    def moments(columns: Floats) -> Moments:
        n = _sum(columns)
        total = n + len(columns)
        variance = _dirichlet_moments(columns + 1.0, total, w)[1] * (total / n) ** 2
        return columns, n, _sum(columns, w) / n, variance

    return _summary(moments, counts, w, unit, question_weights)


def _summary(
    moments: Callable[[Floats], Moments],
    counts: Integers,
    w: Floats,
    unit: float,
    question_weights: Floats | None,
) -> tuple[Floats, Floats]:
    """Mean and deviation over questions; `moments` of columns: what is pooled, its sum, mean and variance.

    If many questions have equally many trials in few categories, the moments of the distinct counts are
    weighed by how often these come up, which is faster than sums over the questions.
    """
    questions, size = counts.shape[-2:]
    if question_weights is None and questions > _MANY and size > 1:
        n = row_sums(counts)
        base = int(n.flat[0]) + 1
        span = base ** (size - 1)
        if span <= questions and (n == base - 1).all():
            states, times = _states(counts, base, span)
            pooled, total, _, variance = moments(states)
            mean = _sum((pooled[:, None] * times).sum(axis=-1), w) / (questions * total[0])
            spread = np.sqrt(np.cumsum(times * variance, axis=-1)[:, -1]) / questions
            shape = counts.shape[:-2]
            return unit * np.asarray(mean.reshape(shape)), unit * np.asarray(spread.reshape(shape))
    pooled, total, value, variance = moments(_columns(counts))
    return (
        unit * _mean_reward(pooled, total, value, w, question_weights),
        unit * standard_deviation(variance, question_weights),
    )


def _states(counts: Integers, base: int, span: int) -> tuple[Floats, Ints]:
    """Return the distinct counts by columns, (C + 1, S), and how often each comes up, (matrices, S)."""
    questions, size = counts.shape[-2:]
    codes = counts[..., 0]
    for k in range(1, size - 1):
        codes = codes * base + counts[..., k]
    codes = codes.reshape(-1, questions)
    matrices = len(codes)
    times = np.bincount((codes + span * np.arange(matrices)[:, None]).ravel(), minlength=span * matrices)
    times = times.reshape(matrices, span)
    present = np.flatnonzero(times.any(axis=0))
    digits = np.stack(np.unravel_index(present, (base,) * (size - 1)))
    return np.vstack([digits, base - 1 - digits.sum(axis=0)]).astype(np.float64), times[:, present]


def bayes_mean(
    counts: Integers,
    w: Floats,
    prior_counts: Integers | None = None,
    question_weights: Floats | None = None,
) -> Floats:
    """The mean of `bayes` alone."""
    counted = counts
    if prior_counts is not None:
        counted = counts + prior_counts
    return _mean(counted, 1, w, question_weights)


def avg_mean(counts: Integers, w: Floats, question_weights: Floats | None = None) -> Floats:
    """The mean of `avg` alone."""
    return _mean(counts, 0, w, question_weights)


def _mean(counts: Integers, more: int, w: Floats, question_weights: Floats | None) -> Floats:
    """Mean reward of the questions' counts with `more` trials in every category."""
    w, unit = _in_range(w)
    n = row_sums(counts)
    if question_weights is None and (n == n[..., :1]).all():
        pooled = row_sums(np.swapaxes(counts, -1, -2)) + more * n.shape[-1]
        return unit * np.asarray(_sum(_columns(pooled), w) / pooled.sum(axis=-1))
    columns = _columns(counts) + more
    total = _sum(columns)
    return unit * _mean_reward(columns, total, _sum(columns, w) / total, w, question_weights)


def _in_range(w: Floats) -> tuple[Floats, float]:
    """Return rewards whose squares neither overflow nor vanish, and the power of two they are to be times."""
    largest = float(np.abs(w).max())
    if largest == 0.0 or 1e-100 < largest < 1e100:
        return w, 1.0
    unit = 2.0 ** (math.frexp(largest)[1] - 1)
    return w / unit, unit


def _columns(counts: Integers) -> Floats:
    """Move the categories to the front, shape (C + 1, ..., M): sums over few categories are then fast."""
    return np.ascontiguousarray(counts.transpose(-1, *range(counts.ndim - 1)), dtype=np.float64)


def _sum(columns: Floats, w: Floats | None = None) -> Floats:
    """Sum over categories, weighted by `w`, in one order whatever the shape: equal counts give equal sums."""
    if w is None:
        total = columns[0]
    else:
        total = columns[0] * w[0]
    for k in range(1, len(columns)):
        total = total + (columns[k] if w is None else columns[k] * w[k])
    return np.asarray(total)


def _dirichlet_moments(posterior: Floats, total: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of ``w . pi`` for ``pi ~ Dirichlet(posterior)``, `posterior` by columns.

    The squares are centred, so that rewards far from 0 lose no digits.
    """
    value = _sum(posterior, w) / total
    spread = (posterior * np.subtract.outer(w, value) ** 2).sum(axis=0)
    return value, spread / (total * (total + 1.0))


def _mean_reward(
    columns: Floats,
    total: Floats,
    value: Floats,
    w: Floats,
    question_weights: Floats | None,
) -> Floats:
    """Mean over questions of ``value``, the mean reward of the trials in `columns`.

    If all questions have the same total the category sums are exact integers, and matrices with the same
    sums tie exactly.
    """
    if question_weights is not None:
        return mean(value, question_weights)
    even = total == total[..., :1]
    pooled = _sum(columns.sum(-1), w) / total.sum(-1)
    if even.all():
        return np.asarray(pooled)
    return np.where(even.all(-1), pooled, mean(value, None))


def _levels(w: Floats) -> tuple[Floats, Floats, Ints]:
    """Top reward, gaps between distinct rewards, and the (C + 1, levels - 1) indicator of "at most level"."""
    levels, level_of = np.unique(w, return_inverse=True)
    below = (level_of[:, None] <= np.arange(levels.size - 1)).astype(np.int64)
    return levels[-1], np.diff(levels), below


def max_at_k(counts: Integers, k: int, w: Floats, question_weights: Floats | None = None) -> Floats:
    """Max@k: expected best reward among `k` of a question's trials drawn without replacement.

    The best of `k` is at most ``r_l`` with probability ``C(c_l, k) / C(n, k)``, where ``c_l`` trials have a
    reward of at most ``r_l``; every question has at least `k` trials.

    Parameters
    ----------
    counts : int array, shape (..., M, C + 1)
    k : int
    w : float array, shape (C + 1,)
    question_weights : float array, shape (..., M), optional

    Returns
    -------
    ndarray, shape (...)
    """
    if k == 1:
        return avg_mean(counts, w, question_weights)
    top, gaps, below = _levels(w)
    at_most = counts @ below
    n = row_sums(counts)
    not_above = per_count(lambda c, size: hat_table(size, k)[c], at_most, n[..., None])
    return mean(top - (not_above * gaps).sum(-1), question_weights)


def max_at_k_posterior(
    counts: Integers,
    k: int,
    w: Floats,
    prior_counts: Integers | None = None,
    question_weights: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Posterior mean and deviation of the expected best of `k` new trials.

    The cumulative probabilities ``A_l`` of a Dirichlet vector are Beta variables, and for ``l < m`` the ratio
    ``A_l / A_m`` is independent of ``A_m``; so ``Cov(A_l^k, A_m^k) = E[A_l^k] / E[A_m^k] Var(A_m^k)``: every
    term of the variance is positive.

    Parameters
    ----------
    counts, k, w, prior_counts, question_weights
        As in `bayes` and `max_at_k`; any ``k >= 1``.

    Returns
    -------
    mu, sigma : ndarray, shape (...)
    """
    if k == 1:
        return bayes(counts, w, prior_counts, question_weights)
    if prior_counts is None:
        posterior = counts + 1
    else:
        posterior = counts + prior_counts + 1
    w, unit = _in_range(w)
    top, gaps, below = _levels(w)
    at_most = posterior @ below

    def moments(a: Ints, total: Ints) -> tuple[Floats, Floats]:
        return power_log_moments(a.astype(np.float64), (total - a).astype(np.float64), k)

    log_mean, log_ratio = per_pair(moments, at_most, row_sums(posterior)[..., None])
    lowered = gaps * np.exp(log_mean)
    value = top - lowered.sum(-1)
    # Sum over m of gap_m Var(A_m^k) / E[A_m^k] times (gap_m E[A_m^k] + 2 sum over l < m of gap_l E[A_l^k]).
    relative = -gaps * np.exp(log_mean + log_ratio) * np.expm1(-log_ratio)
    variance = (relative * (2.0 * np.cumsum(lowered, axis=-1) - lowered)).sum(-1)
    return unit * mean(value, question_weights), unit * standard_deviation(variance, question_weights)
