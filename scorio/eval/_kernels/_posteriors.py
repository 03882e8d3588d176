"""Kernels of the binary metrics' posteriors.

A question's success probability ``p`` is Beta(alpha0 + c, beta0 + n - c), and the latent metric is that of
`k` independent new trials; any ``k >= 1`` and any ``n >= 0`` will do. Arguments and shapes are those of the
package.
"""

from collections.abc import Callable

import numpy as np

from scorio.arrays import Floats, Ints, floats

from . import _bank
from ._aggregate import Counted, per_pair, standard_deviation
from ._beta import (
    Nodes,
    auc_at,
    nodes,
    posterior_weights,
    power_covariance_factor,
    power_log_moments,
    power_moments,
    power_variance,
    spectrum_at,
)

Moments = tuple[Floats, Floats]
Prior = tuple[float, float]
UNIFORM: Prior = (1.0, 1.0)


def pass_at_k_posterior(trials: Counted, k: int, prior: Prior = UNIFORM) -> Moments:
    """Pass@k of new trials, ``1 - (1 - p)^k``."""

    def moments(c: Ints, size: Ints) -> Moments:
        a, b = _beta(c, size, prior)
        log_failed, log_ratio = power_log_moments(b, a, k)
        return -np.expm1(log_failed), power_variance(log_failed, log_ratio)

    return _summary(moments, trials)


def pass_hat_k_posterior(trials: Counted, k: int, prior: Prior = UNIFORM) -> Moments:
    """Pass^k (Unanimous@k, G-Pass@k) of new trials, ``p^k``."""

    def moments(c: Ints, size: Ints) -> Moments:
        return power_moments(*_beta(c, size, prior), k)

    return _summary(moments, trials)


def auc_at_k_posterior(trials: Counted, k: int, prior: Prior = UNIFORM) -> Moments:
    """AUC@K of new trials."""
    if k == 1:
        return pass_at_k_posterior(trials, 1, prior)
    return _integrated(lambda grid: auc_at(grid, k), trials, k, prior)


def maj_at_k_posterior(trials: Counted, k: int, prior: Prior = UNIFORM) -> Moments:
    """Maj@k of new trials: more than half correct."""
    return _spectrum(trials, k, _bank.threshold_scores(k, _bank.majority_threshold(k)), prior)


def g_pass_at_k_tau_posterior(trials: Counted, k: int, tau: float, prior: Prior = UNIFORM) -> Moments:
    """G-Pass@k_tau of new trials: at least ``max(1, ceil(tau k))`` correct."""
    return _spectrum(trials, k, _bank.threshold_scores(k, _bank.tau_threshold(k, tau)), prior)


def mg_pass_at_k_posterior(trials: Counted, k: int, prior: Prior = UNIFORM) -> Moments:
    """mG-Pass@k of new trials."""
    return _spectrum(trials, k, _bank.mg_scores(k), prior)


def threshold_spectrum_at_k_posterior(
    trials: Counted, k: int, weights: Floats, prior: Prior = UNIFORM
) -> Moments:
    """Threshold spectrum of new trials with `weights` ``w_1 .. w_k``."""
    return _spectrum(trials, k, _bank.cumulative_scores(weights), prior)


def geom_at_k_posterior(
    trials: Counted, k: int, pass_power: float = 0.5, unanimous_power: float = 0.5, prior: Prior = UNIFORM
) -> Moments:
    """Geom@k of new trials, by the delta method in every question."""

    def moments(c: Ints, size: Ints) -> Moments:
        # Every question is a separate dataset.
        parts = _pass_and_unanimous(Counted(c[:, None], size[:, None]), k, prior)
        return _delta(*parts, pass_power, unanimous_power)

    return _summary(moments, trials)


def geom_ds_at_k_posterior(
    trials: Counted, k: int, pass_power: float = 0.5, unanimous_power: float = 0.5, prior: Prior = UNIFORM
) -> Moments:
    """Geom_ds@k of new trials, by the delta method at the dataset's means."""
    value, variance = _delta(*_pass_and_unanimous(trials, k, prior), pass_power, unanimous_power)
    return value, np.sqrt(variance)


