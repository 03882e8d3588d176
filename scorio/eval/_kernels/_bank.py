"""Values of the metrics on a finite bank of trials: ``c`` correct ones among ``n``.

Every function here takes a one-dimensional integer array of correct counts and one bank size ``n``
and returns one value a count, in ``[0, 1]``. Drawing ``k`` of the ``n`` trials without
replacement makes the number of correct ones hypergeometric, which all of them are summaries of.
"""

import math
from functools import lru_cache

import numpy as np

from scorio.arrays import Floats, Ints, floats

_BLOCK = 1 << 20
"""Largest number of elements of a temporary array."""

_CACHED_CELLS = 1 << 14
"""Up to this size a table over all counts is made, and kept, whatever counts are asked for."""


@lru_cache(maxsize=256)
def hat_table(n: int, k: int) -> Floats:
    """Return ``C(c, k) / C(n, k)`` for ``c = 0..n``, read-only; ``k`` in ``0..n``.

    Starts at ``c = n``, where the value is 1, and multiplies by the ratio ``(c - k) / c``: products of
    numbers below one, each exact to rounding, so that nothing overflows and small values keep their digits.
    """
    if k == 1:
        table = np.arange(n + 1) / n
    else:
        table = np.zeros(n + 1)
        table[n] = 1.0
        c = np.arange(n, k, -1, dtype=np.float64)
        table[k:n] = np.cumprod((c - k) / c)[::-1]
    table.flags.writeable = False
    return table


def pass_any(c: Ints, n: int, k: int) -> Floats:
    """Probability that at least one of `k` drawn trials is correct."""
    if k == 1:
        return hat_table(n, 1)[c]
    return 1.0 - hat_table(n, k)[n - c]


def auc(c: Ints, n: int, k: int) -> Floats:
    """Trapezoidal mean of Pass@1 .. Pass@k.

    With ``m = n - c``, ``F_j = C(m, j) / C(n, j)`` telescopes:
    ``sum_{j=0}^{k} F_j = (n + 1) / (n + 1 - m) * (1 - C(m, k + 1) / C(n + 1, k + 1))``.
    """
    if k == 1:
        return pass_any(c, n, 1)
    m = n - c
    failed_first = m / n
    failed_last = hat_table(n, k)[m]
    total = (n + 1.0) / (c + 1.0) * (1.0 - hat_table(n + 1, k + 1)[m]) - 1.0
    value = 1.0 - (total - 0.5 * (failed_first + failed_last)) / (k - 1)
    # A question without a correct trial scores 0 and one without a wrong trial 1, to the last digit.
    return np.where(c == 0, 0.0, np.where(m == 0, 1.0, value))


def log_factorials(n: int) -> Floats:
    """Return ``log(i!)`` for ``i = 0..n``, read-only."""
    # Rounded up so that a growing run does not rebuild the table at every trial.
    return _log_factorials(max(256, 1 << n.bit_length()))[: n + 1]


@lru_cache(maxsize=8)
def _log_factorials(n: int) -> Floats:
    table = np.array([math.lgamma(i + 1.0) for i in range(n + 1)])
    table.flags.writeable = False
    return table


def log_binomials(k: int) -> Floats:
    """Return ``log C(k, j)`` for ``j = 0..k``."""
    log_fact = log_factorials(k)
    return np.asarray(log_fact[k] - log_fact - log_fact[::-1])


def hypergeometric_pmf(c: Ints, n: int, k: int) -> Floats:
    """Probability of ``j`` correct among `k` drawn, an array of shape ``(len(c), k + 1)``.

    Rows are normalised, which removes the rounding of the terms that do not depend on ``j``.
    """
    log_fact = log_factorials(n)
    j = np.arange(k + 1)
    wrong = (n - c)[:, None]
    right = c[:, None]
    possible = (j <= right) & (k - j <= wrong)
    # Impossible pairs are moved to a valid index and zeroed afterwards.
    left_right = np.maximum(right - j, 0)
    left_wrong = np.maximum(wrong - (k - j), 0)
    log_weight = -(log_fact[j] + log_fact[left_right] + log_fact[k - j] + log_fact[left_wrong])
    log_weight[~possible] = -np.inf
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    return floats(weight / weight.sum(axis=1, keepdims=True))


def spectrum(c: Ints, n: int, k: int, scores: Floats) -> Floats:
    """Return ``E[scores[X]]`` for the number ``X`` of correct trials among `k` drawn."""
    if (n + 1) * (k + 1) <= _CACHED_CELLS:
        return _spectrum_table(n, k, scores.tobytes())[c]
    block = max(1, _BLOCK // (k + 1))
    values = np.empty(c.size)
    for start in range(0, c.size, block):
        rows = slice(start, start + block)
        values[rows] = (hypergeometric_pmf(c[rows], n, k) * scores).sum(axis=1)
    return values


@lru_cache(maxsize=256)
def _spectrum_table(n: int, k: int, scores: bytes) -> Floats:
    """Values for ``c = 0..n``: leaderboards ask for one spectrum of many matrices of one size."""
    pmf = hypergeometric_pmf(np.arange(n + 1), n, k)
    table: Floats = (pmf * np.frombuffer(scores)).sum(axis=1)
    table.flags.writeable = False
    return table


def single_threshold(scores: Floats) -> int | None:
    """Return the only threshold with a weight in the event scores of a spectrum, if there is one."""
    rises = np.flatnonzero(scores[1:] > scores[:-1])
    if rises.size == 1:
        return int(rises[0]) + 1
    return None


def threshold_scores(k: int, threshold: int) -> Floats:
    """Event scores of "at least `threshold` of `k`": 0 below, 1 from there on."""
    return (np.arange(k + 1) >= threshold).astype(np.float64)


def mg_scores(k: int) -> Floats:
    """Event scores of mG-Pass@k: ``(2 / k) max(j - ceil(k / 2), 0)``."""
    return np.maximum(np.arange(k + 1) - (k + 1) // 2, 0) * 2.0 / k


def majority_threshold(k: int) -> int:
    """Return the smallest number of correct trials that is more than half of `k`."""
    return k // 2 + 1


def tau_threshold(k: int, tau: float) -> int:
    """Return the smallest ``j >= 1`` with ``j / k >= tau``.

    This is ``max(1, ceil(tau k))``, decided by comparing ``j / k`` with `tau` as the caller computes it: the
    product ``tau * k`` rounds ``0.55 * 20`` to more than 11.
    """
    j = max(1, math.ceil(tau * k))
    while j > 1 and (j - 1) / k >= tau:
        j -= 1
    while j < k and j / k < tau:
        j += 1
    return min(j, k)


def cumulative_scores(weights: Floats) -> Floats:
    """Event scores ``A_j = w_1 + .. + w_j`` of a threshold spectrum, shape (k + 1,)."""
    return np.concatenate([[0.0], np.cumsum(weights)])
