"""Claims that a model is good enough, of models that are worse than the best by exactly the margin.

Seeds are fixed. A count may be what a rate of exactly 5 % exceeds with probability 1e-4 (`many_pairs.most`).
"""

import numpy as np
import pytest
from many_pairs import SCALE, at_most
from session_scripts import drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.trial import TrialRequest

pytestmark = pytest.mark.slow

RUNS, MARGIN = 60 * SCALE, 0.1


@pytest.mark.parametrize(("models", "k", "slots"), [(2, 1, 1), (4, 1, 1), (4, 2, 8)])
def test_a_wrong_best_is_claimed_in_at_most_five_per_cent(models, k, slots):
    """All but the best k are worse by the margin; half of the questions are hard."""
    wrong, best = 0, {f"m{number}" for number in range(k)}
    for seed in range(RUNS):
        rng = np.random.default_rng([7, seed])
        spec = make_spec(models, 40, goal="top-k", k=k, equivalence=MARGIN, max_passes=40, seed=seed)

        def answer(request: TrialRequest, rng: np.random.Generator = rng) -> int:
            chance = (0.8, 0.3)[int(request.question[1:]) % 2] - MARGIN * (request.key.model not in best)
            return int(rng.random() < chance)

        session = drive(Session(spec), answer, slots=slots)
        wrong += bool({*session.stopped.evidence.get("good_enough", ())} - best)
    at_most(wrong, RUNS, 0.05)