def geo_spectrum_at_k_posterior(
    trials: Counted, k: int, lam: float = 0.5, weights: Floats | None = None, prior: Prior = UNIFORM
) -> Moments:
    """GeoSpectrum of new trials, by the delta method at the dataset's means."""
    if weights is None:
        scores = _bank.mg_scores(k)
    else:
        scores = _bank.cumulative_scores(weights)
    if lam == 1.0:
        return pass_at_k_posterior(trials, k, prior)
    if lam == 0.0 or scores[-1] == 0.0:
        return _spectrum(trials, k, scores, prior)
    grid = _grid(trials, 2 * k, prior)
    functions = np.stack([-np.expm1(k * grid.log_q), spectrum_at(grid, k, scores)])

    def moments(c: Ints, size: Ints) -> tuple[Floats, ...]:
        return _joint_moments(grid, functions, *_beta(c, size, prior))

    passed, summary, var_passed, var_summary, covariance = per_pair(moments, trials.correct, trials.n)
    x, y = trials.mean(passed), trials.mean(summary)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = (
            np.log(x),
            np.log(y),
            2.0 * np.log(standard_deviation(var_passed, trials.question_weights)),
            2.0 * np.log(standard_deviation(var_summary, trials.question_weights)),
            _variance_of_mean(covariance, trials.question_weights) / x / y,
        )
    value, variance = _delta(*parts, lam, 1.0 - lam)
    return value, np.sqrt(variance)


def _beta(c: Ints, n: Ints, prior: Prior) -> tuple[Floats, Floats]:
    """Posterior Beta parameters."""
    return floats(prior[0] + c), floats(prior[1] + (n - c))


def _summary(moments: Callable[[Ints, Ints], Moments], trials: Counted) -> Moments:
    values, variances = per_pair(moments, trials.correct, trials.n)
    return trials.mean(values), standard_deviation(variances, trials.question_weights)


def _variance_of_mean(variances: Floats, question_weights: Floats | None) -> Floats:
    """As `standard_deviation`, squared; also for covariances, which may be negative."""
    if question_weights is None:
        return np.asarray(np.sort(variances, axis=-1).sum(-1) / variances.shape[-1] ** 2)
    return np.asarray((variances * question_weights**2).sum(-1))


def _spectrum(trials: Counted, k: int, scores: Floats, prior: Prior) -> Moments:
    """Posterior summary of ``E[scores[X]]``; a single threshold of 1 or `k` has a closed form."""
    threshold = _bank.single_threshold(scores)
    if threshold in (1, k):
        closed = pass_hat_k_posterior
        if threshold == 1:
            closed = pass_at_k_posterior
        value, deviation = closed(trials, k, prior)
        return scores[-1] * value, scores[-1] * deviation
    if scores[-1] == 0.0:
        return np.zeros(trials.correct.shape[:-1]), np.zeros(trials.correct.shape[:-1])
    return _integrated(lambda grid: spectrum_at(grid, k, scores), trials, k, prior)


def _integrated(function: Callable[[Nodes], Floats], trials: Counted, k: int, prior: Prior) -> Moments:
    """Posterior summary of a polynomial of degree `k` in ``p``, given by its values at the nodes."""
    grid = _grid(trials, 2 * k, prior)
    values = function(grid)

    def moments(c: Ints, size: Ints) -> Moments:
        a, b = _beta(c, size, prior)
        value = np.empty(a.size)
        variance = np.empty(a.size)
        for rows, weights in posterior_weights(grid, a, b):
            value[rows] = (weights * values).sum(-1)
            variance[rows] = (weights * (values - value[rows, None]) ** 2).sum(-1)
        return value, variance

    return _summary(moments, trials)


