"""Pairs that lack some answers: the noise in the trials that both models have, and ties."""

import numpy as np
import pytest

from scorio.sequential import pairs
from scorio.sequential.cells import KNOWN, MISSING, Cells
from scorio.sequential.pairs import PairReader
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


def answered(cells, said):
    """Return how often each question has an answer of all these."""
    asked = cells.sequence.question(0, said.shape[1])
    return np.bincount(asked[(said != MISSING).all(axis=0)], minlength=cells.sequence.questions)


@pytest.mark.parametrize("steps", [20, 60, 240])
def test_noise_is_taken_question_by_question(steps):
    """The second model answers everything, so what it shares with the first are the first one's trials."""
    rng = np.random.default_rng(5)
    said = np.stack([with_holes(rng, steps, 0.4), rng.integers(2, size=steps)])
    cells = cells_of(*said)
    number, own = answered(cells, said), answered(cells, said[1:])
    a, b = (cells.path(np.array([model]), steps - 1, steps).u[0, 0] for model in (0, 1))
    mean = [(1.0 / one[one > 0]).mean() for one in (number, own)]
    block = PairReader(cells, [0], [1]).read(ONE, steps)
    assert block.avg_variance[0, -1] * (number > 0).sum() == pytest.approx(a + b * mean[0] / mean[1])


def test_pairs_are_the_same_alone_and_together(monkeypatch):
    """Also where a model repeats its answers from some step on, and where one has no holes."""
    rng, steps = np.random.default_rng(7), 200
    said = np.stack([with_holes(rng, steps, share) for share in (0.3, 0.0, 0.1, 0.5)])
    said[2, 60:] = KNOWN
    cells = cells_of(*said)
    sides = np.array([0, 0, 1, 1, 2]), np.array([1, 2, 2, 3, 3])
    monkeypatch.setattr(pairs, "MOST_CELLS", 2 * steps)
    together = PairReader(cells, *sides, equivalence=0.1).read(np.arange(5), steps)
    monkeypatch.undo()
    for row in range(5):
        reader = PairReader(cells, sides[0][[row]], sides[1][[row]], equivalence=0.1)
        alone = reader.read(ONE, 70).append(reader.read(ONE, 71)).append(reader.read(ONE, steps))
        for name in ("difference", "variance", "guarded", "margin", "avg_variance", "questions"):
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


def test_a_sequence_knows_how_often_its_questions_were_asked():
    sequence = TrialSequence(np.arange(20))
    asked = sequence.question(0, 70)
    times = np.array([np.bincount(asked[: step + 1], minlength=20) for step in range(70)])
    by_hand = np.where(times > 0, 1 / np.maximum(times, 1), 0.0).sum(axis=1)
    assert sequence.inverse(30, 70) == pytest.approx(by_hand[30:])
    assert np.array_equal(TrialSequence(np.arange(20)).inverse(30, 5000), sequence.inverse(30, 5000))
