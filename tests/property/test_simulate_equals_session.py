"""The fast way and any concurrency decide what the session decides, on the same answers.

Concurrency changes the order of the log. A contrast's own course does not depend on it; what calls of others
change does: the levels of Holm, and which pairs the best k still need.
"""

from dataclasses import replace

import numpy as np
import pytest
from drawn import drawn
from hypothesis import example, given
from hypothesis import strategies as st
from session_scripts import make_spec
from simulation_scripts import both_ways, bounded_spec, recorded_coins

from adaptive_eval.core.spec import GoalSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.simulate import BiasedCoins, Latency, RecordedAnswers, simulate
from adaptive_eval.simulate.many_runs import Simulator
from adaptive_eval.simulate.recorded import LOST, RecordedOutcomes

MEANS = (0.85, 0.6, 0.6, 0.2)
FEW = drawn(3)
SEEDS = st.integers(0, 2**31)

GOALS = [
    {"goal": "ranking"},
    {"goal": "top-k"},
    {"goal": "top-k", "k": 2},
    {"goal": "baseline", "model": "m1"},
    {"goal": "threshold", "value": 0.6},
    {"goal": "width", "width": 0.2},
    {"goal": "pairs", "pairs": (("m0", "m1"), ("m2", "m3"))},
    {"goal": "all", "goals": (GoalSpec("top-k"), GoalSpec("width", width=0.25))},
]
OF_A_SET = ("top-k", "all")
OWN_COURSES = [goal for goal in GOALS if goal["goal"] not in OF_A_SET]
SETS = [goal for goal in GOALS if goal["goal"] in OF_A_SET]
OWN_LEVELS = {"family": "pair", "ties": "pair"}
RULES = [
    {"rule": "exact"},
    {"rule": "zscore", "equivalence": None, "max_passes": 10},
    {"family": "pair"},
    {"target": "population"},
]


def in_words(parts):
    """Return the id of a test: its settings, composed goals by their kinds."""
    return "-".join(
        "-".join(goal.kind for goal in value) if name == "goals" else str(value)
        for name, value in parts.items()
    )


def assert_same_decisions(fast, slow):
    assert np.array_equal(fast.verdict, slow.verdict)
    assert np.array_equal(fast.decided_at, slow.decided_at)
    assert np.array_equal(fast.exhausted, slow.exhausted)
    assert fast.reason == slow.reason
    assert fast.steps == slow.steps


@pytest.mark.slow
@pytest.mark.parametrize("parts", OWN_COURSES + RULES, ids=in_words)
@drawn(2)
@given(seed=SEEDS)
@example(seed=9069)
def test_lockstep_equals_a_session_with_one_trial_in_flight(parts, seed):
    """Within a step, a call may lower the level of a pair whose models were asked for that step already."""
    fast, slow = both_ways(bounded_spec(4, 20, **parts), BiasedCoins(MEANS), seed)
    assert_same_decisions(fast, slow)
    late = slow.trials - fast.trials
    assert set(late.tolist()) <= ({0} if parts.get("family") == "pair" else {0, 1})
    assert fast.score[late == 0] == pytest.approx(slow.score[late == 0])


@pytest.mark.slow
@pytest.mark.parametrize("parts", SETS, ids=in_words)
def test_lockstep_takes_hardly_more_than_a_session_to_find_the_best_k(parts):
    """A model may make up to a block of steps more, which count if it is needed again; seeds 0 to 11."""
    fast, slow = 0, 0
    for seed in range(12):
        one, other = both_ways(bounded_spec(4, 20, **parts), BiasedCoins(MEANS), seed)
        assert_same_winners(one, other)
        assert (one.reason, np.abs(one.trials - other.trials).max() < 16) == (other.reason, True)
        fast, slow = fast + one.trials.sum(), slow + other.trials.sum()
    assert 1.0 <= fast / slow < 1.02


@pytest.mark.slow
@FEW
@given(seed=SEEDS)
def test_uniform_in_lockstep_differs_from_the_session_by_the_last_step_alone(seed):
    fast, slow = both_ways(bounded_spec(4, 20, policy="uniform"), BiasedCoins(MEANS), seed)
    assert_same_decisions(fast, slow)
    assert np.all((fast.trials - slow.trials >= 0) & (fast.trials - slow.trials <= 1))


MANY_IN_FLIGHT = st.integers(2, 200)
LATENCIES = st.builds(
    Latency, st.just(1.0), st.floats(0.0, 2.0), st.sampled_from([0.1, 1.0, 10.0]), st.sampled_from([0.0, 0.3])
)


@pytest.mark.slow
@pytest.mark.parametrize("parts", OWN_COURSES, ids=in_words)
@FEW
@given(seed=SEEDS, in_flight=MANY_IN_FLIGHT, latency=LATENCIES)
def test_concurrency_and_latency_change_no_course(parts, seed, in_flight, latency):
    spec = bounded_spec(4, 20, **parts, **OWN_LEVELS)
    fast, slow = both_ways(spec, BiasedCoins(MEANS), seed, in_flight, latency)
    assert_same_decisions(fast, slow)
    assert slow.trials.sum() >= fast.trials.sum()


