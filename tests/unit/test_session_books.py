"""The budgets of a session are those of a plain account of what was asked, answered and lost."""

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import product

import pytest
from crossed_options import chance

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, GoalSpec, ModelSpec, Price, SessionSpec, TaskSpec
from adaptive_eval.trial import Missing, TrialOutcome, Usage

MODELS = (ModelSpec("a", 60, Price(10.0, 40.0, cached_input=2.0)), ModelSpec("b", 90, Price(3.0, 9.0)))
TASKS = (
    TaskSpec("t", tuple(f"q{n}" for n in range(7)), prompt_bounds=tuple(range(30, 37)), calls=2),
    TaskSpec("u", tuple(f"q{n}" for n in range(5)), prompt_bounds=(50,) * 5, prompt_varies=True),
)
LIMITED = {
    "the run's tokens": {"": {"tokens": 12_000}},
    "the run's usd and trials": {"": {"usd": 0.15, "trials": 110}},
    "those of a model and of a task": {"a": {"tokens": 4_000}, "u": {"prompt_tokens": 1_500, "trials": 40}},
    "a task's usd and a model's trials": {
        "t": {"usd": 0.08},
        "b": {"trials": 50, "completion_tokens": 3_000},
    },
}
COUNTED = {"presume": (1, 1), "prompt-only": (1, 0), "none": (0, 0)}


def spec_of(limited, counted, samples):
    """Return the specification of a run with these limits."""

    def own(one):
        return replace(one, budget=BudgetSpec(**LIMITED[limited].get(one.name, {})))

    return SessionSpec(
        tuple(map(own, MODELS)), tuple(map(own, TASKS)), goal=GoalSpec("budget"), samples_per_prompt=samples,
        budget=BudgetSpec(**LIMITED[limited].get("", {"trials": 140})), usage_on_failure=counted, seed=4,
    )  # fmt: skip


