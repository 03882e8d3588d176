"""Evidence that a difference is not zero, valid however often one looks.

The e-value of a difference D with variance V is a Bayes factor against "no difference", with a mixture of
two normal distributions over the size of the difference. Under no difference it exceeds 1/α at any time
with probability at most α by Ville's inequality. For independent right-or-wrong answers to a sample of
questions, each asked once, this is a theorem ([1]_). For everything else it is asymptotic ([2]_) and was
checked by simulation: questions of a benchmark come without replacement, and repeats have estimated noise.

References
----------
.. [1] de la Peña, Klass, Lai, "Self-normalized processes", Annals of Probability 32 (2004).
.. [2] Howard, Ramdas, McAuliffe, Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences",
   Annals of Statistics 49 (2021).
"""

from collections.abc import Callable
from math import log, sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Bools, Floats, floats

MIXTURE: Final = ((0.75, 0.05), (0.25, 0.2))
"""(weight, standard deviation τ) of the mixture over true differences."""
MIN_TRIALS: Final = 10
"""No call before each model has answered this many trials: of fewer units no spread is known."""
GUARD: Final = log(20.0)
"""Continuity term κ of a variance at the 5 % level: as if so many more differences had been as large as they
can be. A run takes ln(1/level) for the strictest level that it reads evidence at: an e-value cannot depend on
the level, and what rare large differences need grows with ln(1/level) (docs/measurements.md)."""
TIE_FACTOR: Final = 1.05
"""Factor of the variance of every tie, chosen once between 1.03 and 1.06: an estimated variance may be too
small, and the bound of a tie has no slack. It was fitted on no cell (docs/measurements.md)."""
MEASURED: Final = 0.8
"""Share of its error rate that the interval of a score has at the look that ends its measurement; all other
looks share the rest. Chosen between .8 and .9, which needs as many trials with more room for an estimated
variance, and whose other intervals are wider (docs/measurements.md)."""
FLOOR: Final = float(np.finfo(np.float64).resolution)
"""Smallest variance, so that no division by zero can follow from identical answers."""
ROUNDING: Final = sqrt(np.finfo(np.float64).eps)
"""Differences of scores, shares and chances below it are rounding."""


def least(reached: Callable[[Floats], Bools], below: Floats, above: Floats) -> Floats:
    """Return the least values that reach something, to a ten-millionth of the way between two bounds."""
    for _ in range(24):
        middle = 0.5 * (below + above)
        enough = reached(middle)
        below, above = np.where(enough, below, middle), np.where(enough, middle, above)
    return above


def log_mean(logs: Floats) -> Floats:
    """Return the logarithm of the mean of exp(`logs`) over the last axis."""
    peak = logs.max(axis=-1, keepdims=True)
    return np.asarray(peak[..., 0] + np.log(np.exp(logs - peak).mean(axis=-1)))


def log_bayes_factor(difference: ArrayLike, variance: ArrayLike, tau: float) -> Floats:
    """Logarithm of the Bayes factor of N(0, τ²) against 0 for a normal estimate.

    Parameters
    ----------
    difference, variance : array_like of float
        Estimate D and its variance V > 0; broadcast together.
    tau : float
        Standard deviation of the difference under the alternative.

    Returns
    -------
    ndarray of float
        ``D² I x / (2 (1 + x)) − log(1 + x) / 2`` with I = 1/V and x = τ² I.

    Examples
    --------
    >>> float(log_bayes_factor(0.2, 0.002, 0.05).round(4))
    5.1501
    """
    d = floats(difference)
    v = floats(variance)
    x = tau * tau / v
    return np.asarray(0.5 * d * d / v * (x / (1.0 + x)) - 0.5 * np.log1p(x))


def log_evidence(difference: ArrayLike, variance: ArrayLike, equivalence: float | None = None) -> Floats:
    """Logarithm of the e-value that two models differ.

    Parameters
    ----------
    difference, variance : array_like of float
        Estimate D and its variance V > 0; broadcast together.
    equivalence : float, optional
        Equivalence margin ε; when set, half of the evidence is a likelihood ratio at ±ε.

    Returns
    -------
    ndarray of float
        ``log E`` with E = 0.75 BF(0.05) + 0.25 BF(0.2), or ½ E + ½ cosh(ε D / V) exp(−ε²/(2V)).

    Examples
    --------
    >>> float(log_evidence(1.0, 1 / 15).round(4)), float(log_evidence(1.0, 1 / 15, 0.02).round(4))
    (1.4485, 0.9743)
    """
    (w1, tau1), (w2, tau2) = MIXTURE
    log_e = np.logaddexp(
        log(w1) + log_bayes_factor(difference, variance, tau1),
        log(w2) + log_bayes_factor(difference, variance, tau2),
    )
    if equivalence is None:
        return np.asarray(log_e)
    log_ratio = -log_tie_evidence(difference, variance, equivalence)
    return np.asarray(np.logaddexp(log_e, log_ratio) - log(2.0))


