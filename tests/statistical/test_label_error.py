"""Judges held against labels: equal models, a look after every question and after every further choice.

Seeds are fixed. A count may be what a rate of exactly 5 % exceeds with probability 1e-4 (`at_most`).
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from many_pairs import SCALE, at_most

from scorio.sequential import label_bets

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from labels import false_winners, labels_to_a_winner

pytestmark = pytest.mark.slow

RUNS = 200 * SCALE

CELLS = list(product([0.05, 0.1, 0.3], [0.0, 0.05, 0.17], [False, True]))
"""Shares, biases and whether scores are graded: all of them at night."""


@pytest.mark.parametrize(("share", "bias", "graded"), CELLS if SCALE > 1 else CELLS[::5])
def test_a_biased_judge_makes_a_wrong_winner_in_at_most_five_per_cent(share, bias, graded):
    shares = [share * factor for factor in (1.0, 1.5, 2.0, 3.0)]
    once, in_turn, alone = false_winners(RUNS, 7, shares, bias=bias, graded=graded)
    at_most(round(max(once, in_turn) * RUNS), RUNS, 0.05)
    if bias == 0.17:
        assert alone > 0.9


def test_a_good_judge_saves_labels():
    with_judge, without, ended, _ = labels_to_a_winner(60, 7, 0.1, passes=25, gap=0.1, right=0.95)
    assert ended > 0.95
    assert with_judge <= 0.8 * without


def equal_runs(kind, runs, share, seed=11):
    """Return how many runs of two equal models get a winner at any look: a sample, clusters, or two tasks."""
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(runs):
        passes, size = 2, 120
        chance = rng.uniform(0.1, 0.9, (2, size))
        question = np.tile(np.arange(size), passes)
        stake, groups = None, [question, question]
        if kind == "clusters":
            chance = rng.uniform(0.1, 0.9, (2, size // 4)).repeat(4, axis=1)  # alike within a cluster
            groups = [question, question // 4]
        if kind == "tasks":  # one is better in the small task, the other in the large one
            small = np.arange(size) % 4 == 0
            chance = np.where(small, [[0.7], [0.4]], [[0.5], [0.8]])
            stake, groups = np.where(small, 1.0, 1 / 3)[question], None
        truth = (rng.random((2, question.size)) < chance[:, question]).astype(float)
        judge = np.where(rng.random(truth.shape) < [[0.3], [0.0]], 1.0, truth)
        chosen = rng.random(question.size) < share
        bets = label_bets(
            judge, np.where(chosen, truth, np.nan), share, chosen=chosen, stake=stake, groups=groups
        )
        wrong += bets.log_e().max() >= np.log(20)
    return wrong


@pytest.mark.parametrize("kind", ["sample", "clusters", "tasks"])
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_so_with_questions_as_a_sample_in_clusters_and_with_two_tasks(kind, share):
    at_most(equal_runs(kind, RUNS, share), RUNS, 0.05)
