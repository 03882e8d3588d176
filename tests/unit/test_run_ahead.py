"""When a session asks and looks: run-ahead beyond the common prefix, late answers, who is left open."""

import json
from collections import Counter
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import standings_examples as examples
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core import foresight
from adaptive_eval.core.board import SessionContrasts
from adaptive_eval.core.results import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec
from adaptive_eval.simulate import BiasedCoins, simulate
from adaptive_eval.simulate.drivers import Latency
from adaptive_eval.trial import TrialOutcome
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.live_terminal import PlainLines
from adaptive_eval.views.metrics import RunMetrics
from adaptive_eval.views.sentences import state_words
from adaptive_eval.views.verdicts import left_open
from scorio.arrays import ONE_THREAD
from scorio.sequential.parts import Foresight

# Run-ahead beyond the common prefix: as far as open pairs need, and without a part in the decisions.


SLOW = Latency(1.0, sigma=1.5, tick=0.05)


BOARD = make_spec(3, 40, seed=0, equivalence=0.08, max_passes=40, family="pair")


@pytest.mark.parametrize(("spend", "least", "most"), [("trials", 21, 30), ("time", 30, 50)])
def test_answers_that_wait_for_a_slow_one_hold_back_trials(spend, least, most):
    """The first trial of each model is never answered, so nothing is decided; all others are far apart."""
    spec = replace(make_spec(2, 60), spend=spend)
    session = Session(spec)
    for _ in range(90):
        requests = session.ask(dict.fromkeys(spec.names, 1))
        session.tell([TrialOutcome(one.key, int(one.key.model == "m0")) for one in requests if one.key.index])
    assert session.comparison.reached == 0
    assert least < max(session.states.issued) < most


@pytest.mark.parametrize(("spend", "first", "then"), [("trials", 32, 40), ("time", 60, 116)])
def test_only_a_run_that_spares_time_begins_with_all_slots(spend, first, then):
    session, free = Session(replace(make_spec(2, 60), spend=spend)), {"m0": 60, "m1": 60}
    requests = session.ask(free)
    assert Counter(one.key.model for one in requests) == {"m0": first, "m1": first}
    session.tell([TrialOutcome(one.key, one.key.index % 2) for one in requests if one.key.index < 4])
    session.ask(free)
    assert session.states.in_flight == [then, then]


def test_a_pair_waits_while_a_lucky_end_of_what_is_in_flight_would_decide_it():
    """32 trials of each in flight; of the first 20 answers a model has 13 right and another 5."""
    session = Session(make_spec(2, 60))
    requests = session.ask({"m0": 40, "m1": 40})
    right = {"m0": 13, "m1": 5}
    early = [one for one in requests if one.key.index < 20]
    session.tell([TrialOutcome(one.key, int(one.key.index < right[one.key.model])) for one in early])
    assert session.ask({"m0": 5, "m1": 5}) == []
    session.tell([TrialOutcome(one.key, 0) for one in requests if one.key.index >= 20])
    assert len(session.ask({"m0": 5, "m1": 5})) == 10


@pytest.mark.parametrize("wrong", [1, 2])
def test_a_model_waits_while_what_is_in_flight_would_win_the_bet_on_its_score(wrong):
    session = Session(make_spec(1, 200, goal="threshold", value=0.5))
    session.tell([TrialOutcome(one.key, int(place >= wrong)) for place, one in enumerate(session.ask(12))])
    session.ask(18)
    assert len(session.ask(5)) == (0 if wrong == 1 else 5)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("spend", ["trials", "time"])
def test_no_slot_is_idle_while_no_pair_is_foreseen_to_end(spend, shared):
    """Three equal models, 150 slots, of which three are told at a time, in any order. Seed 0.

    In the first turns a pair may be foreseen to end: bets call one after ten trials, if they go one way.
    """
    spec = replace(BOARD, spend=spend, stopping=replace(BOARD.stopping, equivalence=None, max_passes=1000))
    session, rng, flying = Session(spec), np.random.default_rng(0), {name: [] for name in spec.names}
    for turn in range(150):
        free = {name: 50 - len(trials) for name, trials in flying.items()}
        for request in session.ask(sum(free.values()) if shared else free):
            flying[request.key.model].append(request)
        assert session.in_flight == 150 or turn < 30
        told = [trials.pop(rng.integers(20)) for trials in flying.values()]
        session.tell([TrialOutcome(one.key, int(rng.random() < 0.5)) for one in told])
    assert max(session.states.issued) <= min(session.states.issued) + 50


