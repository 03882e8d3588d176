"""Values of scorio.eval: worked examples, golden numbers, extremes, tail profiles."""

import json
import math
import runpy
from itertools import groupby, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy

from scorio import eval as metrics
from scorio.eval._kernels import _beta

# Values of `scorio.eval`: the reference's worked examples and golden numbers of 80-digit arithmetic.


TESTS = Path(__file__).resolve().parent.parent
EXAMPLES = json.loads((TESTS / "data" / "eval_examples.json").read_text())
GOLDEN = json.loads((TESTS / "data" / "eval_reference.json").read_text())
GENERATOR = TESTS / "generation" / "eval_reference.py"


def by_function(cases: list[dict[str, Any]]) -> list[Any]:
    ordered = sorted(cases, key=lambda case: case["function"])
    return [
        pytest.param(list(group), id=name) for name, group in groupby(ordered, lambda case: case["function"])
    ]


@pytest.mark.parametrize("examples", by_function(EXAMPLES))
def test_the_reference_documentation_s_examples_hold(examples):
    for example in examples:
        result = getattr(metrics, example["function"])(*example["args"], **example["kwargs"])
        expected, decimals = example["expected"], example["decimals"]
        if isinstance(expected, list):
            assert [round(x, d) for x, d in zip(result, decimals, strict=True)] == expected
        else:
            assert round(result, decimals) == expected


def arguments_of(case: dict[str, Any]) -> dict[str, Any]:
    """Keywords that the golden case needs beside the outcomes."""
    name, arguments = case["function"], {}
    for key in ("k", "w", "alpha0", "beta0"):
        if key in case:
            arguments[key] = case[key]
    if name.endswith("_ci"):
        arguments["confidence"] = 0.9
    if "tau" in name:
        arguments["tau"] = 0.55
    if name.startswith("geom"):
        arguments |= {"pass_power": 0.3, "unanimous_power": 0.7}
    if name.startswith("geo_spectrum_at_k"):
        arguments["lam"] = 0.25
    if name.startswith(("geo_spectrum_at_k", "threshold")):
        k = case["k"]
        arguments["weights"] = [1.0] if k == 1 else [0.5, *[0.0] * (k - 2), 0.5]
    if case.get("prior") is not None:
        arguments["prior_counts"] = case["prior"]
    return arguments


def table_of(case: dict[str, Any]) -> np.ndarray:
    """Counts of the golden case, shape (M, C + 1)."""
    if "counts" in case:
        return np.array(case["counts"])
    return np.array([[n - c, c] for c, n in zip(case["correct"], case["n"], strict=True)])


def padded(table: np.ndarray, filler: int) -> np.ndarray:
    """A matrix of outcomes with the counts of `table`, in mixed order, short rows padded with `filler`."""
    rng = np.random.default_rng(7)
    width = table.sum(axis=1).max()
    rows = [
        rng.permutation(np.r_[np.repeat(np.arange(row.size), row), np.full(width - row.sum(), filler)])
        for row in table
    ]
    return np.array(rows, dtype=int)


def assert_close(result: Any, expected: list[float], what: str) -> None:
    values = result if isinstance(result, tuple) else (result,)
    assert len(values) == len(expected)
    for value, target in zip(values, expected, strict=True):
        assert type(value) is float
        assert math.isclose(value, target, rel_tol=1e-10, abs_tol=1e-10), f"{what}: {values} != {expected}"


@pytest.mark.parametrize("cases", by_function(GOLDEN))
def test_values_agree_with_high_precision_to_ten_digits(cases):
    for case in cases:
        table, function, arguments = table_of(case), getattr(metrics, case["function"]), arguments_of(case)
        what = json.dumps({key: case[key] for key in case if key != "expected"})
        assert_close(function(None, counts=table, **arguments), case["expected"], what)
        if np.ptp(table.sum(axis=1)) == 0:
            assert_close(function(padded(table, 0), **arguments), case["expected"], what)
        else:
            assert_close(function(padded(table, -1), missing=-1, **arguments), case["expected"], what)


