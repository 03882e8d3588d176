"""Judges held against labels: equal models, a look after every question and after every further choice.

Seeds are fixed. A count may be what a rate of exactly 5 % exceeds with probability 1e-4 (`many_pairs.most`).
"""

import sys
from pathlib import Path

import pytest
from many_pairs import most

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from labels import false_winners, labels_to_a_winner

pytestmark = pytest.mark.slow

RUNS = 200


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("bias", [0.0, 0.05, 0.17])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_a_biased_judge_makes_a_wrong_winner_in_at_most_five_per_cent(share, bias, graded):
    shares = [share * factor for factor in (1.0, 1.5, 2.0, 3.0)]
    once, in_turn, alone = false_winners(RUNS, 7, shares, bias=bias, graded=graded)
    assert max(once, in_turn) * RUNS <= most(RUNS, 0.05)
    if bias == 0.17:
        assert alone > 0.9


def test_a_good_judge_saves_labels():
    with_judge, without, ended, _ = labels_to_a_winner(60, 7, 0.1, passes=25, gap=0.1, right=0.95)
    assert ended > 0.95
    assert with_judge <= 0.8 * without
