"""Ranks from scores: ties, confidence, the paper's intervals, earlier results, and Kendall's tau-b."""

import math

import numpy as np
import pytest

from scorio.rank import (
    kendall_tau_b,
    pairwise_confidence,
    rank_scores,
    rank_with_confidence,
    transfer,
    transfer_posterior,
)

# Tie methods, tolerance and bad input of rank_scores.


@pytest.mark.parametrize("method", ["competition", "competition_max", "dense", "avg", "ordinal"])
def test_leading_axes_are_rankings_of_their_own(method):
    scores = np.random.default_rng(0).integers(0, 3, (4, 5, 6)) / 3
    ranks = rank_scores(scores, method)
    assert ranks.dtype == (np.float64 if method == "avg" else np.int64)
    for index in np.ndindex(4, 5):
        assert ranks[index].tolist() == rank_scores(scores[index], method).tolist()


def test_rounding_ties_and_a_trial_does_not():
    exact = np.array([0.1 + 0.2, 0.3, 0.3 - 1e-9])
    assert rank_scores(exact).tolist() == [1, 1, 3]
    assert rank_scores(exact, tol=0.0).tolist() == [1, 2, 3]


def test_tolerance_is_relative_to_the_largest_score():
    assert rank_scores([1e-200, 2e-200, 0.0]).tolist() == [2, 1, 3]
    assert rank_scores([1e9, 1e9 - 1e-7, 1e9 - 1.0]).tolist() == [1, 1, 3]


# Pairwise z, ranking confidence and the paper's ranking with credible intervals.


def test_threshold_parts_at_equality():
    # z = 0.5 / 0.25 exactly 2: below the threshold ties, at the threshold parts.
    mu, sigma = [1.0, 0.5], [0.25, 0.0]
    assert rank_with_confidence(mu, sigma, z=2.0).tolist() == [1, 2]
    assert rank_with_confidence(mu, sigma, z=np.nextafter(2.0, 3.0)).tolist() == [1, 1]


def test_methods():
    ranks = {"dense": [2, 1, 1], "competition": [3, 1, 1], "competition_max": [3, 2, 2], "ordinal": [3, 1, 2]}
    for method, expected in (*ranks.items(), ("avg", [3.0, 1.5, 1.5])):
        found = rank_with_confidence([0.50, 0.72, 0.70], [0.02] * 3, method=method)
        assert found.tolist() == expected, method


def test_no_uncertainty_is_certain_and_never_nan():
    pairs = pairwise_confidence([0.5, 0.5, 0.4], [0.0, 0.0, 0.0])
    assert pairs.z.tolist() == [[0, 0, math.inf], [0, 0, math.inf], [math.inf, math.inf, 0]]
    assert pairs.rho.tolist() == [[0.5, 0.5, 1], [0.5, 0.5, 1], [1, 1, 0.5]]
    assert rank_with_confidence([0.5, 0.5, 0.4], [0.0] * 3).tolist() == [1, 1, 2]


# Kendall's tau-b: ties, degenerate rankings, batches, agreement with SciPy.


@pytest.mark.parametrize("size", [2, 3, 11, 20, 50])
def test_perfect_agreement_and_reversal_are_exact(size):
    ranks = np.arange(1, size + 1)
    assert kendall_tau_b(ranks, ranks) == 1.0
    assert kendall_tau_b(ranks, ranks[::-1]) == -1.0
    tied = np.minimum(ranks, size - 1)
    assert kendall_tau_b(tied, tied) == (1.0)


def test_batches_broadcast():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 5, (4, 6, 9)), rng.integers(0, 5, (6, 9))
    tau = kendall_tau_b(a, b)
    assert tau.shape == (4, 6)
    for index in np.ndindex(4, 6):
        assert tau[index] == kendall_tau_b(a[index], b[index[1]])
    assert kendall_tau_b(np.empty((0, 4)), [1, 2, 3, 4]).shape == (0,)


def test_batches_larger_than_a_block():
    size = 300
    ranks = np.random.default_rng(1).permuted(np.tile(np.arange(size), (250, 1)), axis=1)
    tau = kendall_tau_b(ranks, np.arange(size))
    assert tau[-1] == kendall_tau_b(ranks[-1], np.arange(size))
    assert tau[120] == kendall_tau_b(ranks[120], np.arange(size))


# The transfer estimate: its formula, its limits, and what it refuses.


GRID = [0.0, *np.geomspace(0.01, 0.5, 24)]


def plain_posterior(x, v, x0, v0):
    """Average the normal-normal posterior over the grid of τ, model by model."""
    weights, means, variances = [], [], []
    for tau in GRID:
        density, mean, variance = 1.0, [], []
        for score, noise, before, before_noise in zip(x, v, x0, v0, strict=True):
            prior = before_noise + tau**2
            density *= np.exp(-0.5 * (score - before) ** 2 / (noise + prior)) / np.sqrt(noise + prior)
            mean.append((before * noise + score * prior) / (noise + prior))
            variance.append(noise * prior / (noise + prior))
        weights.append(density)
        means.append(mean)
        variances.append(variance)
    weight = np.array(weights) / sum(weights)
    mu = weight @ np.array(means)
    spread = weight @ (np.array(variances) + (np.array(means) - mu) ** 2)
    return mu, np.sqrt(spread), weight @ np.array(GRID)


def test_matches_a_plain_average_over_the_grid():
    rng = np.random.default_rng(1)
    x, x0 = rng.random((2, 5))
    v, v0 = 0.02 * rng.random((2, 5)) + 0.001
    found = transfer_posterior(x, v, x0, v0)
    mu, sigma, tau = plain_posterior(x, v, x0, v0)
    assert np.allclose(found.mu, mu)
    assert np.allclose(found.sigma, sigma)
    assert found.tau == pytest.approx(tau)


def test_every_leading_index_is_a_board_of_its_own():
    rng = np.random.default_rng(2)
    x, x0 = rng.random((2, 3, 4, 6))
    whole = transfer_posterior(x, 0.01, x0, 0.004)
    alone = transfer_posterior(x[2, 1], 0.01, x0[2, 1], 0.004)
    assert whole.mu.shape == (3, 4, 6)
    assert np.allclose(whole.mu[2, 1], alone.mu)
    assert np.allclose(whole.tau[2, 1], alone.tau)


def test_a_model_without_earlier_results_keeps_its_own():
    found = transfer_posterior([0.3, 0.7], [0.01, 0.02], [np.nan, 0.7], [np.nan, 0.01])
    assert found.mu[0] == 0.3
    assert found.sigma[0] == pytest.approx(0.1)


@pytest.mark.filterwarnings("error")
def test_exact_scores_divide_by_no_zero():
    found = transfer_posterior([0.0, 1.0, 0.5], 0.0, [0.0, 1.0, 0.5], 0.0)
    assert found.mu.tolist() == [0.0, 1.0, 0.5]
    assert np.isfinite(found.sigma).all()
    assert transfer_posterior([0.5], 0.0, [0.1], 0.0).mu.tolist() == [0.5]


def test_a_ranking_follows_rewards_of_any_range():
    R, earlier = [[[1, 0], [0, 1]], [[1, 1], [0, 0]], [[0, 0], [0, 1]]], [[[1], [0]], [[1], [1]], [[0], [0]]]
    _, plain = transfer(R, earlier, return_scores=True)
    _, scaled = transfer(R, earlier, [-2.0, 4.0], return_scores=True)
    assert np.allclose(scaled, 6 * plain - 2)
