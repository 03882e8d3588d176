"""Claims of the goal not-worse, of models that are worse than the baseline by exactly the margin.

Seeds are fixed. A count may be what a rate of exactly 5 % exceeds with probability 1e-4 (`many_pairs.most`):
each direction errs in at most 5 % of runs.
"""

import pytest
from many_pairs import SCALE, at_most
from session_scripts import make_spec

from adaptive_eval.simulate import BiasedCoins, simulate
from scorio.sequential.fold import VerdictCode

pytestmark = pytest.mark.slow

RUNS, MARGIN = 150 * SCALE, 0.1


def runs(means, questions, passes, **parts):
    """Return the verdicts of simulated runs whose first model is the baseline."""
    spec = make_spec(
        len(means), questions, goal="not-worse", model="m0", margin=MARGIN, max_passes=passes, **parts
    )
    return simulate(spec, BiasedCoins(means), RUNS, seed=1, workers=1).verdict


@pytest.mark.parametrize(
    ("models", "questions", "passes", "parts"),
    [
        (2, 30, 30, {"rounds": "schedule"}),
        (4, 30, 30, {"rounds": "rounds"}),
        (2, 300, 3, {}),
        (4, 500, 1, {"target": "population"}),
    ],
)
def test_at_the_margin_neither_side_errs_in_more_than_five_per_cent(models, questions, passes, parts):
    verdict = runs((0.7, *(0.7 - MARGIN,) * (models - 1)), questions, passes, **parts)
    at_most((verdict == VerdictCode.BETTER).any(axis=1).sum(), RUNS, 0.05)
    at_most((verdict == VerdictCode.WORSE).any(axis=1).sum(), RUNS, 0.05)


def test_claims_hold_of_equal_models_and_fail_of_worse_ones():
    equal, worse = runs((0.7, 0.7), 100, 20), runs((0.7, 0.5), 100, 20)
    assert (equal == VerdictCode.BETTER).mean() > 0.95
    assert (worse == VerdictCode.WORSE).mean() > 0.95
