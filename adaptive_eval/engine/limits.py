"""How many requests of a model may be in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from adaptive_eval.errors import UsageError

__all__ = ["ConcurrencyLimit", "FixedConcurrency", "Gate"]


class ConcurrencyLimit(Protocol):
    """Says how many requests may be in flight."""

    @property
    def slots(self) -> int:
        """Requests that may be in flight now, at least 1."""
        ...


@dataclass(frozen=True, slots=True)
class FixedConcurrency:
    """The same number of requests in flight for ever.

    Raises
    ------
    UsageError
        If `slots` is below 1.

    Examples
    --------
    >>> FixedConcurrency(64).slots
    64
    """

    slots: int

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise UsageError(f"concurrency is {self.slots}; it must be at least 1")


class Gate:
    """Counts a model's trials in flight and says how many more may start.

    A trial that waits before its next attempt keeps its place: a server in trouble gets fewer requests.

    Parameters
    ----------
    limit : ConcurrencyLimit
        How many may be in flight.

    Examples
    --------
    >>> gate = Gate(FixedConcurrency(2))
    >>> gate.enter()
    >>> gate.free
    1
    """

    def __init__(self, limit: ConcurrencyLimit) -> None:
        self.limit = limit
        self.in_flight = 0

    @property
    def free(self) -> int:
        """How many trials may start."""
        return max(0, self.limit.slots - self.in_flight)

    def enter(self) -> None:
        """Count a trial that starts."""
        self.in_flight += 1

    def leave(self) -> None:
        """Count a trial that has ended."""
        self.in_flight -= 1
