"""Whatever comes back in whatever order, no budget is exceeded: by no trial, no token, no part of a cent."""

from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, GoalSpec, ModelSpec, Price, SessionSpec, TaskSpec
from adaptive_eval.trial import Missing, TrialKey, TrialOutcome, TrialRequest, Usage

IN_FLIGHT = 512
QUESTIONS = 7

prices = st.none() | st.builds(
    Price,
    st.sampled_from([0.0, 0.05, 0.1, 1 / 3, 15.0]),
    st.sampled_from([0.0, 0.07, 0.4, 2 / 3, 75.0]),
    st.none() | st.sampled_from([0.0, 0.025, 20.0]),
)
tokens = st.none() | st.integers(420, 60_000)  # each pays a trial, or it is refused
limits = st.builds(
    BudgetSpec,
    trials=st.none() | st.integers(1, 900),
    tokens=tokens,
    usd=st.none() | st.sampled_from([0.03, 0.1, 0.7, 1.1]),
    prompt_tokens=tokens,
    completion_tokens=tokens,
)
mostly_none = st.just(BudgetSpec()) | limits


@st.composite
def specs(draw):
    models = tuple(
        ModelSpec(name, draw(st.integers(1, 300)), draw(prices), draw(mostly_none))
        for name in ("a", "b", "c")
    )
    shift = draw(st.integers(0, 119))
    tasks = tuple(
        TaskSpec(
            name,
            tuple(f"{name}{number}" for number in range(QUESTIONS)),
            prompt_bounds=tuple(1 + (shift + 37 * number) % 120 for number in range(QUESTIONS)),
            prompt_varies=draw(st.booleans()),
            budget=draw(mostly_none),
        )
        for name in ("s", "t")
    )
    run = draw(limits)
    run = replace(run, trials=run.trials or 900)
    return SessionSpec(models, tasks, goal=GoalSpec("budget"), budget=run, seed=draw(st.integers(0, 9)))


@dataclass
class Bill:
    """What the servers have really charged, counted apart from the session."""

    spec: SessionSpec
    billed: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, request: TrialRequest, usage: Usage, *, ended: bool) -> None:
        price = next(model.price for model in self.spec.models if model.name == request.key.model)
        used = {
            "trials": int(ended),
            "tokens": usage.prompt_tokens + usage.completion_tokens,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        }
        if price is not None:
            fresh = usage.prompt_tokens - usage.cached_tokens
            cached = Fraction(repr(price.cached_input if price.cached_input is not None else price.input))
            cost = fresh * Fraction(repr(price.input)) + usage.cached_tokens * cached
            used["usd"] = (cost + usage.completion_tokens * Fraction(repr(price.output))) / 10**6
        for owner in ("", request.key.model, request.task):
            for name, amount in used.items():
                self.billed[owner, name] += amount

    def check(self) -> None:
        budgets = {"": self.spec.budget}
        budgets |= {part.name: part.budget for part in (*self.spec.models, *self.spec.tasks)}
        for (owner, name), billed in self.billed.items():
            limit = getattr(budgets[owner], name)
            assert limit is None or billed <= Fraction(repr(limit)), (owner, name, billed, limit)


def usage_of(spec: SessionSpec, request: TrialRequest, share: float) -> Usage:
    """Return what an answer uses that takes `share` of what it may; its prompt is the question's own."""
    model = next(model for model in spec.models if model.name == request.key.model)
    task = next(task for task in spec.tasks if task.name == request.task)
    bound = task.prompt_bounds[task.questions.index(request.question)]
    prompt = bound if not task.prompt_varies else max(1, bound - request.seed % 2)
    completion = min(model.max_tokens, int(share * (model.max_tokens + 1)))
    return Usage(prompt, completion, cached_tokens=request.seed % (prompt + 1))


@given(
    specs(),
    st.builds(Random, st.integers(0, 2**32)),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([1, 64, IN_FLIGHT]),
)
@example(
    SessionSpec(
        (ModelSpec("a", 100, Price(0.1, 0.4)), ModelSpec("b", 100, Price(0.1, 0.4))),
        (TaskSpec("t", ("q",), prompt_bounds=(30,)),),
        goal=GoalSpec("budget"),
        budget=BudgetSpec(tokens=70_000),
    ),
    Random(1),
    1.0,
    IN_FLIGHT,
)
def test_no_budget_is_exceeded_by_a_token_or_a_cent(spec, rng, trouble, most):
    session, bill = Session(spec), Bill(spec)
    flying: list[TrialRequest] = []
    for _ in range(120):
        flying += session.ask(most - len(flying))
        assert len(flying) <= most
        if not flying:
            break
        rng.shuffle(flying)
        count = rng.randint(1, len(flying))
        landed, flying = flying[:count], flying[count:]
        told = []
        for request in landed:
            if rng.random() < 0.3 * trouble:
                bill.add(request, usage_of(spec, request, 1.0), ended=False)
                if not session.presume_billed(request.key) or rng.random() < 0.5:
                    session.abandon(request.key, billed=False)
                    continue
            if rng.random() < 0.1 * trouble:
                bill.add(request, usage_of(spec, request, rng.random()), ended=False)
                session.abandon(request.key, billed=True)
                continue
            answered = rng.random() >= 0.1 * trouble
            usage = usage_of(spec, request, rng.random()) if answered else Usage()
            bill.add(request, usage, ended=True)
            told.append(TrialOutcome(request.key, 1, usage) if answered else Missing(request.key, "gone"))
        session.tell(told)
        bill.check()
        check_lines(session)
    bill.check()


def check_lines(session: Session) -> None:
    for line in session.budget.lines():
        assert line.limit is None or line.spent + line.reserved <= line.limit + 1e-9, line


@pytest.mark.slow
def test_512_in_flight_use_a_budget_up_to_the_last_answer_that_fits():
    """Every answer of the longest kind: what is left in the end is less than one of them."""
    models = tuple(ModelSpec(name, 100, Price(0.1, 0.4)) for name in ("a", "b"))
    task = TaskSpec("t", tuple(f"q{number}" for number in range(40)), prompt_bounds=(30,) * 40)
    for budget in (BudgetSpec(tokens=1_000_003), BudgetSpec(usd=0.3), BudgetSpec(completion_tokens=777_777)):
        spec = SessionSpec(models, (task,), goal=GoalSpec("budget"), budget=budget)
        session, most, bill = Session(spec), 0, Bill(spec)
        while session.stopped is None:
            requests = session.ask(IN_FLIGHT)
            most = max(most, len(requests))
            usage = Usage(30, 100)
            for request in requests:
                bill.add(request, usage, ended=True)
            session.tell([TrialOutcome(request.key, 1, usage) for request in requests])
        bill.check()
        assert most == IN_FLIGHT
        (line,) = (line for line in session.budget.lines() if line.limit is not None)
        one = {"tokens": 130, "usd": (30 * 0.1 + 100 * 0.4) / 1e6, "completion_tokens": 100}[line.name]
        assert line.limit - one < line.spent <= line.limit


def test_a_trial_is_asked_again_in_its_own_name():
    session = Session(SessionSpec((ModelSpec("a"), ModelSpec("b")), (TaskSpec("t", ("q",)),)))
    (request,) = session.ask(1)
    session.abandon(request.key, billed=True)
    assert request.key == TrialKey("a", 0)
    assert session.ask(1) == [request]
