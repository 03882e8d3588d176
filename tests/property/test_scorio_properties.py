"""Laws of metrics, rankings, schemas of categories and studies, whatever the data."""

import itertools
import math
from inspect import isfunction, signature
from typing import Any

import numpy as np
import pytest
import scipy
from drawn import drawn
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.extra.numpy import arrays

from scorio import eval as metrics
from scorio import rank
from scorio.categorical import Signals, Thresholds, get_schema, schema_names
from scorio.categorical.conditions import Variable
from scorio.study import (
    NEVER,
    Bootstrap,
    Convergence,
    Metric,
    convergence,
    rank_trajectory,
    replicate_trials,
)
from scorio.study.sources import shift_to_means

# Laws of the metrics, over random matrices, counts, rewards and priors.


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


def weighted_functions():
    """Yield the functions of one model and of several that weigh questions, with what else they need."""
    others = {"k": 2, "tau": 0.6, "weights": [0.3, 0.7], "lam": 0.4, "w": [0.0, 2.0], "return_scores": True}
    for module in (metrics, rank):
        for name in sorted(module.__all__):
            function = getattr(module, name)
            known = signature(function).parameters if isfunction(function) else {}
            if "question_weights" in known:
                options = {key: value for key, value in others.items() if key in known}
                if name != "transfer":
                    yield pytest.param(function, options, False, id=f"{module.__name__}.{name}")
                if "R0" in known:
                    yield pytest.param(function, options, True, id=f"{module.__name__}.{name} with R0")


@pytest.mark.parametrize(("function", "options", "prior"), list(weighted_functions()))
def test_a_question_that_weighs_nothing_changes_nothing_and_equal_weights_are_none(function, options, prior):
    rng, weights = np.random.default_rng(4), np.array([0.5, 0.07, 0.0, 0.3, 0.13])
    shape, kept = (4, 5, 6) if "return_scores" in options else (5, 6), weights > 0.0
    R, R0 = rng.integers(0, 2, (2, *shape))

    def value(R, R0, given):
        found = function(R, question_weights=given, **options | ({"R0": R0} if prior else {}))
        return found[-1] if "return_scores" in options else np.asarray(found)

    whole = value(R, R0, weights)
    assert value(R[..., kept, :], R0[..., kept, :], weights[kept]) == pytest.approx(whole)
    assert value(R, R0, np.full(5, 0.2)) == pytest.approx(value(R, R0, None))
    assert whole != pytest.approx(value(R, R0, None)), "they weigh"
    if function is not rank.transfer:  # which reads how sure the means are
        many = value(*(np.repeat(one, 900, axis=-2) for one in (R, R0)), np.repeat(weights / 900, 900))
        assert many.flat[0] == pytest.approx(whole.flat[0]), "a question may be 900 alike"


# Invariances of rankings.


SCORES = hnp.arrays(np.int64, st.integers(1, 12), elements=st.integers(-6, 6))
TENSORS = hnp.arrays(
    np.int64, st.tuples(st.integers(2, 6), st.integers(1, 5), st.integers(2, 7)), elements=st.integers(0, 1)
)

BINARY_METRICS = [
    lambda R, **o: rank.avg(R, **o),
    lambda R, **o: rank.bayes(R, **o),
    lambda R, **o: rank.bayes(R, quantile=0.1, **o),
    lambda R, **o: rank.pass_at_k(R, 2, **o),
    lambda R, **o: rank.pass_hat_k(R, 2, **o),
    lambda R, **o: rank.auc_at_k(R, 2, **o),
    lambda R, **o: rank.maj_at_k(R, 2, **o),
    lambda R, **o: rank.g_pass_at_k_tau(R, 2, 0.5, **o),
    lambda R, **o: rank.mg_pass_at_k(R, 2, **o),
    lambda R, **o: rank.geom_at_k(R, 2, **o),
    lambda R, **o: rank.geom_ds_at_k(R, 2, **o),
    lambda R, **o: rank.geo_spectrum_at_k(R, 2, **o),
    lambda R, **o: rank.threshold_spectrum_at_k(R, 2, [0.3, 0.6], **o),
    lambda R, **o: rank.max_at_k(R, 2, **o),
]
EACH_RANKING = pytest.mark.parametrize("metric", BINARY_METRICS)


@given(SCORES)
def test_ranks_mean_what_their_names_say(scores):
    better = (scores > scores[:, None]).sum(axis=1)
    tied = (scores == scores[:, None]).sum(axis=1)
    levels = np.array([np.unique(scores[scores > score]).size for score in scores])
    assert np.array_equal(rank.rank_scores(scores, "competition"), better + 1)
    assert np.array_equal(rank.rank_scores(scores, "competition_max"), better + tied)
    assert np.array_equal(rank.rank_scores(scores, "dense"), levels + 1)
    assert np.array_equal(rank.rank_scores(scores, "avg"), better + (tied + 1) / 2)
    before = np.array([np.count_nonzero(scores[:i] == score) for i, score in enumerate(scores)])
    assert np.array_equal(rank.rank_scores(scores, "ordinal"), better + before + 1)


