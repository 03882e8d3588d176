"""When a session looks, and what one slow answer delays."""

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core import session as core_session
from adaptive_eval.core.board import Comparison
from adaptive_eval.core.next_look import FIRST
from adaptive_eval.core.session import Session
from adaptive_eval.trial import TrialOutcome

# When a session looks: seldom while all models are needed, with the decisions and trials of every look.


def driven(monkeypatch, spec, means, seed, *, each_step=False):
    """Return a session driven to its end, one trial of each model at a time, and at which steps it looked."""
    at, advance = [], Comparison.advance
    with monkeypatch.context() as patched:
        if each_step:
            patched.setattr(core_session, "next_look", lambda comparison: 1)
        patched.setattr(Comparison, "advance", lambda self: (at.append(self.reached), advance(self))[1])
        return drive(Session(spec), coin(means, seed=seed, spread=0.1), slots=1), at


@pytest.mark.slow
@pytest.mark.parametrize(
    ("questions", "goal", "parts", "ends", "passes", "share"),
    [
        (400, "ranking", {"equivalence": 0.06}, (0.4, 0.7), 1, 0.7),
        (50, "ranking", {"equivalence": 0.06, "rounds": "rounds"}, (0.4, 0.7), 8, 0.6),
        (50, "top-k", {"k": 2}, (0.4, 0.7), 8, 1.0),
        (400, "top-k", {"k": 2}, (0.5, 0.6), 4, 0.5),  # long beyond the last step that needs no review
    ],
    ids=["schedule", "rounds", "top-k", "close"],
)
def test_looking_seldom_changes_no_decision_and_costs_no_trial(
    monkeypatch, questions, goal, parts, ends, passes, share
):
    spec = make_spec(4, questions, goal=goal, max_passes=passes, **parts)
    means = np.linspace(*ends, 4)
    each, every_step = driven(monkeypatch, spec, means, 1, each_step=True)
    now, looks = driven(monkeypatch, spec, means, 1)
    assert calls(now) == calls(each)
    assert now.budget.completed == each.budget.completed
    assert len(looks) <= share * len(every_step)


def test_a_pair_is_looked_at_step_by_step_at_first_and_when_it_may_be_called(monkeypatch):
    spec = make_spec(2, 400, max_passes=4)
    session, looks = driven(monkeypatch, spec, (0.5, 0.62), 1)
    assert set(range(FIRST)) <= set(looks)
    (call,) = (decision for decision in session.decisions if decision.kind == "pair")
    assert call.step > 2 * FIRST
    assert session.budget.completed == 2 * call.step
    assert len(looks) < 0.8 * call.step


def test_answers_that_wait_are_counted_when_somebody_asks_for_results():
    session, answer = Session(make_spec(2, 400, max_passes=4)), coin((0.5, 0.5))
    for step in range(1, 301):
        session.tell([TrialOutcome(one.key, answer(one)) for one in session.ask(2)])
        if step % 50 == 0:
            assert [line.trials for line in session.results().models] == [step, step]


# One answer that does not come delays its own model's contrasts, and no others.


MEANS = np.linspace(0.2, 0.9, 8)


def drive_without(session, withheld, slots=64, rounds=20_000):
    """Answer everything but one trial until the session asks for nothing; return how often it was told."""
    answer, rng, waiting = coin(MEANS), np.random.default_rng(5), []
    for told in range(rounds):
        waiting += session.ask(slots - len(waiting))
        ready = [one for one in waiting if (one.key.model, one.key.index) != withheld]
        if session.stopped is not None or not ready:
            return told
        one = ready[rng.integers(len(ready))]
        waiting.remove(one)
        session.tell([TrialOutcome(one.key, answer(one))])
    raise AssertionError("the session goes on for ever")


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 37])
@pytest.mark.parametrize("goal", ["ranking", "top-k"])
def test_with_one_answer_withheld_for_good_all_pairs_of_others_are_decided(index, goal):
    session = Session(make_spec(8, 200, goal=goal, k=2, equivalence=0.1, max_passes=20))
    told = drive_without(session, ("m3", index))
    results = session.results()
    others = [pair for pair in results.pairs if "m3" not in (pair.first, pair.second)]
    if goal == "ranking":
        assert all(pair.verdict != "open" for pair in others)
        assert told < 6_000
    else:
        assert not [pair for pair in others if pair.verdict == "open" and pair.needed]
    assert {(one.model, one.trials) for one in results.models if one.model == "m3"} == {("m3", index)}
