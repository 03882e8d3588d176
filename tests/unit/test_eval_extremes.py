"""Sizes and shapes at which a plain formula overflows, cancels or runs out of memory."""

import math

import numpy as np
import pytest

from scorio import eval as metrics
from scorio.eval._kernels import _beta


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_draw_of_all_trials_is_decided_by_one(wrong: int) -> None:
    n = 5000
    counts = [[wrong, n - wrong]]
    every = float(wrong == 0)
    for name in ("pass_hat_k", "geom_at_k", "geom_ds_at_k"):
        assert getattr(metrics, name)(None, n, counts=counts) == every
    for name in ("pass_at_k", "maj_at_k"):
        assert getattr(metrics, name)(None, n, counts=counts) == 1.0
    assert metrics.mg_pass_at_k(None, n, counts=counts) == pytest.approx(1.0 - 2 * wrong / n, abs=1e-15)


def test_a_deviation_of_nearly_nothing_is_not_noise() -> None:
    # A majority of 101 draws is all but sure: 1 - g is about P(Binomial(101, 1/1000) > 50).
    mu, sigma, _, _ = metrics.maj_at_k_ci(None, 101, counts=[[0, 1000]])
    assert mu == pytest.approx(1.0, abs=1e-15)
    assert sigma < 1e-15
    # A spectrum that is flat between its ends: p stays near 1/2, far from both.
    weights = [0.5, *[0.0] * 398, 0.5]
    mu, sigma, _, _ = metrics.threshold_spectrum_at_k_ci(None, 400, weights, counts=[[500, 500]])
    assert mu == pytest.approx(0.5, abs=1e-14)
    assert sigma < 1e-14


def test_a_small_variance_keeps_its_digits() -> None:
    # p ~ Beta(10^9, 10^-3): 1 - p^k is about k q with E[q] = 1e-12, Var[q] = 1e-21.
    _, sigma, _, _ = metrics.pass_hat_k_ci(None, 3, counts=[[0, 3]], alpha0=1e9, beta0=1e-3)
    assert sigma == pytest.approx(3 * math.sqrt(1e-21), rel=1e-6)
    mu, sigma = metrics.bayes([[0, 1]], w=[1e12, 1e12 + 1])
    assert mu - 1e12 == pytest.approx(0.5, abs=1e-4)
    assert sigma == pytest.approx(math.sqrt(0.05), rel=1e-12)


def test_a_question_that_is_never_right_among_a_thousand() -> None:
    # E[p^1000] is about 1e-601 here, below the smallest double, and sits under a fractional power.
    mu, sigma, lo, _ = metrics.geom_ds_at_k_ci(np.zeros((2, 1000), dtype=int), 1000, 0.5, 0.01)
    assert mu == pytest.approx(math.sqrt(0.5) * 10 ** (-0.01 * 600.4), rel=1e-2)
    assert sigma > 0.0
    assert lo == 0.0


@pytest.mark.parametrize("name", ["mg_pass_at_k_ci", "maj_at_k_ci", "auc_at_k_ci", "g_pass_at_k_tau_ci"])
def test_a_large_k_sums_over_the_counts_that_can_occur(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tau = (0.6,) if "tau" in name else ()
    counts = [[4000, 4100], [8099, 1], [2000, 6100]]
    near = getattr(metrics, name)(None, 6000, *tau, counts=counts)
    monkeypatch.setattr(_beta, "_ALL_COUNTS", 1 << 20)
    assert getattr(metrics, name)(None, 6000, *tau, counts=counts) == pytest.approx(near, rel=1e-12)


def test_auc_of_a_large_k_is_the_trapezoidal_mean_of_pass_at_k() -> None:
    for wrong, right in ((700, 300), (999, 1), (1000, 0)):
        log_failed = [
            math.lgamma(1 + wrong + j) - math.lgamma(2 + wrong + right + j)
            - math.lgamma(1 + wrong) + math.lgamma(2 + wrong + right)
            for j in range(1, 901)
        ]  # fmt: skip
        passed = -np.expm1(log_failed)
        expected = (passed.sum() - 0.5 * (passed[0] + passed[-1])) / 899
        assert metrics.auc_at_k_ci(None, 900, counts=[wrong, right])[0] == pytest.approx(expected, rel=1e-9)


def test_sums_that_would_take_minutes_are_refused() -> None:
    with pytest.raises(ValueError, match="k and the numbers of trials must be smaller"):
        metrics.maj_at_k_ci(None, 10**6, counts=[[5 * 10**8, 5 * 10**8]])
