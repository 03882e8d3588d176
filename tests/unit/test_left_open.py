"""A model that nobody can be compared with any more, because the others have stopped, is not resolved."""

import pytest
import standings_examples as examples
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.views.sentences import describe, state_words
from adaptive_eval.views.verdicts import left_open


def retired_because(session: Session) -> str:
    return [describe(decision) for decision in session.decisions if decision.kind == "retired"][-1]


@pytest.fixture
def alone() -> Session:
    """A run whose third model is left without anybody to compare it with."""
    session = Session(make_spec(3, 40))
    session.stop_model("m0", "gone")
    session.stop_model("m1", "gone")
    return session


def test_why_it_is_asked_no_more(alone):
    assert "its open pairs with m0 and m1 cannot be decided" in retired_because(alone)


def test_what_was_decided_is_said_too():
    session = Session(make_spec(3, 40))
    session.stop_model("m1", "gone")
    drive(session, coin([0.95, 0.5, 0.05]))
    reasons = [describe(decision) for decision in session.decisions if decision.kind == "retired"]
    assert not any("after 0 trials" in reason for reason in reasons)
    assert [reason.partition(": ")[2] for reason in reasons] == [
        "separated from m2; its open pair with m1 cannot be decided any more",
        "separated from m0; its open pair with m1 cannot be decided any more",
    ]
    assert left_open(session.results()) == {"m0", "m2"}


def test_every_view_calls_it_unresolved(alone):
    results = alone.results()
    view = examples.view_of(results)
    assert left_open(results) == {"m2"}
    lines = [line.split() for line in examples.board_lines(view, 100, 10)]
    assert {line[1]: line[-1] for line in lines[1:]} == {"m0": "stopped", "m1": "stopped", "m2": "unresolved"}
    assert [state_words(line, results) for line in results.models if line.model == "m2"] == ["unresolved"]


def test_a_model_with_a_verdict_on_every_pair_is_resolved():
    session = drive(Session(make_spec(3, 40)), coin([0.95, 0.5, 0.05]))
    results = session.results()
    assert session.stopped.reason == "resolved"
    assert left_open(results) == frozenset()
    assert {state_words(line, results) for line in results.models} == {"resolved"}


def test_what_a_reached_goal_did_not_need_is_not_left_open():
    """m0 beats m2, which stops while its pair with m1 is open; then m0 beats m1, and is the best."""
    session, answer = Session(make_spec(3, 40, goal="top-k")), coin([1.0, 0.7, 0.2])
    while session.results().pairs[1].verdict == "open":
        drive(session, answer, slots=1, most=1)
    session.stop_model("m2", "gone")
    drive(session, answer)
    assert session.stopped.reason == "resolved"
    assert [pair.verdict for pair in session.results().pairs] == ["better", "better", "open"]
    assert left_open(session.results()) == frozenset()
