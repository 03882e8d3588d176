"""Laws of the metrics, over random matrices, counts, rewards and priors."""

from inspect import signature
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
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


@EACH_METRIC
@given(data=st.data(), before=st.integers(0, 4), behind=st.integers(0, 4))
def test_ragged_input_of_equal_counts_is_the_rectangle(name, data, before, behind):
    R, keywords = data.draw(calls_of(name))
    expected = value_of(name, R, keywords)
    categories = keywords["w"].size if "w" in keywords else 2
    counts = np.stack([np.equal(R, category).sum(axis=1) for category in range(categories)], axis=1)
    padded = np.pad(R, ((0, 0), (before, behind)), constant_values=-1)
    assert value_of(name, None, keywords, counts=counts) == expected
    assert value_of(name, padded, keywords, missing=-1) == expected
    assert value_of(name, padded, keywords, missing=padded == -1) == expected


@given(call=categorical_calls(), seed=st.integers(0, 2**32 - 1))
def test_bayes_and_avg_order_matrices_alike_at_equal_counts(call, seed):
    R, keywords = call
    w = keywords["w"]
    other = np.random.default_rng(seed).integers(0, w.size, R.shape)
    mu, sigma = metrics.bayes(R, w)
    a, sigma_a = metrics.avg(R, w)
    n, total = R.shape[1], R.shape[1] + w.size
    # Eqs. 19 and 20 of the paper: one affine map for all matrices of one size.
    assert mu == pytest.approx((w.sum() + n * a) / total, rel=1e-12, abs=1e-12)
    assert sigma_a == pytest.approx(total / n * sigma, rel=1e-12, abs=1e-12)
    other_mu, other_a = metrics.bayes(other, w)[0], metrics.avg(other, w)[0]
    assume(abs(a - other_a) > 1e-9)
    assert (mu > other_mu) == (a > other_a)


@given(call=binary_calls())
def test_all_of_k_are_right_no_oftener_than_one_and_one_no_oftener_than_any(call):
    R, keywords = call
    k, slack = keywords["k"], 1e-12
    every, any_, area = (getattr(metrics, f)(R, k) for f in ("pass_hat_k", "pass_at_k", "auc_at_k"))
    mean = metrics.avg(R)[0]
    assert -slack <= every <= mean + slack
    assert mean - slack <= area <= any_ + slack
    assert any_ <= 1.0 + slack
    assert every - slack <= metrics.maj_at_k(R, k) <= any_ + slack
    assert metrics.mg_pass_at_k(R, k) <= metrics.maj_at_k(R, k) + slack
    assert every - slack <= metrics.geom_at_k(R, k) <= metrics.geom_ds_at_k(R, k) + slack <= any_ + 2 * slack


@given(call=binary_calls(), finer=st.floats(0.0, 1.0))
def test_a_higher_threshold_is_met_less_often(call, finer):
    R, keywords = call
    k, low, high = keywords["k"], *sorted((keywords["tau"], finer))
    prior = {"alpha0": keywords["alpha0"], "beta0": keywords["beta0"]}
    assert metrics.g_pass_at_k_tau(R, k, high) <= metrics.g_pass_at_k_tau(R, k, low) + 1e-12
    above, below = (metrics.g_pass_at_k_tau_ci(R, k, tau, **prior)[0] for tau in (high, low))
    assert above <= below + 1e-12


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


@given(call=binary_calls())
def test_one_draw_is_the_mean(call):
    R, keywords = call
    mean = metrics.avg(R)[0]
    for name in ("pass_at_k", "pass_hat_k", "auc_at_k", "maj_at_k", "max_at_k", "geom_ds_at_k"):
        assert getattr(metrics, name)(R, 1) == pytest.approx(mean, abs=1e-14)
    assert metrics.g_pass_at_k_tau(R, 1, keywords["tau"]) == pytest.approx(mean, abs=1e-14)
    assert metrics.threshold_spectrum_at_k(R, 1, [1.0]) == pytest.approx(mean, abs=1e-14)
    assert metrics.mg_pass_at_k(R, 1) == metrics.mg_pass_at_k_ci(R, 1)[0] == 0.0
    posterior = metrics.bayes_ci(R, bounds=(0.0, 1.0))
    for name in ("pass_at_k_ci", "pass_hat_k_ci", "auc_at_k_ci", "maj_at_k_ci", "max_at_k_ci"):
        assert getattr(metrics, name)(R, 1) == pytest.approx(posterior, abs=1e-14)
    assert metrics.threshold_spectrum_at_k_ci(R, 1, [1.0]) == pytest.approx(posterior, abs=1e-14)


@given(call=binary_calls(), bonus=st.integers(0, 40))
def test_the_best_of_binary_outcomes_is_pass_at_k(call, bonus):
    R, keywords = call
    k = keywords["k"]
    assert metrics.max_at_k(R, k) == pytest.approx(metrics.pass_at_k(R, k), abs=1e-15)
    assert metrics.max_at_k_ci(R, k) == pytest.approx(metrics.pass_at_k_ci(R, k), abs=1e-14)
    # The posterior is one of k new trials: k may exceed N.
    more = max(1, R.shape[1] + bonus)
    expected = metrics.geom_ds_at_k_ci(R, more, pass_power=1.0, unanimous_power=0.0)
    assert metrics.max_at_k_ci(R, more) == pytest.approx(expected, abs=1e-14)


@given(call=categorical_calls(), shift=finite, scale=st.floats(0.01, 50.0))
def test_rewards_have_no_natural_zero_or_unit(call, shift, scale):
    R, keywords = call
    w, k, R0 = keywords["w"], keywords["k"], keywords["R0"]
    moved = shift + scale * w
    for name in CATEGORICAL:
        if name.endswith("_ci"):
            continue
        before, after = (value_of(name, R, {**keywords, "w": rewards}) for rewards in (w, moved))
        mean, mean_after = (value if name == "max_at_k" else value[0] for value in (before, after))
        assert mean_after == pytest.approx(shift + scale * mean, rel=1e-10, abs=1e-10)
        if name != "max_at_k":
            assert after[1] == pytest.approx(scale * before[1], rel=1e-10, abs=1e-10)
    before, after = metrics.max_at_k_ci(R, k, w, R0), metrics.max_at_k_ci(R, k, moved, R0)
    assert after[0] == pytest.approx(shift + scale * before[0], rel=1e-10, abs=1e-10)
    assert after[1] == pytest.approx(scale * before[1], rel=1e-10, abs=1e-10)


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
