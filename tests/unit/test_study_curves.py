"""Tau curves, separation of a pair, rankings with intervals and the prior study, on cases known otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau
from study_reference import score

from scorio.eval._kernels import _categories
from scorio.rank._confidence import rank_with_confidence
from scorio.study import (
    PAPER_ORIGINAL_MEANS,
    BetaUpdate,
    Bootstrap,
    Metric,
    biased_coins,
    credible_ranks,
    paper_originals,
    replicate_trials,
    tau_curves,
)
from scorio.study.credible import posterior

AVG, PASS3 = Metric("avg"), Metric("pass_at_k", k=3)


@pytest.mark.parametrize("resampling", ["columns", "rows"])
def test_tau_curves_are_the_mean_of_scipys_tau(resampling: str) -> None:
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
                taus.append(kendalltau(places, means).statistic if len(set(places)) > 1 else 0.0)
            assert curves.tau[row, n - 1] == pytest.approx(np.mean(taus))
            assert curves.standard_error[row, n - 1] == pytest.approx(np.std(taus, ddof=1) / np.sqrt(40))
    assert np.isnan(curves.tau[1, :2]).all()
    assert curves.trials.tolist() == list(range(1, 8))


def test_posterior_is_bayes_of_the_counts() -> None:
    correct = np.random.default_rng(1).integers(0, 13, (4, 5, 7))
    mu, sigma = _categories.bayes(np.stack([12 - correct, correct], axis=-1), np.array([0.0, 1.0]))
    for ours, theirs in zip(posterior(correct, 12), (mu, sigma), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


@pytest.mark.parametrize("threshold", [0.5, 1.645, 3.0])
def test_credible_ranks_are_those_of_the_ranking_package(threshold: float) -> None:
    rng = np.random.default_rng(2)
    mu, sigma = rng.random((50, 8)).round(1), 0.1 * rng.random((50, 8))
    expected = [rank_with_confidence(m, s, z=threshold) for m, s in zip(mu, sigma, strict=True)]
    assert np.array_equal(credible_ranks(mu, sigma, threshold), expected)


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
