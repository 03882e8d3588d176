"""Kendall's tau-b: ties, degenerate rankings, batches, agreement with SciPy."""

import numpy as np
import pytest

from scorio.rank import kendall_tau_b


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