@pytest.mark.parametrize(("rounds", "tasks"), [("schedule", 1), ("schedule", 2), ("rounds", 2)])
def test_pairs_are_foreseen_nearly_as_they_are_read_when_all_is_there(rounds, tasks):
    """Three graded models; all answers but the first three are there, then all. Seed 4."""
    spec = make_spec(3, 40, weights=(0.0, 0.5, 1.0), goal="budget", trials=960, rounds=rounds)
    spec = replace(spec, tasks=tuple(replace(spec.tasks[0], name=f"t{number}") for number in range(tasks)))
    session, rng, withheld = Session(spec), np.random.default_rng(4), []
    while len(requests := session.ask(12)) > 0:
        outcomes = [TrialOutcome(one.key, int(rng.integers(3))) for one in requests]
        withheld += [one for one in outcomes if one.key.index < 3]
        session.tell([one for one in outcomes if one.key.index >= 3])
    comparison, pairs = session.comparison, session.comparison.contrasts
    reach = np.minimum(*(np.array(session.states.issued)[side] for side in (pairs.first, pairs.second)))
    mean, _, variance, _ = Foresight(session.board, session.board.guard).read(
        pairs.first, pairs.second, reach
    )
    assert comparison.reached == 0
    session.tell(withheld)
    assert comparison.reached == reach[0] >= 160
    np.testing.assert_allclose(mean, comparison.latest.difference, atol=0.01)
    np.testing.assert_allclose(variance, comparison.latest.variance, rtol=0.25)


class Noting(np.ndarray):
    """An array that notes how many multiplications the products of matrices take that it is part of."""

    products: ClassVar[list[int]] = []

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [np.asarray(one) if isinstance(one, Noting) else one for one in inputs]
        if ufunc is np.matmul and min(np.ndim(one) for one in plain) > 1:
            self.products.append(np.size(plain[0]) * np.shape(plain[1])[-1])
        if "out" in options:
            options["out"] = tuple(map(np.asarray, options["out"]))
        found = getattr(ufunc, method)(*plain, **options)
        return found.view(Noting) if isinstance(found, np.ndarray) else found


def test_what_is_foreseen_of_many_models_is_no_work_for_the_threads_of_blas():
    """They wait for each other longer than these products take, in a host program that has some."""
    session = Session(make_spec(20, 1000))
    session.tell([TrialOutcome(one.key, int(one.key.index % 3 > 0)) for one in session.ask(400)])
    (cells,), pairs = session.board.cells, session.comparison.contrasts
    foresight, reach = Foresight(session.board, session.board.guard), np.full(pairs.first.size, 20)
    expected = foresight.read(pairs.first, pairs.second, reach)
    cells.counts = cells.counts.view(Noting)
    for values, others in zip(foresight.read(pairs.first, pairs.second, reach), expected, strict=True):
        assert values.tolist() == others.tolist()
    assert expected[3].min() == 20
    assert max(Noting.products) <= ONE_THREAD < 20 * 1000 * 20


def test_a_model_whose_second_answer_is_late_is_not_the_best_by_its_first():
    """m0 has one answer, right; m1 has 30 of 32 right and m2 has 20 of 32."""
    session = Session(make_spec(3, 60, goal="top-k", k=1))
    requests = session.ask(96)
    right, known = {"m0": 1, "m1": 30, "m2": 20}, {"m0": 1, "m1": 32, "m2": 32}
    told = [one for one in requests if one.key.index < known[one.key.model]]
    session.tell([TrialOutcome(one.key, int(one.key.index < right[one.key.model])) for one in told])
    session.end("interrupted")  # everything is read
    goal, needed = session.comparison.contrasts, session.comparison.fold.needed
    pairs = zip(goal.first[needed].tolist(), goal.second[needed].tolist(), strict=True)
    assert set(pairs) == {(0, 1), (1, 2)}


def test_every_view_says_who_waits_for_whom():
    """The server of m2 is dead: m0 and m1 continue until nothing can be decided without it."""
    session = Session(make_spec(3, 40))
    while requests := session.ask(dict.fromkeys(session.spec.names, 8)):
        alive = [one.key for one in requests if one.key.model != "m2"]
        session.tell([TrialOutcome(key, int(key.model == "m0")) for key in alive])
    results = from_json(json.loads(json.dumps(to_json(session.results()))))
    assert {line.model: line.waits_for for line in results.models} == {"m0": ("m2",), "m1": ("m2",), "m2": ()}
    assert session.in_flight == session.states.issued[2] > 0
    view = examples.view_of(results)
    assert sum("waits for m2" in line for line in examples.board_lines(view, 100, 10)) == 2
    plain = PlainLines()
    assert "m0 (+1) waits for m2" in [plain.lines(view, at) for at in (0.0, 60.0)][1][0]
    with RunMetrics("demo", ("127.0.0.1", 0)) as metrics:
        metrics.update(1.0, 1.0, results, ())
        samples = [sample for one in metrics.collect() for sample in one.samples]
        found = {sample.labels["model"] for sample in samples if "waits" in sample.name}
    assert found == {"m0", "m1"}
    idle = examples.view_of(results, alive=False)
    assert not any("waits" in line for line in examples.board_lines(idle, 100, 10))


