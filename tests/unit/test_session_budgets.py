"""Budgets of runs, models and tasks: what they allow, how they end; and runs that spend tokens or USD."""

from dataclasses import replace

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec, spent

from adaptive_eval.core.allocate import AllocationView, TopTwo, Uniform
from adaptive_eval.core.budget import Account, Amount
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, ModelSpec, Price, SessionSpec, TaskSpec
from adaptive_eval.trial import Missing, TrialKey, TrialOutcome, Usage
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.sentences import note_words
from adaptive_eval.views.verdicts import fixed_length, saved_cost, saving

# Budgets: what they allow, how they end, and what may have been paid.


MEANS = [0.9, 0.5, 0.2]


def with_own(spec: SessionSpec, **budgets: BudgetSpec) -> SessionSpec:
    """Give models or tasks of `spec` a budget of their own."""
    return replace(
        spec,
        models=tuple(replace(m, budget=budgets.get(m.name, m.budget)) for m in spec.models),
        tasks=tuple(replace(t, budget=budgets.get(t.name, t.budget)) for t in spec.tasks),
    )


def measured(limits: BudgetSpec, price: Price | None = None, *, bounds=(50,) * 4, most=100) -> SessionSpec:
    """Return a spec of two models whose prompts and answers are bounded."""
    models = (ModelSpec("a", most, price), ModelSpec("b", most, price))
    task = TaskSpec("t", tuple(f"q{n}" for n in range(len(bounds))), prompt_bounds=bounds)
    return SessionSpec(models, (task,), budget=limits)


