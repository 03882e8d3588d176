"""Tau curves, separation of a pair, rankings with intervals and the prior study, on cases known otherwise."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import kendalltau
from study_reference import score

from scorio.eval import _kernels
from scorio.rank._confidence import rank_with_confidence
from scorio.rank._kendall import kendall_tau_b as rank_kendall
from scorio.study import (
    PAPER_ORIGINAL_MEANS,
    BetaUpdate,
    Bootstrap,
    Coins,
    GoldStandard,
    IndependentRuns,
    Metric,
    biased_coins,
    credible_patterns,
    credible_ranks,
    pair_separation,
    paper_originals,
    prior_study,
    replicate_trials,
    tau_curves,
)
from scorio.study._pairs import kendall_tau_b, pair_signs
from scorio.study._posterior import posterior

AVG, PASS3 = Metric("avg"), Metric("pass_at_k", k=3)


@pytest.mark.parametrize("resampling", ["columns", "rows"])
def test_tau_curves_are_the_mean_of_scipys_tau(resampling: str) -> None:
    means = [0.3, 0.5, 0.5, 0.8]
    source = Bootstrap(biased_coins(means, 3, seed=1).sample(7, seed=2), resampling)
    gold = GoldStandard.from_scores(means)
    curves = tau_curves(source, [AVG, PASS3], replicates=40, seed=3, gold=gold)
    drawn = [np.asarray(replicate_trials(source, index, seed=3)) for index in range(40)]
    for row, metric in enumerate(curves.metrics):
        for n in range(metric.first, 8):
            taus = []
            for outcomes in drawn:
                scores = [score(model[:, :n], metric.name, metric.k) for model in outcomes]
                places = np.unique(np.array(scores, dtype=object), return_inverse=True)[1]
                taus.append(kendalltau(places, means).statistic if len(set(places)) > 1 else 0.0)
            assert curves.tau[row, n - 1] == pytest.approx(np.mean(taus))
            assert curves.standard_error[row, n - 1] == pytest.approx(np.std(taus, ddof=1) / np.sqrt(40))
    assert np.isnan(curves.tau[1, :2]).all()
    assert curves.trials.tolist() == list(range(1, 8))


def test_constant_rankings_count_as_zero_and_are_reported() -> None:
    outcomes = np.ones((3, 2, 4), dtype=int)
    outcomes[0, 0, :2] = 0
    curves = tau_curves(Bootstrap(outcomes), [Metric("pass_at_k", k=3)], replicates=300, seed=1)
    shown = curves.constant[0, 2:]
    assert np.all((shown > 0) & (shown < 1))
    # A ranking that is not constant has model 0 last and agrees with the gold standard in full.
    np.testing.assert_allclose(curves.tau[0, 2:], 1 - shown)


def test_first_above_reports_when_a_level_is_passed() -> None:
    source = IndependentRuns(biased_coins([0.1, 0.9], 30, seed=1), 4)
    curves = tau_curves(source, [AVG, Metric("pass_at_k", k=2)], replicates=20, seed=1)
    assert curves.first_above(0.5) == [1, 2]
    assert curves.first_above(1.0) == [None, None]


def test_tau_curves_do_not_depend_on_workers_or_on_other_metrics() -> None:
    source = Bootstrap(biased_coins(seed=1).sample(10, seed=2))
    both = tau_curves(source, [AVG, PASS3], replicates=700, seed=3)
    alone = tau_curves(source, [AVG], replicates=700, seed=3)
    with ThreadPoolExecutor(2) as executor:
        shared = tau_curves(source, [AVG, PASS3], replicates=700, seed=3, executor=executor)
    np.testing.assert_array_equal(both.tau[0], alone.tau[0])
    np.testing.assert_array_equal(both.tau, shared.tau)


def test_pairs_agree_with_the_ranking_package() -> None:
    rng = np.random.default_rng(4)
    keys, gold = rng.integers(0, 5, (200, 6)), rng.integers(0, 4, 6)
    keys[0] = 3
    np.testing.assert_allclose(kendall_tau_b(pair_signs(keys), pair_signs(gold)), rank_kendall(keys, gold))
    constant = pair_signs(np.zeros(3))
    assert kendall_tau_b(constant, constant) == 1


def test_posterior_is_bayes_of_the_counts() -> None:
    correct = np.random.default_rng(1).integers(0, 13, (4, 5, 7))
    mu, sigma = _kernels.bayes(np.stack([12 - correct, correct], axis=-1), np.array([0.0, 1.0]))
    for ours, theirs in zip(posterior(correct, 12), (mu, sigma), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


@pytest.mark.parametrize("threshold", [0.5, 1.645, 3.0])
def test_credible_ranks_are_those_of_the_ranking_package(threshold: float) -> None:
    rng = np.random.default_rng(2)
    mu, sigma = rng.random((50, 8)).round(1), 0.1 * rng.random((50, 8))
    expected = [rank_with_confidence(m, s, z=threshold) for m, s in zip(mu, sigma, strict=True)]
    assert np.array_equal(credible_ranks(mu, sigma, threshold), expected)


def test_credible_ranks_without_a_threshold_tie_equal_means_only() -> None:
    assert credible_ranks([0.5, 0.7, 0.5, 0.1], [1.0, 1.0, 1.0, 1.0], 0).tolist() == [2, 1, 2, 3]
    assert credible_ranks([0.5, 0.5, 0.4], [0.0, 0.0, 0.0]).tolist() == [1, 1, 2]


def test_patterns_are_sorted_and_their_frequencies_sum_to_one() -> None:
    patterns = credible_patterns(biased_coins([0.4, 0.45, 0.6], 10, seed=1), 10, replicates=600, seed=2)
    assert patterns.frequency.sum() == pytest.approx(1)
    assert np.all(np.diff(patterns.frequency) <= 0)
    assert patterns.frequency_of(patterns.ranks[1]) == patterns.frequency[1]
    assert patterns.frequency_of([9, 9, 9]) == 0


def test_separation_counts_order_and_ties() -> None:
    better_second = pair_separation(Coins([[0.0] * 4, [1.0] * 4]), [1, 7], replicates=30, seed=1)
    assert (better_second.correct.tolist(), better_second.tied.tolist()) == ([1, 1], [0, 0])
    close = pair_separation(biased_coins([0.5, 0.51], 3, seed=1), [1, 4], replicates=2000, seed=2)
    assert np.all(close.correct + close.tied < 1)
    assert np.all(close.tied > 0.05)


def test_separation_finds_the_first_number_of_trials_that_reaches_a_z() -> None:
    result = pair_separation(biased_coins([0.4, 0.6], 20, seed=1), range(1, 40), replicates=300, seed=2)
    at = result.trials_for_z(2.0)
    assert at is not None
    assert result.z[at - 1] >= 2 > result.z[at - 2]
    assert result.trials_for_z(1e6) is None


def test_originals_have_the_papers_means() -> None:
    originals = paper_originals(seed=3)
    assert tuple(originals.means) == PAPER_ORIGINAL_MEANS
    np.testing.assert_allclose(originals.p.mean(axis=1), PAPER_ORIGINAL_MEANS, atol=1e-14)


def test_updates_draw_from_the_perturbed_beta() -> None:
    update = BetaUpdate([20.0], [20.0], shift=10.0)
    p = update.draw(np.random.default_rng(1), 4000, 200)
    # Means of Beta(30, 30), Beta(10, 10), Beta(30, 10), Beta(10, 30), each a quarter of the models.
    means = p.mean(axis=(1, 2))
    quarters = [np.mean(np.abs(means - centre) < 0.05) for centre in (0.25, 0.5, 0.75)]
    np.testing.assert_allclose(quarters, [0.25, 0.5, 0.25], atol=0.04)


def test_a_prior_of_unchanged_certain_models_settles_the_ranking() -> None:
    spread = BetaUpdate(np.array([2.0, 50.0, 98.0]) * 100, np.array([98.0, 50.0, 2.0]) * 100, shift=0.0)
    originals = biased_coins([0.02, 0.5, 0.98], 10, seed=1)
    study = prior_study(originals, spread, depths=[4, 2], trials=2, replicates=100, seed=2)
    assert study.depths.tolist() == [0, 2, 4]
    assert study.changed == 0
    assert study.original_tau.tolist() == [1.0] * 100
    np.testing.assert_allclose(study.tau, 1.0, atol=0.01)
    np.testing.assert_array_equal(study.gain[0], 0)


def test_prior_study_does_not_depend_on_workers() -> None:
    originals = paper_originals(seed=1)
    alone = prior_study(originals, trials=3, replicates=600, seed=2)
    with ThreadPoolExecutor(2) as executor:
        shared = prior_study(originals, trials=3, replicates=600, seed=2, executor=executor)
    np.testing.assert_array_equal(alone.tau, shared.tau)
    np.testing.assert_array_equal(alone.original_tau, shared.original_tau)
