"""Pairwise z, ranking confidence and the paper's ranking with credible intervals."""

import math

import numpy as np
import pytest

from scorio.rank import pairwise_confidence, rank_scores, rank_with_confidence, ranking_confidence

# The means of the paper's biased coins, LLM_11 down to LLM_1 (section 2.7).
COINS = [0.7327, 0.6213, 0.608, 0.5276, 0.5418, 0.4466, 0.3642, 0.3642, 0.3604, 0.2545, 0.2332]
# One outcome at N = 80 with the features of Table 1, row 2: LLM_9 ahead of LLM_10, no tie of LLM_5 and LLM_4.
OBSERVED = [0.7327, 0.6075, 0.6193, 0.5276, 0.5418, 0.4466, 0.3660, 0.3630, 0.3604, 0.2565, 0.2332]
SIGMA = 0.0082


def test_table_1_with_and_without_intervals():
    assert rank_scores(COINS, "dense").tolist() == [1, 2, 3, 5, 4, 6, 7, 7, 8, 9, 10]
    assert rank_scores(OBSERVED, "dense").tolist() == [1, 3, 2, 5, 4, 6, 7, 8, 9, 10, 11]
    ranks = rank_with_confidence(OBSERVED, [SIGMA] * 11, confidence=0.95)
    assert ranks.tolist() == [1, 2, 2, 3, 3, 4, 5, 5, 5, 6, 7]


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


@pytest.mark.parametrize(("z", "rho"), [(0.0, 0.5), (1.645, 0.95), (1.96, 0.975), (math.inf, 1.0)])
def test_ranking_confidence_of_the_papers_thresholds(z, rho):
    assert float(ranking_confidence(z)) == pytest.approx(rho, abs=5e-5)
