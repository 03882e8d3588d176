"""Every combination of goal, policy and question order goes on until it can say why it stops."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, TaskSpec
from adaptive_eval.views.sentences import describe

MEANS = (0.9, 0.7, 0.5, 0.1)
POLICIES = ("round-robin", "uniform")
ORDERS = ("schedule", "rounds")


@pytest.fixture(autouse=True)
def _strict():
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(("policy", "order"), list(itertools.product(POLICIES, ORDERS)))
class TestBudgetIsSpentThoughEveryPairIsDecided:
    def spec(self, policy, order, **parts):
        return make_spec(3, 12, goal="budget", equivalence=0.5, policy=policy, rounds=order, **parts)

    def test_to_its_last_trial(self, policy, order):
        session = drive(Session(self.spec(policy, order, trials=700)), coin(MEANS), slots=3)
        assert session.budget.completed == 700
        assert session.stopped.reason == "budget"
        assert describe(session.stopped) == "the budget is spent: 700 of 700 trials"
        assert {pair.verdict for pair in session.results().pairs}.isdisjoint({"open"})

    def test_by_the_others_when_one_model_has_spent_its_own(self, policy, order):
        spec = self.spec(policy, order, trials=700)
        first, *others = spec.models
        spec = replace(spec, models=(replace(first, budget=BudgetSpec(trials=60)), *others))
        session = drive(Session(spec), coin(MEANS), slots=3)
        assert session.states.issued[0] == 60
        assert session.budget.completed == 700


def test_rounds_after_the_last_verdict_do_not_depend_on_the_order_of_arrival():
    spec = make_spec(3, 12, goal="budget", equivalence=0.5, trials=600, rounds="rounds")
    counts = []
    for slots in (1, 5, 16):
        session = drive(Session(spec), coin(MEANS), slots=slots, rng=np.random.default_rng(slots))
        sequence = session.board.cells[0].sequence
        counts.append(sequence.question(0, 150).tolist())
    assert counts[0] == counts[1] == counts[2]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("slots", [1, 7])
def test_a_model_by_itself_waits_for_no_other(policy, slots):
    """The last model is decided first; it must not hold the others back."""
    spec = make_spec(4, 60, goal="threshold", value=0.5, equivalence=0.2, max_passes=40, policy=policy)
    session = drive(Session(spec), coin((0.5, 0.5, 0.5, 1.0)), slots=slots)
    assert session.stopped.reason == "resolved"
    if policy != "uniform":
        assert session.states.issued[3] < min(session.states.issued[:3])


def test_scores_of_several_tasks_can_be_reviewed_at_every_step_that_is_not_forgotten():
    """At most steps one task is asked, and the others stand where they were asked last."""
    sizes = {"s": 30, "t": 5}
    tasks = tuple(TaskSpec(name, tuple(f"q{n}" for n in range(size))) for name, size in sizes.items())
    board = Session(replace(make_spec(2), tasks=tasks)).board
    for model, step in itertools.product(range(2), range(4000)):
        board.add(model, step, step % 2)
    board.absorb()
    for before in range(4000):
        board.forget(before)
        for cells, local in zip(board.cells, board.run_sequence.local(before + 1), strict=True):
            assert local == 0 or cells.path(np.arange(2), local - 1, local).seen.shape == (2, 1)
