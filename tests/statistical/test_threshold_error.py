"""Models held against a number: the level holds far into the tail that a family of many models needs.

Seeds are fixed; bounds as in `test_decision_error`: the count that a rate of exactly the promised size would
exceed with probability 1e-4.
"""

import numpy as np
import pytest
from many_pairs import SCALE, at_least, at_most
from session_scripts import make_spec

from adaptive_eval.simulate import GivenChances, simulate
from scorio.sequential.betting import ScoreBets
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import score_block
from scorio.sequential.control import StoredAnswers
from scorio.sequential.evidence import MIN_TRIALS, log_evidence
from scorio.sequential.moments import unit_scores
from scorio.sequential.trial_sequence import RunSequence
from scorio.study import biased_coins

MODELS = 1000 * SCALE


def peaks(
    questions: int, passes: int, value: float, seed: int, shape: float = 8.0, stored: str = ""
) -> np.ndarray:
    """Return the largest log e-value of models whose score is exactly the number: bets, and own variance.

    `stored` says what the answers of three finished models have to do with those of the others.
    """
    rng = np.random.default_rng(seed)
    alike = 0.0 if stored in ("", "unrelated") else 0.8
    coins = biased_coins((value,) * (MODELS + 3), questions, seed=rng, concentration=shape, correlation=alike)
    p, finished = coins.p[:MODELS], coins.p[MODELS:]
    if stored == "opposed":
        finished = 1.0 - finished
    asked = np.full(finished.shape, 20.0)
    known = StoredAnswers(asked, rng.binomial(20, finished).astype(float)) if stored else None
    run_sequence = RunSequence([questions], seed=None)
    cells = Cells(run_sequence.sequences[0], unit_scores([0.0, 1.0]), MODELS)
    models = np.arange(MODELS)
    bets = ScoreBets([cells], run_sequence, [1.0], models, np.full(MODELS, value), stored=known)
    peak = np.full((2, MODELS), -np.inf)
    for start in range(0, questions * passes, 100):
        stop = min(start + 100, questions * passes)
        chance = p[:, cells.sequence.question(start, stop)]
        cells.absorb(models, (rng.random(chance.shape) < chance).astype(np.int64))
        own = score_block(cells.path(models, start, stop), questions).less(np.array([[value]]))
        log_e = np.stack([bets.read(models, start, stop), log_evidence(own.difference, own.variance)])
        peak = np.maximum(peak, np.where(own.trials >= MIN_TRIALS, log_e, -np.inf).max(axis=2))
        cells.forget(stop)
    return peak


@pytest.mark.slow
@pytest.mark.parametrize(
    ("questions", "passes", "value", "shape", "stored"),
    [
        (100, 6, 0.05, 8.0, ""),
        (200, 3, 0.005, 8.0, ""),
        (100, 4, 0.7, 1.0, "alike"),
        (100, 4, 0.7, 1.0, "opposed"),
        (40, 6, 0.9, 1.0, "alike"),
        (200, 3, 0.3, 4.0, "unrelated"),
    ],
)
def test_the_tail_of_bets_is_as_small_as_promised(questions, passes, value, shape, stored):
    bets, _ = peaks(questions, passes, value, seed=1, shape=shape, stored=stored)
    for alpha in (0.05, 0.005, 0.001, 1e-4):
        at_most((bets >= np.log(1.0 / alpha)).sum(), MODELS, alpha)


@pytest.mark.slow
def test_evidence_with_the_models_own_variance_is_not():
    """What the test above would see if the variance came from few successes: it can fail."""
    _, own = peaks(100, 6, 0.05, seed=1)
    at_least((own >= np.log(1.0 / 0.001)).sum(), MODELS, 0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("models", "questions", "passes", "value"), [(10, 100, 15, 0.05), (20, 300, 2, 0.05), (15, 300, 3, 0.97)]
)
def test_any_model_of_a_family_at_the_threshold_is_called_in_at_most_five_per_cent(
    models, questions, passes, value
):
    runs = 150 * SCALE
    spec = make_spec(models, questions, goal="threshold", value=value, max_passes=passes)
    p = biased_coins((value,) * models, questions, seed=3, concentration=8.0, correlation=0.0).p
    result = simulate(spec, GivenChances(p), runs, seed=4, in_flight=1, workers=1)
    at_most(result.family_wise.count, runs, 0.05)


def test_models_off_the_threshold_are_found_on_their_side():
    chances = np.repeat([[0.65], [0.35], [0.75]], 100, axis=1)
    spec = make_spec(3, 100, goal="threshold", value=0.5, max_passes=20)
    result = simulate(spec, GivenChances(chances), 10, seed=5, in_flight=1, workers=1)
    assert np.array_equal(result.verdict, np.tile([1, -1, 1], (10, 1)))
