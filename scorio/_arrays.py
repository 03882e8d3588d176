"""Arrays by what they hold."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = NDArray[np.integer]
"""Integers of any size."""
Bools: TypeAlias = NDArray[np.bool_]
