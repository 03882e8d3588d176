"""A model that was not needed for a while and is needed again (best k of close models)."""

from collections import Counter

import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.trial import TrialOutcome

MEANS = [0.8, 0.68, 0.53, 0.5]


@pytest.mark.parametrize(("seed", "most"), [(0, 1), (2, 3), (3, 3)])
def test_it_catches_up_and_the_run_ends_resolved(seed, most):
    spec = make_spec(4, 30, goal="top-k", k=2, max_passes=60, seed=seed)
    answer = coin(MEANS, seed=seed)
    wide = drive(Session(spec), answer, slots=16)
    narrow = drive_in_all(Session(spec), answer, most)
    assert wide.stopped.reason == narrow.stopped.reason == "resolved"
    said, other = ({call[0]: call[1] for call in calls(one)} for one in (narrow, wide))
    assert said.keys() & other.keys()
    assert all(said[pair] == other[pair] for pair in said.keys() & other.keys())


def test_nothing_is_asked_of_the_others_while_it_catches_up():
    spec = make_spec(4, 30, goal="top-k", k=2, max_passes=60, seed=3)
    session = drive_in_all(Session(spec), coin(MEANS, seed=3), 3)
    retired = [decision.models[0] for decision in session.decisions if decision.kind == "retired"]
    assert retired.count("m0") == 2
    last = max(decision.step for decision in session.decisions if decision.kind == "pair")
    assert max(session.states.issued) <= last + 1


@pytest.mark.slow
def test_in_whatever_order_models_come_back_no_winner_turns():
    """In most of these runs a model of the best three is dropped, and needed again after other calls."""
    means, returned = [0.9, 0.8, 0.6, 0.55, 0.5], 0
    for seed in range(4):
        spec = make_spec(5, 20, goal="top-k", k=3, max_passes=20, seed=seed)
        narrow = drive_in_all(Session(spec), coin(means, seed=seed), 3)
        wide = drive(Session(spec), coin(means, seed=seed), slots=16)
        said, other = winners(narrow), winners(wide)
        assert said.keys() & other.keys()
        assert all(said[pair] == other[pair] for pair in said.keys() & other.keys())
        retired = Counter(decision.models[0] for decision in narrow.decisions if decision.kind == "retired")
        returned += max(retired.values(), default=0) > 1
    assert returned >= 2


def test_without_free_slots_the_run_waits_instead_of_ending():
    session = Session(make_spec(2, 30, max_passes=60))
    assert session.ask({"m0": 0, "m1": 0}) == []
    assert session.stopped is None


def winners(session):
    """Return the verdicts of the pairs that have a winner."""
    return {call[0]: call[1] for call in calls(session) if call[1] in ("better", "worse")}


def drive_in_all(session, answer, most):
    """Run a session with at most so many trials in flight over all models."""
    while session.stopped is None:
        requests = session.ask(most)
        session.tell([TrialOutcome(request.key, answer(request)) for request in requests])
    return session
