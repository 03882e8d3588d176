"""Models that repeat their answers: tested, asked once a question, and decided exactly."""

from dataclasses import replace

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core.determinism import REPEATS
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import TaskSpec
from adaptive_eval.trial import Missing, TrialKey, TrialOutcome, Usage
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.promises import explain
from adaptive_eval.views.sentences import repeat_notices
from adaptive_eval.views.verdicts import pair_order
from scorio.sequential.evidence import confidence_radius

ALL = {"deterministic": ("m0", "m1", "m2")}


def fixed(right, questions=100):
    """Return answers that are right on given numbers of questions, always the same ones."""
    wins = [set(np.random.default_rng(seed).permutation(questions)[:n]) for seed, n in enumerate(right)]
    return lambda request: int(int(request.question[1:]) in wins[int(request.key.model[1:])])


def asked(session):
    return [line.issued for line in session.results().models]


@pytest.mark.parametrize("parts", [1, 2])
def test_a_pair_is_exact_after_one_pass(parts):
    spec = make_spec(2, 100, **ALL)
    names = spec.tasks[0].questions
    tasks = tuple(TaskSpec(f"t{part}", names[part::parts]) for part in range(parts))
    spec, log = replace(spec, tasks=tasks), []
    session = drive(Session(spec), fixed((70, 73)), log=log)
    again = Session(spec)
    again.replay(log)
    assert asked(again) == asked(session)
    assert (session.stopped.reason, session.results().fixed_passes) == ("resolved", 1)
    assert sum(asked(session)) <= 210
    trials = sum(line.trials for line in session.results().models)
    assert session.budget.completed == sum(asked(session)) == trials
    (pair,) = session.results().pairs
    assert (pair.verdict, pair.exact) == ("worse", True)
    assert pair.difference == pytest.approx(-0.03)
    assert (pair.difference_low, pair.difference_high) == pytest.approx((-0.03, -0.03), abs=1e-5)
    assert (pair.population_low, pair.population_high) == pytest.approx((-0.24, 0.18), abs=0.02)
    (turned,) = pair_order(session.results())
    assert (turned.first, turned.difference_low, turned.population_low) == (
        "m1",
        -pair.difference_high,
        -pair.population_high,
    )
    assert (turned.difference_high, turned.population_high) == (-pair.difference_low, -pair.population_low)
    for words in (describe(session.decisions[0]), explain(session.results(), "m0", "m1").lower()):
        assert "exact on these questions" in words
    for line, score in zip(session.results().models, (0.7, 0.73), strict=True):
        assert (line.score, line.score_low, line.score_high) == pytest.approx((score,) * 3, abs=1e-5)


def test_what_a_greedy_model_takes_is_told_in_the_units_of_the_score():
    """More pairs take a larger difference, two tasks one that is √2 times as large, and a scale its range."""

    def told(models=2, parts=1, weights=(0.0, 1.0)):
        spec = make_spec(models, 100, greedy=True)
        names = spec.tasks[0].questions
        tasks = tuple(TaskSpec(f"t{part}", names[part::parts], weights) for part in range(parts))
        (words,) = repeat_notices(replace(spec, tasks=tasks))
        return float(words.partition("difference of ")[2].split()[0])

    plain = told()
    assert told(models=8) > plain
    assert told(parts=2) == pytest.approx(plain * np.sqrt(2), rel=0.1)
    assert told(weights=(-1.0, 3.0)) == pytest.approx(4 * plain, rel=0.05)


@pytest.mark.parametrize("deterministic", [("m0",), ()])
@pytest.mark.parametrize("kind", ["width", "threshold"])
@pytest.mark.parametrize(("right", "value"), [(58, 2.6), (2, -0.6)])
def test_what_is_told_of_one_model_is_its_score(kind, right, value, deterministic):
    """A score from -1 to 3 near an end of the scale: no interval goes beyond it."""
    parts = {"width": 0.4, "value": value, "deterministic": deterministic}
    spec = make_spec(1, 60, goal=kind, weights=(-1.0, 3.0), **parts)
    session = drive(Session(spec), fixed((right,), 60) if deterministic else coin([right / 60]))
    told, (pair,), (line,) = session.decisions[0], session.results().pairs, session.results().models
    assert (told.evidence["low"], told.evidence["high"]) == (pair.difference_low, pair.difference_high)
    ends = (
        [pair.population_low, pair.population_high]
        if deterministic
        else [pair.difference_low, pair.difference_high]
    )
    low, high = (end + (kind == "threshold") * value for end in ends)
    if kind == "width" and not deterministic:
        assert (line.score_low, line.score_high) == (low, high)
    assert (high == 3.0) if right > 30 else (low == -1.0)
    if deterministic:  # the other end is that of a sample of 60 questions
        share, sign = right / 60, np.sign(right - 30)
        radius = float(confidence_radius((60 * share * (1 - share) - np.log(0.05)) / 60**2, 0.05))
        assert (low if right > 30 else high) == pytest.approx(4 * (share - sign * radius) - 1)
    words = f"lies between {low:.3f} and {high:.3f}" if deterministic else f"[{low:.3f}, {high:.3f}]"
    assert words in describe(told) or (kind, deterministic) == ("threshold", ())