@pytest.mark.slow
@pytest.mark.parametrize("parts", SETS, ids=in_words)
@FEW
@given(seed=SEEDS, in_flight=MANY_IN_FLIGHT, latency=LATENCIES)
def test_concurrency_and_latency_turn_no_winner_of_the_best_k(parts, seed, in_flight, latency):
    spec = bounded_spec(4, 20, **parts, **OWN_LEVELS, equivalence=None)  # a margin would need no winners
    fast, slow = both_ways(spec, BiasedCoins(MEANS), seed, in_flight, latency)
    winners = (abs(fast.verdict) == 1) & (abs(slow.verdict) == 1)
    assert winners.any()
    assert np.array_equal(fast.verdict[winners], slow.verdict[winners])


@pytest.mark.slow
@pytest.mark.parametrize("parts", GOALS[:4], ids=in_words)
@FEW
@given(seed=SEEDS, in_flight=st.integers(1, 60), factor=st.sampled_from([0.2, 5.0]))
def test_recorded_trials_that_run_out_end_walks_alike(parts, seed, in_flight, factor):
    recorded = recorded_coins(MEANS, questions=20, trials=9, seed=seed % 1000, shortest=3)
    spec = bounded_spec(4, 20, **parts, **OWN_LEVELS, max_passes=None)
    fast, slow = both_ways(spec, RecordedAnswers(recorded), seed, in_flight, Latency(1.0, 0.5, factor))
    if parts["goal"] in OF_A_SET:  # which pairs it needs depends on when a model is dropped
        assert_same_winners(fast, slow)
    else:
        assert_same_decisions(fast, slow)


def assert_same_winners(fast, slow):
    both = (abs(fast.verdict) == 1) & (abs(slow.verdict) == 1)
    assert np.array_equal(fast.verdict[both], slow.verdict[both])


def test_a_model_that_comes_back_when_others_have_run_out_is_asked_again():
    """With seed 53, m3 is not needed after 18 trials, and comes back."""
    recorded = recorded_coins(MEANS, questions=20, trials=9, seed=53, shortest=3)
    spec = bounded_spec(4, 20, goal="top-k", k=2, equivalence=None, max_passes=None)
    fast, late = both_ways(spec, RecordedAnswers(recorded), 53, 21, Latency(1.0, 0.5, 0.2))
    assert_same_winners(fast, late)
    assert late.reason == "partial"
    assert late.trials[3] > 18


@pytest.mark.parametrize(("in_flight", "latency"), [(1, None), (50, Latency(1.0, 0.5, 3.0))])
@FEW
@given(seed=SEEDS)
def test_several_tasks_weighted_categories_and_lost_answers(in_flight, latency, seed):
    tasks = (
        TaskSpec("s", tuple(f"q{number}" for number in range(25))),
        TaskSpec("t", tuple(f"q{number}" for number in range(12)), (0.0, -1.0, 2.0)),
    )
    models = tuple(ModelSpec(name) for name in "abc")
    spec = SessionSpec(models, tasks, stopping=StoppingSpec(equivalence=0.1, max_passes=20, family="pair"))
    assert_same_decisions(*both_ways(spec, BiasedCoins((0.3, 0.5, 0.8)), seed, in_flight, latency))
    rng = np.random.default_rng(seed)
    questions = tuple((task.name, one) for task in tasks for one in task.questions)
    categories = rng.binomial(1, np.array([0.3, 0.5, 0.8])[:, None, None], (3, 37, 20))
    categories[:, 25:] *= 2
    categories[rng.random(categories.shape) < 0.03] = LOST
    recorded = RecordedAnswers(RecordedOutcomes(tuple("abc"), questions, categories))
    assert_same_decisions(*both_ways(spec, recorded, seed, in_flight, latency))


@FEW
@given(seed=SEEDS, in_flight=st.sampled_from([1, 40]))
def test_rounds(seed, in_flight):
    spec = make_spec(3, 25, equivalence=0.1, max_passes=15, family="pair", rounds="rounds")
    assert_same_decisions(*both_ways(spec, BiasedCoins((0.3, 0.5, 0.8), 1.0), seed, in_flight))


def assert_same_runs(together, alone):
    for name in ("verdict", "decided_at", "trials", "steps", "exhausted"):
        assert np.array_equal(getattr(together, name), getattr(alone, name)), name
    assert together.reason == alone.reason


ROUNDS = [{"rounds": "rounds"}]


@pytest.mark.parametrize("parts", [*GOALS, *RULES, *ROUNDS], ids=in_words)
def test_margins_on_the_same_answers_equal_a_run_of_each(parts):
    spec, margins = bounded_spec(4, 12, **{"max_passes": 6, **parts}), (0.1, 0.02, 0.3)
    if spec.stopping.rule == "zscore":
        margins = (None,)
    together = Simulator(1, seed=1, workers=1).margins(spec, BiasedCoins(MEANS), margins)
    for margin, result in zip(margins, together, strict=True):
        one = replace(spec, stopping=replace(spec.stopping, equivalence=margin))
        assert_same_runs(result, simulate(one, BiasedCoins(MEANS), 1, seed=1, in_flight=1, workers=1))


def test_margins_share_recorded_answers_that_run_out():
    answers, spec = RecordedAnswers(recorded_coins(MEANS, 20, 6, shortest=2)), bounded_spec(4, 20)
    margins = (0.02, 0.3)
    for margin, result in zip(margins, Simulator(3, 1, 1).margins(spec, answers, margins), strict=True):
        one = replace(spec, stopping=replace(spec.stopping, equivalence=margin))
        assert_same_runs(result, simulate(one, answers, 3, seed=1, in_flight=1, workers=1))
