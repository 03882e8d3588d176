"""Specifications made by hand: mistakes are refused by name, and what can never be decided is said."""

from dataclasses import replace

import pytest
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import (
    BudgetSpec,
    GoalSpec,
    ModelSpec,
    Price,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.views.verdicts import repeat_notices

TASK = TaskSpec("t", tuple(f"q{n}" for n in range(30)))
SPEC = make_spec(3, 30, max_passes=3)


def inner(**parts):
    return GoalSpec("all", goals=(GoalSpec("ranking"), GoalSpec(**parts)))


def test_a_margin_is_in_units_of_the_score():
    points = (replace(TASK, weights=(0.0, 100.0)),)
    Session(replace(SPEC, tasks=points, stopping=StoppingSpec(equivalence=5.0)))


@pytest.mark.parametrize(
    ("spend", "size", "said"), [("usd", 101, 1), ("tokens", 101, 1), ("usd", 100, 0), ("trials", 101, 0)]
)
def test_costs_that_only_rounds_could_save_are_named(spend, size, said):
    spec = replace(make_spec(2, size), spend=spend)
    spec = replace(spec, allocation=replace(spec.allocation, questions="auto"))
    assert len(repeat_notices(spec)) == said
    rounds = replace(spec.allocation, questions="rounds")
    assert repeat_notices(replace(spec, allocation=rounds)) == []
    exact = replace(spec, stopping=replace(spec.stopping, rule="exact"))
    advised = [notice for notice in repeat_notices(exact) if "questions: rounds" in notice]
    assert advised == []  # they would be refused


class TestWarnings:
    """What can be run and can never be decided."""

    def warnings(self, **parts):
        return [text.code for text in Session(replace(SPEC, **parts)).results().warnings]

    @pytest.mark.parametrize("rule", ["anytime"])
    def test_fewer_than_ten_questions(self, rule):
        spec = make_spec(2, 9, rule=rule, equivalence=0.5, max_passes=50)
        session = drive(Session(spec), coin((1.0, 0.0)))
        assert session.stopped.reason == "max_passes"
        (warning,) = session.results().warnings
        assert warning.code == "warning/few-questions"
        assert warning.startswith(f"task t has 9 questions: the rule {rule} decides nothing before 10")
        assert Session(make_spec(2, 10, rule=rule, max_passes=50)).results().warnings == ()

    def test_exact_decides_on_fewer(self):
        session = drive(Session(make_spec(2, 9, rule="exact", max_passes=50)), coin((1.0, 0.0)))
        assert session.stopped.reason == "resolved"
        assert session.results().warnings == ()

    @pytest.mark.parametrize(
        ("names", "confidence", "few"),
        [
            ("a" * 30, 0.95, True),
            ("abcde" * 6, 0.95, True),
            ("abcdefghi" * 3 + "abc", 0.95, False),
            ("abcdefghi" * 3 + "abc", 0.99, True),  # which fewer than eleven cannot show
            ("a" * 21 + "bcdefghij", 0.95, True),  # worth two of equal sizes
        ],
    )
    def test_few_clusters(self, names, confidence, few):
        target = StoppingSpec(target="population", max_passes=2, confidence=confidence)
        task = replace(TASK, clusters=tuple(names))
        assert self.warnings(tasks=(task,), stopping=target) == ["warning/few-clusters"] * few

    def test_nothing_that_ends_it(self):
        assert self.warnings(stopping=StoppingSpec()) == ["warning/unbounded"]
        for bound in (StoppingSpec(max_passes=2), StoppingSpec(equivalence=0.1)):
            assert self.warnings(stopping=bound) == []
        assert self.warnings(stopping=StoppingSpec(), budget=BudgetSpec(trials=9)) == []

    def test_trials_without_a_price(self):
        models = (ModelSpec("a", 9, Price(1.0, 1.0)), ModelSpec("b", 9))
        assert self.warnings(models=models, budget=BudgetSpec(usd=1.0)) == ["warning/no-price"]

    def test_tasks_with_different_ranges_of_scores(self):
        tasks = (replace(TASK, name="a"), replace(TASK, name="b", weights=(0.0, 9.0)))
        assert self.warnings(tasks=tasks) == ["warning/scales"]
        assert self.warnings(tasks=tasks[:1]) == []

    def test_a_goal_budget_without_one(self):
        endless = {"goal": GoalSpec("budget"), "stopping": StoppingSpec(equivalence=0.1)}
        assert self.warnings(**endless) == ["warning/unbounded"]


def test_margin_width_and_threshold_keep_their_share_of_other_scores():
    points = replace(TASK, weights=(-20.0, 80.0))
    goal = inner(kind="all", goals=(GoalSpec("width", width=5.0), GoalSpec("threshold", value=55.0)))
    spec = replace(SPEC, tasks=(points,), goal=goal, stopping=StoppingSpec(equivalence=8.0))
    graded = spec.rescored({"t": (4.0, 0.0, 1.0)})
    assert graded.tasks[0].weights == (4.0, 0.0, 1.0)
    assert graded.stopping.equivalence == pytest.approx(0.32)
    _, (width, threshold) = (part.goals for part in (graded.goal, graded.goal.goals[1]))
    assert (width.width, threshold.value) == (pytest.approx(0.2), pytest.approx(3.0))
    assert spec.rescored({"t": (-20.0, 0.0, 80.0)}).stopping == spec.stopping
    Session(graded)


def test_verdicts_and_the_limits_of_noise_at_temperature_0_share_the_error_rate():
    spec = make_spec(3, 20, greedy=True)
    spec = replace(spec, tasks=(*spec.tasks, TaskSpec("u", ("a", "b"))))
    levels = spec.levels(spec.rule(), 3)
    assert levels.level == levels.alpha == pytest.approx(0.05 - 3 * 2 * spec.flip_level)
    assert spec.flip_level > 0.0