class TestKinds:
    @pytest.mark.parametrize(
        ("kind", "each"), [("prompt_tokens", 50), ("completion_tokens", 100), ("tokens", 150), ("trials", 1)]
    )
    def test_each_kind_reserves_the_worst_case(self, kind, each):
        for limit, issued in ((5 * each, 5), (5 * each - 1, 4), (each, 1)):
            assert len(Session(measured(BudgetSpec(**{kind: limit}))).ask(50)) == issued

    def test_money_is_counted_to_the_last_token(self):
        """0.1 cents a token, so sums of binary fractions would be off: 9 trials cost 0.9, not 0.8999…"""
        price = Price(input=0.0, output=1000.0)
        spec = measured(BudgetSpec(usd=0.9), price, most=100)
        assert len(Session(spec).ask(50)) == 9
        assert len(Session(replace(spec, budget=BudgetSpec(usd=0.8999999999))).ask(50)) == 8

    def test_what_is_spent_to_the_last_cent_is_not_shown_as_more(self):
        account = Account(BudgetSpec(usd=0.3))
        account.charge(Amount(usd=10**11))
        account.presume_billed(Amount(usd=2 * 10**11))
        assert account.holds()
        assert [line.spent for line in account.lines() if line.name == "usd"] == [0.3]  # 0.1 + 0.2 is more

    def test_a_cached_prompt_is_charged_at_its_price_and_reserved_at_the_dearest(self):
        price = Price(input=2.0, output=4.0, cached_input=0.5)
        session = Session(measured(BudgetSpec(usd=1.0), price))
        (request,) = session.ask(1)
        assert spent(session, "usd") == (0.0, pytest.approx((50 * 2 + 100 * 4) / 1e6, abs=0))
        session.tell([TrialOutcome(request.key, 1, Usage(50, 10, cached_tokens=40))])
        assert spent(session, "usd")[0] == (10 * 2 + 40 * 0.5 + 10 * 4) / 1e6
        dear_cache = Session(measured(BudgetSpec(usd=1.0), Price(2.0, 4.0, cached_input=3.0)))
        dear_cache.ask(1)
        assert spent(dear_cache, "usd") == (0.0, (50 * 3 + 100 * 4) / 1e6)

    @pytest.mark.parametrize(("varies", "room"), [(False, 3), (True, 1)])  # 25 + 3 x 120, or 25 + 300
    def test_a_prompt_seen_before_is_reserved_at_its_length_and_one_that_varies_at_its_bound(
        self, varies, room
    ):
        spec = make_spec(1, 1, goal="budget", tokens=400, max_tokens=100, prompt_bounds=(200,))
        session = Session(replace(spec, tasks=(replace(spec.tasks[0], prompt_varies=varies),)))
        (request,) = session.ask(1)
        session.tell([TrialOutcome(request.key, 1, Usage(20, 5))])
        assert len(session.ask(9)) == room

    def test_each_task_reserves_by_its_own_calls_and_prompts(self):
        spec = measured(BudgetSpec(tokens=10**5))
        several = replace(spec.tasks[0], name="u", prompt_varies=True, calls=3)
        session = Session(replace(spec, tasks=(*spec.tasks, several)))
        worst, tokens = session.budget.worst_case, {"t": 90, "u": 270}
        for longest in (100, 110):
            requests = session.ask(32)
            assert {one.task for one in requests} == {"t", "u"}
            prompt = 20 if longest == 100 else 18  # one that was longer before may be so again
            session.tell([TrialOutcome(one.key, 1, Usage(prompt, tokens[one.task])) for one in requests])
            assert {worst(0, 0, q) for q in range(4)} <= {Amount(20, longest), Amount(50, longest)}
            assert {worst(0, 1, q) for q in range(4)} == {Amount(50, 3 * longest)}
            tokens["u"] = 330

    def test_an_answer_without_usage_counts_at_its_worst(self):
        session = Session(measured(BudgetSpec(tokens=1000)))
        (request,) = session.ask(1)
        session.tell([TrialOutcome(request.key, 1)])
        assert spent(session, "tokens") == (150, 0)

    def test_a_server_beyond_its_bounds_is_noticed_and_reserved_for(self):
        bounds = (50, 47, 44, 41)
        session = Session(measured(BudgetSpec(tokens=10_000), bounds=bounds))
        (request,) = session.ask(1)
        asked = int(request.question[1:])
        session.tell([TrialOutcome(request.key, 1, Usage(bounds[asked] + 10, 300))])
        warnings = session.results().warnings
        assert any("answered with 300 tokens although max_tokens is 100" in text for text in warnings)
        assert any("10 more prompt tokens" in text for text in warnings)
        for unasked in {0, 1, 2, 3} - {asked}:
            assert session.budget.worst_case(0, 0, unasked) == Amount(bounds[unasked] + 10, 300)
            assert session.budget.worst_case(1, 0, unasked) == Amount(bounds[unasked], 100)

    def test_without_such_a_limit_nothing_is_reserved_or_presumed_and_servers_beyond_theirs_noticed(self):
        session = Session(measured(BudgetSpec(trials=20)))
        request, other = session.ask(2)
        assert session.presume_billed(request.key)
        assert spent(session, "tokens") == (0, 0)
        session.abandon(request.key, billed=True)
        session.tell([TrialOutcome(other.key, 1, Usage(60, 10**9))])
        warnings = session.results().warnings
        assert any("with 1,000,000,000 tokens although max_tokens is 100" in text for text in warnings)
        (said,) = [words for words in warnings if "may have been billed" in words]
        assert said.startswith("2 requests failed, or cancelled in flight, may have been billed")


