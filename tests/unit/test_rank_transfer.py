"""The transfer estimate: its formula, its limits, and what it refuses."""

import numpy as np
import pytest

from scorio.rank import transfer, transfer_posterior

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
