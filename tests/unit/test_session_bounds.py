"""Best and worst case of a score with missing trials: what the missing answers could have made of it."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ModelSpec, SessionSpec, TaskSpec
from adaptive_eval.trial import Missing, TrialOutcome


def played(spec: SessionSpec, answers: dict[tuple[str, int], int | None], steps: int) -> Session:
    """Return a session in which every model has walked `steps` steps; None is a missing answer."""
    session = Session(spec)
    while any(issued < steps for issued in session.states.issued):
        for request in session.ask(1):
            category = answers[request.key.model, request.key.index]
            session.tell(
                [Missing(request.key, "gone") if category is None else TrialOutcome(request.key, category)]
            )
    return session


@pytest.mark.slow
@settings(max_examples=15)
@given(
    st.lists(st.none() | st.integers(0, 2), min_size=24, max_size=24),
    st.sampled_from(["macro", "pooled"]),
    st.sampled_from([(0.0, 1.0, 3.0), (2.0, -1.0, 0.5), (0.0, 0.5, 1.0)]),
)
@example([1] * 24, "macro", (0.0, 1.0, 3.0))
def test_they_are_the_scores_of_the_run_with_the_holes_filled(categories, overall, weights):
    tasks = (
        TaskSpec("s", tuple(f"s{n}" for n in range(5)), weights),
        TaskSpec("t", tuple(f"t{n}" for n in range(3)), weights),
    )
    spec = SessionSpec((ModelSpec("m"), ModelSpec("n")), tasks, goal=GoalSpec("budget"), overall=overall)
    answers = {("m", step): category for step, category in enumerate(categories)}
    answers |= {("n", step): 0 for step in range(len(categories))}
    line = played(spec, answers, 24).results().models[0]
    if None not in categories:
        assert (line.worst, line.best) == (None, None)
        return
    for bound, filler in ((line.worst, np.argmin(weights)), (line.best, np.argmax(weights))):
        filled = {key: int(filler) if category is None else category for key, category in answers.items()}
        assert bound == pytest.approx(played(spec, filled, 24).results().models[0].score)
    if line.score is not None:
        assert line.worst - 1e-9 <= line.score <= line.best + 1e-9


def test_a_model_without_any_answer_may_be_anything():
    session = Session(make_spec(2, 4))
    session.tell([Missing(request.key, "gone") for request in session.ask(8)])
    line = session.results().models[0]
    assert (line.score, line.worst, line.best) == (None, 0.0, 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_a_score_of_own_rounds_lies_between_them(seed):
    """One lost answer moves the mean by less than rounds move the score from it."""
    spec = make_spec(2, 30, goal="budget", max_passes=6, rounds="rounds", seed=seed)
    lost = {("m0", 3 * 30 + 7), ("m1", 20)}

    def missing(request):
        return (request.key.model, request.key.index) in lost

    session = drive(Session(spec), coin([0.15, 0.8]), missing=missing)
    for line in session.results().models:
        assert line.missing == 1
        assert line.worst < line.score < line.best
