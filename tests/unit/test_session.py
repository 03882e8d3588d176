"""The session: what it asks for, what it refuses, when it stops; every goal, rule and policy to its end."""

from collections import Counter
from hashlib import blake2b

import pytest
from session_scripts import calls, coin, drive, make_spec, spent

from adaptive_eval.core.board import SessionContrasts
from adaptive_eval.core.foresight import SLOW_START
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import AllocationSpec
from adaptive_eval.errors import SessionError
from adaptive_eval.trial import TrialKey, TrialOutcome, Usage
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.promises import explain, promises


def test_names_model_step_question_repeat_and_seed():
    session = Session(make_spec(2, 4))
    requests = session.ask(2)
    assert {request.key for request in requests} == {TrialKey("m0", 0), TrialKey("m1", 0)}
    assert len({request.question for request in requests}) == 1
    assert all(request.task == "t" and request.repeat == 0 for request in requests)
    names = f"5\x1fm0\x1ft\x1f{requests[0].question}".encode()
    digest = blake2b(names, digest_size=8).digest()
    assert requests[0].key.model == "m0"
    assert requests[0].seed == int.from_bytes(digest) % (2**31 - 2**16)


def test_keeps_a_fast_model_within_its_window_of_its_partners():
    session = Session(make_spec(2, 30))
    issued = 0
    for _ in range(20):
        requests = session.ask({"m0": 4, "m1": 0})
        session.tell([TrialOutcome(request.key, 1) for request in requests])
        issued += len(requests)
    assert issued == 4


def test_serves_the_model_with_the_fewest_trials_first():
    session = Session(make_spec(3, 30))
    for _ in range(10):
        session.tell([TrialOutcome(request.key, 1) for request in session.ask(1)])
    assert sorted(session.states.issued) == [3, 3, 4]


def test_a_bad_outcome_leaves_the_whole_batch_uncounted():
    session = Session(make_spec(2, 4))
    session.ask(2)
    with pytest.raises(SessionError):
        session.tell([TrialOutcome(TrialKey("m0", 0), 1), TrialOutcome(TrialKey("m1", 9), 1)])
    assert session.budget.completed == 0
    assert session.in_flight == 2


def test_an_outcome_told_twice_counts_once():
    session = Session(make_spec(2, 4))
    session.ask(2)
    outcome = TrialOutcome(TrialKey("m0", 0), 1, Usage(10, 5))
    session.tell([outcome])
    session.tell([outcome, outcome])
    assert session.budget.completed == 1
    assert spent(session, "tokens") == (15, 0)


@pytest.mark.parametrize("category", [0, 1])
def test_two_identical_models_tie(category):
    session = drive(Session(make_spec(2, 500, equivalence=0.02)), lambda request: category)
    assert calls(session)[0][1:3] == ("tie", 228)


def test_reports_the_stop_also_when_asking_finds_it():
    session = Session(make_spec(2, 20, trials=2))
    session.tell([TrialOutcome(request.key, 1) for request in session.ask(8)])
    assert session.ask(8) == []
    assert [decision.kind for decision in session.tell([])] == ["stop"]


@pytest.mark.parametrize(
    "ends", [lambda one: one.end("interrupted"), lambda one: one.stop_model("m3", "gone")]
)
def test_an_end_from_outside_reads_the_answers_that_wait(ends):
    session, told = Session(make_spec(4, 300)), 0
    answer = coin([0.75, 0.5, 0.6, 0.65], spread=0.05)
    while told < 630:
        told += len([session.tell([TrialOutcome(r.key, answer(r))]) for r in session.ask(1)])
    call, end = ends(session)
    assert (call.kind, call.models) == ("pair", ("m1", "m3"))
    assert end.kind in ("stop", "model_stopped")


def test_models_retire_when_no_open_pair_needs_them():
    session = Session(make_spec(3, 40, equivalence=0.05))
    drive(session, coin([0.95, 0.5, 0.5], spread=0.05))
    retired = [decision for decision in session.decisions if decision.kind == "retired"]
    assert retired[0].models == ("m0",)
    assert retired[0].evidence == {"separated": ["m1", "m2"], "tied": [], "lost": []}
    issued = session.states.issued
    assert issued[0] < issued[1] == issued[2]


