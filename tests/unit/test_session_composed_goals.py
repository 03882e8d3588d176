"""Goals composed with all and any: when they are reached, what they share, what they say."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.goals import TIE
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec
from adaptive_eval.views.headline import headline

MEANS = (0.85, 0.6, 0.55, 0.2)
RANKING = GoalSpec("ranking")
BEST = GoalSpec("top-k")
NARROW = GoalSpec("width", width=0.12)
WIDE = GoalSpec("width", width=0.5)
ABOVE = GoalSpec("threshold", value=0.4)
BELOW = GoalSpec("threshold", value=0.7)


def composed(kind, *goals, **parts):
    settings = {"equivalence": 0.15, "max_passes": 100} | parts
    return make_spec(4, 30, goal=kind, goals=goals, **settings)


def run(kind, *goals, slots=4, rng=None, **parts):
    return drive(Session(composed(kind, *goals, **parts)), coin(MEANS), slots=slots, rng=rng)


def alone(goal, **parts):
    return run("all", goal, **parts)


def verdicts(session, kind):
    return {pair.verdict for pair in session.results().pairs if pair.kind == kind}


class TestAll:
    def test_goes_on_until_every_part_is_reached(self):
        session = run("all", RANKING, NARROW)
        assert session.stopped.reason == "resolved"
        assert "open" not in verdicts(session, "pair")
        assert verdicts(session, "width") == {"tie"}
        assert all(line.high - line.low <= 0.12 + 1e-9 for line in session.results().models)
        longest = max(alone(RANKING).budget.completed, alone(NARROW).budget.completed)
        assert session.budget.completed >= longest

    def test_a_part_that_cannot_be_reached_any_more_makes_it_partial(self):
        session = Session(composed("all", RANKING, WIDE))
        session.stop_model("m3", "gone")
        drive(session, coin(MEANS), slots=4)
        assert session.stopped.reason == "partial"
        assert session.stopped.evidence["silent"] == ["m3"]


class TestErrorControl:
    @pytest.mark.parametrize(
        ("goals", "hypotheses"), [((RANKING, ABOVE, NARROW), 6 + 4), ((BEST, ABOVE, BELOW), 6 + 4 + 4)]
    )
    def test_what_can_get_a_winner_is_one_family(self, goals, hypotheses):
        session = Session(composed("all", *goals))
        assert session.comparison.fold.threshold == pytest.approx(log(hypotheses / 0.05))

    def test_what_is_measured_is_no_tie_of_the_family(self):
        fold = run("all", RANKING, WIDE, ties="family").comparison.fold
        tied = np.count_nonzero((fold.verdict == TIE)[:6])
        assert fold.tie_threshold == pytest.approx(log((6 - tied) / 0.05))


class TestWords:
    def test_the_headline_speaks_of_every_kind(self):
        text = headline(run("all", RANKING, ABOVE, NARROW).results())
        assert "m0 is ahead of all others" in text
        assert "m3 is below 0.4" in text
        assert "every score is measured to a width of 0.12" in text
        assert "6 of 6 pairs and 4 of 4 models resolved, 4 of 4 scores measured" in text
