"""Error and gain of contrasts with a finished reference, looked at after every trial."""

import numpy as np
import pytest

from scorio.sequential.cells import Cells
from scorio.sequential.moments import unit_scores
from scorio.sequential.pairs import PairReader
from scorio.sequential.reference import ReferenceReader
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import TrialSequence
from scorio.study.sources import biased_coins

pytestmark = pytest.mark.slow

ALPHA = 0.05


def calls(p, stored, *, passes, seed):
    """Return (step, sign) of the call of each pair; step 0 where there is none.

    Parameters
    ----------
    p : array, shape (pairs, 2, M)
        Success probabilities of the model being asked and of its opponent.
    stored : int or None
        Trials a question of the opponent, as a finished reference; None for one that walks along.
    """
    rng = np.random.default_rng(seed)
    pairs, _, questions = p.shape
    cells = Cells(TrialSequence(rng.permutation(questions)), unit_scores([0, 1]), 2 * pairs)
    first, second = np.arange(pairs), pairs + np.arange(pairs)
    if stored is None:
        reader = PairReader(cells, first, second)
    else:
        for pair in range(pairs):
            right = rng.binomial(stored, p[pair, 1])
            cells.load(pairs + pair, np.stack([stored - right, right], axis=1))
        reader = ReferenceReader(cells, first, second, np.ones(pairs))
    step, sign, end = np.zeros(pairs, dtype=int), np.zeros(pairs), passes * questions
    for start in range(0, end, 64):
        stop, waiting = min(start + 64, end), np.flatnonzero(step == 0)
        if waiting.size == 0:
            break
        asked = cells.sequence.question(start, stop)
        for side in (0, 1) if stored is None else (0,):
            answers = rng.random((waiting.size, stop - start)) < p[waiting, side][:, asked]
            cells.absorb(waiting + side * pairs, answers.astype(int))
        block = reader.read(waiting, stop)
        called = Anytime(ALPHA).statistic(block, np.zeros(stop - start, dtype=bool)) >= np.log(1 / ALPHA)
        column, hit = np.argmax(called, axis=1), called.any(axis=1)
        step[waiting[hit]] = start + column[hit] + 1
        sign[waiting[hit]] = np.sign(block.difference[hit, column[hit]])
        cells.forget(stop)
    return step, sign


def pairs_of_coins(pairs, questions, mean, gap, concentration, correlation):
    draws = [
        biased_coins(
            [mean + gap, mean], questions, seed=seed, concentration=concentration, correlation=correlation
        ).p
        for seed in range(pairs)
    ]
    return np.stack(draws)


@pytest.mark.parametrize(
    ("questions", "passes", "mean", "concentration", "correlation", "stored"),
    [(127, 10, 0.3, 8.0, 0.0, 80), (500, 3, 0.6, 0.6, 0.5, 8), (500, 3, 0.3, 8.0, 0.9, 80)],
)
def test_two_equal_models_are_rarely_called_different(
    questions, passes, mean, concentration, correlation, stored
):
    p = pairs_of_coins(600, questions, mean, 0.0, concentration, correlation)
    step, _ = calls(p, stored, passes=passes, seed=1)
    assert 0.007 <= np.mean(step > 0) <= 0.038


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_new_model_needs_far_fewer_trials_than_at_equal_progress(correlation):
    p = pairs_of_coins(100, 500, 0.45, 0.1, 0.6, correlation)
    alone, sign = calls(p, 80, passes=6, seed=2)
    together, _ = calls(p, None, passes=6, seed=2)
    assert alone.all()
    assert together.all()
    assert (sign == 1).all()
    assert together.mean() / alone.mean() > 1.3
