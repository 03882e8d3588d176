"""What earlier results of the same models do to an early ranking, in the paper's setting (section 2.8)."""

import numpy as np
import pytest

from scorio.rank import transfer_posterior
from scorio.study import BetaUpdate, paper_originals

REPLICATES = 2_000


def tau(scores, truth):
    """Mean of Kendall's tau over replicates; pairs with equal scores count for nothing."""
    first, second = np.triu_indices(truth.shape[1], 1)
    agreement = np.sign(scores[:, first] - scores[:, second]) * np.sign(truth[:, first] - truth[:, second])
    return agreement.mean()


def moments(right, trials):
    """Mean score and its variance, as avg@N has it."""
    a = (right + 1) / (trials + 2)
    variance = a * (1 - a) / (trials + 3) * ((trials + 2) / trials) ** 2
    return right.mean(axis=2) / trials, variance.sum(axis=2) / right.shape[2] ** 2


@pytest.fixture(scope="module")
def boards():
    rng = np.random.default_rng(1)
    originals = paper_originals(seed=1)
    p = BetaUpdate().draw(rng, REPLICATES, originals.questions)
    earlier = rng.binomial(8, np.broadcast_to(originals.p, p.shape))
    return rng, p, earlier


@pytest.mark.parametrize(("trials", "least"), [(1, 0.08), (5, 0.005), (20, -0.002)])
def test_transfer_gains_early_and_costs_nothing_later(boards, trials, least):
    rng, p, earlier = boards
    right, truth = rng.binomial(trials, p), p.mean(axis=2)
    mean, variance = moments(right, trials)
    found = transfer_posterior(mean, variance, *moments(earlier, 8))
    assert tau(found.mu, truth) - tau(mean, truth) >= least
