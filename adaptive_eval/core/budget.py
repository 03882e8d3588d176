"""Budgets: the worst case of a trial is reserved when it is issued and released when it is completed."""

import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from itertools import chain

from adaptive_eval.core.results import BudgetLine, BudgetScope
from adaptive_eval.core.spec import BudgetSpec, SessionSpec
from adaptive_eval.errors import Coded
from adaptive_eval.trial import Usage

PICODOLLARS = 10**12
"""Money is counted in whole picodollars: a price per million tokens with up to six decimals is a whole number
of them per token, so that sums are exact and no cent is lost or overspent by rounding."""


@dataclass(frozen=True, slots=True)
class Amount:
    """The cost of one trial, in tokens and picodollars."""

    prompt: int = 0
    completion: int = 0
    usd: int = 0


NOTHING = Amount()


@dataclass(slots=True)
class _Sum:
    """A sum of amounts. It changes in place: a long run adds millions of them."""

    prompt: int = 0
    completion: int = 0
    usd: int = 0

    def add(self, amount: Amount) -> None:
        self.prompt += amount.prompt
        self.completion += amount.completion
        self.usd += amount.usd

    def subtract(self, amount: Amount) -> None:
        self.prompt -= amount.prompt
        self.completion -= amount.completion
        self.usd -= amount.usd


_QUANTITIES: dict[str, tuple[Callable[[Amount | _Sum], int], int]] = {
    "tokens": (lambda of: of.prompt + of.completion, 1),
    "prompt_tokens": (lambda of: of.prompt, 1),
    "completion_tokens": (lambda of: of.completion, 1),
    "usd": (lambda of: of.usd, PICODOLLARS),
}
"""Limited quantities but trials: the amount, and how much of it is 1 of the limit's unit."""


