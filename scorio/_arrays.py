"""Arrays by what they hold."""

from typing import TypeAlias

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
