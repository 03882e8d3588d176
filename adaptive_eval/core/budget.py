"""Budgets: the worst case of a trial is reserved when it is issued and released when it is completed."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import chain

from adaptive_eval.core.account import NOTHING, PICODOLLARS, Account, Amount
from adaptive_eval.core.model_states import InFlightTrial
from adaptive_eval.core.results import BudgetLine
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import Coded
from adaptive_eval.trial import Usage


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
        self._concerned = [
            [(self.run, model, *([task] if task.limits.limited else [])) for task in self.tasks]
            for model in self.models
        ]
        self._limiting = [
            [[account for account in accounts if account.limits.limited] for accounts in of_model]
            for of_model in self._concerned
        ]
        self._reserving = any(account.limits.metered for account in (self.run, *self.models, *self.tasks))
        sizes = [len(task.questions) if self._reserving else 0 for task in spec.tasks]
        self._prompt = [[array("q", bytes(8 * size)) for size in sizes] for _ in spec.models]
        self._beyond_prompt = [0] * len(spec.models)
        self._most_completion = [model.max_tokens or 0 for model in spec.models]

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
        return Amount(prompt, completion, 0 if price is None else price.most(prompt, completion))

    def _bound(self, task: int, question: int) -> int:
        bounds = self.spec.tasks[task].prompt_bounds
        return bounds[question] if bounds is not None else 0

    def refusing(self, model: int, task: int, amount: Amount) -> Account | None:
        """Return the account that cannot afford a trial of this worst case now; None if all can."""
        for account in self._limiting[model][task]:
            if not account.affords(amount):
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

    def charge(self, model: int, trial: InFlightTrial, usage: Usage, *, answered: bool) -> None:
        """Replace the reservation of a completed trial by its usage, or its worst case if unknown."""
        task, question = trial.task, trial.question
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        amount = NOTHING
        if prompt or completion:
            price = self.spec.models[model].price
            usd = 0 if price is None else price.picodollars(prompt, completion, usage.cached_tokens)
            amount = Amount(prompt, completion, usd)
        for account in self._concerned[model][task]:
            account.release(trial.reservation)
            account.charge(amount)
        if not self._reserving:
            return
        if answered and amount is NOTHING:
            self._presume_billed(model, task, self.worst_case(model, task, question), 1)
        self._learn(model, task, question, usage)

    def _learn(self, model: int, task: int, question: int, usage: Usage) -> None:
        prompt = usage.prompt_tokens
        if prompt:
            beyond = prompt - self._bound(task, question)
            self._beyond_prompt[model] = max(self._beyond_prompt[model], beyond)
            if not self.spec.tasks[task].prompt_varies:
                known = self._prompt[model][task]
                known[question] = max(known[question], prompt)
        longest = -(-usage.completion_tokens // self.spec.tasks[task].calls)
        self._most_completion[model] = max(self._most_completion[model], longest)

    def presume_billed(self, model: int, task: int, question: int, times: int = 1) -> bool:
        """Count requests that failed and may have been billed, as the spec's `usage_on_failure` says."""
        if not self._reserving:
            return True
        amount, counted = self.worst_case(model, task, question), self.spec.usage_on_failure
        if counted != "presume":
            price = self.spec.models[model].price
            prompt = amount.prompt if counted == "prompt-only" else 0
            amount = Amount(prompt, 0, 0 if price is None else price.most(prompt, 0))
        self._presume_billed(model, task, amount, times)
        return all(account.holds() for account in self._concerned[model][task])

    def _presume_billed(self, model: int, task: int, amount: Amount, times: int) -> None:
        for account in self._concerned[model][task]:
            account.presume_billed(amount, times)

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
        if not self._reserving:
            return
        presumed = self.run.presumed.prompt + self.run.presumed.completion
        billed = self.run.spent.prompt + self.run.spent.completion
        if presumed > billed:
            yield Coded(
                "warning/usage-presumed",
                f"{presumed:,} tokens are presumed billed for requests that failed or reported no usage, "
                f"more than the {billed:,} that servers have reported; budget.usage_on_failure can count "
                "less for a failure (prompt-only, none)",
            )
        for spec, most, beyond in zip(
            self.spec.models, self._most_completion, self._beyond_prompt, strict=True
        ):
            if spec.max_tokens is not None and most > spec.max_tokens:
                yield Coded(
                    "warning/limit-ignored",
                    f"{spec.name} has answered with {most:,} tokens although max_tokens is "
                    f"{spec.max_tokens:,}: its server does not keep the limit that budgets rest on, so what "
                    "was in flight then may have exceeded one; from now on that length is reserved",
                )
            if beyond > 0:
                yield Coded(
                    "warning/limit-ignored",
                    f"{spec.name}: the server counts {beyond:,} more prompt tokens than the prompt can have; "
                    "it adds text, which is reserved from now on",
                )