class TestModels:
    def test_a_model_s_budget_ends_and_the_rest_goes_on(self):
        spec = with_own(make_spec(3, 30, max_passes=60), m1=BudgetSpec(trials=12))
        session = drive(Session(spec), coin(MEANS))
        assert session.stopped.reason == "partial"
        assert session.stopped.evidence == {"open": 2, "open_models": 0, "silent": [], "spent": ["m1"]}
        lines = {line.model: line for line in session.results().models}
        assert (lines["m1"].state, lines["m1"].issued) == ("stopped", 12)
        assert "12 of 12 trials" in note_words(lines["m1"], session.results())
        (call,) = calls(session)
        assert call[0] == ("m0", "m2")
        others = [pair for pair in session.results().pairs if "m1" in (pair.first, pair.second)]
        assert [pair.verdict for pair in others] == ["open", "open"]
        (given_up,) = (one for one in session.decisions if one.kind == "model_stopped")
        assert (given_up.models, given_up.verdict) == (("m1",), "budget")

    def test_those_whose_budgets_end_are_named_in_the_order_of_the_config_as_a_replay_does(self):
        spec = with_own(make_spec(4, 30, max_passes=60), m1=BudgetSpec(trials=24), m3=BudgetSpec(trials=12))
        session = drive(Session(spec), coin([*MEANS, 0.5]))
        ended = [one.models for one in session.decisions if one.kind == "model_stopped"]
        assert ended == [("m3",), ("m1",)]
        assert session.stopped.evidence["spent"] == ["m1", "m3"]

    def test_without_a_goal_it_is_told_once_too(self):
        spec = with_own(make_spec(2, 30, goal="budget", trials=80), m1=BudgetSpec(trials=12))
        session = drive(Session(spec), coin(MEANS))
        assert [one.models for one in session.decisions if one.kind == "model_stopped"] == [("m1",)]

    def test_trials_in_flight_may_still_give_back_what_the_next_one_needs(self):
        spec = with_own(measured(BudgetSpec()), a=BudgetSpec(tokens=300))
        session = Session(spec)
        requests = session.ask({"a": 9, "b": 9})
        mine = [request for request in requests if request.key.model == "a"]
        assert len(mine) == 2
        session.tell([TrialOutcome(mine[0].key, 1, Usage(10, 10))])
        assert session.ask({"a": 9, "b": 0}) == []
        assert not session.states.stopped
        session.tell([TrialOutcome(mine[1].key, 1, Usage(10, 10))])
        assert len(session.ask({"a": 9, "b": 0})) == 1

    def test_a_model_that_is_not_needed_any_more_is_not_given_up(self):
        spec = make_spec(3, 30, max_passes=60)
        whole = drive(Session(spec), coin([0.9, 0.88, 0.1]), most=4000)
        needed = whole.states.issued[2]
        limited = with_own(spec, m2=BudgetSpec(trials=needed))
        session = drive(Session(limited), coin([0.9, 0.88, 0.1]), most=4000)
        assert session.states.retired[2]
        assert not session.states.spent

    def test_a_model_whose_answers_wait_to_be_read_is_not_given_up_where_they_decide(self):
        pairs = (("m0", "m1"), ("m0", "m2"))
        spec = with_own(make_spec(3, 60, goal="pairs", pairs=pairs), m2=BudgetSpec(trials=30))
        session = Session(spec)
        session.ask({"m1": 1})  # until it is answered, the answers of the others wait
        for _ in range(31):
            requests = session.ask({"m0": 1, "m2": 1})
            session.tell([TrialOutcome(one.key, int(one.key.model == "m0")) for one in requests])
        assert session.states.stopped == {}
        assert [call[:2] for call in calls(session)] == [(("m0", "m2"), "better")]

    def test_a_higher_cap_goes_on_where_it_was(self):
        spec = make_spec(3, 30, max_passes=60)
        whole = drive(Session(spec), coin(MEANS))
        log = []
        drive(Session(with_own(spec, m1=BudgetSpec(trials=12))), coin(MEANS), log=log)
        assert not whole.states.stopped
        again = Session(with_own(spec, m1=BudgetSpec(trials=1200)))
        again.replay(log)
        drive(again, coin(MEANS))
        assert again.stopped.reason == "resolved"
        assert {call[0]: call[1] for call in calls(again)} == {call[0]: call[1] for call in calls(whole)}