def log_tie_evidence(difference: ArrayLike, variance: ArrayLike, equivalence: float) -> Floats:
    """Logarithm of the e-value that two models are nearer to each other than the margin.

    It is the likelihood ratio of no difference to an even mixture of differences of ε and −ε. If the true
    difference is ε it reaches 1/α at any time with probability at most α: a theorem for a Brownian path by
    Ville's inequality and symmetry, else asymptotic and checked by simulation.

    Parameters
    ----------
    difference, variance : array_like of float
        Estimate D and the variance V that it has at the margin, see :func:`margin_variance`.
    equivalence : float
        Equivalence margin ε > 0.

    Returns
    -------
    ndarray of float
        ``ε²/(2V) − log cosh(ε D / V)``.

    Examples
    --------
    >>> log_tie_evidence([0.0, 0.03], 1e-4, 0.05).round(4).tolist()
    [12.5, -1.8069]
    """
    v = floats(variance)
    shift = equivalence * np.abs(floats(difference)) / v
    return np.asarray(0.5 * equivalence**2 / v - shift - np.log1p(np.exp(-2.0 * shift)) + log(2.0))


def log_evidence_above(difference: ArrayLike, variance: ArrayLike, equivalence: ArrayLike) -> Floats:
    """Logarithm of the e-value that a difference is above −ε: the first model is good enough.

    It is that of :func:`log_evidence` with positive alternatives only, for the distance from −ε. If the
    true difference is −ε or less, it reaches 1/α at any time with probability at most α.

    Parameters
    ----------
    difference, variance : array_like of float
        Estimate D and the variance V that it has at the margin, see :func:`margin_variance`.
    equivalence : array_like of float
        Equivalence margin ε > 0.

    Returns
    -------
    ndarray of float
        ``log E`` with E = ½ Σ 2 w BF(τ) Φ(·) + ½ exp(ε(d − ε/2)/V), d = D + ε.

    Examples
    --------
    >>> log_evidence_above([0.0, 0.05, -0.05], 3e-4, 0.05).round(4).tolist()
    [3.7773, 13.978, -1.957]
    """
    from scipy.special import log_ndtr

    v = floats(variance)
    margin = floats(equivalence)
    above = floats(difference) + margin
    parts = [margin * (above - 0.5 * margin) / v]
    for weight, tau in MIXTURE:
        x = tau * tau / v
        positive = log_ndtr(above * np.sqrt(x / (1.0 + x) / v))
        parts.append(log(2.0 * weight) + log_bayes_factor(above, v, tau) + positive)
    return np.asarray(np.logaddexp.reduce(parts) - log(2.0))


def log_evidence_of_claim(
    difference: ArrayLike, slack: ArrayLike, variance: ArrayLike, margin: ArrayLike
) -> tuple[Floats, Floats]:
    """Logarithms of the e-values for and against the claim that a model is not worse by more than a margin.

    The claim is that the difference D is above −m. What speaks for it is :func:`log_evidence_above`; what
    speaks against it is the same for the difference reflected at −m.

    Parameters
    ----------
    difference, slack, variance : array_like of float
        Estimate D, how far lost answers could have moved it, and the variance V that it has at the margin.
    margin : array_like of float
        m > 0.

    Returns
    -------
    held, failed : ndarray of float
        At D = −m each reaches log(1/α) at any time with probability at most α.

    Examples
    --------
    >>> held, failed = log_evidence_of_claim([0.0, -0.1], 0.0, 3e-4, 0.05)
    >>> held.round(4).tolist(), failed.round(4).tolist()
    ([3.7773, -3.3516], [-3.3516, 3.7773])
    """
    d = floats(difference)
    lost = floats(slack)
    m = floats(margin)
    reflected = -(d + 2.0 * m)
    return log_evidence_above(d - lost, variance, m), log_evidence_above(reflected - lost, variance, m)


