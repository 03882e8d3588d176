"""What a trial tells of its model: priors of models, and limits of noise, one by one and together."""

import numpy as np
import pytest

from scorio.sequential.cells import MISSING, Cells, fit_prior, unit_scores
from scorio.sequential.flips import flip_limit
from scorio.sequential.trial_sequence import TrialSequence

FIELDS = ("before", "after", "w", "u", "g", "r", "seen", "total", "square", "lost", "lost_score")


def outcomes(models, questions, steps, missing, seed):
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, 3, (models, steps))
    drawn[rng.random((models, steps)) < missing] = MISSING
    return TrialSequence(rng.permutation(questions)), drawn


def test_a_model_without_any_answer_keeps_its_prior():
    sequence, drawn = outcomes(3, 10, 40, 0.0, seed=1)
    drawn[1] = MISSING
    cells = Cells(sequence, unit_scores([0.0, 1.0, 2.0]), 3)
    cells.absorb(np.arange(3), drawn)
    latest = cells.latest()
    assert latest.seen[:, 0].tolist() == [10.0, 0.0, 10.0]
    assert np.all(np.isfinite([getattr(latest, field)[:, 0] for field in FIELDS[2:]]))


def test_priors_of_several_models_are_those_of_each():
    rng = np.random.default_rng(5)
    n = rng.integers(0, 6, (4, 30))
    sx = rng.binomial(n, 0.4).astype(float)
    together = fit_prior(n, sx, sx, 0.5, 0.5)
    for model in range(4):
        asked = n[model] > 0
        alone = fit_prior(n[model, asked], sx[model, asked], sx[model, asked], 0.5, 0.5)
        assert together.strength[model] == pytest.approx(alone.strength)
        assert together.m1[model] == pytest.approx(alone.m1)
        assert together.m2[model] == pytest.approx(alone.m2)


@pytest.mark.parametrize("numbers", [False, True])
def test_the_noise_at_temperature_0_is_at_least_what_repeats_leave_possible(numbers):
    """Every second answer to a question is compared with the last one before it."""
    sequence, (drawn,) = outcomes(1, 20, 200, 0.2, seed=2)
    asked, scores = sequence.question(0, 200), unit_scores([0.0, 1.0, 4.0])
    drawn = np.where((np.arange(200) % 9 > 0) & (drawn >= 0), asked % 3, drawn)
    plain, greedy = (
        Cells(sequence, scores, 1, greedy=models, level=0.01, moments=numbers) for models in ([], [0])
    )
    for cells in (plain, greedy):
        cells.absorb(np.array([0]), drawn[None])
    told = {question: drawn[(asked == question) & (drawn >= 0)].tolist() for question in range(20)}
    pairs = [both for one in told.values() for both in zip(one[::2], one[1::2], strict=False)]
    apart = [(scores[a] - scores[b]) ** 2 if numbers else float(a != b) for a, b in pairs]
    share = np.mean([1.0 / len(one) for one in told.values()])
    limit = 0.5 * flip_limit(len(pairs), sum(apart), 0.01) * share
    assert greedy.latest().w[0, 0] == pytest.approx(max(limit, plain.latest().w[0, 0]))
    assert limit > plain.latest().w[0, 0]
    assert greedy.latest().g[0, 0] >= 1e3