class TestTasks:
    @pytest.mark.parametrize("own", ["t", "u"])
    def test_a_task_s_budget_ends_the_run_and_says_whose_it_was(self, own):
        """It is not that of a model, which has one that is not spent."""
        spec = make_spec(2, 30)
        both = replace(spec, tasks=(*spec.tasks, replace(spec.tasks[0], name="u")))
        limits = {own: BudgetSpec(trials=11), "m1": BudgetSpec(trials=1000)}
        session = drive(Session(with_own(both, **limits)), coin([0.5, 0.5]))
        assert session.stopped.reason == "budget"
        evidence = session.stopped.evidence
        assert (evidence["scope"], evidence["owner"], evidence["used"]) == ("task", own, {"trials": [11, 11]})
        assert f"of task {own}" in describe(session.stopped)
        assert spent(session, "trials", own) == (11, 0)
        assert not session.states.stopped

    def test_so_does_a_trial_to_be_asked_again_that_its_task_cannot_afford(self):
        spec = measured(BudgetSpec())
        both = replace(spec, tasks=(*spec.tasks, replace(spec.tasks[0], name="u")))
        session = Session(with_own(both, t=BudgetSpec(tokens=300)))
        first, second = session.ask(2)
        session.abandon(first.key, billed=True)
        assert session.ask(9) == []
        session.tell([TrialOutcome(second.key, 1, Usage(50, 100))])
        assert session.ask(9) == []
        assert (session.stopped.reason, session.stopped.evidence["owner"]) == ("budget", "t")

    def test_lines_show_every_limit_with_its_owner(self):
        spec = with_own(
            make_spec(2, 30, trials=500, max_tokens=100),
            t=BudgetSpec(trials=11),
            m1=BudgetSpec(completion_tokens=900),
        )
        lines = [(one.scope, one.owner, one.name, one.limit) for one in Session(spec).results().budgets]
        assert lines == [
            ("run", "", "trials", 500),
            ("run", "", "tokens", None),
            ("model", "m1", "completion_tokens", 900),
            ("task", "t", "trials", 11),
        ]


@pytest.mark.parametrize("owner", ["", "t"])
def test_a_failed_request_counts_at_its_worst_and_asks_for_room_for_another(owner):
    limits = BudgetSpec(tokens=449)
    session = Session(with_own(measured(BudgetSpec()), t=limits) if owner else measured(limits))
    first, _second = session.ask(2)
    assert session.presume_billed(first.key) is False
    assert spent(session, "tokens", owner) == (150, 300)
    session.abandon(first.key, billed=False)
    assert spent(session, "tokens", owner) == (150, 150)


def test_tests_of_seeds_are_presumed_billed_without_advice_about_failures():
    session = Session(measured(BudgetSpec(tokens=1000)))
    (request,) = session.ask(1)
    assert session.may_repeat(request.key)
    assert spent(session, "tokens") == (150, 150)
    assert not any("usage_on_failure" in text for text in session.results().warnings)
    session.presume_billed(request.key)
    assert any("usage_on_failure" in text for text in session.results().warnings)


def test_what_failed_in_an_earlier_session_counts_no_more_than_there_was_room_for():
    """The worst case has grown since: an answer was longer than any may be."""
    spec = measured(BudgetSpec(tokens=450, usd=0.00045), Price(input=1.0, output=1.0))
    session = Session(spec)
    first, second = session.ask({"a": 2})
    session.presume_billed(second.key)
    answer = TrialOutcome(first.key, 1, Usage(50, 240))
    session.tell([answer])
    assert spent(session, "tokens")[0] == 440
    again = Session(spec)
    again.replay([[answer]], [(second.key, 1)])
    assert spent(again, "tokens")[0] == 450
    assert spent(again, "usd")[0] == pytest.approx(0.00045)


def test_what_was_out_when_it_was_given_up_counts_and_is_asked_again():
    session = Session(measured(BudgetSpec(tokens=1000)))
    requests = session.ask(3)
    session.abandon(requests[1].key, billed=True)
    session.abandon(requests[0].key, billed=False)
    assert spent(session, "tokens") == (150, 150)
    again = session.ask(2)
    assert [request.key for request in again] == [requests[0].key, requests[1].key]
    assert again == [requests[0], requests[1]]


