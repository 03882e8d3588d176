"""The results of the metrics, and normal-approximation credible intervals."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, SupportsFloat

from scorio._arguments import bounds_pair, credibility


class Estimate(NamedTuple):
    """Mean and standard deviation of a metric; a pair that prints like one."""

    mu: float
    sigma: float

    def __repr__(self) -> str:
        return tuple.__repr__(self)


class Interval(NamedTuple):
    """Mean, standard deviation and credible interval of a metric."""

    mu: float
    sigma: float
    lo: float
    hi: float

    def __repr__(self) -> str:
        return tuple.__repr__(self)


def credible_interval(
    mu: SupportsFloat, sigma: SupportsFloat, confidence: float, bounds: Sequence[float] | None
) -> Interval:
    """Return ``(mu, sigma, lo, hi)`` with ``lo, hi = mu -/+ z sigma``, clipped to `bounds`."""
    mu = float(mu)
    sigma = float(sigma)
    reach = _z(credibility(confidence)) * sigma
    low, high = bounds_pair(bounds)
    return Interval(mu, sigma, min(max(mu - reach, low), high), min(max(mu + reach, low), high))


@lru_cache(maxsize=32)
def _z(confidence: float) -> float:
    """Two-sided standard normal quantile, from the tail so that levels next to 1 keep their digits."""
    from statistics import NormalDist

    return -NormalDist().inv_cdf((1.0 - confidence) / 2.0)
