"""Judges that are shown the same answers again in each pass: false alarms, and how soon a change is seen."""

import numpy as np
import pytest

from adaptive_eval.engine.judge_watch import FALSE_ALARM, JudgeWatch
from adaptive_eval.store.records import LoggedTrial
from adaptive_eval.trial import ANCHOR, TrialKey, Usage

ANCHORS, PASSES, RUNS = 30, 30, 150


def seen_after(rng, chances, after=None, change=PASSES):
    """Return the pass in which a judge that says yes with these chances is said to change; None for never."""
    watch, step = JudgeWatch({"essays": ANCHORS}), 0
    for number in range(PASSES):
        said = rng.random(ANCHORS) < (chances if number < change else after)
        for anchor in range(ANCHORS):
            signals = (f"{ANCHOR}{anchor}_{100 * said[anchor]}",)
            step += 1
            key = TrialKey("m", step + int(rng.integers(1 << 30)))
            told = (key, "essays", "q", 1, Usage(), "", "", False, 0.0, None, None, signals)
            if watch.take(LoggedTrial(*told)):
                return number
    return None


@pytest.mark.slow
def test_an_unchanged_judge_is_called_changed_in_at_most_one_run_of_twenty():
    """Seed 1; a look after every judgement. At a rate of 5 %, 16 or more of 150 come in 0.4 % of cases."""
    rng = np.random.default_rng(1)
    for draw in (lambda: np.full(ANCHORS, 0.5), lambda: rng.beta(0.5, 0.5, ANCHORS)):
        alarms = sum(seen_after(rng, draw()) is not None for _ in range(RUNS))
        assert alarms <= 15
    assert FALSE_ALARM == 0.05


@pytest.mark.slow
def test_a_bias_that_moves_by_twenty_points_is_seen_within_a_few_passes():
    """Seed 2, after ten passes: of a judge that never varies in two passes, of one that varies in eight."""
    rng = np.random.default_rng(2)
    for within, draw in (
        (2, lambda: (rng.random(ANCHORS) < 0.6).astype(float)),
        (8, lambda: rng.beta(0.5, 0.5, ANCHORS)),
    ):
        late = 0
        for _ in range(40):
            chances = draw()
            after = chances + (1.0 - chances) * min(0.2 / max(1.0 - chances.mean(), 0.2), 1.0)
            found = seen_after(rng, chances, after, change=10)
            late += found is None or not 10 <= found < 10 + within
        assert late <= 10
