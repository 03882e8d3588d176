"""One budget as an account: its limits, what is spent, and what is reserved for trials in flight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

from adaptive_eval.core.results import BudgetLine, BudgetScope
from adaptive_eval.core.spec import BudgetSpec

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

    def take(self, amount: Amount) -> None:
        self.prompt -= amount.prompt
        self.completion -= amount.completion
        self.usd -= amount.usd


_QUANTITIES: dict[str, tuple[Callable[[_Sum], int], int]] = {
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

    __slots__ = (
        "_metered",
        "_usd_limit",
        "held",
        "in_flight",
        "limits",
        "owner",
        "presumed",
        "scope",
        "spent",
        "trials",
    )

    def __init__(self, limits: BudgetSpec, scope: BudgetScope = "run", owner: str = "") -> None:
        self.limits = limits
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
        return (limit is None or self.trials + self.in_flight < limit) and self._fits(amount)

    def holds(self) -> bool:
        """Return whether all in flight at their worst fit under the limits."""
        return self._fits(NOTHING)

    def _fits(self, more: Amount) -> bool:
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

    def reserve(self, amount: Amount) -> None:
        """Count a trial as in flight, at its worst case."""
        self.in_flight += 1
        if amount is not NOTHING:
            self.held.add(amount)

    def release(self, amount: Amount) -> None:
        """Count a trial as no longer in flight."""
        self.in_flight -= 1
        if amount is not NOTHING:
            self.held.take(amount)

    def charge(self, amount: Amount) -> None:
        """Count a completed trial with its reported usage."""
        self.trials += 1
        if amount is not NOTHING:
            self.spent.add(amount)

    def presume_billed(self, amount: Amount, times: int = 1) -> None:
        """Count requests without an answer that may have been billed."""
        for _ in range(times):
            self.presumed.add(amount)

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
