"""Checks of scalar arguments: each returns the plain value or raises ValueError naming argument and value."""

import math
from collections.abc import Callable, Collection, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Floats

_SUM_TOLERANCE = 1e-12
"""Slack of a sum of weights, for the rounding of ``k`` terms ``1 / k``."""


def resamples(k: Any) -> int:
    """Check a number of draws from the latent distribution."""
    return whole("k", k)


def first(bad: Any) -> tuple[int, ...]:
    """Return the first place where `bad`."""
    return tuple(map(int, np.argwhere(bad)[0]))


def numbers(
    name: str, values: ArrayLike, meaning: str, size: int | None = None, least: float = -math.inf
) -> Floats:
    """Check a vector of finite real numbers, `size` of them if given; return a copy."""
    given = np.asarray(values)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers; got {values!r}")
    array = np.array(given, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or (size is not None and array.size != size):
        shape = "(C + 1,)"
        if size is not None:
            shape = f"({size},)"
        raise ValueError(f"{name} must have shape {shape}, {meaning}; got shape {array.shape}")
    bad = ~(np.isfinite(array) & (array >= least))
    if bad.any():
        (k,) = first(bad)
        limit = ""
        if least != -math.inf:
            limit = f" and at least {least:g}"
        raise ValueError(f"{name} must be finite{limit}; got {name}[{k}] = {array[k]}")
    return array


def whole(name: str, value: Any) -> int:
    """Check an integer of at least 1."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be an integer; got {value!r}")
    number = int(value)
    if number < 1:
        raise ValueError(f"{name} must be at least 1; got {number}")
    return number


def one_of(name: str, value: Any, allowed: Collection[str]) -> None:
    """Check that a value is one of some words."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")


def unit(name: str, value: Any) -> float:
    """Check a number in [0, 1]."""
    return _real(name, value, "in [0, 1]", lambda number: 0.0 <= number <= 1.0)


def positive(name: str, value: Any) -> float:
    """Check a finite number above 0."""
    return _real(name, value, "positive and finite", lambda number: 0.0 < number < math.inf)


def at_least(name: str, value: Any, least: float) -> float:
    """Check a finite number of at least `least`."""
    return _real(name, value, f"at least {least:g} and finite", lambda number: least <= number < math.inf)


def finite(name: str, value: Any) -> float:
    """Check a finite number."""
    return _real(name, value, "finite", math.isfinite)


def spectrum_weights(weights: ArrayLike, k: int) -> Floats:
    """Check the weights of a threshold spectrum: `k` numbers of at least 0 with a sum of at most 1."""
    array = numbers("weights", weights, "one weight a threshold", k, least=0.0)
    if array.sum() > 1.0 + _SUM_TOLERANCE:
        raise ValueError(f"weights must have a sum of at most 1; got a sum of {array.sum()}")
    return array


def powers(pass_power: Any, unanimous_power: Any) -> tuple[float, float]:
    """Check the exponents of a geometric blend."""
    checked = finite("pass_power", pass_power), finite("unanimous_power", unanimous_power)
    if checked == (0.0, 0.0):
        raise ValueError("pass_power and unanimous_power must not both be 0; got 0 and 0")
    return checked


def coupling(lam: Any, lambda_: Any, weights: ArrayLike | None, k: int) -> tuple[float, Floats | None]:
    """Check the coupling of GeoSpectrum under either name, and the weights if they matter."""
    if lambda_ is not None:
        if lam != 0.5:
            raise TypeError(f"lam and lambda_ are one argument; got lam={lam!r} and lambda_={lambda_!r}")
        share = unit("lambda_", lambda_)
    else:
        share = unit("lam", lam)
    if weights is None or share == 1.0:
        return share, None
    return share, spectrum_weights(weights, k)


def _real(
    name: str, value: Any, meaning: str = "", fits: Callable[[float], bool] = lambda number: True
) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number; got {value!r}")
    if not fits(float(value)):
        raise ValueError(f"{name} must be {meaning}; got {value!r}")
    return float(value)


def bounds_pair(bounds: Sequence[float] | None, name: str = "bounds") -> tuple[float, float]:
    """Check clipping bounds; None means none."""
    if bounds is None:
        return -math.inf, math.inf
    try:
        low, high = bounds
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be None or a pair (lo, hi); got {bounds!r}") from error
    low, high = _real(f"{name}[0]", low), _real(f"{name}[1]", high)
    if not low <= high:
        raise ValueError(f"{name} must satisfy lo <= hi; got {bounds!r}")
    return low, high


def inside(name: str, value: Any) -> float:
    """Check a number in (0, 1)."""
    return _real(name, value, "in (0, 1)", lambda number: 0.0 < number < 1.0)


def credibility(confidence: Any) -> float:
    """Check a credibility level in (0, 1)."""
    return inside("confidence", confidence)


def beta_prior(alpha0: Any, beta0: Any) -> tuple[float, float]:
    """Check the parameters of a Beta prior."""
    return positive("alpha0", alpha0), positive("beta0", beta0)


def most_unpacked(size: int) -> int:
    """Return to how many bytes a compressed file of `size` bytes may unpack: 1 GiB, or 200 times as many.

    Examples
    --------
    >>> most_unpacked(10), most_unpacked(10**7)
    (1073741824, 2000000000)
    """
    return max(2**30, 200 * size)
