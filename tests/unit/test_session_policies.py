"""Every goal, rule, policy and question order, run to its end."""

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core.foresight import SLOW_START
from adaptive_eval.core.session import Session
from adaptive_eval.trial import TrialOutcome
from adaptive_eval.views.sentences import describe

MEANS = [0.9, 0.7, 0.65, 0.2]


def run(**parts):
    parts = {"equivalence": 0.15, "max_passes": 100, **parts}
    return drive(Session(make_spec(4, 30, **parts)), coin(MEANS), slots=6)


class TestGoals:
    def test_top_k_decides_pairs_across_the_cut_only(self):
        session, ranking = run(goal="top-k", k=1, equivalence=None), run()
        assert session.stopped.reason == "resolved"
        winners = {call[0][0] if call[1] == "better" else call[0][1] for call in calls(session)}
        assert winners == {"m0"}
        assert session.states.issued[0] < ranking.states.issued[1]
        assert session.budget.completed < ranking.budget.completed

    def test_baseline_compares_all_with_one(self):
        session = run(goal="baseline", model="m1")
        assert {call[0] for call in calls(session)} == {("m1", "m0"), ("m1", "m2"), ("m1", "m3")}
        assert session.stopped.reason == "resolved"

    def test_named_pairs_leave_other_models_alone(self):
        session = run(goal="pairs", pairs=(("m3", "m0"),))
        assert [call[:2] for call in calls(session)] == [(("m3", "m0"), "worse")]
        assert session.states.issued[1] == session.states.issued[2] == 0

    def test_threshold_says_on_which_side_each_model_is(self):
        session = run(goal="threshold", value=0.4, equivalence=None)
        verdicts = {call[0][0]: call[1] for call in calls(session)}
        assert verdicts == {"m0": "better", "m1": "better", "m2": "better", "m3": "worse"}
        assert "m3 is below 0.4" in " ".join(describe(decision) for decision in session.decisions)

    def test_budget_spends_all_of_it_on_every_model(self):
        session = run(goal="budget", trials=400)
        assert session.stopped.reason == "budget"
        assert session.states.issued == [100, 100, 100, 100]


def test_zscore_calls_at_complete_passes_and_warns():
    session = run(rule="zscore", equivalence=None)
    assert calls(session)
    assert all(call[2] % 30 in (0, 1) for call in calls(session))
    assert "meant for one look" in session.results().warnings[0]


class TestPolicies:
    def test_top_two_spends_a_budget_where_it_is_close(self):
        session = drive(
            Session(make_spec(4, 30, goal="budget", trials=1200, policy="top-two")), coin(MEANS), slots=1
        )
        issued = session.states.issued
        assert min(issued[1], issued[2]) > max(issued[0], issued[3])
        assert sum(issued) == 1200

    def test_drain_asks_nothing_more_of_a_pair_that_trials_in_flight_will_decide(self):
        session = Session(make_spec(2, 500))
        requests = session.ask({"m0": 60, "m1": 60})
        assert session.states.issued == [SLOW_START, SLOW_START]
        early = [request for request in requests if request.key.index < 18]
        session.tell([TrialOutcome(one.key, int(one.key.model == "m0")) for one in early])
        assert session.stopped is None
        assert session.ask({"m0": 60, "m1": 60}) == []


@pytest.mark.parametrize(("goal", "slots"), [("ranking", 1), ("top-k", 20), ("budget", 9)])
def test_turns_kept_between_asks_change_no_request(goal, slots):
    """Seed 3: random arrivals, batches, a lost trial now and then, and a model that is dropped."""
    rng, answer = np.random.default_rng(3), coin([0.9, 0.6, 0.5, 0.2])
    spec = make_spec(4, 20, goal=goal, k=2, equivalence=0.3, max_passes=3)
    kept, fresh = Session(spec), Session(spec)
    fresh._issuer._in_turn = lambda capacity: None
    waiting, steps = [], 0
    while kept.stopped is None:
        requests = kept.ask(slots - len(waiting))
        assert fresh.ask(slots - len(waiting)) == requests
        waiting += requests
        count = rng.integers(min(len(waiting), 9) + 1)
        done = [waiting.pop(rng.integers(len(waiting))) for _ in range(count)]
        if done and rng.random() < 0.3:
            lost = done.pop()
            for session in (kept, fresh):
                session.abandon(lost.key, billed=False)
        steps += len(done)
        if steps > 100:
            for session in (kept, fresh):
                session.stop_model("m1", "refused")
        outcomes = [TrialOutcome(one.key, answer(one)) for one in done]
        assert kept.tell(outcomes) == fresh.tell(outcomes)
    assert kept.stopped == fresh.stopped
