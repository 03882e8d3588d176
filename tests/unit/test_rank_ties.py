"""Tie methods, tolerance and bad input of rank_scores."""

import numpy as np
import pytest

from scorio.rank import rank_scores


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
