"""A forecast costs little however many pairs are open, and says what more trials would bring."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from session_scripts import coin, drive, make_spec

from adaptive_eval.core import forecast as forecast_module
from adaptive_eval.core.results import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, ReferenceSpec, TaskSpec
from adaptive_eval.trial import COPY_REASON, Missing, TrialOutcome, Usage
from adaptive_eval.views.run_sentences import chances_words


@pytest.mark.slow
@pytest.mark.parametrize("models", [100, 150])
def test_a_board_of_many_models_is_forecast_from_its_hardest_pairs(models):
    means = [0.3 + 0.5 * model / models for model in range(models)]
    spec = make_spec(models, 60, equivalence=0.02)
    session = drive(Session(spec), coin(means), slots=500, most=30 * models)
    session.results()
    session._forecasts.due = 0
    tracemalloc.start()
    forecast = session.forecast()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    called = sum(decision.kind == "pair" for decision in session.decisions)  # the clearest, by bets
    assert forecast.open_pairs == models * (models - 1) // 2 - called
    assert called < models / 10
    assert len(forecast.pairs) == 1000
    asked = {name for pair in forecast.pairs for name in (pair.first, pair.second)}
    assert len(asked) > models / 2
    assert 0 < forecast.trials.low <= forecast.trials.median <= forecast.trials.high


@pytest.mark.parametrize("margin", [None, 0.05])
def test_of_many_pairs_those_are_forecast_that_will_take_longest(monkeypatch, margin):
    """A pair that is nearly equal takes longest, or without a margin the closest one."""
    monkeypatch.setattr(forecast_module, "READ_TOGETHER", 2 * forecast_module.PATHS)
    spec = make_spec(4, 200, equivalence=margin)
    session = drive(Session(spec), coin([0.3, 0.42, 0.58, 0.6]), slots=8, most=400)
    results = session.results()
    assert results.forecast.open_pairs > 2 == len(results.forecast.pairs)
    found = {frozenset((pair.first, pair.second)) for pair in results.forecast.pairs}

    def steps(pair):
        gap = abs(pair.difference)
        return -max(gap, (margin or 0.0) - gap)

    hardest = sorted((pair for pair in results.pairs if pair.verdict == "open"), key=steps, reverse=True)
    assert found == {frozenset((pair.first, pair.second)) for pair in hardest[:2]}


@pytest.mark.parametrize(
    ("limit", "reason"), [({"trials": 260}, "budget"), ({"max_passes": 1}, "max_passes")]
)
def test_a_run_that_its_budget_ends_says_the_chance_at_larger_ones(limit, reason):
    spec = make_spec(2, 100, equivalence=None, **limit)
    session = drive(Session(spec), coin([0.6, 0.5]))
    assert session.stopped.reason == reason
    results = session.results()
    chances = results.forecast.chances
    assert chances
    assert all(one.trials > 200 for one in chances)
    assert results.forecast.pairs[0].trials == results.forecast.trials
    assert [one.resolved for one in chances] == sorted(one.resolved for one in chances)
    assert 0.8 <= chances[-1].resolved < 0.85  # the advised budget is little above the need
    assert reason != "budget" or results.forecast.resolved_within_budget == 0.0
    gone = replace(results, models=(replace(results.models[0], state="stopped"), *results.models[1:]))
    assert "goal is reached (simulated" in chances_words(results)[0]
    assert "goal is reached if m0 answers again (simulated" in chances_words(gone)[0]
    assert from_json(json.loads(json.dumps(to_json(results)))) == results


@pytest.mark.parametrize(
    ("models", "parts"),
    [
        (2, {"goal": "ranking"}),
        (1, {"goal": "threshold", "value": 0.55}),
        (1, {"goal": "width", "width": 0.1}),
    ],
)
def test_what_is_forecast_of_pairs_tokens_and_budgets_follows_from_the_trials(models, parts):
    """Every trial takes 130 tokens; the first model's own budget has 10 trials left, which are not enough.

    Or it has tokens for them in addition to those that the trial in flight holds.
    """
    spec = make_spec(models, 60, equivalence=0.05, max_tokens=10**6, prompt_bounds=(129,) * 60, **parts)

    def forecast(**own):
        first = replace(spec.models[0], budget=BudgetSpec(**own))
        session = Session(replace(spec, models=(first, *spec.models[1:])))
        chance = coin([0.6, 0.5])
        while session.budget.completed < 60 * models:
            told = [TrialOutcome(one.key, chance(one), Usage(129, 1)) for one in session.ask(1)]
            session.tell(told)
        session.ask(2)  # in flight: further trials, too
        return session.forecast()

    in_flight = 129 + 10**6
    free, *limited = forecast(), forecast(trials=70), forecast(tokens=70 * 130 + in_flight)
    for_one = round(60 + 1.5 / models * free.trials.median)  # it pays no trial of the other
    assert forecast(tokens=for_one * 130 + in_flight).resolved_within_budget > 0.5
    trials = free.trials.median
    assert free.tokens.median == pytest.approx(130 * trials)
    assert free.pairs[0].trials.median == pytest.approx(trials)
    assert free.resolved_within_budget > 0.5
    assert [one.resolved_within_budget for one in limited] == [0.0, 0.0]


@pytest.mark.parametrize("reference", [False, True])
def test_a_task_that_is_cut_in_two_is_forecast_as_the_whole(reference):
    """Parts of unlike size, each of the weight of its questions: the same runs take as many trials."""
    names, found = tuple(f"q{number}" for number in range(60)), []
    right = np.random.default_rng(5).binomial(8, 0.42, 60)
    counts = np.stack([8 - right, right], axis=1)
    for cut in (60, 20):
        parts = [slice(0, cut), slice(cut, 60)][: 1 + (cut < 60)]
        tasks = tuple(TaskSpec(f"t{part.start}", names[part], weight=len(names[part])) for part in parts)
        old = ReferenceSpec("old", {f"t{part.start}": counts[part] for part in parts})
        spec = make_spec(2 - reference, equivalence=0.1 if reference else 0.06, max_passes=60)
        spec = replace(spec, tasks=tasks, references=(old,) if reference else ())
        found.append(drive(Session(spec), by_question, slots=2, most=240 // (1 + reference)).forecast())
    whole, halves = found
    # Of a part there are fewer answers, so that it seems to take longer.
    assert 0.95 < halves.trials.median / whole.trials.median < 1.35
    assert halves.resolved_within_budget == pytest.approx(whole.resolved_within_budget, abs=0.15)
    for one in found:
        assert one.pairs[0].trials.median == pytest.approx(one.trials.median, abs=9)


def by_question(request):
    """Answer a question with a chance of its own, the same whatever its task and model."""
    key = int(request.question[1:]), request.repeat, int(request.key.model[1:])
    return int(np.random.default_rng(key).random() < 0.2 + 0.6 * (key[0] % 7) / 6)


def test_a_forecast_is_made_again_once_a_twentieth_more_is_known():
    session, chance = Session(make_spec(2, 60, equivalence=0.02)), coin([0.6, 0.5])
    before = drive(session, chance, slots=2, most=400).forecast()
    assert drive(session, chance, slots=2, most=10).forecast() is before
    assert drive(session, chance, slots=2, most=20).forecast() is not before


@pytest.mark.parametrize(("kind", "part"), [("draws", 1), ("copies", 1), ("maybe", 1), ("maybe", 4)])
def test_repeats_that_are_copies_promise_nothing(kind, part):
    """All repeats of a model, or one of so many, are copies or may be."""
    session, chance = Session(make_spec(2, 60, equivalence=0.02)), coin([0.6, 0.5])
    while session.budget.completed < 180:
        for one in session.ask(1):
            copied = one.repeat and one.key.model == "m0" and one.key.index % part == 0
            told = TrialOutcome(one.key, chance(one), answer=7, repeats=bool(copied) and kind == "maybe")
            session.tell([Missing(one.key, COPY_REASON) if copied and kind == "copies" else told])
    assert (session.forecast() is None) == (kind != "draws" and part == 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("goal", "more", "number"),
    [("width", {"width": 0.15}, "width 0.15"), ("threshold", {"value": 0.5, "equivalence": 0.1}, "0.5")],
)
def test_goals_about_single_models_are_forecast(goal, more, number):
    """80 % intervals hold the trials of at least 4 of 10 runs, fewer with probability 9e-4; seeds 0 to 9."""
    held = 0
    for seed in range(10):
        mean = [float(np.random.default_rng(seed).uniform(0.3, 0.7))]
        session = Session(make_spec(1, 60, goal=goal, seed=seed, max_passes=20, **more))
        drive(session, coin(mean, seed=seed), most=40)
        forecast, before = session.forecast(), session.budget.completed
        if forecast is None:  # the run has ended already
            held += session.stopped is not None
            continue
        assert [(pair.first, pair.second) for pair in forecast.pairs] == [("m0", number)]
        drive(session, coin(mean, seed=seed))
        held += forecast.trials.low <= session.budget.completed - before <= forecast.trials.high
    assert held >= 4


def test_a_search_for_the_best_model_within_a_margin_is_forecast_to_its_end():
    """A run ends sooner than nine of ten paths in 3 of 6 with probability 0.015; seeds 0 to 5."""
    forecasts, sooner = 0, 0
    for seed in range(6):
        means = np.random.default_rng(seed).uniform(0.3, 0.7, 5).tolist()
        session = Session(make_spec(5, 60, goal="top-k", k=1, equivalence=0.1, max_passes=40, seed=seed))
        drive(session, coin(means, seed=seed), slots=40, most=400)
        forecast, before = session.forecast(), session.budget.completed
        if forecast is None:  # the run has ended already
            continue
        drive(session, coin(means, seed=seed), slots=40)
        forecasts += 1
        sooner += session.budget.completed - before < forecast.trials.low
    assert forecasts >= 4
    assert sooner <= 2


def test_more_trials_of_the_same_questions_say_little_of_questions_like_these():
    """Each of two models is good at its own half of the questions, and one half is a little larger."""
    chances = {}
    for target in ("benchmark", "population"):
        spec = make_spec(2, 60, trials=240, equivalence=None, target=target)
        session = drive(Session(spec), split)
        chances[target] = max((one.resolved for one in session.results().forecast.chances), default=0.0)
    assert chances["population"] < 0.1
    assert chances["benchmark"] > 0.5


def split(request):
    """Answer right in nine of ten trials of the model's own questions, and in one of ten of the others."""
    own = (int(request.question[1:]) < 32) == (request.key.model == "m0")
    return int((request.key.index * 7 + 3) % 10 < (9 if own else 1))


def test_the_last_pair_of_a_board_is_forecast_at_the_level_that_the_calls_of_others_have_left():
    """Of 15 pairs 14 are called, so that Holm's level for the last one is that of a pair alone."""
    medians = []
    for family in ("holm", "pair"):
        session = Session(make_spec(6, 60, family=family, equivalence=None))
        while np.count_nonzero(session.comparison.fold.needed) > 1:
            drive(session, coin([0.55, 0.5, 0.98, 0.8, 0.25, 0.02], seed=3), slots=4, most=40)
        medians.append(session.forecast().trials.median)
    assert 0.7 < medians[0] / medians[1] < 1.4


def test_further_trials_hold_those_in_flight():
    session = drive(Session(make_spec(2, 50, equivalence=0.05)), coin([0.6, 0.5]), slots=1, most=400)
    shown = []
    for flying in (0, 10):
        session.ask({"m0": flying, "m1": flying})
        session._forecasts.due = 0
        shown.append((sum(session.states.in_flight), session.forecast()))
    (none, before), (some, after) = shown
    assert (none, some) == (0, 20)
    assert after.trials == before.trials
    assert after.chances == before.chances
