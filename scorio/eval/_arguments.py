"""Checks of scalar arguments: each returns the plain value or raises ValueError naming argument and value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._kernels._beta import FloatArray, IntArray

__all__ = [
    "budget",
    "draws",
    "positive",
    "power",
    "question_index",
    "resamples",
    "spectrum_weights",
    "unit",
]

_SUM_TOLERANCE = 1e-12
"""Slack of a sum of weights, for the rounding of ``k`` terms ``1 / k``."""


def resamples(k: Any) -> int:
    """Check a number of draws from the latent distribution: an integer of at least 1."""
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, Integral):
        raise ValueError(f"k must be an integer; got {k!r}")
    number = int(k)
    if number < 1:
        raise ValueError(f"k must be at least 1; got {number}")
    return number


def draws(k: Any, n: IntArray | int) -> int:
    """Check a number of trials to draw from every question's `n`."""
    number = resamples(k)
    if isinstance(n, int):
        if number > n:
            raise ValueError(f"k must satisfy 1 <= k <= N with N = {n} trials a question; got {number}")
    elif number > n.min():
        q = question_index(n < number)
        raise ValueError(
            f"k must not exceed any question's number of trials; got {number}, and question {q} has {n[q]}"
        )
    return number


def budget(k: Any, n: IntArray | int) -> int:
    """Check a latent resampling budget that the reference limits to N: the most trials of any question."""
    number = resamples(k)
    most = n if isinstance(n, int) else int(n.max())
    if number > most:
        raise ValueError(f"k must satisfy 1 <= k <= N with N = {most} trials a question; got {number}")
    return number


def question_index(bad: Any) -> int:
    """Return the first question (from 0) where `bad`."""
    return int(np.flatnonzero(bad)[0])


def unit(name: str, value: Any) -> float:
    """Check a number in [0, 1]."""
    number = _real(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must be in [0, 1]; got {value!r}")
    return number


def positive(name: str, value: Any) -> float:
    """Check a finite number above 0."""
    number = _real(name, value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite; got {value!r}")
    return number


def power(name: str, value: Any) -> float:
    """Check a finite exponent."""
    number = _real(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite; got {value!r}")
    return number


def spectrum_weights(weights: ArrayLike, k: int) -> FloatArray:
    """Check the weights of a threshold spectrum: `k` numbers of at least 0 with a sum of at most 1."""
    try:
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be {k} numbers; got {weights!r}") from error
    if array.shape != (k,):
        raise ValueError(f"weights must have shape ({k},), one weight a threshold; got shape {array.shape}")
    if not np.isfinite(array).all() or array.min() < 0.0:
        r = question_index(~(np.isfinite(array) & (array >= 0.0)))
        raise ValueError(f"weights must be finite and at least 0; got weights[{r}] = {array[r]}")
    if array.sum() > 1.0 + _SUM_TOLERANCE:
        raise ValueError(f"weights must have a sum of at most 1; got a sum of {array.sum()}")
    return array


def _real(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number; got {value!r}")
    return float(value)


def bounds_pair(bounds: Sequence[float] | None) -> tuple[float, float]:
    """Check clipping bounds; None means none."""
    if bounds is None:
        return -math.inf, math.inf
    try:
        low, high = bounds
    except (TypeError, ValueError) as error:
        raise ValueError(f"bounds must be None or a pair (lo, hi); got {bounds!r}") from error
    low, high = _real("bounds[0]", low), _real("bounds[1]", high)
    if not low <= high:
        raise ValueError(f"bounds must satisfy lo <= hi; got {bounds!r}")
    return low, high


def credibility(confidence: Any) -> float:
    """Check a credibility level in (0, 1)."""
    number = _real("confidence", confidence)
    if not 0.0 < number < 1.0:
        raise ValueError(f"confidence must be in (0, 1); got {confidence!r}")
    return number
