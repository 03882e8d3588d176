"""Studies: convergence, curves, sources, and the keys that they rank by."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb

import numpy as np
import pytest
import scipy
from study_reference import convergence_at, ranking, score

from scorio.eval._kernels import _aggregate, _bank_metrics, _categories
from scorio.rank._confidence import rank_with_confidence
from scorio.study import (
    NEVER,
    PAPER_MEANS,
    PAPER_ORIGINAL_MEANS,
    BetaUpdate,
    Bootstrap,
    Coins,
    Convergence,
    Metric,
    biased_coins,
    convergence,
    convergence_growth,
    credible_ranks,
    paper_metrics,
    paper_originals,
    rank_trajectory,
    replicate_trials,
    tau_curves,
)
from scorio.study.credible import posterior

# convergence@n is what its definition says, replicate by replicate.


AVG = Metric("avg")


def recorded(models: int = 4, questions: int = 5, trials: int = 12, seed: int = 1) -> np.ndarray:
    return biased_coins(np.linspace(0.2, 0.9, models), questions, seed=seed).sample(trials, seed=seed + 1)


def gold_ranks(outcomes: np.ndarray) -> list[int]:
    return ranking(outcomes, "avg", 1)


@pytest.mark.parametrize("resampling", ["columns", "columns-per-model", "rows"])
@pytest.mark.parametrize("metric", [AVG, Metric("bayes"), Metric("pass_at_k", k=2), Metric("pass_at_k", k=4)])
@pytest.mark.parametrize("confirm", [0, 1, 3])
def test_every_replicate_agrees_with_the_definition(resampling, metric, confirm):
    outcomes = recorded()
    source = Bootstrap(outcomes, resampling)
    result = convergence(source, metric, replicates=60, seed=9, confirm=confirm)
    gold = gold_ranks(outcomes)
    for index, at in enumerate(result.at):
        drawn = np.asarray(replicate_trials(source, index, seed=9))
        expected = convergence_at(drawn, gold, metric.name, metric.k, confirm)
        assert (None if at == NEVER else at) == expected
    assert len({int(at) for at in result.at}) > 3, "the case must not be trivial"


def test_workers_do_not_change_the_result():
    source, metric = Bootstrap(recorded()), Metric("pass_at_k", k=3)
    alone = convergence(source, metric, replicates=3000, seed=3)
    for executor in (ThreadPoolExecutor(3), ProcessPoolExecutor(2)):
        with executor:
            shared = convergence(source, metric, replicates=3000, seed=3, executor=executor)
        assert np.array_equal(alone.at, shared.at)


def example(at: list[int]) -> Convergence:
    return Convergence(AVG, np.array([1, 2]), 5, np.array(at, dtype=np.int32), np.random.SeedSequence(1))


def test_summaries_keep_the_replicates_that_never_converge_apart():
    result = example([1, 3, 3, NEVER])
    assert result.pmf().tolist() == [0.25, 0, 0.5, 0, 0]
    assert result.cdf().tolist() == [0.25, 0.25, 0.75, 0.75, 0.75]
    assert result.never == 0.25
    assert result.converged.tolist() == [True, True, True, False]
    assert result.mean == pytest.approx(7 / 3)
    assert result.mean_at_least == 3.0
    assert (result.quantile(0.25), result.quantile(0.5), result.quantile(0.76)) == (1, 3, float("inf"))
    assert result.worst == 3
    assert example([2, 4, 4]).worst == 1


@pytest.mark.parametrize("metric", [AVG, Metric("pass_at_k", k=3)])
def test_rank_trajectory_follows_the_recorded_order(metric):
    outcomes = recorded(seed=6)
    trajectory = rank_trajectory(outcomes, metric)
    assert trajectory.trials.tolist() == list(range(metric.first, 13))
    expected = [ranking(outcomes[:, :, :n], metric.name, metric.k) for n in trajectory.trials]
    assert trajectory.ranks.tolist() == expected
    gold = rank_trajectory(outcomes, AVG).ranks[-1]
    for confirm in (0, 1, 4):
        settled = convergence_at(outcomes, gold_ranks(outcomes), metric.name, metric.k, confirm)
        assert trajectory.convergence(gold, confirm=confirm) == settled
    apart = np.broadcast_to(np.array([1, 0])[:, None, None], (2, 3, 12))
    settled = rank_trajectory(apart, metric).convergence([1, 2])
    assert settled == metric.first, "it is the gold ranking from the first that the metric gives"


@pytest.mark.parametrize("metric", [AVG, Metric("pass_at_k", k=2)])
def test_growth_is_convergence_of_each_subset(metric):
    outcomes = recorded(models=5, seed=12)
    outcomes[3] = outcomes[1]
    source = Bootstrap(outcomes)
    subsets = [(0, 4), (4, 0, 2), (1, 3), (3, 2, 1, 0), (0, 1, 2, 3, 4)]
    growth = convergence_growth(source, subsets, metric, replicates=100, seed=5)
    assert list(growth) == subsets
    for subset, result in growth.items():
        # Rankings of a subset from the pool's replicates: the same columns, fewer models.
        gold = gold_ranks(outcomes[list(subset)])
        assert result.gold.tolist() == gold
        for index, at in enumerate(result.at):
            drawn = np.asarray(replicate_trials(source, index, seed=5))[list(subset)]
            assert (None if at == NEVER else at) == convergence_at(drawn, gold, metric.name, metric.k, 1)


# Tau curves, separation of a pair, rankings with intervals and the prior study, on cases known otherwise.


PASS3 = Metric("pass_at_k", k=3)


@pytest.mark.parametrize("resampling", ["columns", "rows"])
def test_tau_curves_are_the_mean_of_scipys_tau(resampling):
    means = [0.3, 0.5, 0.5, 0.8]
    source = Bootstrap(biased_coins(means, 3, seed=1).sample(7, seed=2), resampling)
    gold = [4, 2, 2, 1]
    curves = tau_curves(source, [AVG, PASS3], replicates=40, seed=3, gold=gold)
    drawn = [np.asarray(replicate_trials(source, index, seed=3)) for index in range(40)]
    for row, metric in enumerate(curves.metrics):
        for n in range(metric.first, 8):
            taus = []
            for outcomes in drawn:
                scores = [score(model[:, :n], metric.name, metric.k) for model in outcomes]
                places = np.unique(np.array(scores, dtype=object), return_inverse=True)[1]
                taus.append(scipy.stats.kendalltau(places, means).statistic if len(set(places)) > 1 else 0.0)
            assert curves.tau[row, n - 1] == pytest.approx(np.mean(taus))
            assert curves.standard_error[row, n - 1] == pytest.approx(np.std(taus, ddof=1) / np.sqrt(40))
    assert np.isnan(curves.tau[1, :2]).all()
    assert curves.trials.tolist() == list(range(1, 8))


def test_posterior_is_bayes_of_the_counts():
    correct = np.random.default_rng(1).integers(0, 13, (4, 5, 7))
    mu, sigma = _categories.bayes(np.stack([12 - correct, correct], axis=-1), np.array([0.0, 1.0]))
    for ours, theirs in zip(posterior(correct, 12), (mu, sigma), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


@pytest.mark.parametrize("threshold", [0.5, 1.645, 3.0])
def test_credible_ranks_are_those_of_the_ranking_package(threshold):
    rng = np.random.default_rng(2)
    mu, sigma = rng.random((50, 8)).round(1), 0.1 * rng.random((50, 8))
    expected = [rank_with_confidence(m, s, z=threshold) for m, s in zip(mu, sigma, strict=True)]
    assert np.array_equal(credible_ranks(mu, sigma, threshold), expected)


def test_originals_have_the_papers_means():
    originals = paper_originals(seed=3)
    assert tuple(originals.means) == PAPER_ORIGINAL_MEANS
    np.testing.assert_allclose(originals.p.mean(axis=1), PAPER_ORIGINAL_MEANS, atol=1e-14)


def test_updates_draw_from_the_perturbed_beta():
    update = BetaUpdate([20.0], [20.0], shift=10.0)
    p = update.draw(np.random.default_rng(1), 4000, 200)
    # Means of Beta(30, 30), Beta(10, 10), Beta(30, 10), Beta(10, 30), each a quarter of the models.
    means = p.mean(axis=(1, 2))
    quarters = [np.mean(np.abs(means - centre) < 0.05) for centre in (0.25, 0.5, 0.75)]
    np.testing.assert_allclose(quarters, [0.25, 0.5, 0.25], atol=0.04)


# Coins have the stated means, bootstraps resample what they say, and a seed means the same replicates.


@pytest.mark.parametrize("concentration", [0.3, 2.0, 8.0, 500.0])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_coins_have_exactly_the_stated_means(concentration, correlation):
    means = (0.0, 0.003, *PAPER_MEANS, 0.999, 1.0)
    coins = biased_coins(means, 30, seed=4, concentration=concentration, correlation=correlation)
    np.testing.assert_allclose(coins.p.mean(axis=1), means, rtol=0, atol=1e-14)
    assert coins.p.min() >= 0
    assert coins.p.max() <= 1
    assert tuple(coins.means) == means


def test_sampling_follows_the_probabilities():
    coins = Coins([[0.0, 1.0, 0.3]])
    outcomes = coins.sample(20_000, seed=1)
    assert outcomes.shape == (1, 3, 20_000)
    assert outcomes[0, 0].sum() == 0
    assert outcomes[0, 1].sum() == 20_000
    assert abs(outcomes[0, 2].mean() - 0.3) < 6 * np.sqrt(0.21 / 20_000)


@pytest.mark.parametrize(("resampling", "apart"), [("columns", 1), ("columns-per-model", 2), ("rows", 6)])
def test_a_bootstrap_draws_trials_with_replacement_together_or_each_row_by_itself(resampling, apart):
    """Every (model, question, trial) has a code of its own, so that a draw can be traced."""
    codes = np.arange(2 * 3 * 5).reshape(2, 3, 5)
    source = Bootstrap(codes, resampling, trials=40, weights=np.arange(30.0))
    drawn = np.asarray(replicate_trials(source, 0, seed=1))
    assert np.array_equal(drawn // 5, np.broadcast_to(codes[:, :, :1] // 5, (2, 3, 40)))
    trial = drawn % 5
    rows = trial.reshape(6, 40)
    assert len({tuple(row) for row in rows}) == apart
    assert all(set(row) == set(range(5)) for row in rows)
    assert resampling == "rows" or np.all(trial == trial[:, :1])


def test_more_than_255_recorded_trials_and_drawn_ones():
    outcomes = np.zeros((1, 1, 300), dtype=int)
    outcomes[0, 0, :299] = 1
    for resampling in ("columns", "rows"):
        source = Bootstrap(outcomes, resampling, trials=400)
        drawn = np.asarray(replicate_trials(source, 0, seed=1))
        assert drawn.sum() > 380
        total = sum(int(step.sum()) for step in source.totals(np.random.default_rng(1), 1))
        assert total > 380


def test_weights_mean_the_decimal_numbers_they_are_written_as():
    # 0.1 + 0.2 and 0.3 + 0 are equal scores, though not as floats.
    outcomes = np.array([[[1, 2]], [[3, 0]]])
    assert Bootstrap(outcomes, weights=[0.0, 0.1, 0.2, 0.3]).gold().tolist() == [1, 1]


def test_permuted_columns_hold_every_recorded_trial_once():
    outcomes = (np.random.default_rng(2).random((3, 4, 6)) < 0.5).astype(int)
    source = Bootstrap(outcomes, "permuted-columns")
    found = replicate_trials(source, 3, seed=1)
    columns = sorted(map(bytes, np.ascontiguousarray(found.transpose(2, 0, 1), dtype=np.uint8)))
    assert columns == sorted(map(bytes, np.ascontiguousarray(outcomes.transpose(2, 0, 1), dtype=np.uint8)))
    assert not np.array_equal(found, outcomes)
    assert Bootstrap(outcomes, "permuted-columns", trials=2).trials == 2
    with pytest.raises(ValueError, match="trials must be at most the 6 recorded ones"):
        Bootstrap(outcomes, "permuted-columns", trials=7)


# The keys that studies rank by are the metrics, and equal scores have equal keys.


def test_naive_pass_plugs_in_the_observed_rate():
    keys = Metric("naive_pass_at_k", k=3).keys(np.arange(5)[:, None], 4)
    assert [Fraction(int(key), int(keys[4])) for key in keys] == [
        1 - (1 - Fraction(c, 4)) ** 3 for c in range(5)
    ]


def kernel_scores(metric: Metric, correct: np.ndarray, n: int) -> np.ndarray:
    options = {"g_pass_at_k_tau": (metric.tau,), "geom_at_k": metric.powers, "geom_ds_at_k": metric.powers}
    options["threshold_spectrum_at_k"] = (np.array(metric.weights, dtype=float),)
    kernel = getattr(_bank_metrics, metric.name)
    return np.asarray(kernel(_aggregate.Counted(correct, n), metric.k, *options.get(metric.name, ())))


@pytest.mark.parametrize(
    "metric",
    [
        Metric("pass_at_k", k=8), Metric("pass_hat_k", k=4), Metric("mg_pass_at_k", k=7),
        Metric("maj_at_k", k=5), Metric("auc_at_k", k=6), Metric("g_pass_at_k_tau", k=20, tau=0.55),
        Metric("maj_at_k", k=2), Metric("mg_pass_at_k", k=2), Metric("auc_at_k", k=1),
        Metric("threshold_spectrum_at_k", k=3, weights=(0.1, 0.2, 0.7)),
        *(Metric("g_pass_at_k_tau", k=10, tau=tau) for tau in (0.0, 0.1, 0.7, 1.0)),
        Metric("geom_at_k", k=3, powers=(0.3, 0.9)), Metric("geom_ds_at_k", k=3),
    ],
    ids=lambda m: f"{m.label}-{m.tau}",
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
    missed = [comb(n - right, 3) for right in range(n + 1)]  # of the 120 ways to draw three of ten
    exact = [{sum(missed[c] for c in counts) for counts in members} for members in groups.values()]
    assert all(len(scores) == 1 for scores in exact)
    assert len(groups) == len(set.union(*exact))
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