def test_a_model_that_can_pay_one_of_its_lost_trials_leaves_the_others_theirs():
    session = Session(with_own(measured(BudgetSpec()), a=BudgetSpec(tokens=320)))
    session.replay([[TrialOutcome(TrialKey(name, 2), 1, Usage(50, 100)) for name in "ab"]])
    asked = [one.key for one in session.ask({"a": 9, "b": 4})]
    assert asked[:3] == [TrialKey("a", 0), TrialKey("b", 0), TrialKey("b", 1)]
    assert {one.model for one in asked[3:]} == {"b"}


@pytest.mark.parametrize("spent_up", [False, True])
@pytest.mark.parametrize("owner", ["", "a", "t"])
def test_what_was_out_when_its_model_was_stopped_counts_in_every_budget(owner, spent_up):
    limits = BudgetSpec(tokens=1000)
    plain = measured(limits if not owner else BudgetSpec())
    session = Session(with_own(plain, **{owner: limits} if owner else {}))
    requests = [one for one in session.ask({"a": 3, "b": 2}) if one.key.model == "a"]
    session.stop_model("a", "its time is up", spent=spent_up)
    session.abandon(requests[0].key, billed=True)
    session.abandon(requests[1].key, billed=False)
    session.tell([Missing(requests[2].key, "timeout", Usage(10, 5))])
    others = 0 if owner == "a" else 300
    assert spent(session, "tokens", owner) == (150 + 15, others)
    assert {one.key.model for one in session.ask({"a": 9, "b": 9})} <= {"b"}


@pytest.mark.parametrize(("counted", "each"), [("presume", 150), ("prompt-only", 50), ("none", 0)])
def test_what_a_failure_counts_can_be_chosen(counted, each):
    priced = measured(BudgetSpec(tokens=10_000, usd=1.0), Price(input=1.0, output=1.0))
    spec = replace(priced, usage_on_failure=counted)
    session = Session(spec)
    requests = session.ask(3)
    assert session.presume_billed(requests[0].key)
    session.abandon(requests[1].key, billed=True)
    session.tell([TrialOutcome(requests[2].key, 1, Usage(40, 20))])
    assert spent(session, "tokens")[0] == 2 * each + 60
    presumed = {one.name: one.presumed for one in session.budget.lines()}
    assert (presumed["tokens"], presumed["usd"]) == (2 * each, pytest.approx(2 * each / 1e6))
    assert spent(session, "usd")[0] == pytest.approx((2 * each + 60) / 1e6)
    assert any("presumed billed" in text for text in session.results().warnings) == (2 * each > 60)
    again = Session(spec)
    again.replay([[TrialOutcome(requests[2].key, 1, Usage(40, 20))]], [(requests[0].key, 2)])
    assert spent(again, "tokens")[0] == 2 * each + 60


# Runs that spend tokens or USD: what trials cost decides which question and model is asked again.


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
    passes, trials = fixed_length(results)
    assert (fixed, trials) == (pytest.approx(results.pass_cost * passes), 2 * SIZE * passes)
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


@pytest.mark.parametrize(("steps", "more"), [(40, 20), (55, 5), (60, 0), (500, 0)])
def test_uniform_keeps_a_settled_model_within_its_trials_in_flight_of_the_open_ones(steps, more):
    open_ones = np.array([True, True, False])
    view = AllocationView(
        issued=[50, 52, steps], window=[8, 8, 8], active=open_ones, askable=np.ones(3, dtype=bool),
        first=np.array([0]), second=np.array([1]), most=[np.inf, np.inf, 52.0],
        scores=lambda: (np.zeros(3), np.zeros(3)), cost=lambda: [1.0] * 3, seed=(1,),
    )  # fmt: skip
    assert list(Uniform().choose(view, {2: 20})) == [2] * more