@pytest.mark.slow
@EACH_RANKING
@drawn(40)
@given(R=TENSORS, data=st.data())
def test_models_questions_and_trials_may_come_in_any_order(metric, R, data):
    models = np.array(data.draw(st.permutations(range(R.shape[0]))))
    questions = np.array(data.draw(st.permutations(range(R.shape[1]))))
    trials = np.array(data.draw(st.permutations(range(R.shape[2]))))
    for method in ("competition", "dense", "avg"):
        ranks = metric(R, method=method)
        assert np.array_equal(metric(R[models], method=method), ranks[models])
        assert np.array_equal(metric(R[:, questions][:, :, trials], method=method), ranks)


@EACH_RANKING
@drawn(40)
@given(R=TENSORS)
def test_equal_models_tie_and_a_better_one_is_not_behind(metric, R):
    better = np.concatenate([R, R[:1], np.maximum(R[:1], 1)])
    ranks = metric(better)
    assert ranks[0] == ranks[-2]
    assert ranks[-1] <= ranks[0]
    assert ranks[-1] == 1


POSTERIORS = st.lists(
    st.tuples(st.integers(0, 20).map(lambda x: x / 20), st.integers(0, 8).map(lambda x: x / 40)),
    min_size=1,
    max_size=9,
)


@given(POSTERIORS, st.floats(0.51, 0.999))
def test_ranking_with_intervals_is_the_papers_rule(posteriors, confidence):
    mu, sigma = np.array(posteriors).T
    # Section 2.9 as a loop: sort, and give the next model the same rank while z is below the threshold.
    threshold = math.sqrt(2) * float(scipy.special.erfinv(2 * confidence - 1))
    order = sorted(range(mu.size), key=lambda i: -mu[i])
    expected, current = [0] * mu.size, 1
    for earlier, i in itertools.pairwise([None, *order]):
        if earlier is not None:
            gap, spread = mu[earlier] - mu[i], math.hypot(sigma[earlier], sigma[i])
            z = gap / spread if spread else (math.inf if gap else 0.0)
            assume(abs(z - threshold) > 1e-9)
            current += z > threshold
        expected[i] = current
    assert rank.rank_with_confidence(mu, sigma, confidence).tolist() == expected


@given(POSTERIORS)
def test_pairs_agree_with_the_formula(posteriors):
    mu, sigma = np.array(posteriors).T
    pairs = rank.pairwise_confidence(mu, sigma)
    for i, j in itertools.product(range(mu.size), repeat=2):
        spread = math.sqrt(sigma[i] ** 2 + sigma[j] ** 2)
        if spread:
            z = abs(mu[i] - mu[j]) / spread
            assert pairs.z[i, j] == pytest.approx(z, rel=1e-13)
            assert pairs.rho[i, j] == pytest.approx(0.5 * (1 + math.erf(z / math.sqrt(2))), abs=1e-13)
    assert not np.isnan(pairs.rho).any()


@given(hnp.arrays(np.int64, st.tuples(st.just(2), st.integers(2, 9)), elements=st.integers(0, 4)))
def test_kendall_counts_pairs(rankings):
    a, b = rankings
    tau = float(rank.kendall_tau_b(a, b))
    assert tau == float(rank.kendall_tau_b(b, a))
    assert tau == -float(rank.kendall_tau_b(a, -b)) or np.ptp(a) == np.ptp(b) == 0
    assert -1.0 <= tau <= 1.0
    if np.ptp(a) and np.ptp(b):
        assert tau == pytest.approx(scipy.stats.kendalltau(a, b).statistic, abs=1e-12)
    else:
        assert tau == (1.0 if np.ptp(a) == np.ptp(b) else 0.0)


# Every schema is a partition of all attempts, whatever the signals and thresholds.


EACH_SCHEMA = pytest.mark.parametrize("name", schema_names())

# Every side of every cut: 0.5 and 0.6 are the tables' constants, thresholds lie on the other grids.
GRID = {
    "has_box": [0, 1], "is_correct": [0, 0.49, 0.5, 1], "token_ratio": [0.0, 0.2, 0.3, 0.4, 0.5],
    "repeated_pattern": [0, 1], "prompt_bpt": [0.0, 2.0, 3.0],
    "completion_bpt": [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0], "verifier_a": [0.0, 0.59, 0.6, 1.0],
    "verifier_b": [0.0, 0.3, 0.5, 1.0], "verifier_c": [0.0, 0.3, 0.49, 0.5, 1.0],
}  # fmt: skip
CUTS = ("tau_high", "tau_low_wrong", "corr_p33", "corr_p66")


def every_attempt(names):
    values = np.array(list(itertools.product(*(GRID[name] for name in names)))).T
    return Signals(**dict(zip(names, values, strict=True)))


