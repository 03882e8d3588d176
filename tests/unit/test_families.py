"""Error control over many pairs, against plain definitions; and where a session hands it evidence."""

from math import log

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core.goals import BETTER, OPEN
from adaptive_eval.core.session import Session
from adaptive_eval.trial import TrialOutcome
from scorio.sequential.families import family
from scorio.sequential.fold import Course, Fold, Levels, Piece, moments, running_peak


def test_a_peak_keeps_the_sign_it_had():
    """Where Holm's threshold falls, a pair may win by an earlier peak although its difference has turned."""
    rng = np.random.default_rng(0)
    statistic, signs = rng.normal(size=(40, 12)), rng.choice([-1, 1], (40, 12)).astype(np.int8)
    peak, sign = rng.normal(size=40), rng.choice([-1, 1], 40).astype(np.int8)
    highest, signs_there = running_peak(peak, sign, statistic, signs)
    for row in range(40):
        best, at_best = peak[row], sign[row]
        for step in range(12):
            if statistic[row, step] > best:
                best, at_best = statistic[row, step], signs[row, step]
            assert (highest[row, step], signs_there[row, step]) == (best, at_best)


@pytest.mark.parametrize(("name", "won", "level"), [("holm", 0, 0.01), ("holm", 3, 0.025), ("pair", 3, 0.05)])
def test_a_level_of_5_percent_is_shared_as_the_family_says(name, won, level):
    assert family(name).threshold(won, 5, 0.05) == pytest.approx(log(1.0 / level))


@pytest.mark.parametrize("name", ["holm", "pair"])
def test_a_call_needs_no_third_model(name):
    session = Session(make_spec(3, 50, family=name))
    for _ in range(40):
        requests = session.ask({"m0": 1, "m1": 1})
        session.tell([TrialOutcome(one.key, int(one.key.model == "m0")) for one in requests])
    assert session.comparison.reached == 0
    session.results()
    assert session.comparison.fold.verdict.tolist() == [BETTER, OPEN, OPEN]


def test_with_families_the_same_outcomes_are_called_no_later_the_less_is_promised():
    last = {}
    for name in ("holm", "pair"):
        spec = make_spec(4, 30, family=name, max_passes=100)
        last[name] = {call[0]: call[2] for call in calls(drive(Session(spec), coin([0.9, 0.7, 0.65, 0.2])))}
    assert len(last["holm"]) >= 5
    assert set(last["holm"]) <= set(last["pair"])
    assert all(last["pair"][pair] <= step for pair, step in last["holm"].items())
    assert sum(last["pair"].values()) < sum(last["holm"].values())


def test_a_level_that_falls_calls_a_pair_at_its_present_step():
    """The second pair has had enough for the last level all along, and is called when that comes."""
    statistic = np.array([[0.0, 0.0, 0.0, 0.0, 4.0, 4.0], [3.2] * 6])
    assert log(20) < 3.2 < log(40) < 4.0
    levels = Levels(family("holm"), family("pair"), 2, 0.05, 0.05)
    fold = Fold(np.zeros(2, dtype=bool), levels, lambda fold: (fold.verdict == OPEN) & ~fold.lost)
    values = np.zeros_like(statistic)
    whole = np.ones(statistic.shape, dtype=np.int64)
    course = Course(
        statistic, whole.astype(np.int8), values - np.inf, values, values, values, values, whole, values
    )
    moment = moments(np.tile(np.arange(1, 7), (2, 1)), 0)
    events = fold.read([Piece(np.arange(2), moment, course)])
    assert [(event.contrast, event.step) for event in events] == [(0, 5), (1, 5)]
