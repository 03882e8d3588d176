"""Pairs that lack some answers: the noise in the trials that both models have, and ties."""

import numpy as np
import pytest

from scorio.sequential.cells import KNOWN, MISSING, Cells
from scorio.sequential.pairs import PairReader
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import TrialSequence

ONE = np.arange(1)


def cells_of(*answers, questions=30):
    """Return cells of models with these answers along a sequence."""
    sequence = TrialSequence(np.random.default_rng(3).permutation(questions))
    cells = Cells(sequence, np.array([0.0, 1.0]), len(answers))
    cells.absorb(np.arange(len(answers)), np.array(answers))
    return cells


def with_holes(rng, steps, share):
    said = rng.integers(2, size=steps)
    return np.where(rng.random(steps) < share, MISSING, said)


@pytest.mark.parametrize("rounds", [None, 1])
@pytest.mark.parametrize("steps", [20, 60, 200])
def test_every_question_weighs_the_same_and_lost_answers_may_be_anything(steps, rounds):
    """The slack is what the worst and the best of all lost answers make of the difference, by hand."""
    rng, questions = np.random.default_rng(5), 30
    sequence = TrialSequence(rng.permutation(questions), own=rounds)
    cells = Cells(sequence, np.array([0.0, 1.0]), 2)
    said = np.stack([with_holes(rng, steps, share) for share in (0.4, 0.1)])
    for start in range(0, steps, 10):  # each model's round follows from its own answers
        cells.absorb(np.arange(2), said[:, start : start + 10])
    block = PairReader(cells, [0], [1]).read(ONE, steps)
    low, high = [], []
    asked = sequence.of(np.arange(2), 0, steps)
    for model in range(2):
        ends = []
        for worth in (0, 1):
            filled = np.where(said[model] == MISSING, worth, said[model])
            again = Cells(TrialSequence(sequence.order), np.array([0.0, 1.0]), 1)
            again.absorb(ONE, filled[None])
            means = [filled[asked[model] == q].mean() for q in np.unique(asked[model])]
            ends.append(np.mean(means))
        low.append(ends[0])
        high.append(ends[1])
    d, slack = block.difference[0, -1], block.slack[0, -1]
    expected = max(d - (low[0] - high[1]), high[0] - low[1] - d)
    assert slack == pytest.approx(expected, rel=1e-9 if steps < 60 or rounds is None else 0.3)
    known = [said[0][(asked[0] == q) & (said[0] != MISSING)] for q in np.unique(asked[0])]
    mine = np.mean([one.mean() for one in known if one.size])
    other = [said[1][(asked[1] == q) & (said[1] != MISSING)] for q in np.unique(asked[1])]
    if rounds is None:
        assert d == pytest.approx(mine - np.mean([one.mean() for one in other if one.size]))


def test_no_call_that_lost_answers_could_turn():
    """Of one model half of the answers are lost: whatever it said, it may be as good as the other."""
    answers = np.ones((2, 300), dtype=np.int64)
    answers[1] = 0
    cells = cells_of(*answers, questions=300)
    whole = PairReader(cells, [0], [1], equivalence=0.05).read(ONE, 300)
    answers[1, ::2] = MISSING
    holes = PairReader(cells_of(*answers, questions=300), [0], [1], equivalence=0.05).read(ONE, 300)
    rule = Anytime(0.05, 0.05)
    complete = np.zeros(300, dtype=bool)
    assert rule.statistic(whole, complete).max() > rule.statistic(holes, complete).max() > np.log(20.0)
    answers[0] = np.where(np.arange(300) % 4 == 0, 1, 0)
    close = PairReader(cells_of(*answers, questions=300), [0], [1], equivalence=0.05).read(ONE, 300)
    assert close.difference[0, -1] == pytest.approx(0.25, abs=0.01)
    assert rule.statistic(close, complete).max() < 0.0


def test_pairs_are_the_same_alone_and_together():
    """Also where a model repeats its answers from some step on, and where one has no holes."""
    rng, steps = np.random.default_rng(7), 200
    said = np.stack([with_holes(rng, steps, share) for share in (0.3, 0.0, 0.1, 0.5)])
    said[2, 60:] = KNOWN
    cells = cells_of(*said)
    sides = np.array([0, 0, 1, 1, 2]), np.array([1, 2, 2, 3, 3])
    together = PairReader(cells, *sides, equivalence=0.1).read(np.arange(5), steps)
    for row in range(5):
        reader = PairReader(cells, sides[0][[row]], sides[1][[row]], equivalence=0.1)
        alone = reader.read(ONE, 70).append(reader.read(ONE, 71)).append(reader.read(ONE, steps))
        for name in ("difference", "variance", "guarded", "margin", "avg_variance", "questions", "slack"):
            assert np.array_equal(getattr(alone, name), getattr(together.take(np.array([row])), name))


def test_a_step_that_needs_no_trial_counts_as_the_answer_that_is_known():
    rng, steps = np.random.default_rng(8), 200
    asked = TrialSequence(np.random.default_rng(3).permutation(30)).question(0, steps)
    same = rng.integers(2, size=30)[asked]
    known = np.where(np.arange(steps) < 60, same, KNOWN)
    holes = with_holes(rng, steps, 0.4)
    told, filled = (
        PairReader(cells_of(holes, other), [0], [1], equivalence=0.1).read(ONE, steps)
        for other in (same, known)
    )
    assert filled.difference == pytest.approx(told.difference)
    assert np.array_equal(filled.questions, told.questions)
