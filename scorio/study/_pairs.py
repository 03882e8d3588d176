"""Orders of all pairs of models in many rankings at once.

A study compares millions of rankings with one gold standard: the signs of the pairs are computed once a
ranking, and a pair that settles is seen by itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def pair_signs(keys: NDArray[np.integer | np.floating], tolerance: float = 0) -> NDArray[np.int8]:
    """Return the sign of ``keys[..., i] - keys[..., j]`` for all pairs i < j; 0 within `tolerance`.

    Parameters
    ----------
    keys : array, shape (..., L)
        Comparable scores.
    tolerance : float
        Differences up to this are ties.

    Returns
    -------
    int8 array, shape (..., L(L - 1)/2)

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
