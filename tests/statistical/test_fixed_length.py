"""What the report says a run of fixed length would have taken is what such a run takes."""

import numpy as np
import pytest
import scipy

from scorio.sequential.boards import Board
from scorio.sequential.contrasts import Contrasts
from scorio.sequential.fixed import fixed_passes
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import TrialSequence


@pytest.mark.parametrize(("questions", "half_width", "comparisons"), [(30, 0.05, 1), (40, 0.08, 10)])
def test_so_many_passes_give_intervals_of_that_width_that_cover(questions, half_width, comparisons):
    rng = np.random.default_rng(3)
    runs, alpha = 4000, 0.05
    p = rng.beta(4.0, 4.0, (2, questions))
    noise = (p * (1.0 - p)).mean(axis=1).sum() / questions
    passes = int(fixed_passes(noise, half_width, alpha, comparisons))
    right = rng.binomial(passes, p, (runs, 2, questions)) / passes
    difference = (right[:, 0] - right[:, 1]).mean(axis=1)
    missed = int((np.abs(difference - (p[0] - p[1]).mean()) > half_width).sum())
    level = alpha / comparisons
    assert missed <= scipy.stats.binom.ppf(1.0 - 1e-4, runs, level)
    # and hardly fewer passes would do
    shorter = np.sqrt(noise / (passes - 1))
    assert scipy.stats.norm.isf(level / 2) * shorter > half_width


def test_so_many_passes_find_the_difference_with_the_power():
    """4,000 runs of the fixed test, seed 5: the share that finds the difference is 90 %, within 2 points."""
    rng = np.random.default_rng(5)
    p = np.stack([rng.beta(4.0, 4.0, 40), np.zeros(40)])
    p[1] = np.clip(p[0] - 0.05, 0.0, 1.0)
    noise, difference = (p * (1.0 - p)).mean(axis=1).sum() / 40, (p[0] - p[1]).mean()
    passes = int(fixed_passes(noise, difference, 0.05, 3, power=0.9))
    right = rng.binomial(passes, p, (4000, 2, 40)) / passes
    found = (right[:, 0] - right[:, 1]).mean(axis=1)
    half = scipy.stats.norm.isf(0.05 / 3 / 2) * np.sqrt(noise / passes)
    assert np.mean(np.abs(found) > half) == pytest.approx(0.9, abs=0.02)


def test_a_wide_interval_still_takes_one_pass():
    assert fixed_passes([0.001, 0.4], [1.0, 0.1], 0.05).tolist() == [1, 154]


def test_a_score_is_measured_in_little_more_than_the_right_fixed_length_and_rarely_missed():
    """400 models in ten orders of 300 questions: 1.96 standard errors are half the width after 280 trials."""
    rng, none = np.random.default_rng(7), np.full(40, np.nan)
    chance = np.linspace(0.4, 1.0, 300)
    own, width = np.arange(40), np.full(40, 0.1)
    trials, missed = [], 0
    for _ in range(10):
        sequence = TrialSequence(rng.permutation(300))
        contrasts = Contrasts(own, np.full(40, Contrasts.SINGLE), np.zeros(40), width, none)
        board = Board.of_pairs(sequence, 40, Anytime(0.05), contrasts=contrasts)
        asked = sequence.question(0, 700)
        answers = (rng.random((40, 700)) < chance[asked]).astype(np.int64)
        board.tell_all(answers, np.full(40, 700))
        low, high = board.interval()
        assert (high - low <= 0.1).all()
        missed += int(((low > 0.7) | (high < 0.7)).sum())
        trials.append(board.fold.decided_at.mean())
    assert 280 < np.mean(trials) < 1.25 * 280
    assert missed <= scipy.stats.binom.ppf(1.0 - 1e-4, 400, 0.05)