def _joint_moments(grid: Nodes, functions: Floats, a: Floats, b: Floats) -> tuple[Floats, ...]:
    """Means, variances and covariance of two functions given by their values at the nodes."""
    x, y = functions
    mean_x, mean_y, var_x, var_y, covariance = np.empty((5, a.size))
    for rows, weights in posterior_weights(grid, a, b):
        mean_x[rows] = (weights * x).sum(-1)
        mean_y[rows] = (weights * y).sum(-1)
        dx = x - mean_x[rows, None]
        dy = y - mean_y[rows, None]
        var_x[rows] = (weights * dx * dx).sum(-1)
        var_y[rows] = (weights * dy * dy).sum(-1)
        covariance[rows] = (weights * dx * dy).sum(-1)
    return mean_x, mean_y, var_x, var_y, covariance


def _grid(trials: Counted, degree: int, prior: Prior) -> Nodes:
    return nodes(*prior, int(np.max(trials.n)), degree)


def _pass_and_unanimous(
    trials: Counted, k: int, prior: Prior
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Dataset-level Pass@k and Pass^k of new trials as the arguments of `_delta`.

    Pass^k goes through logarithms: a question that is never right has ``E[p^k]`` far below the smallest
    double, and a ratio such as ``E[p^2k] / E[p^k]`` is still needed.
    """

    def moments(c: Ints, size: Ints) -> tuple[Floats, ...]:
        a, b = _beta(c, size, prior)
        log_failed, log_failed_ratio = power_log_moments(b, a, k)
        log_all, log_all_ratio = power_log_moments(a, b, k)
        failed = np.exp(log_failed)
        var_passed = power_variance(log_failed, log_failed_ratio)
        with np.errstate(divide="ignore"):
            log_var_all = 2.0 * log_all + log_all_ratio + np.log(-np.expm1(-log_all_ratio))
        return (
            -np.expm1(log_failed),
            var_passed,
            log_all,
            log_var_all,
            failed * power_covariance_factor(a + b, k),
        )

    passed, var_passed, log_all, log_var_all, covariance = per_pair(moments, trials.correct, trials.n)
    # Cov(1 - q^k, p^k) = E[p^k] E[q^k] (1 - ratio), with E[p^k] scaled by the largest among the questions.
    scale = log_all.max(axis=-1, keepdims=True)
    scaled = np.exp(log_all - scale)
    log_var_scale = log_var_all.max(axis=-1, keepdims=True)
    x, y = trials.mean(passed), trials.mean(scaled)
    var_x = _variance_of_mean(var_passed, trials.question_weights)
    scaled_var_y = _variance_of_mean(np.exp(log_var_all - log_var_scale), trials.question_weights)
    relative_covariance = _variance_of_mean(covariance * scaled, trials.question_weights) / (x * y)
    # A variance below the smallest double is 0 and its logarithm minus infinity.
    with np.errstate(divide="ignore"):
        log_var_y = np.log(scaled_var_y) + log_var_scale[..., 0]
        return np.log(x), np.log(y) + scale[..., 0], np.log(var_x), log_var_y, relative_covariance


def _delta(
    log_x: Floats,
    log_y: Floats,
    log_var_x: Floats,
    log_var_y: Floats,
    relative_covariance: Floats,
    x_power: float,
    y_power: float,
) -> Moments:
    """Value and first-order variance of ``x^a y^b``; `relative_covariance` is ``Cov(x, y) / (x y)``.

    If a factor with a positive power is 0, value and variance are 0.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        log_value = _scaled(x_power, log_x) + _scaled(y_power, log_y)
        variance = (
            _scaled(x_power**2, np.exp(2.0 * (log_value - log_x) + log_var_x))
            + _scaled(y_power**2, np.exp(2.0 * (log_value - log_y) + log_var_y))
            + _scaled(2.0 * x_power * y_power, np.exp(2.0 * log_value) * relative_covariance)
        )
        value = np.exp(log_value)
    return value, np.where(value == 0.0, 0.0, np.maximum(variance, 0.0))


def _scaled(factor: float, values: Floats) -> Floats:
    """Return ``factor * values``, with ``0 * inf = 0``."""
    if factor == 0.0:
        return np.zeros_like(values)
    return np.asarray(factor * values)
