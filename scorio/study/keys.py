"""Scores as integers, so that equal ones compare equal whatever their sum, and the orders of all pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from scorio.rank._ties import rank_groups

_LIMIT = 2**62


def integer_grid(values: Sequence[Fraction], terms: int) -> tuple[NDArray[np.int64], int]:
    """Put non-negative rationals on an integer grid on which sums of `terms` of them fit an int64.

    Parameters
    ----------
    values : sequence of Fraction
        Non-negative values.
    terms : int
        How many of them will be added.

    Returns
    -------
    grid : int64 array
        Integers proportional to `values`; rounded where the exact integers are too long.
    tolerance : int
        Two sums of `terms` entries are equal as rationals only if they differ by at most this much. It is
        0 where the grid is exact; otherwise it is the rounding that `terms` entries can collect.

    Examples
    --------
    >>> from fractions import Fraction
    >>> integer_grid([Fraction(0), Fraction(1, 3), Fraction(1, 2)], 10)
    (array([0, 2, 3]), 0)
    """
    multiple = math.lcm(*(value.denominator for value in values))
    exact = [value.numerator * (multiple // value.denominator) for value in values]
    divisor = math.gcd(*exact) or 1
    exact = [value // divisor for value in exact]
    largest = max(exact)
    if largest * terms < _LIMIT:
        return np.array(exact, dtype=np.int64), 0
    top = _LIMIT // (2 * terms)
    rounded = [(2 * value * top + largest) // (2 * largest) for value in exact]
    return np.array(rounded, dtype=np.int64), terms


def pair_signs(keys: NDArray[np.integer | np.floating], tolerance: float = 0) -> NDArray[np.int8]:
    """Return the sign of ``keys[..., i] - keys[..., j]`` for all pairs i < j; 0 within `tolerance`.

    Examples
    --------
    >>> pair_signs(np.array([3, 1, 3]))
    array([ 1,  0, -1], dtype=int8)
    """
    models = keys.shape[-1]
    signs = np.empty((*keys.shape[:-1], models * (models - 1) // 2), dtype=np.int8)
    start = 0
    for first in range(models - 1):
        # One row of pairs at a time: temporaries of all pairs at once would cost more than the arithmetic.
        fall = keys[..., first, None] - keys[..., first + 1 :]
        stop = start + fall.shape[-1]
        np.subtract(fall > tolerance, fall < -tolerance, out=signs[..., start:stop], dtype=np.int8)
        start = stop
    return signs


def competition_ranks(keys: NDArray[np.integer | np.floating], tolerance: float = 0) -> NDArray[np.int64]:
    """Return 1 + the number of models with a higher key, along the last axis.

    Integers stay integers, where :func:`scorio.rank.rank_scores` would turn long ones into floats.
    """
    order = np.argsort(-keys, axis=-1, kind="stable")
    descending = np.take_along_axis(keys, order, axis=-1)
    apart = descending[..., :-1] - descending[..., 1:] > tolerance
    return rank_groups(order, apart, "competition").astype(np.int64, copy=False)