@pytest.mark.parametrize(
    ("right", "margin", "verdict"),
    [((31, 31), None, "tie"), ((31, 31), 0.02, "tie"), ((30, 31), 0.04, "tie"), ((30, 33), 0.04, "worse")],
)
@pytest.mark.parametrize("cut", [60, 40])
def test_equal_scores_and_those_within_the_margin_are_tied_after_one_pass(right, margin, verdict, cut):
    """Of two tasks the fifth repeat comes at the end of the first pass: each has to be read once more."""
    spec, log = make_spec(2, 60, equivalence=margin, **ALL), []
    names = spec.tasks[0].questions
    tasks = tuple(TaskSpec(f"t{len(part)}", part) for part in (names[:cut], names[cut:]) if part)
    spec = replace(spec, tasks=tasks, overall="pooled")
    session, again = drive(Session(spec), fixed(right, 60), log=log), Session(spec)
    again.replay(log)
    for one in (session, again):
        assert (one.stopped.reason, one.results().pairs[0].verdict) == ("resolved", verdict)
        assert max(asked(one)) <= 60 + REPEATS


def test_answers_of_different_length_are_not_the_same():
    session = Session(make_spec(1, 40, goal="width", width=0.001, max_passes=3, **ALL))
    while session.stopped is None:
        told = [TrialOutcome(request.key, 1, Usage(1, 10 + request.key.index)) for request in session.ask(8)]
        session.tell(told)
    assert session.board.determinism.varies(0)
    assert not session.results().pairs[0].exact


@pytest.mark.parametrize("rounds", ["schedule", "rounds"])
@pytest.mark.parametrize(
    ("goal", "means", "margin"), [("ranking", (0.5, 0.8), 0.12), ("top-k", (0.55, 0.45), None)]
)
def test_one_of_a_pair_may_be_deterministic(rounds, goal, means, margin):
    parts = {"rounds": rounds, "family": "pair", "deterministic": ("m0",)}
    spec = make_spec(3, 30, goal=goal, equivalence=margin, max_passes=100, **parts)
    noise, steady, log = coin((0.5, *means)), fixed((15,), 30), []

    def answer(request):
        return steady(request) if request.key.model == "m0" else noise(request)

    plain, again = drive(Session(spec), answer, slots=4, log=log), Session(spec)
    assert plain.stopped.reason == "resolved"
    assert asked(plain)[0] <= 30 + REPEATS < min(asked(plain)[1:])
    again.replay([outcome] for batch in log for outcome in batch)
    assert (again.stopped, calls(again)) == (plain.stopped, calls(plain))


def test_a_run_over_a_population_says_when_nothing_more_can_be_learnt():
    spec = make_spec(2, 60, equivalence=0.01, target="population", max_passes=80, **ALL)
    session = drive(Session(spec), fixed((30, 33), 60))
    assert session.stopped.reason == "max_passes"
    assert "repeats its answers" in describe(session.stopped)
    assert max(asked(session)) <= 60 + REPEATS


def test_a_repeat_that_is_lost_would_have_been_the_same():
    spec = make_spec(1, 100, goal="width", width=0.001, **ALL)
    session = drive(Session(spec), fixed((70,)), missing=lambda request: request.key.index == 17)
    assert (session.board.missing(0), session.stopped.reason) == (1, "resolved")
    (line,) = session.results().models
    assert (line.score_low, line.score_high) == pytest.approx((0.7, 0.7), abs=1e-4)


def test_a_repeat_whose_first_answer_was_lost_tests_nothing():
    """A model that varies would pass, its answers compared with themselves."""
    spec = make_spec(1, 100, goal="width", width=0.001, max_passes=3, **ALL)
    first = set(range(REPEATS))
    session = drive(
        Session(spec),
        lambda request: request.repeat % 2,
        missing=lambda request: request.repeat == 0 and request.key.index in first,
    )
    assert session.board.determinism.varies(0)
    assert session.budget.completed > 100 + REPEATS


def test_a_missing_answer_is_asked_for_again():
    spec = make_spec(2, 40, **ALL)
    lost = {TrialKey("m0", 3), TrialKey("m1", 17)}
    session = drive(Session(spec), fixed((20, 25), 40), missing=lambda one: one.key in lost)
    assert session.stopped.reason == "resolved"
    assert max(asked(session)) <= 40 + REPEATS + 1
    assert session.results().pairs[0].exact


def test_a_large_benchmark_is_spot_checked_and_a_late_change_is_noticed():
    spec = make_spec(1, 2000, goal="width", width=0.0001, max_passes=2, **ALL)
    steady = fixed((1200,), 2000)

    def turning(request):
        return steady(request) if request.key.index < 1500 or request.repeat == 0 else 1 - steady(request)

    session = drive(Session(spec), turning, slots=16)
    assert session.board.determinism.varies(0)


