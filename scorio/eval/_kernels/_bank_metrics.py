"""Kernels of the binary metrics on the observed trials: `k` of a question's `n` drawn without replacement.

Every question has at least `k` trials. Arguments and shapes are those of the package.
"""

import numpy as np

from scorio.arrays import Floats

from . import _bank
from ._aggregate import Counted, per_count


def pass_at_k(trials: Counted, k: int) -> Floats:
    """Pass@k: at least one of `k` is correct, ``1 - C(n - c, k) / C(n, k)``."""
    return trials.mean(_pass_any(trials, k))


def pass_hat_k(trials: Counted, k: int) -> Floats:
    """Pass^k, also Unanimous@k and G-Pass@k: all of `k` are correct, ``C(c, k) / C(n, k)``."""
    return trials.mean(_pass_all(trials, k))


def auc_at_k(trials: Counted, k: int) -> Floats:
    """AUC@K: trapezoidal mean of Pass@1 .. Pass@k."""
    return trials.mean(per_count(lambda c, size: _bank.auc(c, size, k), trials.correct, trials.n))


def maj_at_k(trials: Counted, k: int) -> Floats:
    """Maj@k: more than half of `k` are correct."""
    return trials.mean(_spectrum(trials, k, _bank.threshold_scores(k, _bank.majority_threshold(k))))


def g_pass_at_k_tau(trials: Counted, k: int, tau: float) -> Floats:
    """G-Pass@k_tau: at least ``max(1, ceil(tau k))`` of `k` are correct."""
    return trials.mean(_spectrum(trials, k, _bank.threshold_scores(k, _bank.tau_threshold(k, tau))))


def mg_pass_at_k(trials: Counted, k: int) -> Floats:
    """mG-Pass@k: ``(2 / k) E[max(X - ceil(k / 2), 0)]``, X the number of correct ones among `k`."""
    return trials.mean(_spectrum(trials, k, _bank.mg_scores(k)))


def threshold_spectrum_at_k(trials: Counted, k: int, weights: Floats) -> Floats:
    """Threshold spectrum ``sum_r w_r P(X >= r)`` with `weights` ``w_1 .. w_k``."""
    return trials.mean(_spectrum(trials, k, _bank.cumulative_scores(weights)))


def geom_at_k(trials: Counted, k: int, pass_power: float = 0.5, unanimous_power: float = 0.5) -> Floats:
    """Geom@k: mean over questions of ``Pass@k^a Pass^k^b``.

    A question with Pass^k = 0 scores 0 for ``b > 0`` and infinity for ``b < 0``.
    """
    return trials.mean(_blend(_pass_any(trials, k), _pass_all(trials, k), pass_power, unanimous_power))


def geom_ds_at_k(trials: Counted, k: int, pass_power: float = 0.5, unanimous_power: float = 0.5) -> Floats:
    """Geom_ds@k: ``Pass@k^a Pass^k^b`` of the dataset's Pass@k and Pass^k."""
    return _blend(pass_at_k(trials, k), pass_hat_k(trials, k), pass_power, unanimous_power)


def geo_spectrum_at_k(trials: Counted, k: int, lam: float = 0.5, weights: Floats | None = None) -> Floats:
    """GeoSpectrum: ``Pass@k^lam S^(1 - lam)`` of the dataset; `weights` None takes mG-Pass@k as ``S``."""
    passed = pass_at_k(trials, k)
    if lam == 1.0:
        return passed
    if weights is None:
        scores = _bank.mg_scores(k)
    else:
        scores = _bank.cumulative_scores(weights)
    summary = trials.mean(_spectrum(trials, k, scores))
    return _blend(passed, summary, lam, 1.0 - lam)


def _pass_any(trials: Counted, k: int) -> Floats:
    return per_count(lambda c, size: _bank.pass_any(c, size, k), trials.correct, trials.n)


def _pass_all(trials: Counted, k: int) -> Floats:
    return per_count(lambda c, size: _bank.hat_table(size, k)[c], trials.correct, trials.n)


def _spectrum(trials: Counted, k: int, scores: Floats) -> Floats:
    """Return ``E[scores[X]]`` of each question; a single threshold of 1 or `k` has a closed form."""
    threshold = _bank.single_threshold(scores)
    if threshold == 1:
        return np.asarray(scores[-1] * _pass_any(trials, k))
    if threshold == k:
        return np.asarray(scores[-1] * _pass_all(trials, k))
    if scores[-1] == 0.0:
        return np.zeros(np.shape(trials.correct))
    return per_count(lambda c, size: _bank.spectrum(c, size, k, scores), trials.correct, trials.n)


def _blend(x: Floats, y: Floats, x_power: float, y_power: float) -> Floats:
    """Return ``x^a y^b`` with ``0^0 = 1``; if y is 0, and x perhaps with it, the sign of b decides."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.power(x, x_power) * np.power(y, y_power)
    if y_power == 0.0:
        return value
    if y_power > 0.0:
        at_zero = 0.0
    else:
        at_zero = np.inf
    return np.where(y == 0.0, at_zero, value)
