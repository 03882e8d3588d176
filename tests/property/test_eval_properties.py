"""Laws of the metrics, over random matrices, counts, rewards and priors."""

from inspect import signature
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scorio import eval as metrics

POINTS = ("pass_at_k", "pass_hat_k", "auc_at_k", "maj_at_k", "mg_pass_at_k", "geom_at_k", "geom_ds_at_k")
POINTS += ("geo_spectrum_at_k", "geo_spectrum_star_at_k", "g_pass_at_k_tau", "threshold_spectrum_at_k")
BINARY = (*POINTS, *(f"{name}_ci" for name in POINTS))
CATEGORICAL = ("bayes", "bayes_ci", "avg", "avg_ci", "max_at_k", "max_at_k_ci")

finite = st.floats(-100.0, 100.0).map(lambda x: round(x, 3))


def matrices(largest: int = 1) -> st.SearchStrategy[np.ndarray]:
    shapes = st.tuples(st.integers(1, 6), st.integers(1, 9))
    return hnp.arrays(np.int64, shapes, elements=st.integers(0, largest))


@st.composite
def binary_calls(draw: st.DrawFn) -> tuple[np.ndarray, dict[str, Any]]:
    R = draw(matrices())
    k = draw(st.integers(1, R.shape[1]))
    weights = draw(hnp.arrays(np.float64, k, elements=st.floats(0.0, 1.0)))
    total = weights.sum()
    return R, {
        "k": k,
        "tau": draw(st.floats(0.0, 1.0)),
        "weights": weights / total if total > 1.0 else weights,
        "pass_power": draw(st.floats(0.1, 2.0)),
        "unanimous_power": draw(st.floats(0.1, 2.0)),
        "lam": draw(st.floats(0.0, 1.0)),
        "alpha0": draw(st.floats(0.05, 20.0)),
        "beta0": draw(st.floats(0.05, 20.0)),
    }


@st.composite
def categorical_calls(draw: st.DrawFn) -> tuple[np.ndarray, dict[str, Any]]:
    categories = draw(st.integers(1, 9))
    R = draw(matrices(categories - 1))
    w = draw(hnp.arrays(np.float64, categories, elements=finite))
    prior_shape = (R.shape[0], draw(st.integers(0, 3)))
    R0 = draw(hnp.arrays(np.int64, prior_shape, elements=st.integers(0, categories - 1)))
    return R, {"w": w, "R0": R0, "k": draw(st.integers(1, R.shape[1]))}


def value_of(name: str, R: np.ndarray | None, given_keywords: dict[str, Any], **more: Any) -> Any:
    """Call a metric with those of the keywords that it has."""
    metric = getattr(metrics, name)
    own = signature(metric).parameters.keys() & given_keywords.keys()
    return metric(R, **{key: given_keywords[key] for key in own}, **more)


EACH_METRIC = pytest.mark.parametrize("name", [*BINARY, *CATEGORICAL])


def calls_of(name: str) -> st.SearchStrategy[tuple[np.ndarray, dict[str, Any]]]:
    return categorical_calls() if name in CATEGORICAL else binary_calls()


@EACH_METRIC
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_questions_and_trials_have_no_order(name, data, seed):
    R, keywords = data.draw(calls_of(name))
    rng = np.random.default_rng(seed)
    order = rng.permutation(R.shape[0])
    moved = dict(keywords)
    if "R0" in moved:
        moved["R0"] = rng.permuted(moved["R0"][order], axis=1)
    assert value_of(name, rng.permuted(R[order], axis=1), moved) == value_of(name, R, keywords)


@given(call=binary_calls())
def test_thresholds_at_their_limits(call):
    R, keywords = call
    k, prior = keywords["k"], {"alpha0": keywords["alpha0"], "beta0": keywords["beta0"]}
    for tau in (0.0, 1.0 / k):
        assert metrics.g_pass_at_k_tau(R, k, tau) == metrics.pass_at_k(R, k)
        assert metrics.g_pass_at_k_tau_ci(R, k, tau, **prior) == metrics.pass_at_k_ci(R, k, **prior)
    assert metrics.g_pass_at_k_tau(R, k, 1.0) == metrics.pass_hat_k(R, k) == metrics.g_pass_at_k(R, k)
    every = metrics.pass_hat_k_ci(R, k, **prior)
    assert metrics.g_pass_at_k_tau_ci(R, k, 1.0, **prior) == pytest.approx(every, abs=1e-14)
    majority = (k // 2 + 1) / k
    assert metrics.g_pass_at_k_tau(R, k, majority) == metrics.maj_at_k(R, k)
    assert metrics.g_pass_at_k_tau_ci(R, k, majority, **prior) == metrics.maj_at_k_ci(R, k, **prior)


@pytest.mark.parametrize("name", BINARY)
@given(call=binary_calls())
def test_results_stay_in_range(name, call):
    R, keywords = call
    result = value_of(name, R, keywords)
    if not name.endswith("_ci"):
        assert -1e-12 <= result <= 1.0 + 1e-12
        return
    mu, sigma, lo, hi = result
    assert sigma >= 0.0
    assert 0.0 <= lo <= hi <= 1.0
    assert 0.0 <= mu <= 1.0 + 1e-12
    if not name.startswith(
        ("geom", "geo_")
    ):  # the deviation of a value in [0, 1]; the delta method knows no limit
        assert sigma**2 <= mu * (1.0 - mu) + 1e-12
