"""Arrays by what they hold."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = NDArray[np.integer]
"""Integers of any size."""
Bools: TypeAlias = NDArray[np.bool_]


def floats(values: ArrayLike) -> Floats:
    """Return numbers as an array of floats."""
    return np.asarray(values, dtype=np.float64)


AT_ONCE = 2**14
"""Numbers worked on at once: arrays beyond 128 KB leave the cache, and cost a page fault for every 4 KB."""
ONE_THREAD = 200_000
"""Multiplications for which OpenBLAS wakes no second thread (it does beyond 262,144)."""


def product(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> Floats:
    """Return the matrix product, if it is small in parts that BLAS does in one thread.

    On a busy machine a second thread keeps products of a tenth of a millisecond waiting for a hundred.
    """
    terms = ONE_THREAD // (len(a) * b.shape[1])
    if terms == 0:
        return np.asarray(a @ b)
    total = a[:, :terms] @ b[:terms]
    for start in range(terms, len(b), terms):
        total += a[:, start : start + terms] @ b[start : start + terms]
    return np.asarray(total)
