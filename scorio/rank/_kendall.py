"""Kendall's tau-b between rankings."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.arrays import Floats, floats

Numbers: TypeAlias = NDArray[np.number[Any]]

_BLOCK = 1 << 22
"""Largest number of pairs whose signs are held at once."""


def kendall_tau_b(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return Kendall's τ_b between rankings, which accounts for ties in both.

    τ_b = (n_c − n_d) / √((n_0 − n_1)(n_0 − n_2)): concordant minus discordant pairs, over the geometric
    mean of the numbers of pairs untied in each ranking [1]_.

    A constant ranking, in which all models tie, makes the formula 0/0. It is defined here instead: 1 when
    both rankings are constant, since they say the same, and 0 when only one is, since it orders nothing. The
    result is never NaN.

    Parameters
    ----------
    first, second : array_like, shape (..., L)
        Ranks (or any values in the same direction) of the same L ≥ 2 models; leading axes broadcast.
        Values tie when they are equal: pass ranks from :func:`rank_scores`, which ties scores up to
        rounding.

    Returns
    -------
    numpy.ndarray of float64, shape (...)
        Values in [−1, 1]; a scalar for two 1-D rankings.

    Raises
    ------
    ValueError
        If the rankings have different lengths or fewer than two models, or a value is NaN.

    References
    ----------
    .. [1] Kendall (1945). The treatment of ties in ranking problems. Biometrika 33(3), 239–251.

    Examples
    --------
    >>> print(round(kendall_tau_b([1, 2, 3, 4], [1, 3, 2, 4]), 6))
    0.666667
    >>> print(kendall_tau_b([1, 2, 2, 4], [1, 1, 1, 1]))
    0.0
    """
    a, b = np.asarray(first), np.asarray(second)
    for name, values in (("first", a), ("second", b)):
        if values.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold numbers, got an array of dtype {values.dtype}")
        if values.ndim == 0 or values.shape[-1] < 2:
            raise ValueError(f"{name} must rank at least two models, got shape {values.shape}")
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise ValueError(f"{name} must not contain NaN")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"first and second must rank the same models, got {a.shape[-1]} and {b.shape[-1]}")
    batch = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    size = a.shape[-1]
    a = np.broadcast_to(a, (*batch, size)).reshape(-1, size)
    b = np.broadcast_to(b, (*batch, size)).reshape(-1, size)
    result = np.empty(len(a))
    pairs = np.triu_indices(size, k=1)
    step = max(1, _BLOCK // len(pairs[0]))
    for start in range(0, len(a), step):
        block = slice(start, start + step)
        result[block] = tau_b_of_signs(_signs(a[block], *pairs), _signs(b[block], *pairs))
    return result.reshape(batch)[()]


def tau_b_of_signs(first: NDArray[np.int8], second: NDArray[np.int8]) -> Floats:
    """Return :func:`kendall_tau_b` of rankings given by the signs of all their pairs, shapes (..., P).

    Examples
    --------
    >>> tau_b_of_signs(np.array([[-1, -1, -1]]), np.array([-1, -1, 1])).round(4)
    array([0.3333])
    """
    balance = np.einsum("...p,...p->...", first, second, dtype=np.int64)
    untied_first = np.count_nonzero(first, axis=-1)
    untied_second = np.count_nonzero(second, axis=-1)
    # The root of a product is exact where both counts are equal: perfect agreement gives exactly 1.
    scale = np.sqrt(floats(untied_first * untied_second))
    constant = np.asarray(np.where(np.add(untied_first, untied_second) == 0, 1.0, 0.0))
    tau: Floats = np.divide(balance, scale, out=constant, where=scale > 0)
    return tau


def _signs(values: Numbers, upper: NDArray[np.intp], lower: NDArray[np.intp]) -> NDArray[np.int8]:
    left = values[:, upper]
    right = values[:, lower]
    return np.subtract(left > right, left < right, dtype=np.int8)