@dataclass
class Books:
    """What each request has cost, is presumed to have cost, or may cost at most."""

    spec: SessionSpec
    reported: Counter = field(default_factory=Counter)
    presumed: Counter = field(default_factory=Counter)
    reserved: dict = field(default_factory=dict)
    prompts: dict = field(default_factory=dict)  # the longest one that was reported, by model and question
    beyond: Counter = field(default_factory=Counter)  # how far prompts of a model exceeded their bounds
    longest: Counter = field(default_factory=Counter)  # the longest answer of one call of a model

    def parts(self, request):
        model = next(one for one in self.spec.models if one.name == request.key.model)
        task = next(one for one in self.spec.tasks if one.name == request.task)
        return model, task, task.prompt_bounds[task.questions.index(request.question)]

    def worst(self, request):
        """Return the most tokens that a request may take: of its prompt, and of its answer."""
        model, task, bound = self.parts(request)
        known = None if task.prompt_varies else self.prompts.get((model.name, task.name, request.question))
        longest = max(model.max_tokens, self.longest[model.name])
        return known or bound + self.beyond[model.name], longest * task.calls

    def note(self, account, request, prompt, completion, cached=None, trials=0):
        """Add the cost of a request; if it is not known how much was cached, the dearest."""
        model, task, _ = self.parts(request)
        price = model.price
        if cached is None:
            usd = prompt * max(price.input, price.cached_input or 0.0)
        elif price.cached_input is None:
            usd = prompt * price.input
        else:
            usd = (prompt - cached) * price.input + cached * price.cached_input
        amounts = {
            "trials": trials, "tokens": prompt + completion, "prompt_tokens": prompt,
            "completion_tokens": completion, "usd": (usd + completion * price.output) / 1e6,
        }  # fmt: skip
        for owner, (name, amount) in product(("", model.name, task.name), amounts.items()):
            account[owner, name] += amount

    def issue(self, request):
        self.reserved[request.key] = Counter()
        self.note(self.reserved[request.key], request, *self.worst(request), trials=1)

    def fail(self, request, times=1):
        prompt, completion = self.worst(request)
        of_prompt, of_answer = COUNTED[self.spec.usage_on_failure]
        for _ in range(times):
            self.note(self.presumed, request, of_prompt * prompt, of_answer * completion)

    def answer(self, request, usage, *, lost):
        model, task, bound = self.parts(request)
        self.reserved.pop(request.key, None)
        self.note(
            self.reported, request, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, 1
        )
        if not usage.total_tokens and not lost:
            self.note(self.presumed, request, *self.worst(request))
        of_call = -(-usage.completion_tokens // task.calls)
        self.longest[model.name] = max(self.longest[model.name], of_call)
        if usage.prompt_tokens:
            place = (model.name, task.name, request.question)
            self.prompts[place] = max(self.prompts.get(place, 0), usage.prompt_tokens)
            self.beyond[model.name] = max(self.beyond[model.name], usage.prompt_tokens - bound)

    def check(self, session, *, fitted=False):
        """Hold the lines of a session against the books; what failed before may be cut to a limit."""
        for line in session.budget.lines():
            place = line.owner, line.name
            held = sum(one[place] for one in self.reserved.values())
            found = line.spent - line.presumed, line.reserved
            assert found == pytest.approx((self.reported[place], held)), line
            if not fitted:
                assert line.presumed == pytest.approx(self.presumed[place]), line
            elif line.limit is not None:
                assert line.spent <= line.limit


def usage_of(request, fate):
    """Return what an answer takes: seldom more than it may, or nothing that is reported."""
    prompt, long = 20 + int(request.question[1:]), chance("long", request.key)
    if fate < 0.06:
        return Usage()
    if fate > 0.97:
        return Usage(prompt + 40, int(190 * long))
    return Usage(prompt, int(50 * long), int(prompt * long))


class Sitting:
    """A session whose requests fail, hang or are answered as their keys say, and its books."""

    def __init__(self, spec):
        self.session, self.books = Session(spec), Books(spec)
        self.flying, self.asked, self.log, self.failed = [], {}, [], Counter()

    def go(self, turns):
        for turn in range(turns):
            free = {"a": 9 - turn % 3, "b": 8} if turn % 2 else {"a": 4, "b": 4}
            flying = Counter(one.key.model for one in self.flying)
            new = self.session.ask({name: max(0, slots - flying[name]) for name, slots in free.items()})
            for request in new:
                self.books.issue(request)
            self.asked |= {one.key: one for one in new}
            self.flying += new
            if not self.flying:
                return
            batch, self.flying = self.flying[: 1 + turn % 5], self.flying[1 + turn % 5 :]
            self.tell([request for request in batch if not self.fails(request)])
            self.books.check(self.session)

    def fails(self, request):
        """Let a request fail for which this is its fate: it is in flight still, or was given up."""
        fate, times = self.fate(request), self.failed[request.key]
        if fate > 0.25 or times == 3:
            return False
        self.failed[request.key] += 1
        self.books.fail(request)
        if fate < 0.1:
            self.session.abandon(request.key, billed=True)
            del self.books.reserved[request.key]
        else:
            self.session.presume_billed(request.key)
            self.flying.append(request)
        return True

    def fate(self, request):
        return chance("fate", request.key, self.failed[request.key])

    def tell(self, batch):
        outcomes = []
        for request in batch:
            fate, usage = self.fate(request), usage_of(request, chance("usage", request.key))
            discarded = ("timeout",) if fate > 0.8 else ()
            if fate > 0.9:
                outcomes.append(Missing(request.key, "timeout", usage, discarded))
            else:
                outcomes.append(TrialOutcome(request.key, len(self.log) % 2, usage, discarded=discarded))
            self.books.answer(request, usage, lost=fate > 0.9)
        self.session.tell(outcomes)
        self.log += outcomes


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("counted", COUNTED)
@pytest.mark.parametrize("limited", LIMITED)
def test_each_budget_is_what_its_requests_have_cost_also_when_the_run_goes_on(limited, counted, samples):
    spec = spec_of(limited, counted, samples)
    first = Sitting(spec)
    first.go(60)
    log, books = first.log, Books(spec)
    assert first.session.budget.completed == len(log) >= 20
    for one in log:
        books.answer(first.asked[one.key], one.usage, lost=isinstance(one, Missing))
    failed = first.failed + Counter(one.key for one in first.flying)
    for key, times in failed.items():
        books.fail(first.asked[key], times)
    made = Session(spec)
    made.replay([log[start : start + 9] for start in range(0, len(log), 9)], failed.items())
    places = [(line.limit, (line.owner, line.name)) for line in made.budget.lines()]
    fits = all(
        limit is None or books.reported[place] + books.presumed[place] <= limit for limit, place in places
    )
    books.check(made, fitted=not fits)
