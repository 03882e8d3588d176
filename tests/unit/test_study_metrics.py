"""The keys that studies rank by are the metrics, and equal scores have equal keys."""

from fractions import Fraction
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest

from scorio.eval._kernels import _aggregate, _bank_metrics
from scorio.study import Metric, paper_metrics


def over_all_subsets(metric: Metric, right: int, n: int) -> Fraction:
    """The definition: average over every choice of k of the n trials."""
    trials = [1] * right + [0] * (n - right)
    values = [score_of_subset(metric, sum(subset)) for subset in combinations(trials, metric.k)]
    return sum(values, Fraction(0)) / len(values)


def score_of_subset(metric: Metric, hits: int) -> Fraction:
    k = metric.k
    if metric.name == "mg_pass_at_k":
        # 2/k times the number of thresholds i/k above one half that the subset reaches (paper, Eq. 24).
        return Fraction(2, k) * sum(hits >= i for i in range(-(-k // 2) + 1, k + 1))
    if metric.name == "threshold_spectrum_at_k":
        assert metric.weights is not None
        return sum((Fraction(repr(w)) for r, w in enumerate(metric.weights, 1) if hits >= r), Fraction(0))
    reached = {
        "pass_at_k": hits >= 1,
        "pass_hat_k": hits == k,
        "maj_at_k": 2 * hits > k,
        "g_pass_at_k_tau": hits >= 1 and hits >= Fraction(repr(metric.tau)) * k,
    }
    return Fraction(reached[metric.name])


SUBSET_METRICS = [
    *(Metric("pass_at_k", k=k) for k in (1, 2, 3, 6)),
    *(Metric("pass_hat_k", k=k) for k in (1, 3, 6)),
    *(Metric("maj_at_k", k=k) for k in (1, 2, 5)),
    *(Metric("mg_pass_at_k", k=k) for k in (2, 3, 6)),
    *(Metric("g_pass_at_k_tau", k=k, tau=tau) for k in (3, 5) for tau in (0.0, 0.2, 0.5, 0.6, 1.0)),
    Metric("threshold_spectrum_at_k", k=3, weights=(0.1, 0.2, 0.7)),
]


@pytest.mark.parametrize("metric", SUBSET_METRICS, ids=lambda m: f"{m.label}-{m.tau}")
def test_keys_are_proportional_to_the_mean_over_all_subsets(metric):
    n = 6
    keys = metric.keys(np.arange(n + 1)[:, None], n)
    scores = [over_all_subsets(metric, right, n) for right in range(n + 1)]
    assert metric.tolerance(n, 1) == 0
    assert any(scores)
    scale = Fraction(int(keys[n]), 1) / scores[n]
    assert [Fraction(int(key)) for key in keys] == [scale * score for score in scores]


def test_auc_is_the_trapezoid_of_pass_at_1_to_k():
    n, k = 7, 4
    passed = [
        [over_all_subsets(Metric("pass_at_k", k=j), c, n) for c in range(n + 1)] for j in range(1, k + 1)
    ]
    expected = [
        sum(((passed[j][c] + passed[j + 1][c]) / 2 for j in range(k - 1)), Fraction(0)) / (k - 1)
        for c in range(n + 1)
    ]
    keys = Metric("auc_at_k", k=k).keys(np.arange(n + 1)[:, None], n)
    assert [Fraction(int(key), int(keys[n])) for key in keys] == expected


def test_naive_pass_plugs_in_the_observed_rate():
    keys = Metric("naive_pass_at_k", k=3).keys(np.arange(5)[:, None], 4)
    assert [Fraction(int(key), int(keys[4])) for key in keys] == [
        1 - (1 - Fraction(c, 4)) ** 3 for c in range(5)
    ]


def kernel_scores(metric: Metric, correct: np.ndarray, n: int) -> np.ndarray:
    options = {"g_pass_at_k_tau": (metric.tau,), "geom_at_k": metric.powers, "geom_ds_at_k": metric.powers}
    kernel = getattr(_bank_metrics, metric.name)
    return np.asarray(kernel(_aggregate.Counted(correct, n), metric.k, *options.get(metric.name, ())))


@pytest.mark.parametrize(
    "metric",
    [
        Metric("pass_at_k", k=8), Metric("pass_hat_k", k=4), Metric("mg_pass_at_k", k=7),
        Metric("maj_at_k", k=5), Metric("auc_at_k", k=6), Metric("g_pass_at_k_tau", k=20, tau=0.55),
        Metric("geom_at_k", k=3, powers=(0.3, 0.9)), Metric("geom_ds_at_k", k=3),
    ],
    ids=lambda m: m.label,
)  # fmt: skip
def test_keys_order_models_as_the_metric_of_scorio_eval(metric):
    rng = np.random.default_rng(5)
    correct = rng.integers(0, 81, (300, 30))
    scores = kernel_scores(metric, correct, 80)
    keys = metric.keys(correct, 80)
    # One scale for all keys: a monotone, and for these metrics linear, image of the score.
    slope = keys[np.argmax(scores)] / scores.max()
    np.testing.assert_allclose(keys / slope, scores, rtol=1e-9, atol=1e-12)


def test_equal_rational_scores_tie_where_float_sums_differ():
    metric, n, questions = Metric("pass_at_k", k=3), 10, 4
    floats = np.asarray(_bank_metrics.pass_at_k(_aggregate.Counted(np.arange(n + 1)[:, None], n), 3))
    groups: dict[int, list[tuple[int, ...]]] = {}
    for counts in combinations_with_replacement(range(n + 1), questions):
        groups.setdefault(int(metric.keys(np.array(counts), n)), []).append(counts)
    exact = {
        counts: sum((over_all_subsets(metric, c, n) for c in counts), Fraction(0))
        for counts in combinations_with_replacement(range(n + 1), questions)
    }
    assert len(groups) == len(set(exact.values()))
    assert all(len({exact[counts] for counts in members}) == 1 for members in groups.values())
    misled = [g for g in groups.values() if len({float(floats[list(c)].sum()) for c in g}) > 1]
    assert misled, "the point of integer keys: plain float sums would split some ties"


def test_numerators_too_long_for_64_bits_are_rounded_and_still_tie():
    metric, n, questions = Metric("pass_at_k", k=500), 1000, 30
    tolerance = metric.tolerance(n, questions)
    assert tolerance > 0
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 6, questions)
    shuffled = metric.keys(np.stack([counts, rng.permutation(counts)]), n)
    assert abs(int(shuffled[0] - shuffled[1])) <= tolerance
    worse = counts.copy()
    worse[np.argmax(worse)] -= 1
    assert metric.keys(counts, n) - metric.keys(worse, n) > tolerance


def test_a_metric_needs_as_many_trials_as_it_draws():
    assert [metric.first for metric in paper_metrics()] == [1, 2, 4, 8, 1, 4, 4]
