"""Runs that spend tokens or USD: what trials cost decides which question and model is asked again."""

from dataclasses import replace

import numpy as np
import pytest
from session_scripts import coin, make_spec

from adaptive_eval.core.allocate import AllocationView, TopTwo
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import Price, TaskSpec
from adaptive_eval.trial import TrialOutcome, Usage
from adaptive_eval.views.verdicts import fixed_length, saved_cost, saving

DEAR = 100
SIZE = 12


def spec_by(spend, **parts):
    """Return a spec in rounds whose models cost 1 USD a million tokens."""
    spec = make_spec(2, SIZE, rounds="rounds", equivalence=0.12, max_passes=64, **parts)
    models = tuple(replace(model, price=Price(input=0, output=1)) for model in spec.models)
    return replace(spec, models=models, spend=spend)


def outcome(request, answer):
    """Return an answer; the first half of the questions costs DEAR times as much."""
    tokens = DEAR if int(request.question[1:]) < SIZE // 2 else 1
    return TrialOutcome(request.key, answer(request), Usage(0, tokens))


def driven(spec, seed=None, slots=8):
    """Return a session at its stop, and what it was told; with a seed, answers come in random order."""
    session, answer, flying, log = Session(spec), coin((0.5, 0.5), seed=4), [], []
    rng = None if seed is None else np.random.default_rng(seed)
    while session.stopped is None:
        flying += session.ask(slots - len(flying))
        if rng is not None:
            rng.shuffle(flying)
        told, flying = flying[: max(1, len(flying) // 2)], flying[max(1, len(flying) // 2) :]
        log.append([outcome(request, answer) for request in told])
        session.tell(log[-1])
    return session, log


def asked(session, model=0):
    run_sequence = session.board.run_sequence
    return [run_sequence.at(step, model)[1] for step in range(session.board.complete[model])]


@pytest.fixture(scope="module")
def by_tokens():
    return driven(spec_by("tokens"))


def test_dear_questions_are_asked_less_often(by_tokens):
    for spend, least, most in (("trials", 0.7, 1.4), ("tokens", 0.1, 0.6)):
        session = by_tokens[0] if spend == "tokens" else driven(spec_by(spend))[0]
        times = np.bincount(asked(session), minlength=SIZE)
        assert len(asked(session)) > 8 * SIZE
        assert least < times[: SIZE // 2].sum() / times[SIZE // 2 :].sum() < most


def test_tokens_and_usd_of_one_price_ask_the_same(by_tokens):
    assert asked(driven(spec_by("usd"))[0]) == asked(by_tokens[0])


def test_the_order_of_answers_and_a_replay_change_no_question(by_tokens):
    session, log = by_tokens
    other, _ = driven(spec_by("tokens"), seed=3)
    steps = min(session.board.complete[0], other.board.complete[0])
    assert asked(other)[:steps] == asked(session)[:steps]
    flat = [one for batch in log for one in batch]
    again = Session(spec_by("tokens"))
    again.replay([flat[start : start + 31] for start in range(0, len(flat), 31)])
    assert asked(again) == asked(session)
    assert again.results().pass_cost == session.results().pass_cost


def test_the_report_says_what_others_would_have_spent(by_tokens):
    results = by_tokens[0].results()
    spent, uniform, fixed = saved_cost(results)
    one_pass = 2 * (DEAR + 1) * SIZE / 2
    assert results.pass_cost == pytest.approx(one_pass, rel=0.05)
    assert spent == results.tokens
    assert uniform == pytest.approx(results.pass_cost * saving(results)[1] / (2 * SIZE))
    assert fixed == pytest.approx(results.pass_cost * fixed_length(results)[0])
    assert spent < 0.8 * uniform
    assert saved_cost(driven(spec_by("trials"))[0].results()) is None


def chosen(issued, number, slots=1):
    """Return the models that top-two chooses, of two whose trials cost 1 and 16."""
    needed, scores = np.ones(2, dtype=bool), (np.array([0.5, 0.5]), np.array([0.01, 0.01]))
    both = {"issued": issued, "window": [1, 1], "active": needed, "askable": needed, "most": [np.inf] * 2}
    both |= {"first": np.array([0]), "second": np.array([1]), "cost": lambda: [1.0, 16.0]}
    view = AllocationView(**both, scores=lambda: scores, seed=(1, number))
    return list(TopTwo().choose(view, {0: slots, 1: slots}))


def test_of_two_models_the_cheaper_one_is_asked_more():
    # By 1/√cost one trial of five is of a model that costs 16 times as much (false alarm 6e-5).
    draws = 4000
    second = sum(chosen([100, 100], number)[0] for number in range(draws))
    assert second / draws == pytest.approx(0.2, abs=4 * 0.4 / np.sqrt(draws))
    assert chosen([100, 9], 1, slots=3)[:3] == [1, 1, 1]  # each has ten trials first


@pytest.mark.parametrize(("spend", "token"), [("tokens", 1), ("usd", 1e-6)])
def test_each_task_knows_what_its_own_trials_cost(spend, token):
    """The mean of a question's trials and of one at the mean of all questions; unknown costs are left out."""
    spec = spec_by(spend)
    session = Session(replace(spec, tasks=(*spec.tasks, TaskSpec("u", ("a", "b", "c")))))
    assert session.budget.mean_costs() == [1.0, 1.0]  # while nothing is known
    paid = {
        (model.name, task.name, one): []
        for model in session.spec.models
        for task in session.spec.tasks
        for one in task.questions
    }
    while session.budget.completed < 60:
        told = []
        for one in session.ask(30):
            cost = 0 if one.repeat == 1 else ord(one.question[-1]) * (1 if one.task == "t" else 50)
            told.append(TrialOutcome(one.key, 1, Usage(0, cost)))
            paid[one.key.model, one.task, one.question] += [cost] if cost else []
        session.tell(told)
    session.board.absorb()
    whole = 0.0
    for task, cells in zip(session.spec.tasks, session.board.cells, strict=True):
        for row, model in enumerate(session.spec.models):
            costs = [paid[model.name, task.name, one] for one in task.questions]
            mean = np.mean([np.mean(one) for one in costs if one])
            expected = np.array([(sum(one) + mean) / (len(one) + 1) for one in costs])
            assert session.budget.in_units(1) * cells.cost(np.array([row]))[0] == pytest.approx(
                expected * token
            )
            whole += expected.sum() * token
    assert session.results().pass_cost == pytest.approx(whole)
    trials = [account.trials for account in session.budget.models]
    sums = [sum(map(sum, (of for key, of in paid.items() if key[0] == name))) for name in ("m0", "m1")]
    means = session.budget.in_units(1) * np.array(session.budget.mean_costs())
    assert means == pytest.approx(token * np.array(sums) / trials)
