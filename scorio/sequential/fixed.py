"""Trials of a run of fixed length for an equally narrow interval: one look at its end, all pairs together."""

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Ints, floats


def fixed_passes(
    noise: ArrayLike, half_width: ArrayLike, alpha: float, comparisons: int = 1, power: float = 0.5
) -> Ints:
    """Complete passes after which a fixed-length run has intervals of a given width.

    Every question is asked equally often and the intervals are read once, at the end, so that they may be
    ``z √(noise / N)`` wide on each side with the Bonferroni value z of all `comparisons` [1]_.

    Parameters
    ----------
    noise : array_like of float
        Variance of each estimate after a single pass over all questions: the mean variance within questions
        over M for a score, summed over both models for a difference.
    half_width : array_like of float
        Half-width each interval is to have, more than 0.
    alpha : float
        Error probability of all intervals together, in (0, 1).
    comparisons : int
        Number of intervals read together, at least 1.
    power : float
        Chance in [0.5, 1) that the interval of a true difference of `half_width` excludes 0. At 0.5 the
        intervals are `half_width` wide on each side; a higher power takes narrower ones, ``z + z_power`` in
        the place of z.

    Returns
    -------
    ndarray of int64
        N, at least 1.

    Raises
    ------
    ValueError
        If `alpha` is not in (0, 1), `comparisons` is less than 1 a half-width is not positive,
        or `power` is not in [0.5, 1).

    References
    ----------
    .. [1] Dunn, "Multiple comparisons among means", JASA 56 (1961).

    Examples
    --------
    >>> fixed_passes([0.4 / 30, 0.1 / 30], 0.05, alpha=0.05).tolist()
    [21, 6]
    >>> fixed_passes(0.4 / 30, 0.05, alpha=0.05, comparisons=10).tolist()
    43
    >>> fixed_passes(0.4 / 30, 0.05, alpha=0.05, power=0.9).tolist()
    57
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie in (0, 1), got {alpha}")
    if comparisons < 1:
        raise ValueError(f"comparisons must be at least 1, got {comparisons}")
    if not 0.5 <= power < 1.0:
        raise ValueError(f"power must lie in [0.5, 1), got {power}")
    width = floats(half_width)
    if not np.all(width > 0.0):
        raise ValueError(f"half_width must be more than 0, got {half_width!r}")
    z = -NormalDist().inv_cdf(alpha / (2 * comparisons)) + NormalDist().inv_cdf(power)
    passes = np.ceil(floats(noise) * (z / width) ** 2)
    return np.maximum(passes, 1.0).astype(np.int64)
