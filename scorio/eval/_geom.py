"""Geom@k and Geom_ds@k: geometric blends of Pass@k and Unanimous@k."""

import math
from collections.abc import Callable

from numpy.typing import ArrayLike

from scorio._arguments import beta_prior, powers, resamples
from scorio.arrays import Floats

from ._inputs import BinaryTrials, Missing, read_binary
from ._interval import Interval, credible_interval
from ._kernels import _bank_metrics, _posteriors


def geom_at_k(
    R: ArrayLike | None,
    k: int,
    pass_power: float = 0.5,
    unanimous_power: float = 0.5,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""Geom@k: mean over questions of a geometric blend of Pass@k and Unanimous@k.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.
    pass_power, unanimous_power : float, default 0.5
        Exponents a of Pass@k and b of Unanimous@k, not both 0.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        As `pass_at_k`; powers not finite or both 0; a negative power of a zero.

    See Also
    --------
    geom_ds_at_k : Blends after averaging.

    Notes
    -----
    :math:`\sum_q \omega_q P_q^a U_q^b` with :math:`P_q = 1 - \binom{n_q - c_q}{k} / \binom{n_q}{k}` and
    :math:`U_q = \binom{c_q}{k} / \binom{n_q}{k}`.

    Examples
    --------
    >>> from scorio.eval import geom_at_k
    >>> round(geom_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.647106
    """
    trials = read_binary(R, counts, missing, question_weights)
    return _score(_bank_metrics.geom_at_k, trials, k, pass_power, unanimous_power)


def geom_ds_at_k(
    R: ArrayLike | None,
    k: int,
    pass_power: float = 0.5,
    unanimous_power: float = 0.5,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""Geom_ds@k: geometric blend of the dataset's Pass@k and Unanimous@k.

    Parameters
    ----------
    R, k, pass_power, unanimous_power, counts, missing, question_weights
        As in `geom_at_k`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        As `geom_at_k`.

    Notes
    -----
    :math:`\mathrm{Pass@}k(R)^a \, \mathrm{Unanimous@}k(R)^b`: the means over questions are taken first.

    Examples
    --------
    >>> from scorio.eval import geom_ds_at_k
    >>> round(geom_ds_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.653835
    """
    trials = read_binary(R, counts, missing, question_weights)
    return _score(_bank_metrics.geom_ds_at_k, trials, k, pass_power, unanimous_power)


def geom_at_k_ci(
    R: ArrayLike | None,
    k: int,
    pass_power: float = 0.5,
    unanimous_power: float = 0.5,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    alpha0: float = 1.0,
    beta0: float = 1.0,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Interval:
    r"""Approximate posterior summary of Geom@k on `k` new trials of each question.

    Parameters
    ----------
    R, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.
    k : int
        New trials, any ``k >= 1``.
    pass_power, unanimous_power : float, default 0.5
        As in `geom_at_k`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `pass_at_k_ci`; powers not finite or both 0.

    Notes
    -----
    Per question the delta method to first order around the posterior means of :math:`1 - (1 - p)^k` and
    :math:`p^k`, with their exact variances and covariance; then the mean over questions.

    Examples
    --------
    >>> from scorio.eval import geom_at_k_ci
    >>> mu, sigma, lo, hi = geom_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)
    >>> round(mu, 6), round(sigma, 6), round(lo, 4), round(hi, 4)
    (0.610666, 0.133107, 0.3498, 0.8716)
    """
    trials = read_binary(R, counts, missing, question_weights)
    mu, sigma = _posteriors.geom_at_k_posterior(
        trials, resamples(k), *powers(pass_power, unanimous_power), beta_prior(alpha0, beta0)
    )
    return credible_interval(mu, sigma, confidence, bounds)


def geom_ds_at_k_ci(
    R: ArrayLike | None,
    k: int,
    pass_power: float = 0.5,
    unanimous_power: float = 0.5,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    alpha0: float = 1.0,
    beta0: float = 1.0,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Interval:
    r"""Approximate posterior summary of Geom_ds@k on `k` new trials of each question.

    Parameters
    ----------
    R, k, pass_power, unanimous_power, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `geom_at_k_ci`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `geom_at_k_ci`.

    Notes
    -----
    The delta method to first order around the posterior means of the dataset's Pass@k and Unanimous@k.

    Examples
    --------
    >>> from scorio.eval import geom_ds_at_k_ci
    >>> mu, sigma, lo, hi = geom_ds_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)
    >>> round(mu, 6), round(sigma, 6), round(lo, 4), round(hi, 4)
    (0.612112, 0.132755, 0.3519, 0.8723)
    """
    trials = read_binary(R, counts, missing, question_weights)
    mu, sigma = _posteriors.geom_ds_at_k_posterior(
        trials, resamples(k), *powers(pass_power, unanimous_power), beta_prior(alpha0, beta0)
    )
    return credible_interval(mu, sigma, confidence, bounds)


def _score(
    kernel: Callable[..., Floats], trials: BinaryTrials, k: int, pass_power: float, unanimous_power: float
) -> float:
    """Return the score of a blend, which must be finite."""
    score = float(kernel(trials, trials.draws(k), *powers(pass_power, unanimous_power)))
    if math.isinf(score) and unanimous_power < 0.0:
        raise ValueError(
            f"unanimous_power must not be negative where Unanimous@k is 0; got {float(unanimous_power)}"
        )
    if math.isinf(score):
        raise ValueError(f"pass_power must not be negative where Pass@k is 0; got {float(pass_power)}")
    return score