@pytest.mark.slow
def test_many_in_flight_decide_the_same_in_little_more_trials():
    """Lognormal latencies (sigma 1.5), 3 runs, seed 5, in virtual time: 64 in flight against one."""
    coins = BiasedCoins((0.3, 0.5, 0.6))
    alone, many = (simulate(BOARD, coins, 3, 5, slots, SLOW, workers=1) for slots in (1, 64))
    np.testing.assert_array_equal(many.verdict, alone.verdict)
    np.testing.assert_array_equal(many.decided_at, alone.decided_at)
    assert many.trials.sum() <= 1.25 * alone.trials.sum() + 3 * 64
    assert many.time.sum() <= alone.time.sum() / 5


@pytest.mark.slow
def test_many_slots_ask_little_of_a_pair_that_waits_for_other_calls():
    """Five models, 300 in flight against one, lognormal latencies (sigma 1.5), 6 runs, seed 21."""
    spec = make_spec(5, 100, seed=0, equivalence=0.08, max_passes=40)
    coins = BiasedCoins((0.3, 0.45, 0.5, 0.6, 0.75))
    alone, many = (simulate(spec, coins, 6, 21, slots, SLOW, workers=1) for slots in (1, 300))
    assert many.trials.sum() <= 1.55 * alone.trials.sum()


# When a session looks: seldom while all models are needed, with the decisions and trials of every look.


def driven(monkeypatch, spec, means, seed, *, each_step=False):
    """Return a session driven to its end, one trial of each model at a time, and at which steps it looked."""
    at, advance = [], SessionContrasts.advance
    with monkeypatch.context() as patched:
        if each_step:
            patched.setattr(foresight, "next_look", lambda comparison: 1)
        patched.setattr(SessionContrasts, "advance", lambda self: (at.append(self.reached), advance(self))[1])
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
def test_looking_seldom_changes_no_decision_and_costs_one_trial_at_most(
    monkeypatch, questions, goal, parts, ends, passes, share
):
    spec = make_spec(4, questions, goal=goal, max_passes=passes, **parts)
    means = np.linspace(*ends, 4)
    each, every_step = driven(monkeypatch, spec, means, 1, each_step=True)
    now, looks = driven(monkeypatch, spec, means, 1)
    assert calls(now) == calls(each)
    assert each.budget.completed <= now.budget.completed <= each.budget.completed + 1
    assert len(looks) <= share * len(every_step)


def test_a_claim_beside_a_ranking_is_decided_as_if_looked_at_after_every_step(monkeypatch):
    spec = make_spec(2, 20, target="population", max_passes=20)
    task = replace(spec.tasks[0], clusters=tuple("abcd" * 5))
    goal = GoalSpec("all", goals=(GoalSpec(), GoalSpec("not-worse", model="m1", margin=0.2)))
    spec = replace(spec, tasks=(task,), goal=goal)
    each, every_step = driven(monkeypatch, spec, (0.6, 0.6), 1, each_step=True)
    now, looks = driven(monkeypatch, spec, (0.6, 0.6), 1)
    assert calls(now) == calls(each)
    assert len(looks) < len(every_step)


def test_a_pair_is_looked_at_step_by_step_at_first_and_when_it_may_be_called(monkeypatch):
    spec = make_spec(2, 400, max_passes=4)
    session, looks = driven(monkeypatch, spec, (0.5, 0.62), 1)
    assert set(range(64)) <= set(looks)
    (call,) = (decision for decision in session.decisions if decision.kind == "pair")
    assert call.step > 128
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
    raise AssertionError("the session never stops")


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


# A model that nobody can be compared with any more, because the others have stopped, is not resolved.


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


def test_every_view_calls_it_unresolved():
    session = Session(make_spec(3, 40))
    session.stop_model("m0", "gone")
    session.stop_model("m1", "gone")
    retired = [describe(decision) for decision in session.decisions if decision.kind == "retired"]
    assert "its open pairs with m0 and m1 cannot be decided" in retired[-1]
    results = session.results()
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
