"""Moments of powers of a Beta variable, free of cancellation.

For ``p ~ Beta(a, b)`` with ``A = a + b`` and an integer ``k``,

    E[p^k] = prod_{i<k} (a + i) / (A + i)
    E[p^2k] / E[p^k]^2 = prod_{i<k} (1 + k b / ((A + k + i)(a + i)))

so ``Var[p^k] = E[p^k]^2 (exp(S) - 1)`` with ``S`` a sum of positive terms: the subtraction
``E[p^2k] - E[p^k]^2``, which loses every digit of a small variance, never happens.
"""

from __future__ import annotations

import numpy as np

from scorio._arrays import Floats

_BLOCK = 1 << 20
"""Largest number of elements of a temporary array."""


def power_log_moments(a: Floats, b: Floats, k: int) -> tuple[Floats, Floats]:
    """Logarithms of ``E[p^k]`` and of ``E[p^2k] / E[p^k]^2`` for ``p ~ Beta(a, b)``.

    Parameters
    ----------
    a, b : ndarray of one shape
        Positive parameters.
    k : int
        Positive power.

    Returns
    -------
    log_mean, log_ratio : ndarray
        Same shape as `a`.
    """
    log_mean = np.zeros(a.shape)
    log_ratio = np.zeros(a.shape)
    block = max(1, _BLOCK // max(1, a.size))
    for start in range(0, k, block):
        i = np.arange(start, min(k, start + block), dtype=np.float64)
        a_i = a[..., None] + i
        total_i = a_i + b[..., None]
        # The ratio is next to 1 where b is small, and its distance from 1 is what 1 - E[p^k] is made of.
        below = np.minimum(b[..., None] / total_i, 0.5)
        log_mean += np.where((b < a)[..., None], np.log1p(-below), np.log(a_i / total_i)).sum(-1)
        log_ratio += np.log1p((k * b)[..., None] / (a_i * (total_i + k))).sum(-1)
    return log_mean, log_ratio


def power_moments(a: Floats, b: Floats, k: int) -> tuple[Floats, Floats]:
    """Mean and variance of ``p^k`` for ``p ~ Beta(a, b)``; arguments as in `power_log_moments`."""
    log_mean, log_ratio = power_log_moments(a, b, k)
    return np.exp(log_mean), power_variance(log_mean, log_ratio)


def power_variance(log_mean: Floats, log_ratio: Floats) -> Floats:
    """Return ``Var[p^k]`` from the logarithms of `power_log_moments`."""
    return -np.exp(2.0 * log_mean + log_ratio) * np.expm1(-log_ratio)


def power_covariance_factor(total: Floats, k: int) -> Floats:
    """Return ``1 - E[p^k q^k] / (E[p^k] E[q^k])`` for ``p ~ Beta(a, b)``, ``q = 1 - p``, ``a + b = total``.

    The ratio is ``prod_{i<k} (A + i) / (A + k + i)``: it depends on ``a + b`` alone.
    """
    log_ratio = np.zeros(total.shape)
    block = max(1, _BLOCK // max(1, total.size))
    for start in range(0, k, block):
        i = np.arange(start, min(k, start + block), dtype=np.float64)
        log_ratio += np.log1p(-k / (total[..., None] + (k + i))).sum(-1)
    return -np.expm1(log_ratio)
