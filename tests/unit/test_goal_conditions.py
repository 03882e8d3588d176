"""When a goal is reached and what it still needs, against plain definitions."""

from itertools import combinations

import numpy as np
import pytest

from adaptive_eval.core.goals import AllOf, BestK, Decided

OPEN = np.zeros(6, dtype=bool)
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
    assert best(k).needed(verdict, score, OPEN).tolist() == expected
    assert best(k).met(verdict, score) == (() if any(expected) else (f"best {k}",))
    assert not best(k).needed(verdict, score, ~OPEN).any()


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
    whole = AllOf((left, right), "both")
    assert whole.met(verdict, score) == every
    opened = (verdict == 0) & [True, True, False, True, True, True]
    assert whole.needed(verdict, score, OPEN).tolist() == opened.tolist()
