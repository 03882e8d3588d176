"""When a goal is reached and what it still needs, against plain definitions."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from adaptive_eval.core.goals import AllOf, BestK, Decided, Known

OPEN = np.zeros(6, dtype=bool)
NOT_ENOUGH = np.zeros((2, 6), dtype=bool)
PAIRS = list(combinations(range(4), 2))
FIRST, SECOND = np.array(PAIRS).T


def best(k):
    return BestK(np.arange(6), FIRST, SECOND, k, 4, f"best {k}")


def beaten_by(verdict):
    """Return the pairs (winner, loser) that follow from the calls, chains included."""
    said = {
        (a, b) if call == 1 else (b, a)
        for (a, b), call in zip(PAIRS, verdict, strict=True)
        if call in (1, -1)
    }
    for _ in range(4):
        said |= {(a, d) for a, b in said for c, d in said if b == c and a != d}
    return said


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("seed", range(15))
def test_the_best_k_need_the_pairs_across_the_cut_that_no_chain_settles(k, seed):
    rng = np.random.default_rng(seed)
    strength, score = rng.permutation(4), rng.random(4)
    verdict = np.array(
        [(0, 2, np.sign(strength[a] - strength[b]))[rng.integers(0, 3)] for a, b in PAIRS], dtype=np.int64
    )
    won = beaten_by(verdict)
    losses = [sum(loser == model for _, loser in won) for model in range(4)]
    top = set(sorted(range(4), key=lambda model: (losses[model] >= k, -score[model], model))[:k])
    expected = [
        call == 0 and (a in top) != (b in top) and not {(a, b), (b, a)} & won
        for (a, b), call in zip(PAIRS, verdict, strict=True)
    ]
    known = Known(verdict, OPEN, score, NOT_ENOUGH)
    assert best(k).needed(known).tolist() == expected
    assert best(k).met(known) == (() if any(expected) else (f"best {k}",))
    assert not best(k).needed(replace(known, lost=~OPEN)).any()
    # A claim settles an open pair when it is about the model of the top set.
    enough = rng.random((2, 6)) < 0.5
    known = replace(known, enough=enough)
    settled = [enough[0 if a in top else 1, row] for row, (a, b) in enumerate(PAIRS)]
    left = [needed and not claim for needed, claim in zip(expected, settled, strict=True)]
    assert best(k).needed(known).tolist() == left
    assert best(k).met(known) == (() if any(left) else (f"best {k}",))
    assert best(k).good_enough(known) == (sorted(top) if any(expected) else [])


@pytest.mark.parametrize(
    ("verdict", "every"),
    [
        ([0, 0, 0, 0, 0, 0], ()),
        ([1, 2, 0, 0, 0, 0], ()),
        ([0, 0, 0, 1, -1, 2], ()),
        ([1, 2, 0, 1, -1, 2], ("left", "right")),
    ],
)
def test_all_parts(verdict, every):
    left, right = Decided(np.array([0, 1]), "left"), Decided(np.array([3, 4, 5]), "right")
    verdict, score = np.array(verdict), np.zeros(4)
    whole, known = AllOf((left, right), "both"), Known(verdict, OPEN, score, NOT_ENOUGH)
    assert whole.met(known) == every
    opened = (verdict == 0) & [True, True, False, True, True, True]
    assert whole.needed(known).tolist() == opened.tolist()
