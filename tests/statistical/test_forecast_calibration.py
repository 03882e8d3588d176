"""Forecasts against what happens: intervals cover about as often as they say, chances come true as often.

A forecast is a simulation from the posterior under the mixture that the evidence is built on, so true
differences are drawn from that mixture. Bounds are the counts that a calibrated forecast (within the stated
tolerance) would miss with probability 1e-4 on each side; seeds are fixed.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from many_pairs import at_least, at_most
from session_scripts import drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.trial import TrialRequest
from scorio.sequential.evidence import MIXTURE
from scorio.study import biased_coins

pytestmark = pytest.mark.slow

TOLERANCE = 0.1
"""80 % intervals shall cover in 70 to 90 % of runs."""
CHANCE_TOLERANCE = 0.15
"""The share of runs that resolve within their cap shall be that near to the mean of the chances given."""


@dataclass(frozen=True)
class Forecasted:
    """What was forecast of runs at one moment, and what came: arrays of shape (runs,)."""

    more: np.ndarray
    low: np.ndarray
    high: np.ndarray
    chance: np.ndarray
    resolved: np.ndarray


@cache
def forecasted(
    runs: int, models: int, look: int, passes: int, mean: float = 0.5, margin: float = 0.1
) -> Forecasted:
    """Forecast runs after `look` trials, and let them go on to their end."""
    rows = [_one(seed, models, look, passes, mean, margin) for seed in range(runs)]
    return Forecasted(*np.array([row for row in rows if row is not None]).T)


def _one(
    seed: int, models: int, look: int, passes: int, mean: float, margin: float
) -> tuple[float, ...] | None:
    """Return what was said and what came; None where the run had ended before it was asked."""
    rng = np.random.default_rng([seed, models, look])
    (share, small), (_, large) = MIXTURE
    gaps = rng.normal(0.0, np.where(rng.random(models - 1) < share, small, large))
    means = np.clip([mean, *(mean + gaps)], min(mean, 0.05), max(mean, 0.95))
    chances = biased_coins(means, 30, seed=rng, correlation=0.5).p
    session = Session(make_spec(models, seed=seed, equivalence=margin, max_passes=passes))

    def answer(request: TrialRequest) -> int:
        chance = chances[int(request.key.model[1:]), int(request.question[1:])]
        return int(rng.random() < chance)

    drive(session, answer, slots=12, most=look)
    said = session.forecast() if session.stopped is None else None
    if said is None:
        return None
    issued = sum(session.states.issued)
    drive(session, answer, slots=12)
    more = sum(session.states.issued) - issued
    resolved = session.stopped.reason == "resolved"
    return more, said.trials.low, said.trials.high, said.resolved_within_budget, resolved


@pytest.mark.parametrize("moment", [(150, 2, 100, 60), (150, 2, 240, 60), (100, 2, 120, 100, 0.95, 0.08)])
def test_intervals_of_trials_cover_about_as_often_as_they_say(moment):
    """Near the ends of the scale few answers differ: V holds more for safety than for noise."""
    found = forecasted(*moment)
    runs, covered = found.more.size, int(((found.low <= found.more) & (found.more <= found.high)).sum())
    at_least(covered, runs, 0.8 - TOLERANCE)
    at_most(covered, runs, 0.8 + TOLERANCE)
    at_most(int((found.more < found.low).sum()), runs, 0.1 + TOLERANCE)


def test_runs_resolve_within_their_cap_about_as_often_as_forecast():
    found = forecasted(150, 2, 100, 12)
    runs, chance = found.more.size, float(found.chance.mean())
    assert 0.3 < chance < 0.7  # else this would say nothing
    resolved = int(found.resolved.sum())
    at_least(resolved, runs, chance - CHANCE_TOLERANCE)
    at_most(resolved, runs, chance + CHANCE_TOLERANCE)


def test_higher_chances_come_true_more_often():
    found = forecasted(150, 2, 100, 12)
    likely = found.chance > np.median(found.chance)
    assert found.resolved[likely].mean() > found.resolved[~likely].mean()


@pytest.mark.parametrize(("models", "look"), [(5, 150), (8, 800)])
def test_intervals_cover_on_boards_whose_pairs_share_their_models(models, look):
    """80 % intervals hold the trials of at least 70 % of boards, fewer with probability 1e-4."""
    found = forecasted(40, models, look, 60)
    covered = int(((found.low <= found.more) & (found.more <= found.high)).sum())
    at_least(covered, found.more.size, 0.8 - TOLERANCE)