def test_a_large_benchmark_is_spot_checked_in_its_first_pass_alone():
    """A model that varies is asked twice; the one that does not has one answer to each question."""
    spec = make_spec(2, 264, max_passes=2, deterministic=("m0",))
    steady, coins = fixed((150,), 264), coin((0.0, 0.57))
    session = drive(Session(spec), lambda one: (steady if one.key.model == "m0" else coins)(one), slots=16)
    assert session.board.complete == [528, 528]
    assert 264 + REPEATS <= asked(session)[0] < 264 + 2 * REPEATS + 8


@pytest.mark.parametrize("goal", ["top-k", "threshold", "width"])
def test_other_goals(goal):
    parts = {"threshold": {"value": 0.5}, "width": {"width": 0.01}}.get(goal, {})
    session = drive(Session(make_spec(3, 50, goal=goal, **parts, **ALL)), fixed((20, 25, 33), 50))
    assert session.stopped.reason == "resolved"
    assert max(asked(session)) <= 50 + REPEATS


@pytest.mark.parametrize("greedy", [False, True])
def test_a_greedy_model_is_asked_again_once_its_answer_is_in(greedy):
    """Its repeats measure its noise, and answers of one batch agree with themselves."""
    session = Session(make_spec(1, 5, goal="budget", trials=200, greedy=greedy))
    asked = session.ask({"m0": 12})
    assert len(asked) == (5 if greedy else 12)
    if greedy:
        assert len({request.question for request in asked}) == 5
        session.tell([TrialOutcome(request.key, 1) for request in asked[:3]])
        again = session.ask({"m0": 12})
        assert [request.question for request in again] == [request.question for request in asked[:3]]


@pytest.mark.parametrize("killed", [False, True])
def test_a_greedy_model_is_asked_for_the_answers_that_did_not_come(killed):
    spec = make_spec(1, 5, goal="budget", trials=200, greedy=True)
    session = Session(spec)
    first, *others = session.ask(12)
    told = [TrialOutcome(request.key, 1) for request in others]
    session.tell(told)
    if killed:
        session = Session(spec)
        session.replay([told])
    else:
        session.abandon(first.key, billed=False)
    assert [request.key for request in session.ask(12)] == [first.key]


def test_a_model_whose_known_answers_lead_beyond_the_cap_holds_no_other_up():
    spec = make_spec(2, 10, deterministic=("m0",), max_passes=3, confidence=0.9999)
    spec = replace(spec, tasks=(*spec.tasks, TaskSpec("u", ("q0", "q1", "q2", "q3"))), samples_per_prompt=3)
    session, steady, noisy = Session(spec), fixed((5,), 10), coin((0.0, 0.5))
    while session.stopped is None:
        requests = session.ask({"m0": 5, "m1": 5})
        assert requests or session.stopped is not None
        for one in requests:
            if one.key.model == "m0" and one.key.index % 3 == 1:
                session.tell([Missing(one.key, "x")])
            else:
                answer = steady if one.key.model == "m0" else noisy
                session.tell([TrialOutcome(one.key, answer(one))])
    assert session.stopped.reason == "max_passes"
    assert session.board.complete[0] > session.board.complete[1] == 3 * 14


def test_a_replay_asks_for_no_answer_that_is_known():
    spec = make_spec(2, 12, deterministic=("m0",), confidence=0.999)
    spec = replace(spec, tasks=(*spec.tasks, TaskSpec("u", ("q0", "q1", "q2"))), samples_per_prompt=2)
    steady, log = fixed((6, 6), 12), []
    drive(Session(spec), steady, slots=20, most=90, log=log, missing=lambda one: one.key.index in (3, 4))
    again = Session(spec)
    again.replay(log)
    assert again.board.determinism.is_deterministic(0)
    assert not any(again.states.gaps)


@pytest.mark.parametrize("seed", [5, 10, 11])
def test_a_replay_makes_the_calls_that_rest_on_known_answers_before_another_model_stops(seed):
    """What needs no trial is not in the log, and an open pair with a model that has stopped is lost."""
    coins, other = coin((0.5, 0.95, 0.3), seed=seed), Session(make_spec(
        3, 10, seed=seed, deterministic=("m0",), confidence=0.95, max_passes=9))  # fmt: skip
    session, log, stops = Session(other.spec), [], []
    while session.stopped is None:
        asked = session.ask(6)
        right = [int(one.question[1:]) % 2 if one.key.model == "m0" else coins(one) for one in asked]
        log.append([TrialOutcome(one.key, worth) for one, worth in zip(asked, right, strict=True)])
        session.tell(log[-1])
        if session.states.issued[1] >= 20 and not stops:
            stops = [one for one in session.stop_model("m1", "gone") if one.kind == "model_stopped"]
            before = len(log)

    def batches():
        yield from log[:before]
        other.repeat(stops[0])
        yield from log[before:]

    other.replay(batches())
    assert ("m0", "m1") in {models for models, *_ in calls(session)}
    assert calls(other) == calls(session)