class Account:
    """A budget of a run, a model or a task.

    Spent is what endpoints reported, plus what is *presumed billed*: requests without an answer that may have
    been billed, each at its worst case.

    Examples
    --------
    >>> account = Account(BudgetSpec(tokens=1000))
    >>> dear = Amount(prompt=100, completion=400)
    >>> account.reserve(dear)
    >>> account.affords(dear), account.affords(Amount(100, 401))
    (True, False)
    >>> account.release(dear)
    >>> account.charge(Amount(prompt=90, completion=20))
    >>> next(line for line in account.lines() if line.name == "tokens").spent
    110.0
    """

    def __init__(self, limits: BudgetSpec, scope: BudgetScope = "run", owner: str = "") -> None:
        self.limits = limits
        self.limited = limits.limited
        self.scope: BudgetScope = scope
        self.owner = owner
        self.trials = 0
        self.in_flight = 0
        self.spent = _Sum()
        self.presumed = _Sum()
        self.held = _Sum()
        self._metered = limits.metered
        self._usd_limit: int | None = None
        if limits.usd is not None:
            whole = (Decimal(repr(limits.usd)) * PICODOLLARS).to_integral_value(ROUND_FLOOR)
            self._usd_limit = int(whole)

    def affords(self, amount: Amount) -> bool:
        """Return whether a trial of this worst case fits, with all trials in flight at theirs."""
        limit = self.limits.trials
        return (limit is None or self.trials + self.in_flight < limit) and self.has_room(amount)

    def holds(self) -> bool:
        """Return whether all in flight at their worst fit under the limits."""
        return self.has_room(NOTHING)

    def has_room(self, more: Amount) -> bool:
        """Return whether another request of this worst case fits."""
        limits = self.limits
        if not self._metered:
            return True
        prompt = self.spent.prompt + self.presumed.prompt + self.held.prompt + more.prompt
        completion = self.spent.completion + self.presumed.completion + self.held.completion + more.completion
        usd = self.spent.usd + self.presumed.usd + self.held.usd + more.usd
        return (
            (limits.tokens is None or prompt + completion <= limits.tokens)
            and (limits.prompt_tokens is None or prompt <= limits.prompt_tokens)
            and (limits.completion_tokens is None or completion <= limits.completion_tokens)
            and (self._usd_limit is None or usd <= self._usd_limit)
        )

    def unaffordable(self, trials: Sequence[Amount]) -> dict[str, tuple[float, float]]:
        """Return the limits that pay none of these trials, each with the least that one of them may take."""
        found = {}
        for name, (amount, unit) in _QUANTITIES.items():
            limit = getattr(self.limits, name)
            least = min(map(amount, trials)) / unit
            if limit is not None and least > limit:
                found[name] = limit, least
        return found

    def reserve(self, amount: Amount) -> None:
        """Count a trial as in flight, at its worst case."""
        self.in_flight += 1
        if amount is not NOTHING:
            self.held.add(amount)

    def release(self, amount: Amount) -> None:
        """Count a trial as no longer in flight."""
        self.in_flight -= 1
        if amount is not NOTHING:
            self.held.subtract(amount)

    def charge(self, amount: Amount) -> None:
        """Count a completed trial with its reported usage."""
        self.trials += 1
        if amount is not NOTHING:
            self.spent.add(amount)

    def presume_billed(self, amount: Amount, times: int = 1, *, fitted: bool = False) -> None:
        """Count requests without an answer that may have been billed: of `fitted` ones what has room."""
        for _ in range(times):
            if fitted:
                self.presumed.add(self._fitting(amount))
            else:
                self.presumed.add(amount)

    def _fitting(self, amount: Amount) -> Amount:
        """Return as much of an amount as fits under the limits."""
        prompt = min(amount.prompt, self._room("prompt_tokens"), self._room("tokens"))
        completion = min(amount.completion, self._room("completion_tokens"), self._room("tokens") - prompt)
        return Amount(prompt, completion, min(amount.usd, self._room("usd")))

    def _room(self, name: str) -> int:
        if name == "usd":
            limit = self._usd_limit
        else:
            limit = getattr(self.limits, name)
        if limit is None:
            return sys.maxsize
        of, _ = _QUANTITIES[name]
        return max(0, int(limit) - of(self.spent) - of(self.presumed))

    def lines(self, *, priced: bool = False) -> Iterator[BudgetLine]:
        """Yield the limited quantities; for a run also unlimited trials, tokens and (if `priced`) USD."""
        of_run = self.scope == "run"
        if of_run or self.limits.trials is not None:
            yield self._line("trials", self.trials, 0, self.in_flight, self.limits.trials)
        always = {"tokens": of_run, "usd": of_run and priced}
        for name, (amount, unit) in _QUANTITIES.items():
            limit = getattr(self.limits, name)
            if limit is not None or always.get(name):
                sums = (amount(self.spent), amount(self.presumed), amount(self.held))
                yield self._line(name, *sums, limit, unit)

    def _line(
        self, name: str, spent: int, presumed: int, held: int, limit: float | None, unit: int = 1
    ) -> BudgetLine:
        # Divided last: a sum of rounded amounts may come out a hair above a limit that is kept exactly.
        total = (spent + presumed) / unit
        return BudgetLine(name, total, held / unit, limit, self.scope, self.owner, presumed / unit)


@dataclass(slots=True)
class InFlightTrial:
    """A trial in flight: its question and its worst-case cost; never changed.

    It is not frozen, because a frozen instance takes three times as long to make, and every trial needs one.
    """

    task: int
    question: int
    reservation: Amount