def test_golden_cases_reach_a_thousand_trials_and_every_function():
    assert {case["function"] for case in GOLDEN} | {
        "unanimous_at_k",
        "unanimous_at_k_ci",
        "g_pass_at_k",
        "g_pass_at_k_ci",
    } == {name for name in metrics.__all__ if name.islower() and "tailpass" not in name}
    assert max(case["k"] for case in GOLDEN if "k" in case and max(case.get("n", [0])) == 1000) == 1000


@pytest.fixture(scope="module")
def generator() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(GENERATOR)))


def test_golden_numbers_are_the_generator_s(generator):
    requests = list(generator.requests())
    assert [{key: case[key] for key in case if key != "expected"} for case in GOLDEN] == requests
    small = [case for case in GOLDEN if sum(map(sum, case.get("counts", [case.get("n", [])]))) < 40]
    for case in small[::11]:
        assert generator.evaluate(case) == case["expected"]


# Sizes and shapes at which a plain formula overflows, cancels or runs out of memory.


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_draw_of_all_trials_is_decided_by_one(wrong):
    n = 5000
    counts = [[wrong, n - wrong]]
    every = float(wrong == 0)
    for name in ("pass_hat_k", "geom_at_k", "geom_ds_at_k"):
        assert getattr(metrics, name)(None, n, counts=counts) == every
    for name in ("pass_at_k", "maj_at_k"):
        assert getattr(metrics, name)(None, n, counts=counts) == 1.0
    assert metrics.mg_pass_at_k(None, n, counts=counts) == pytest.approx(1.0 - 2 * wrong / n, abs=1e-15)


def test_a_deviation_of_nearly_nothing_is_not_noise():
    # A majority of 101 draws is all but sure: 1 - g is about P(Binomial(101, 1/1000) > 50).
    mu, sigma, _, _ = metrics.maj_at_k_ci(None, 101, counts=[[0, 1000]])
    assert mu == pytest.approx(1.0, abs=1e-15)
    assert sigma < 1e-15
    # A spectrum that is flat between its ends: p stays near 1/2, far from both.
    weights = [0.5, *[0.0] * 398, 0.5]
    mu, sigma, _, _ = metrics.threshold_spectrum_at_k_ci(None, 400, weights, counts=[[500, 500]])
    assert mu == pytest.approx(0.5, abs=1e-14)
    assert sigma < 1e-14


def test_a_small_variance_keeps_its_digits():
    # p ~ Beta(10^9, 10^-3): 1 - p^k is about k q with E[q] = 1e-12, Var[q] = 1e-21.
    _, sigma, _, _ = metrics.pass_hat_k_ci(None, 3, counts=[[0, 3]], alpha0=1e9, beta0=1e-3)
    assert sigma == pytest.approx(3 * math.sqrt(1e-21), rel=1e-6)
    mu, sigma = metrics.bayes([[0, 1]], w=[1e12, 1e12 + 1])
    assert mu - 1e12 == pytest.approx(0.5, abs=1e-4)
    assert sigma == pytest.approx(math.sqrt(0.05), rel=1e-12)


def test_a_question_that_is_never_right_among_a_thousand():
    # E[p^1000] is about 1e-601 here, below the smallest double, and sits under a fractional power.
    mu, sigma, lo, _ = metrics.geom_ds_at_k_ci(np.zeros((2, 1000), dtype=int), 1000, 0.5, 0.01)
    assert mu == pytest.approx(math.sqrt(0.5) * 10 ** (-0.01 * 600.4), rel=1e-2)
    assert sigma > 0.0
    assert lo == 0.0


@pytest.mark.parametrize("name", ["mg_pass_at_k_ci", "maj_at_k_ci", "auc_at_k_ci", "g_pass_at_k_tau_ci"])
def test_a_large_k_sums_over_the_counts_that_can_occur(name, monkeypatch):
    tau = (0.6,) if "tau" in name else ()
    counts = [[4000, 4100], [8099, 1], [2000, 6100]]
    near = getattr(metrics, name)(None, 6000, *tau, counts=counts)
    monkeypatch.setattr(_beta, "_ALL_COUNTS", 1 << 20)
    assert getattr(metrics, name)(None, 6000, *tau, counts=counts) == pytest.approx(near, rel=1e-12)