def test_in_flight_trials_after_the_stop_are_in_the_estimate_only():
    session = Session(make_spec(2, 30))
    requests = session.ask({"m0": 30, "m1": 30})
    session.tell([TrialOutcome(r.key, int(r.key.model == "m0")) for r in requests if r.key.index < 25])
    assert session.stopped.reason == "resolved"
    late = [r for r in requests if r.key.index >= 25]
    session.tell([TrialOutcome(r.key, 0) for r in late])
    line = session.results().models[0]
    assert line.after_stop == 5
    assert line.trials == 30
    assert calls(session)[0][2] == 10


def test_an_explanation_gives_numbers_and_words_for_a_decided_pair():
    session = drive(Session(make_spec(2, 30)), lambda request: int(request.key.model == "m0"))
    text = explain(session.results(), "m1", "m0")
    assert text.startswith("m0 − m1: m0 is ahead of m1.")
    assert "Difference +1.0000" in text
    assert "after 10 trials each on 10 questions" in text
    assert "Rule `anytime` at 95 %" in text
    assert tuple(text.splitlines()[-2:]) == promises(session.results()).holds[:2]
    assert len(text.splitlines()) == 5
    with pytest.raises(SessionError, match="no model 'm7'; the models are m"):
        explain(session.results(), "m7")


def test_the_rest_of_the_board_goes_on():
    session = Session(make_spec(3, 40))
    session.ask(6)
    decisions = session.stop_model("m1", "401: bad key")
    assert describe(decisions[0]) == "m1 stopped: 401: bad key"
    assert {request.key.model for request in session.ask(20)} == {"m0", "m2"}


def test_no_pair_left_means_endpoints():
    session = Session(make_spec(2, 40))
    session.stop_model("m1", "gone")
    assert session.stopped.reason == "endpoints"
    assert "m1: gone" in describe(session.stopped)


def test_time_that_is_up_is_a_budget_and_no_fault():
    session = Session(make_spec(3, 40))
    (decision,) = session.stop_model("m1", "its wall clock limit of 60 s is reached", spent=True)
    assert decision.verdict == "budget"
    drive(session, lambda request: int(request.key.model == "m0"))
    assert session.stopped.reason == "partial"
    assert session.stopped.evidence == {"open": 2, "open_models": 0, "silent": [], "spent": ["m1"]}
    for timed, reason in ((True, "budget"), (False, "endpoints")):
        session = Session(make_spec(3, 40))
        session.stop_model("m1", "its wall clock limit of 60 s is reached", spent=True)
        session.stop_model("m2", "gone", spent=timed)
        session.stop_model("m0", "its wall clock limit of 60 s is reached", spent=True)
        assert session.stopped.reason == reason


STOPS = {"spent": {"spent": True}, "unusable": {"unusable": True}, "silent": {}}
"""Why a model is stopped, in the order in which reasons count where there are several."""


@pytest.mark.parametrize("first", STOPS)
@pytest.mark.parametrize("second", STOPS)
def test_a_model_that_is_stopped_twice_is_named_once_by_the_reason_that_says_most(first, second):
    """It was stopped, and what was in flight has shown another reason."""
    answer, session = coin([0.99, 0.9, 0.5, 0.01]), Session(make_spec(4, 40))
    drive(session, answer, most=24)
    for why in (first, second):
        session.stop_model("m1", "it is stopped", **STOPS[why])
    session.stop_model("m2", "gone")
    drive(session, answer)
    evidence = session.stopped.evidence
    named = next(why for why in STOPS if why in (first, second))
    assert session.stopped.reason == "partial"
    assert {name: evidence.get(name, []) for name in STOPS} == {
        name: ["m1"] * (name == named) + ["m2"] * (name == "silent") for name in STOPS
    }


@pytest.mark.parametrize("policy", ["round-robin", "uniform"])
def test_time_that_is_up_takes_nothing_from_a_model_that_is_decided(policy):
    session = Session(make_spec(3, 40, allocation=AllocationSpec(policy, "schedule")))
    answer = coin([0.99, 0.3, 0.3])
    while not session.states.retired[0]:
        session.tell([TrialOutcome(request.key, answer(request)) for request in session.ask(3)])
    assert session.stop_model("m0", "its wall clock limit of 60 s is reached", spent=True) == []
    assert {request.key.model for request in session.ask(20)} == {"m1", "m2"}
    assert session.results().models[0].state == "retired"


