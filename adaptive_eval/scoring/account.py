"""What a scorer that asks another model may spend, and has spent: its own line beside the run's budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from types import MappingProxyType

from adaptive_eval.trial import Usage

__all__ = ["AllowanceSpent", "ScorerAccount", "ScorerLine", "Spent"]

_NOTHING: Mapping[str, float] = MappingProxyType({})


class AllowanceSpent(Exception):
    """A request would go beyond the scorer's own budget; the message says which."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Requests that were answered, or may have been billed without an answer, with their tokens."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and answer tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    def __mul__(self, times: int) -> Spent:
        return Spent(self.requests * times, self.prompt_tokens * times, self.completion_tokens * times)


@dataclass(frozen=True, slots=True)
class ScorerLine:
    """One budget of a scorer: ``requests``, ``tokens`` or ``usd``; `limit` is None without one."""

    unit: str
    spent: float
    limit: float | None


class ScorerAccount:
    """Counts what a scorer's requests cost and refuses what would exceed its budget; for many threads.

    A request that may have been billed although no answer came of it, or no report of tokens, is counted at
    its worst. What it cost is put on the bill of the next answer, since a run file keeps the bills alone.

    Parameters
    ----------
    limits : mapping of str to float, optional
        Most ``requests``, ``tokens`` and ``usd``; what is left out or None has no limit.
    price : mapping of str to float, optional
        USD per million tokens, ``input`` and ``output``.

    Examples
    --------
    >>> account = ScorerAccount({"tokens": 1000}, {"input": 1.0, "output": 2.0})
    >>> worst = Spent(1, 400, 100)
    >>> account.reserve(worst)
    >>> account.charge(worst, Usage(300, 20))
    Spent(requests=1, prompt_tokens=300, completion_tokens=20)
    >>> account.room(worst), account.spent.tokens
    (1, 320)
    """

    def __init__(
        self, limits: Mapping[str, float | None] | None = None, price: Mapping[str, float] | None = None
    ) -> None:
        self._limits = {unit: limit for unit, limit in (limits or _NOTHING).items() if limit is not None}
        self._price = price
        self._lock = Lock()
        self._reserved = Spent()
        self._unbilled = Spent()
        self.spent = Spent()

    def usd(self, spent: Spent) -> float:
        """Return what tokens cost, 0 without a price."""
        if self._price is None:
            return 0.0
        cost = spent.prompt_tokens * self._price["input"] + spent.completion_tokens * self._price["output"]
        return cost / 1e6

    def reserve(self, worst: Spent) -> None:
        """Set aside what a request may cost at most.

        Raises
        ------
        AllowanceSpent
            If that could exceed a limit, all requests that are out at their worst.
        """
        with self._lock:
            total = self.spent + self._reserved + worst
            for unit, limit in self._limits.items():
                if self._amount(unit, total) > limit + 5e-9:  # sums of floats
                    raise AllowanceSpent(f"its budget of {limit:g} {unit} is used up")
            self._reserved = self._reserved + worst

    def charge(self, worst: Spent, usage: Usage | None) -> Spent:
        """Release a reservation, and count and return what the request is held to have used.

        Parameters
        ----------
        worst : Spent
            What was reserved.
        usage : Usage or None
            What was reported; None where the request may have been billed and nothing is known.
        """
        if usage is not None and usage.total_tokens:
            used = Spent(1, usage.prompt_tokens, usage.completion_tokens)
        else:  # without a budget of tokens or money a bound would only be a wrong figure
            used = worst if self._limits.keys() & {"tokens", "usd"} else Spent(1)
        with self._lock:
            self._reserved = self._reserved + worst * -1
            self.spent = self.spent + used
        return used

    def release(self, worst: Spent) -> None:
        """Release the reservation of a request that has cost nothing."""
        with self._lock:
            self._reserved = self._reserved + worst * -1

    def leave(self, spent: Spent) -> None:
        """Keep what was spent on an answer that gets no bill now, for the bill of another one."""
        with self._lock:
            self._unbilled = self._unbilled + spent

    def take(self) -> Spent:
        """Return what was left for the next bill."""
        with self._lock:
            left, self._unbilled = self._unbilled, Spent()
        return left

    def resume(self, spent: Spent) -> None:
        """Begin with what an earlier sitting has spent."""
        with self._lock:
            self.spent = replace(spent)

    def room(self, worst: Spent) -> int | None:
        """Return how often `worst` fits into what is left, requests that are out left aside; None: always."""
        rooms = [
            (limit + 5e-9 - self._amount(unit, self.spent)) / amount
            for unit, limit in self._limits.items()
            if (amount := self._amount(unit, worst)) > 0.0
        ]
        return max(0, int(min(rooms))) if rooms else None

    def lines(self) -> tuple[ScorerLine, ...]:
        """Return what is spent of every unit; USD where there is a price."""
        units = ("requests", "tokens", *(("usd",) if self._price is not None else ()))
        return tuple(
            ScorerLine(unit, self._amount(unit, self.spent), self._limits.get(unit)) for unit in units
        )

    def _amount(self, unit: str, spent: Spent) -> float:
        if unit == "usd":
            return self.usd(spent)
        return float(spent.requests if unit == "requests" else spent.tokens)
