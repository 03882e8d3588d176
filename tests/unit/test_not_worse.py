"""The goal not-worse: claims that a model is not worse than another by more than a margin."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from session_scripts import coin, drive, make_spec

from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.goals import make_goal, rank_ranges
from adaptive_eval.core.results import StopVerdict
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ReferenceSpec, SessionSpec, TaskSpec
from adaptive_eval.errors import ConfigError, UsageError
from adaptive_eval.options.decisions import read_goal
from adaptive_eval.simulate import BiasedCoins, simulate
from adaptive_eval.simulate.assumptions import means_for
from adaptive_eval.stops import ENDED_FIRST, ENDPOINTS, FAILED, INTERRUPTED, LOST, REACHED, STOPS
from adaptive_eval.trial import ScoreRange
from adaptive_eval.views.headline import headline
from adaptive_eval.views.verdicts import established, rank_column
from scorio.sequential.evidence import log_evidence_above, log_evidence_of_claim


def spec_of(models: int = 2, questions: int = 40, **parts) -> SessionSpec:
    """Return a spec whose claims are about all models but m0; 80 passes at most."""
    parts = {"margin": 0.1, "max_passes": 80, "model": "m0"} | parts
    return make_spec(models, questions, goal="not-worse", **parts)


def verdicts(session: Session) -> list[str]:
    return [pair.verdict for pair in session.results().pairs]


@pytest.mark.parametrize("rounds", ["schedule", "rounds"])
@pytest.mark.parametrize(
    ("means", "expected", "code"),
    [
        ((0.7, 0.7), ["better"], REACHED),
        ((0.5, 0.9), ["better"], REACHED),
        ((0.9, 0.5), ["worse"], FAILED),
        ((0.8, 0.8, 0.3), ["better", "worse"], FAILED),
    ],
)
def test_a_run_ends_as_soon_as_every_claim_holds_or_fails(means, expected, code, rounds):
    session = drive(Session(spec_of(len(means), rounds=rounds)), coin(means))
    results = session.results()
    assert (session.stopped.reason, verdicts(session), results.exit_code) == ("resolved", expected, code)
    assert results.trials < 80 * 40 * len(means) / 2
    for pair in results.pairs:
        assert (pair.kind, pair.second, pair.margin) == ("not-worse", "m0", 0.1)
        assert pair.difference_low >= -0.1 if pair.verdict == "better" else pair.difference_high <= -0.1


def test_a_budget_that_ends_first_leaves_claims_open():
    results = drive(Session(spec_of(trials=60)), coin((0.7, 0.7))).results()
    assert (results.stop.reason, results.exit_code) == ("budget", ENDED_FIRST)
    assert results.forecast is not None
    assert results.forecast.chances


def test_a_claim_that_fails_comes_before_the_budget_of_another():
    results = drive(Session(spec_of(3, trials=160)), coin((0.95, 0.9, 0.05))).results()
    assert [pair.verdict for pair in results.pairs] == ["open", "worse"]
    assert (results.stop.reason, results.exit_code) == ("budget", FAILED)


def test_a_claim_that_fails_comes_before_every_end_that_does_not_hide_it():
    """Also before a budget that was the goal."""
    found = drive(Session(spec_of()), coin((0.9, 0.5))).results()
    codes = {
        why: replace(found, stop=StopVerdict(why, evidence={"is_goal": True})).exit_code for why in STOPS
    }
    hiding = {"endpoints": ENDPOINTS, "unusable": ENDPOINTS, "interrupted": INTERRUPTED}
    assert codes == dict.fromkeys(STOPS, FAILED) | hiding
    assert replace(found, stop=None).exit_code == INTERRUPTED


def test_a_run_whose_lost_answers_could_turn_its_claims_ends_as_lost():
    session = drive(Session(spec_of()), coin((0.7, 0.75)), missing=lambda request: request.key.index % 3 == 0)
    assert (verdicts(session), session.results().exit_code) == (["open"], LOST)


def test_each_direction_has_its_own_holm():
    session = Session(spec_of(4))
    fold, alpha = session.comparison.fold, 0.05
    rows, signs = np.arange(3), np.array([1, -1, 1])
    assert fold.thresholds(rows, signs).tolist() == pytest.approx([log(3 / alpha)] * 3)
    fold.latest.sign[0] = 1
    fold.decide(0, won=True, step=1)
    assert (fold.verdict[0], fold.held, fold.failed, fold.won) == (1, 1, 0, 0)
    assert fold.thresholds(rows, signs).tolist() == pytest.approx(
        [log(2 / alpha), log(3 / alpha), log(2 / alpha)]
    )
    pairs = Session(make_spec(4))
    assert pairs.comparison.fold.threshold == pytest.approx(log(6 / alpha))
    both = Session(replace(spec_of(4), goal=GoalSpec("all", goals=(GoalSpec(), spec_of(4).goal))))
    assert both.comparison.fold.threshold == pytest.approx(log(6 / alpha))


def test_evidence_against_a_claim_is_that_for_it_reflected_at_the_margin():
    difference, variance, margin = np.array([-0.3, -0.05, 0.0, 0.2]), 3e-4, 0.05
    held, failed = log_evidence_of_claim(difference, 0.0, variance, margin)
    assert held.tolist() == log_evidence_above(difference, variance, margin).tolist()
    mirrored, _ = log_evidence_of_claim(-2 * margin - difference, 0.0, variance, margin)
    assert failed.tolist() == pytest.approx(mirrored.tolist())
    assert all(np.diff(held) > 0)
    assert all(np.diff(failed) < 0)
    less = log_evidence_of_claim(difference, 0.02, variance, margin)
    assert (less[0] < held).all()
    assert (less[1] < failed).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_log_alone_decides_claims(seed):
    spec, log_ = spec_of(3, 30, margin=0.15), []
    rng = np.random.default_rng(seed)
    session = drive(Session(spec), coin((0.7, 0.72, 0.4)), rng=rng, log=log_)
    again = Session(spec)
    again.replay([[one] for batch in log_ for one in batch])
    calls = [(one.models, one.verdict, one.step) for one in session.decisions if one.kind == "pair"]
    assert calls == [(one.models, one.verdict, one.step) for one in again.decisions if one.kind == "pair"]
    assert len(calls) == 2


def test_a_claim_is_about_one_direction():
    both = (GoalSpec("not-worse", model="m0", margin=0.1), GoalSpec("not-worse", model="m1", margin=0.1))
    goal = make_goal(replace(spec_of(), goal=GoalSpec("all", goals=both)))
    assert list(zip(goal.first.tolist(), goal.second.tolist(), strict=True)) == [(1, 0), (0, 1)]
    assert (goal.claims, goal.hypotheses) == (2, 0)


def test_the_end_of_a_ranking_with_claims_counts_either():
    goals = (GoalSpec("ranking"), GoalSpec("not-worse", model="m0", margin=0.1))
    spec = replace(spec_of(3), goal=GoalSpec("all", goals=goals))
    session = drive(Session(spec), coin((0.5, 0.95, 0.05)))
    said = session.stopped.evidence
    assert [said[name] for name in ("pairs", "tied_pairs", "held", "failed")] == [3, 0, 1, 1]


def test_the_best_of_a_board_are_found_among_references_too():
    alone = make_spec(2, 40, goal="top-k", k=2)
    reference = ReferenceSpec("old", {"t": np.array([[3, 7]] * 40)})
    assert Session(replace(alone, references=(reference,))).stopped is None
    with pytest.raises(UsageError, match="2 of 2 models"):
        Session(alone)


def test_a_claim_that_holds_ranks_nothing_and_one_that_fails_does():
    session = drive(Session(spec_of(3)), coin((0.8, 0.8, 0.3)))
    results = session.results()
    assert established(results) == {("m0", "m2")}
    assert rank_ranges(make_goal(session.spec), session.comparison.fold.verdict, 3) == [
        (1, 2),
        (1, 3),
        (2, 3),
    ]
    assert dict(rank_column(results).of) == {"m0": "baseline", "m1": "not worse", "m2": "worse"}
    said = headline(results)
    assert "m2 is worse than m0 by more than 0.1" in said
    assert "m1 is not worse than m0 by more than 0.1" in said


@pytest.mark.parametrize(("mean", "expected"), [(0.8, "better"), (0.3, "worse")])
def test_a_model_against_stored_results(mean, expected):
    asked = tuple(f"q{number}" for number in range(40))
    counts = np.stack([np.full(40, 8), np.full(40, 32)], axis=1)
    spec = replace(spec_of(1, model="old"), references=(ReferenceSpec("old", {"t": counts}),))
    assert spec.tasks[0].questions == asked
    session = drive(Session(spec), coin((mean,)))
    assert (session.stopped.reason, verdicts(session)) == ("resolved", [expected])


@pytest.mark.parametrize("parts", [{"target": "population"}, {"weights": (0.0, 4.0), "margin": 0.6}])
@pytest.mark.parametrize(("mean", "expected"), [(0.8, "better"), (0.4, "worse")])
def test_questions_as_a_sample_and_other_scores(mean, expected, parts):
    session = drive(Session(spec_of(2, 400, **{"margin": 0.15, **parts})), coin((0.8, mean)))
    assert (session.stopped.reason, verdicts(session)) == ("resolved", [expected])


def test_several_tasks():
    tasks = tuple(TaskSpec(name, tuple(f"{name}{number}" for number in range(60))) for name in "ab")
    session = drive(Session(replace(spec_of(2), tasks=tasks)), coin((0.8, 0.5)))
    assert verdicts(session) == ["worse"]


@pytest.mark.parametrize(("right", "expected"), [(35, "better"), (32, "worse")])
def test_of_models_that_repeat_their_answers_a_claim_is_exact(right, expected):
    """m0 is right on 40 of 60 questions, and the margin is 6 questions."""
    right = {"m0": 40, "m1": right}

    def same(request) -> int:
        return int(int(request.question[1:]) < right[request.key.model])

    session = drive(Session(spec_of(2, 60, deterministic=("m0", "m1"), margin=0.1)), same)
    (pair,) = session.results().pairs
    assert (session.stopped.reason, pair.verdict, pair.exact) == ("resolved", expected, True)


def test_another_scale_keeps_the_share_of_the_margin():
    spec = spec_of(2, weights=(0.0, 4.0), margin=0.4)
    assert spec.claim_margin(spec.goal) == pytest.approx(0.1)
    rescored = spec.rescored({"t": (0.0, 1.0)})
    assert rescored.goal.margin == pytest.approx(0.1)
    other = spec.with_margin(0.8)
    assert (other.goal.margin, other.stopping.equivalence) == (0.8, 0.8)
    assert spec.with_margin(None).goal.margin == 0.4


# In a config.


def config(**changed):
    models = [{"name": name, "endpoints": ["http://localhost:1/v1"]} for name in ("production", "candidate")]
    base = {"name": "c", "models": models, "tasks": [{"name": "t", "dataset": "q.jsonl", "scorer": "exact"}]}
    return config_from_data(base | changed, None)


def test_the_goal_in_one_line_takes_the_equivalence_margin():
    assert read_goal("not-worse=production") == {"kind": "not-worse", "model": "production"}
    short = config(goal="not-worse=production", stopping={"equivalence": 0.02})
    assert (short.goal.model, short.goal.margin, short.stopping.equivalence) == ("production", None, 0.02)
    long = config(goal={"kind": "not-worse", "model": "production", "margin": 0.02})
    assert long.goal.text == "say of every model whether it is worse than production by more than 0.02"


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"goal": "not-worse=production"}, "goal.margin"),
        ({"goal": {"kind": "not-worse", "model": "production", "margin": 0}}, "goal.margin"),
        ({"goal": {"kind": "not-worse", "model": "production", "margin": 1.0}}, "goal.margin"),
        ({"goal": {"kind": "not-worse", "margin": 0.1}}, "goal.model"),
        ({"goal": {"kind": "not-worse", "model": "other", "margin": 0.1}}, "goal.model"),
        ({"goal": {"kind": "baseline", "model": "production", "margin": 0.1}}, "goal.margin"),
        *(
            (
                {"goal": "not-worse=production", "stopping": {"equivalence": 0.1, "rule": rule}},
                "stopping.rule",
            )
            for rule in ("exact", "zscore")
        ),
    ],
)
def test_what_does_not_go_with_the_goal_is_refused(changed, place):
    with pytest.raises(ConfigError) as caught:
        config(**changed)
    assert place in str(caught.value)


# In a plan.


def test_a_plan_takes_the_others_for_as_good_as_the_baseline_or_worse():
    spec = spec_of(3)
    assert means_for(spec, 0.1) == (0.5, 0.4, 0.4)
    stars = (TaskSpec("t", ("q1", "q2"), weights=ScoreRange((1.0, 5.0))),)
    held = replace(spec, tasks=stars, goal=GoalSpec("threshold", value=4.6))
    assert means_for(held, 0.1) == (0.8, 0.8, 0.8), "4.6 of 1 to 5 is 0.9"
    result = simulate(spec, BiasedCoins((0.7, 0.7, 0.4)), 6, seed=1, workers=1)
    assert result.gap.tolist() == pytest.approx([0.1, -0.2])
    assert (result.verdict == [1, -1]).all()
    assert not result.wrong.any()


def test_a_plan_takes_a_reference_for_what_its_answers_say():
    """Eight of ten are right; others are a margin apart from that, or worse by it."""
    spec = spec_of(2)
    shares = np.array([[1, 4]] * len(spec.tasks[0].questions))
    known = ReferenceSpec("old", {spec.tasks[0].name: shares}, "a file")
    claimed = replace(spec, references=(known,), goal=GoalSpec("not-worse", model="old", margin=0.1))
    assert means_for(claimed, 0.1) == (0.7, 0.7)
    beside = replace(claimed, goal=GoalSpec("baseline", model="old"))
    assert means_for(beside, 0.1) == (0.9, 0.7)
    assert means_for(beside, 0.0) == pytest.approx((0.8, 0.8))
    assert means_for(replace(beside, goal=GoalSpec("baseline", model=spec.models[0].name)), 0.1)[0] == 0.5