def tie_boundary(variance: ArrayLike, equivalence: float, alpha: float) -> Floats:
    """Largest |D| at which two models are called practically tied.

    Parameters
    ----------
    variance : array_like of float
        Variance V of the difference at the margin.
    equivalence : float
        Equivalence margin ε > 0.
    alpha : float
        Error probability of a false tie at a true difference of ε.

    Returns
    -------
    ndarray of float
        ``(V/ε) arccosh(exp(ε²/(2V) − log(1/α)))``, where :func:`log_tie_evidence` is log(1/α); minus infinity
        while a tie cannot be called.

    Examples
    --------
    >>> float(tie_boundary(1e-4, 0.05, 0.05).round(6)), float(tie_boundary(1e-3, 0.05, 0.05))
    (0.020395, -inf)
    """
    v = floats(variance)
    exponent = 0.5 * equivalence**2 / v - log(1.0 / alpha)
    y = np.maximum(exponent, 0.0)
    radius = v / equivalence * (y + np.log1p(np.sqrt(-np.expm1(-2.0 * y))))
    return np.where(exponent >= 0.0, radius, -np.inf)


def margin_variance(
    difference: ArrayLike,
    variance: ArrayLike,
    trials: ArrayLike,
    equivalence: ArrayLike,
    step: ArrayLike = 1.0,
) -> Floats:
    """Variance of a difference if its true value were the margin (a score test).

    Differences of single right-or-wrong trials are −1, 0 or 1. If few of them are not 0 by chance, their mean
    and their spread are small together, and an estimated variance calls ties too soon. With q = V·n the mean
    square of a difference, the multinomial distribution of mean ε that is nearest to what was seen has
    q̃² − q̃(q + |D|ε) + |D|ε − ε²(1 − q) = 0 ([1]_).

    Parameters
    ----------
    difference, variance : array_like of float
        Estimate D and its variance V.
    trials : array_like of float
        n, trials of each model.
    equivalence : array_like of float
        Equivalence margin ε > 0.
    step : array_like of float
        The size of a typical difference that is not 0, squared: 1 for right-or-wrong answers, mean d⁴ over
        mean d² else.

    Returns
    -------
    ndarray of float
        q̃/n.

    References
    ----------
    .. [1] Tango, "Equivalence test and confidence interval for the difference in proportions for the
       paired-sample design", Statistics in Medicine 17 (1998).

    Examples
    --------
    >>> float(margin_variance(0.0, 0.002, 100, 0.05).round(6)), float(margin_variance(0.05, 0.002, 100, 0.05))
    (0.002095, 0.002)
    """
    size = np.sqrt(floats(step))
    n = floats(trials)
    epsilon = floats(equivalence) / size
    d = np.abs(floats(difference)) / size
    q = np.asarray(variance) * n / size**2
    half = 0.5 * (q + d * epsilon)
    root = half**2 - epsilon * (d - epsilon * (1.0 - q))
    return np.asarray(size**2 / n * np.maximum(half + np.sqrt(np.maximum(root, 0.0)), epsilon))


def tie_variance(
    difference: ArrayLike,
    variance: ArrayLike,
    guarded: ArrayLike,
    trials: ArrayLike,
    equivalence: ArrayLike,
    step: ArrayLike = 1.0,
) -> Floats:
    """Variance with which a tie is called: that of the score test at the margin times :data:`TIE_FACTOR`.

    The bound of a tie has no slack, so an estimated variance must not be too small. While nothing has
    differed, there is nothing to estimate: models that differ by ε agree n times with a chance of (1 − ε)ⁿ
    at most, and the evidence is no more than the logarithm of 1 over it.

    Parameters
    ----------
    difference, variance, guarded : array_like of float
        Estimate D, its variance V and the same with the continuity term, V_κ.
    trials : array_like of float
        n, trials of each model.
    equivalence : array_like of float
        Equivalence margin ε > 0.
    step : array_like of float
        As in :func:`margin_variance`.

    Returns
    -------
    ndarray of float
        V at the margin, at least V_κ, times the factor.

    Examples
    --------
    >>> tie_variance([0.0, 0.0], [0.002, 0.0], [0.0022, 0.0002], 100, 0.05).round(6).tolist()
    [0.00231, 0.000256]
    """
    v = floats(variance)
    n = np.maximum(trials, 1.0)
    epsilon = floats(equivalence)
    at_margin = margin_variance(difference, v, n, epsilon, step)
    unseen = epsilon**2 / (-2.0 * n * np.log1p(-np.minimum(epsilon, 0.999)))
    at_margin = np.where(v > FLOOR, at_margin, unseen)
    return np.asarray(TIE_FACTOR * np.maximum(at_margin, guarded))


