"""Why simulated runs end, in lockstep and as a session."""

from __future__ import annotations

from dataclasses import replace

from simulation_scripts import both_ways, bounded_spec, recorded_coins

from adaptive_eval.core.spec import GoalSpec
from adaptive_eval.simulate import RecordedAnswers


def test_one_of_several_goals_is_reached_though_the_answers_of_another_ran_out():
    outcomes = recorded_coins((0.9, 0.2, 0.5), questions=20, trials=20)
    categories = outcomes.categories.copy()
    categories[2, :, 1:] = -1
    goals = (GoalSpec("threshold", value=0.5), GoalSpec("pairs", pairs=(("m0", "m1"),)))
    spec = bounded_spec(3, 20, goal="any", goals=goals, equivalence=None)
    fast, slow = both_ways(spec, RecordedAnswers(replace(outcomes, categories=categories)), seed=3)
    assert fast.exhausted.tolist() == slow.exhausted.tolist() == [False, False, True]
    assert fast.reason == slow.reason == "resolved"
