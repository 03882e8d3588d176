"""Kendall's tau-b: ties, degenerate rankings, batches, agreement with SciPy."""

import numpy as np
import pytest

from scorio.rank import kendall_tau_b


def test_by_hand_with_ties():
    # Pairs: (1,2) tied in a; (3,4) tied in b; the other four are concordant: 4 / sqrt(5 * 5).
    assert kendall_tau_b([1, 1, 3, 4], [1, 2, 3, 3]) == pytest.approx(0.8, abs=1e-15)


@pytest.mark.parametrize("size", [2, 3, 11, 20, 50])
def test_perfect_agreement_and_reversal_are_exact(size):
    ranks = np.arange(1, size + 1)
    assert kendall_tau_b(ranks, ranks) == 1.0
    assert kendall_tau_b(ranks, ranks[::-1]) == -1.0
    tied = np.minimum(ranks, size - 1)
    assert kendall_tau_b(tied, tied) == (1.0)


def test_constant_rankings_are_defined():
    assert kendall_tau_b([1, 1, 1], [1, 1, 1]) == 1.0
    assert kendall_tau_b([1, 1, 1], [1, 2, 3]) == 0.0
    assert kendall_tau_b([3, 2, 1], [2, 2, 2]) == 0.0


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