# TailPass against sums by hand, the metrics at its ends, and values of the published package (0.2.3).


R = [[0, 1, 1, 0, 1], [1, 1, 0, 1, 1], [0, 0, 0, 0, 1]]
GRADED = [[0, 2, 1], [1, 1, 2]]
W = [0.0, 0.5, 1.0]


def test_its_ends_are_pass_at_k_and_pass_hat_k():
    profile = metrics.tailpass(R, 4)
    for found, expected in (
        (profile.discovery(), metrics.pass_at_k_ci(R, 4)),
        (profile.stability(), metrics.pass_hat_k_ci(R, 4)),
        (profile.moment(1), metrics.bayes(R)),
        ((profile.mean[0], profile.std[0]), metrics.pass_at_k_ci(R, 4)),
        ((profile.mean[2], profile.std[2]), metrics.g_pass_at_k_tau_ci(R, 4, 0.75)),
    ):
        assert found == pytest.approx(expected[:2], rel=1e-12)
    assert profile.linear([0.25] * 4) == pytest.approx(metrics.bayes(R), rel=1e-12)
    recorded = metrics.tailpass_empirical(R, 3)
    ends = (metrics.pass_at_k(R, 3), metrics.pass_hat_k(R, 3))
    assert recorded[[0, 2]].tolist() == pytest.approx(ends, rel=1e-12)


def test_graded_scores_against_sums_over_all_answers():
    alpha = np.array([2.0, 2.0, 2.0])  # one trial of each category and a uniform prior
    tails = np.zeros(4)
    for drawn in product(range(3), repeat=2):
        counts = np.bincount(drawn, minlength=3)
        orders = 1 if counts.max() == 2 else 2
        chance = scipy.stats.dirichlet_multinomial(alpha, 2).pmf(counts) / orders
        tails += chance * (np.mean(np.array(W)[list(drawn)]) >= np.array([0.25, 0.5, 0.75, 1.0]))
    found = metrics.tailpass(GRADED, 2, W, thresholds=[0.25, 0.5, 0.75, 1.0]).question_mean[0]
    assert found == pytest.approx(tails, rel=1e-12)
    # Without replacement from 0, 2, 1: every pair is drawn once.
    recorded = metrics.tailpass_empirical(GRADED[:1], 2, W, thresholds=[0.5, 0.75, 1.0])
    assert recorded == pytest.approx([2 / 3, 1 / 3, 0.0], abs=1e-12)


def test_it_reproduces_the_published_package():
    profile = metrics.tailpass(GRADED, 3, W, [[1, 0], [2, 2]], eta=0.4, prior=0.5)
    assert profile.mean.tolist() == pytest.approx(
        [0.8761092444214702, 0.49639995569176254, 0.09387192457753332], rel=1e-12
    )
    assert profile.covariance[0].tolist() == pytest.approx(
        [0.010839744331980367, 0.011609117335834957, 0.0027399459182318427], rel=1e-12
    )
    assert profile.moment(2.5) == pytest.approx((0.33425258727012513, 0.11337262387848875), rel=1e-12)
    assert profile.at_k(2).k == 2


def test_its_intervals_hold_the_mean():
    profile = metrics.tailpass(R, 4)
    exact, drawn = profile.ci(0.9, method="normal"), profile.ci(0.9, rng=1, n_draws=2000)
    for one, other in zip(exact, drawn, strict=True):
        assert other == pytest.approx(one, abs=0.03)
    mu, sigma, low, high = profile.moment_ci(2.0, method="normal")
    assert (mu, sigma) == profile.moment(2.0)
    assert low < mu < high
    assert profile.linear_ci([1, 0, 0, 0], rng=2)[2] == pytest.approx(drawn[2][0], abs=0.05)


def test_many_trials_lose_no_digits():
    profile = metrics.tailpass([[1] * 50 + [0] * 30], 60)
    expected = [scipy.stats.betabinom(60, 51, 31).sf(r - 1) for r in range(1, 61)]
    assert profile.mean == pytest.approx(expected, rel=1e-10)