def test_its_abandoned_trials_do_not_hold_up_the_end():
    session = Session(make_spec(3, 40, trials=12))
    session.ask(9)
    session.stop_model("m1", "gone")
    own = [TrialOutcome(TrialKey(f"m{m}", step), 1) for m in (0, 2) for step in range(3)]
    session.tell(own)
    for _ in range(10):
        session.tell([TrialOutcome(request.key, 1) for request in session.ask(4)])
        if session.stopped:
            break
    assert session.stopped.reason == "budget"


def test_a_batch_is_read_at_once(monkeypatch):
    """Also one that leaves some models a trial ahead: what decides nothing yet waits for the next batch."""
    read, spec = Counter(), make_spec(11, 200)
    original = SessionContrasts._piece

    def counted(self, *where):
        read.update(["times"])
        return original(self, *where)

    monkeypatch.setattr(SessionContrasts, "_piece", counted)
    session = Session(spec)
    for _ in range(20):
        session.tell([TrialOutcome(one.key, one.key.index % 2) for one in session.ask(64)])
    assert read["times"] == 20
    assert session.comparison.reached == 20 * 64 // 11


# Every goal, rule, policy and question order, run to its end.


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


@pytest.mark.parametrize(
    ("mean", "value", "margin", "side", "ends"),
    [
        (0.5, 0.3, None, "better", (0.3, None)),
        (0.5, 0.3, 0.1, "better", (0.3, None)),
        (0.6, 0.8, None, "worse", (None, 0.8)),
        (0.6, 0.8, 0.1, "worse", (None, 0.8)),
        (0.5, 0.5, 0.1, "tie", (0.4, 0.6)),
    ],
)
def test_no_called_score_has_an_interval_that_holds_what_it_was_called_against(
    mean, value, margin, side, ends
):
    """Bets call a score before its interval would: that one ends at the value then, or at the margin."""
    spec = make_spec(1, 20, goal="threshold", value=value, equivalence=margin, max_passes=40)
    session = drive(Session(spec), coin((mean,)), slots=1)
    found = session.results()
    assert found.pairs[0].verdict == side
    line = found.models[0]
    assert line.score_low < line.score < line.score_high
    for end, called in zip((line.score_low, line.score_high), ends, strict=True):
        assert called is None or end == pytest.approx(called)


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
        right = [one.key.model == "m0" or one.key.index % 3 > 0 for one in early]
        session.tell([TrialOutcome(one.key, int(said)) for one, said in zip(early, right, strict=True)])
        assert session.stopped is None
        assert session.ask({"m0": 60, "m1": 60}) == []


def test_a_retired_model_that_refuses_its_last_trial_is_told_as_refusing():
    """What it had left in flight failed for good. A budget that is used up says nothing more of it."""
    session = Session(make_spec(3, 200))
    answers = coin([0.05, 0.9, 0.9])
    while not session.states.retired[0]:
        session.tell([TrialOutcome(request.key, answers(request)) for request in session.ask(8)])

    def state():
        return next((line.state, line.note) for line in session.results().models if line.model == "m0")

    session.stop_model("m0", "its budget is used up", spent=True)
    assert state() == ("retired", "")
    session.stop_model("m0", "HTTP 401")
    assert state() == ("stopped", "HTTP 401")


@pytest.mark.parametrize(("left", "reason"), [(5, "budget"), (20, None)])
def test_a_lost_trial_that_the_budget_cannot_pay_again_ends_the_continued_run(left, reason):
    """All others are answered: nothing but this one is left to ask."""

    def spec(tokens):
        return make_spec(2, 20, max_passes=1, max_tokens=10, prompt_bounds=(10,) * 20, tokens=tokens)

    log = []
    drive(Session(spec(10_000)), lambda request: log.append(request.key) or request.key.index % 2)
    told = [TrialOutcome(key, key.index % 2, Usage(10, 10)) for key in log if key != TrialKey("m0", 3)]
    assert len(told) == 39
    session = Session(spec(20 * len(told) + left))
    session.replay([told])
    asked = session.ask(4)
    if reason:
        assert not asked
        assert session.stopped.reason == reason
    else:
        assert [request.key for request in asked] == [TrialKey("m0", 3)]
        assert session.stopped is None
