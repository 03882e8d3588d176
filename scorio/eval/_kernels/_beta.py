"""Moments of functions of a Beta variable: of powers in closed form, of others by quadrature.

Powers are free of cancellation. For ``p ~ Beta(a, b)`` with ``A = a + b`` and an integer ``k``,

    E[p^k] = prod_{i<k} (a + i) / (A + i)
    E[p^2k] / E[p^k]^2 = prod_{i<k} (1 + k b / ((A + k + i)(a + i)))

so ``Var[p^k] = E[p^k]^2 (exp(S) - 1)`` with ``S`` a sum of positive terms: the subtraction
``E[p^2k] - E[p^k]^2``, which loses every digit of a small variance, never happens.

All questions share one quadrature of other functions. With ``p = 1 / (1 + exp(-x))`` and ``x = sinh(y)`` a
Beta(a, b) density becomes ``p^a q^b cosh(y)`` on the whole line: analytic, decaying double exponentially.
The trapezoidal rule in ``y`` converges geometrically there (Takahasi & Mori 1974) for every shape of the
density: ``a = 0.01`` is no harder than ``a = 500``.

The step follows from the narrowest function that is integrated. A Beta density with ``a + b = s`` is about
as wide in ``y`` as ``(s p q (1 + x^2))^(-1/2)``, at least ``1.377 / sqrt(s)`` for any mean ``p``; times a
polynomial of degree ``d`` it is a mixture of Beta densities with ``a + b`` up to ``s + d``. The steps here
were chosen on random shapes and polynomials against exact arithmetic: the error stays below 1e-14, and
larger steps lose that only from 1.3 times these on.

Variances are sums of squares ``sum W (g - mu)^2``. The closed form ``E[g^2] - E[g]^2`` has ``k^2`` terms and
returns noise of the order 1e-8 for a standard deviation that is 0 to ten digits.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from scorio.arrays import Floats

from ._bank import log_binomials

_BLOCK = 1 << 21
"""Largest number of elements of a temporary array."""


_LARGEST_STEP = 0.125
_WIDTHS = 0.55 * 1.377
"""Largest step, and step in units of ``1 / sqrt(s + d)``."""

_DEPTH = 45.0
"""The nodes reach to where the outermost density has fallen by ``exp(-45)`` from its mode."""

_MOST_TERMS = 2 * 10**8
"""Most terms of the sums at all nodes: they take seconds."""
_ALL_COUNTS = 4096
"""Beyond this many trials only the counts that can occur at a node are summed over."""


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


@dataclass(frozen=True)
class Nodes:
    """Shared abscissae: logarithms of ``p``, of ``q = 1 - p`` and of the weight ``cosh(y)``; read-only."""

    log_p: Floats
    log_q: Floats
    log_weight: Floats


@lru_cache(maxsize=64)
def nodes(alpha0: float, beta0: float, n: int, degree: int) -> Nodes:
    """Nodes for the densities Beta(alpha0 + c, beta0 + n' - c), ``0 <= c <= n' <= n``, times polynomials.

    Parameters
    ----------
    alpha0, beta0 : float
        Prior parameters.
    n : int
        Most trials of any question.
    degree : int
        Largest degree of what is integrated: twice that of the metric, since it is squared.

    Returns
    -------
    Nodes
    """
    step = min(_LARGEST_STEP, _WIDTHS / math.sqrt(alpha0 + beta0 + n + degree))
    # The outermost components: no success in trials and polynomial together, and no failure.
    first = math.floor(math.asinh(_lower_edge(alpha0, beta0 + n + degree)) / step)
    last = math.ceil(-math.asinh(_lower_edge(beta0, alpha0 + n + degree)) / step)
    y = step * np.arange(first, last + 1)
    x = np.sinh(y)
    arrays = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x), np.log(np.cosh(y))
    for array in arrays:
        array.flags.writeable = False
    return Nodes(*arrays)


def _lower_edge(a: float, b: float) -> float:
    """Return an ``x`` below which the density ``p^a q^b`` is lower than its mode by ``exp(-_DEPTH)``."""
    a = max(a, 1e-250)
    mode = math.log(a / b)
    at_mode = float(np.logaddexp(0.0, mode))
    below = math.sqrt(1.0 / a + 1.0 / b)
    while a * below - (a + b) * (at_mode - float(np.logaddexp(0.0, mode - below))) < _DEPTH:
        below *= 2.0
    return mode - below


def posterior_weights(grid: Nodes, a: Floats, b: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield the nodes' probabilities under Beta(a, b), block by block of rows.

    Parameters
    ----------
    grid : Nodes
    a, b : ndarray, shape (rows,)
        Positive parameters.

    Yields
    ------
    rows : slice
        Rows of `a` and `b` in the block.
    weights : ndarray, shape (rows in block, nodes)
        Rows sum to 1.
    """
    block = max(1, _BLOCK // grid.log_p.size)
    for start in range(0, a.size, block):
        rows = slice(start, min(a.size, start + block))
        weights = a[rows, None] * grid.log_p
        weights += b[rows, None] * grid.log_q
        weights += grid.log_weight
        weights -= weights.max(axis=1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=1, keepdims=True)
        yield rows, weights


def spectrum_at(grid: Nodes, k: int, scores: Floats) -> Floats:
    """Return ``E[scores[X]]``, ``X ~ Binomial(k, p)``, at every node; `scores` are those of 0..k."""
    values = np.empty(grid.log_p.size)
    log_choose = log_binomials(k)
    p = np.exp(grid.log_p)
    # Scores are taken relative to that of the most likely count: where nearly all counts score alike, the
    # rounding of the probabilities would else be all that distinguishes the nodes.
    usual = scores[np.rint(k * p).astype(np.int64)]
    if k <= _ALL_COUNTS:
        block = max(1, _BLOCK // (k + 1))
        reach = np.full(p.size, k)
    else:
        # By Bernstein's inequality counts beyond this reach have a probability below exp(-50).
        block = 16
        reach = np.ceil(10.0 * np.sqrt(k * p * np.exp(grid.log_q)) + 40.0).astype(np.int64)
    low = np.maximum(np.floor(k * p).astype(np.int64) - reach, 0)
    high = np.minimum(np.ceil(k * p).astype(np.int64) + reach, k) + 1
    if (high - low).sum() > _MOST_TERMS:
        raise ValueError(f"k and the numbers of trials must be smaller for this metric; got k = {k}")
    for start in range(0, values.size, block):
        at = slice(start, min(values.size, start + block))
        counts = slice(low[at].min(), high[at].max())
        j = np.arange(counts.start, counts.stop)
        terms = np.exp(j * grid.log_p[at, None] + (k - j) * grid.log_q[at, None] + log_choose[counts])
        terms *= scores[counts] - usual[at, None]
        values[at] = usual[at] + terms.sum(axis=1)
    return values


def auc_at(grid: Nodes, k: int) -> Floats:
    """Trapezoidal mean of ``1 - q^j`` over ``j = 1..k`` at every node, shape (nodes,); ``k >= 2``.

    A geometric sum; if ``q^k`` is next to 1 and the sum next to its number of terms, the power series in
    ``-k log q``.
    """
    x = -k * grid.log_q
    near = x < 0.5
    share = np.arange(1.0, k + 1.0) / k
    coefficients = np.full(k, 1.0 / (k - 1))
    coefficients[0] = coefficients[-1] = 0.5 / (k - 1)
    series = np.zeros(x.size)
    term = np.ones(x.size)
    power = np.ones(k)
    for m in range(1, 15):
        power *= share
        term *= np.where(near, x, 0.0) / m
        if m % 2:
            sign = 1.0
        else:
            sign = -1.0
        series += term * ((power @ coefficients) * sign)
    q = np.exp(grid.log_q)
    q_k = np.exp(-x)
    p = np.exp(grid.log_p)
    total = q * -np.expm1(-x) / np.maximum(p, np.finfo(np.float64).tiny)
    return np.where(near, series, 1.0 - (total - 0.5 * (q + q_k)) / (k - 1))