def orders_of_thresholds(schema):
    """Yield thresholds of `schema` in every order that it accepts."""
    used = {rule.name for rule in schema.threshold_rules}
    seen = set()
    for places in itertools.product([1.0, 2.0, 3.0], repeat=len(CUTS)):
        for lower, upper in ((0.2, 0.4), (0.3, 0.3), (0.4, 0.2)):
            values = dict(zip(CUTS, places, strict=True))
            values |= {"tau_prompt": 2.0, "len_p33": lower, "len_p66": upper}
            thresholds = Thresholds({name: value for name, value in values.items() if name in used})
            swapped = any(
                {low, high} <= used and values[low] > values[high]
                for low, high in (("len_p33", "len_p66"), ("corr_p33", "corr_p66"))
            )
            if swapped:
                with pytest.raises(ValueError, match="must not exceed"):
                    thresholds.require(schema)
            elif thresholds not in seen:
                thresholds.require(schema)
                seen.add(thresholds)
                yield thresholds


@EACH_SCHEMA
def test_every_possible_attempt_has_exactly_one_category(name):
    schema = get_schema(name)
    signals = every_attempt(sorted(schema.signals | schema.optional_signals))
    seen = set()
    for thresholds in orders_of_thresholds(schema):
        assigned = schema.assign(signals, thresholds)
        seen |= set(assigned.tolist())
        known = {Variable("signal", signal): signals[signal] for signal in signals.names}
        known |= {Variable("threshold", threshold): value for threshold, value in thresholds.items()}
        truths = [category.condition.truth(known) for category in schema.categories]
        holds = np.array([np.broadcast_to(truth == 1, signals.shape) for truth in truths])
        assert all(np.all(truth != 0) for truth in truths)
        # Apart from invalid output exactly one condition holds, so that the order of categories is free.
        valid = ~holds[0]
        assert (holds[1:, valid].sum(axis=0) == 1).all()
        assert np.array_equal(assigned == 0, holds[0])
        assert np.array_equal(assigned[valid], holds[:, valid].argmax(axis=0))
    assert seen == set(range(len(schema.categories)))


# What must hold for every outcome tensor, metric and seed of a study.


METRICS = [
    Metric("avg"), Metric("pass_at_k", k=2), Metric("pass_hat_k", k=2), Metric("naive_pass_at_k", k=3),
    Metric("mg_pass_at_k", k=3), Metric("auc_at_k", k=3), Metric("geom_at_k", k=2),
    Metric("geom_ds_at_k", k=2), Metric("geo_spectrum_at_k", k=3),
]  # fmt: skip

tensors = st.tuples(st.integers(2, 4), st.integers(1, 4), st.integers(3, 9)).flatmap(
    lambda shape: arrays(np.uint8, shape, elements=st.integers(0, 1))
)
STUDIED = st.sampled_from(METRICS)
seeds = st.integers(0, 2**32)
few = drawn(60)


def study(outcomes: np.ndarray, metric: Metric, seed: int, **options: object) -> Convergence:
    return convergence(Bootstrap(outcomes), metric, replicates=20, seed=seed, **options)


@given(tensors, STUDIED, seeds)
@few
def test_a_replicate_converges_where_its_own_trajectory_does(outcomes, metric, seed):
    source = Bootstrap(outcomes)
    result = study(outcomes, metric, seed)
    for index in (0, 7, 19):
        trajectory = rank_trajectory(replicate_trials(source, index, seed=seed), metric)
        expected = trajectory.convergence(result.gold)
        assert result.at[index] == (NEVER if expected is None else expected)


@given(tensors, STUDIED, seeds, st.randoms(), st.sampled_from([0, 1]))
@few
def test_the_order_of_models_and_questions_does_not_matter(outcomes, metric, seed, shuffler, axis):
    order = list(range(outcomes.shape[axis]))
    shuffler.shuffle(order)
    moved = outcomes.take(order, axis)
    assert np.array_equal(study(outcomes, metric, seed).at, study(moved, metric, seed).at)


@given(tensors, seeds)
@few
def test_weights_of_zero_and_one_are_the_binary_case(outcomes, seed):
    weighted = Bootstrap(outcomes, weights=[-2.5, 4.0])
    assert np.array_equal(
        study(outcomes, Metric("avg"), seed).at,
        convergence(weighted, Metric("avg"), replicates=20, seed=seed).at,
    )


@given(
    arrays(np.float64, (3, 6), elements=st.floats(0, 1)), arrays(np.float64, (3,), elements=st.floats(0, 1))
)
@few
def test_shifting_reaches_every_mean_and_keeps_the_order_of_questions(p, means):
    shifted = shift_to_means(p, means)
    np.testing.assert_allclose(shifted.mean(axis=1), means, atol=1e-14)
    assert shifted.min() >= 0
    assert shifted.max() <= 1
    for before, after in zip(p, shifted, strict=True):
        assert np.all(np.diff(after[np.argsort(before, kind="stable")]) >= 0)
