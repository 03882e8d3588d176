"""Run-ahead beyond the common prefix: as far as open pairs need, and without a part in the decisions."""

import json
from dataclasses import replace

import numpy as np
import pytest
import standings_examples as examples
from session_scripts import make_spec

from adaptive_eval.core.drain import Foresight
from adaptive_eval.core.results import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.simulate import BiasedCoins, simulate
from adaptive_eval.simulate.drivers import Latency
from adaptive_eval.trial import TrialOutcome
from adaptive_eval.views.live import PlainLines
from adaptive_eval.views.metrics import RunMetrics

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
    """Three equal models, 150 slots, of which three are told at a time, in any order. Seed 0."""
    spec = replace(BOARD, spend=spend, stopping=replace(BOARD.stopping, equivalence=None, max_passes=1000))
    session, rng, flying = Session(spec), np.random.default_rng(0), {name: [] for name in spec.names}
    for turn in range(150):
        free = {name: 50 - len(trials) for name, trials in flying.items()}
        for request in session.ask(sum(free.values()) if shared else free):
            flying[request.key.model].append(request)
        assert session.in_flight == 150 or (spend == "trials" and turn < 30)
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
    mean, _, variance, _ = Foresight(session.board).read(pairs.first, pairs.second, reach)
    assert comparison.reached == 0
    session.tell(withheld)
    assert comparison.reached == reach[0] >= 160
    np.testing.assert_allclose(mean, comparison.latest.difference, atol=0.01)
    np.testing.assert_allclose(variance, comparison.latest.variance, rtol=0.25)


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
        session.tell(
            [TrialOutcome(one.key, int(one.key.model == "m0")) for one in requests if one.key.model != "m2"]
        )
    results = from_json(json.loads(json.dumps(to_json(session.results()))))
    assert {line.model: line.waits_for for line in results.models} == {"m0": ("m2",), "m1": ("m2",), "m2": ()}
    assert session.in_flight == session.states.issued[2] > 0
    view = examples.view_of(results)
    assert sum("waits for m2" in line for line in examples.board_lines(view, 100, 10)) == 2
    plain = PlainLines()
    assert "m0 (+1) waits for m2" in [plain.lines(view, at) for at in (0.0, 60.0)][1][0]
    with RunMetrics("demo", ("127.0.0.1", 0)) as metrics:
        metrics.update(1.0, 1.0, results, ())
        found = {
            sample.labels["model"]
            for one in metrics.collect()
            for sample in one.samples
            if "waits" in sample.name
        }
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
    """Five models, 300 in flight against one, lognormal latencies (sigma 1.5), 2 runs, seed 5."""
    spec = make_spec(5, 100, seed=0, equivalence=0.08, max_passes=40)
    coins = BiasedCoins((0.3, 0.45, 0.5, 0.6, 0.75))
    alone, many = (simulate(spec, coins, 2, 5, slots, SLOW, workers=1) for slots in (1, 300))
    assert many.trials.sum() <= 1.27 * alone.trials.sum()