def confidence_radius(variance: ArrayLike, alpha: float, equivalence: float | None = None) -> Floats:
    """Half-width of the confidence sequence: the D at which the e-value reaches 1/α.

    Parameters
    ----------
    variance : array_like of float
        Variance V > 0 of the estimate.
    alpha : float
        Error probability of the whole sequence, in (0, 1).
    equivalence : float, optional
        Equivalence margin ε of the evidence, see :func:`log_evidence`.

    Returns
    -------
    ndarray of float
        Radius r: all D₀ with ``E(D − D₀) < 1/α`` form the interval D ± r.

    Raises
    ------
    ValueError
        If `alpha` is not in (0, 1).

    Examples
    --------
    >>> radius = confidence_radius(0.0004, 0.05)
    >>> bool(abs(log_evidence(radius, 0.0004) - np.log(20)) < 1e-9)
    True
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie in (0, 1), got {alpha}")
    v = np.minimum(floats(variance), 1e12)  # it is infinite where nothing is known
    target = log(1.0 / alpha)
    share = 1.0 if equivalence is None else 0.5
    low, high = np.zeros_like(v), np.full_like(v, np.inf)
    for weight, tau in MIXTURE:
        # The mixture reaches the target where one of its components does alone, or before.
        x = tau * tau / v
        alone = np.sqrt(2.0 * v * (1.0 + x) / x * (target - log(share * weight) + 0.5 * np.log1p(x)))
        high = np.minimum(high, alone)
    # Newton's method, kept within the bracket: the evidence rises with the difference. About five steps.
    # Each value stays as it was found, so that it does not depend on which others are sought with it.
    radius = high
    found = np.zeros(v.shape, dtype=bool)
    precision = 1e-13
    for _ in range(60):
        value, slope = _evidence_and_slope(radius, v, equivalence)
        below = value < target
        low, high = np.where(below, radius, low), np.where(below, high, radius)
        step = radius - (value - target) / slope
        within = (step >= low) & (step <= high * (1.0 + precision))  # at the root, rounding may overstep
        following = np.where(within, step, 0.5 * (low + high))
        near = np.abs(following - radius) <= precision * radius
        radius = np.where(found, radius, following)
        found |= near
        if found.all():
            break
    return np.asarray(radius)


def measured_radius(variance: ArrayLike, alpha: ArrayLike) -> Floats:
    """Half-width of the interval of a score at the one look at which it is as narrow as was asked.

    A width that is asked says beforehand at which variance that look comes, so nearly all of the error rate
    is kept for it: the interval is that of one look ([1]_). The variance has :data:`TIE_FACTOR`, since
    an estimated one may be too small, and here nothing else allows for it. At all other looks the interval is
    :func:`confidence_radius` for the rest, ``alpha (1 − MEASURED)``; so all looks together miss with
    probability `alpha`. This is asymptotic and was checked by simulation.

    Parameters
    ----------
    variance : array_like of float
        Variance V > 0 of the score.
    alpha : array_like of float
        Error probability of all looks, in (0, 1).

    Returns
    -------
    ndarray of float
        ``z √(1.05 V)``, z the normal quantile of a two-sided test at ``alpha MEASURED``.

    References
    ----------
    .. [1] Chow, Robbins, "On the asymptotic theory of fixed-width sequential confidence intervals for the
       mean", Annals of Mathematical Statistics 36 (1965).

    Examples
    --------
    >>> float(measured_radius(0.0004, 0.05).round(6))
    0.042089
    """
    from scipy.special import ndtri

    z = -ndtri(0.5 * MEASURED * floats(alpha))
    return np.asarray(z * np.sqrt(TIE_FACTOR * floats(variance)))


def _evidence_and_slope(d: Floats, v: Floats, equivalence: float | None) -> tuple[Floats, Floats]:
    """Return :func:`log_evidence` at D > 0 and its derivative by D."""
    parts, slopes = [], []
    for weight, tau in MIXTURE:
        x = tau * tau / v
        slope = d / v * (x / (1.0 + x))
        parts.append(log(weight) + 0.5 * d * slope - 0.5 * np.log1p(x))
        slopes.append(slope)
    value = np.asarray(np.logaddexp(*parts))
    slope = np.exp(parts[0] - value) * slopes[0] + np.exp(parts[1] - value) * slopes[1]
    if equivalence is None:
        return value, slope
    shift = equivalence * d / v
    ratio = shift + np.log1p(np.exp(-2.0 * shift)) - log(2.0) - 0.5 * equivalence**2 / v
    whole = np.logaddexp(value, ratio)
    slope = np.exp(value - whole) * slope + np.exp(ratio - whole) * equivalence / v * np.tanh(shift)
    return whole - log(2.0), slope