class Budget:
    """The budgets of a run, of its models and of its tasks; never exceeded while their bounds hold.

    The bounds are a model's `max_tokens` and a task's `prompt_bounds`. If a server exceeds one, its trials
    are reserved at the observed usage from then on, and :meth:`warnings` says so.
    """

    def __init__(self, spec: SessionSpec) -> None:
        self.spec = spec
        self.run = Account(spec.budget)
        self.models = tuple(Account(model.budget, "model", model.name) for model in spec.models)
        self.tasks = tuple(Account(task.budget, "task", task.name) for task in spec.tasks)
        self.issued = 0
        self._of_tests = 0  # tokens presumed billed for tests of seeds in this session
        self._concerned: list[list[tuple[Account, ...]]] = []
        for model in self.models:
            self._concerned.append([self._limits_of(model, task) for task in self.tasks])
        self._reserving = any(account.limits.metered for account in (self.run, *self.models, *self.tasks))
        none = []
        for task in spec.tasks:
            size = 0
            if self._reserving:
                size = len(task.questions)
            none.append(array("q", bytes(8 * size)))
        self._prompt = [deepcopy(none) for _ in spec.models]
        self._beyond_prompt = [0] * len(spec.models)
        self._unanswered = 0  # requests without an answer that may have been billed
        self._most_completion = [model.max_tokens or 0 for model in spec.models]

    def _limits_of(self, model: Account, task: Account) -> tuple[Account, ...]:
        if task.limited:
            return (self.run, model, task)
        return (self.run, model)

    @property
    def completed(self) -> int:
        """Trials that have ended."""
        return self.run.trials

    def worst_case(self, model: int, task: int, question: int) -> Amount:
        """Return the worst-case cost of a request of a trial.

        After its first answer, the length of a prompt is known exactly, unless it varies from trial to trial;
        before that the spec's bound counts.
        """
        if not self._reserving:
            return NOTHING
        prompt = self._prompt[model][task][question]
        if not prompt:
            prompt = self._bound(task, question) + self._beyond_prompt[model]
        completion = self._most_completion[model] * self.spec.tasks[task].calls
        price = self.spec.models[model].price
        usd = 0
        if price is not None:
            usd = price.most(prompt, completion)
        return Amount(prompt, completion, usd)

    def _bound(self, task: int, question: int) -> int:
        bounds = self.spec.tasks[task].prompt_bounds
        if bounds is not None:
            return bounds[question]
        return 0

    def refusing(self, model: int, task: int, amount: Amount) -> Account | None:
        """Return the account that cannot afford a trial of this worst case now; None if all can."""
        for account in self._concerned[model][task]:
            if account.limited and not account.affords(amount):
                return account
        return None

    def reserve(self, model: int, task: int, amount: Amount) -> None:
        """Count a trial as issued, at its worst case."""
        self.issued += 1
        for account in self._concerned[model][task]:
            account.reserve(amount)

    def release(self, model: int, task: int, amount: Amount) -> None:
        """Release a reservation, because the trial is completed or will not run."""
        for account in self._concerned[model][task]:
            account.release(amount)

    def charge(self, model: int, trial: InFlightTrial, usage: Usage, *, answered: bool) -> Amount:
        """Replace the reservation of a completed trial by its usage, or its worst case if unknown.

        Return the cost of its answer.
        """
        task, question = trial.task, trial.question
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        amount = NOTHING
        if prompt or completion:
            price = self.spec.models[model].price
            usd = 0
            if price is not None:
                usd = price.picodollars(prompt, completion, usage.cached_tokens)
            amount = Amount(prompt, completion, usd)
        for account in self._concerned[model][task]:
            account.release(trial.reservation)
            account.charge(amount)
        longest = -(-completion // self.spec.tasks[task].calls)
        self._most_completion[model] = max(self._most_completion[model], longest)
        if not self._reserving:
            return amount
        if answered and amount is NOTHING:
            self._presume_billed(model, task, self.worst_case(model, task, question), 1)
        self._learn(model, task, question, prompt)
        return amount

    def _learn(self, model: int, task: int, question: int, prompt: int) -> None:
        if prompt:
            beyond = prompt - self._bound(task, question)
            self._beyond_prompt[model] = max(self._beyond_prompt[model], beyond)
            if not self.spec.tasks[task].prompt_varies:
                known = self._prompt[model][task]
                known[question] = max(known[question], prompt)

    def presume_billed(
        self, model: int, task: int, question: int, times: int = 1, *, fitted: bool = False
    ) -> bool:
        """Count requests that failed and may have been billed, as the spec's `usage_on_failure` says.

        Those of an earlier session `fitted` when they were sent, though the worst case may be higher by now.
        """
        self._unanswered += times
        if not self._reserving:
            return True
        amount = self.worst_case(model, task, question)
        counted = self.spec.usage_on_failure
        if counted != "presume":
            price = self.spec.models[model].price
            prompt = 0
            if counted == "prompt-only":
                prompt = amount.prompt
            amount = Amount(prompt, 0, 0 if price is None else price.most(prompt, 0))
        self._presume_billed(model, task, amount, times, fitted=fitted)
        return all(account.holds() for account in self._concerned[model][task])

    def repeat(self, model: int, task: int, question: int) -> bool:
        """Count another request of a trial at its worst case; return False if a budget has no room."""
        amount = self.worst_case(model, task, question)
        if self._reserving and not all(one.has_room(amount) for one in self._concerned[model][task]):
            return False
        self._unanswered += 1
        if self._reserving:
            self._presume_billed(model, task, amount, 1)
            self._of_tests += amount.prompt + amount.completion
        return True

    def _presume_billed(
        self, model: int, task: int, amount: Amount, times: int, *, fitted: bool = False
    ) -> None:
        for account in self._concerned[model][task]:
            account.presume_billed(amount, times, fitted=fitted)

    def spent(self, amount: Amount | _Sum) -> int:
        """Return an amount in what the run spends, tokens or picodollars; 1 in a run by trials or time."""
        if self.spec.by_cost:
            return _QUANTITIES[self.spec.spend][0](amount)
        return 1

    def in_units(self, spent: float) -> float:
        """Return what :meth:`spent` gives in tokens or USD."""
        return spent / _QUANTITIES[self.spec.spend][1]

    def mean_costs(self) -> list[float]:
        """Return what a trial of each model costs on average; 1 for all while one is not known."""
        costs = [self.spent(account.spent) / max(account.trials, 1) for account in self.models]
        if all(costs) and self.spec.by_cost:
            return costs
        return [1.0] * len(costs)

    @property
    def priced(self) -> bool:
        """Whether any model has a price."""
        return any(model.price is not None for model in self.spec.models)

    def usd(self, model: int) -> float:
        """Return the cost of a model's answers, in USD."""
        return self.models[model].spent.usd / PICODOLLARS

    def lines(self) -> tuple[BudgetLine, ...]:
        """Return all budgets with spending and reservations: the run's, then those of models and tasks."""
        others = chain.from_iterable(account.lines() for account in (*self.models, *self.tasks))
        return (*self.run.lines(priced=self.priced), *others)

    def warnings(self) -> Iterator[Coded]:
        """Yield warnings about the bounds on which the budgets rely."""
        presumed = self.run.presumed.prompt + self.run.presumed.completion
        billed = self.run.spent.prompt + self.run.spent.completion
        if self._unanswered and not presumed:
            requests = "a request"
            if self._unanswered != 1:
                requests = f"{self._unanswered:,} requests"
            yield Coded(
                "warning/unanswered",
                f"{requests} failed, or cancelled in flight, may have been billed; the tokens and costs "
                "shown are those of answers",
            )
        if presumed - self._of_tests > billed:
            yield Coded(
                "warning/usage-presumed",
                f"{presumed:,} tokens are presumed billed for requests that failed, tested seeds or reported "
                f"no usage, more than the {billed:,} that servers have reported; budget.usage_on_failure can "
                "count less for a failure (prompt-only, none)",
            )
        for spec, most, beyond in zip(
            self.spec.models, self._most_completion, self._beyond_prompt, strict=True
        ):
            if spec.max_tokens is not None and most > spec.max_tokens:
                yield Coded(
                    "warning/limit-ignored",
                    f"{spec.name} has answered with {most:,} tokens although max_tokens is "
                    f"{spec.max_tokens:,}: its server does not keep the limit, or counts wrong. A budget of "
                    "tokens or USD may have been exceeded by what was in flight then; from now on it "
                    "reserves that length",
                )
            if beyond > 0:
                yield Coded(
                    "warning/limit-ignored",
                    f"{spec.name}: the server counts {beyond:,} more prompt tokens than the prompt can have; "
                    "it adds text, which is reserved from now on",
                )
