"""Hard limits on requests and tokens per minute, held in every minute and not only on average."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from adaptive_eval.errors import UsageError

MINUTE = 60.0

_ROUNDING = 1e-6
"""Seconds by which a timer may fire too early."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Requests and tokens allowed in a minute; None is no limit."""

    # requests; tokens of prompts and answers together
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}; it must be at least 1")


class SlidingWindow:
    """A sum that stays within `limit` over every half-open span of `span` seconds.

    An amount is reserved when its use begins and counts until the use ends; the amount used then counts for
    another `span`.

    Examples
    --------
    >>> window = SlidingWindow(100, 60.0)
    >>> window.reserve(80)
    >>> window.free(now=0.0)
    20
    >>> window.use(30, reserved=80, now=5.0)
    >>> window.free(now=5.0), window.free(now=64.9), window.free(now=65.0)
    (70, 70, 100)
    """

    def __init__(self, limit: int, span: float) -> None:
        self.limit = limit
        self.span = span
        self._reserved = 0
        self._used = 0
        self._uses: deque[tuple[float, int]] = deque()

    def free(self, now: float) -> int:
        """Return the amount free at time `now`; below 0 where more was used than reserved."""
        self._forget(now)
        return self.limit - self._used - self._reserved

    def free_at(self, amount: int, now: float) -> float:
        """Return when `amount` may be reserved: `now`, or later; infinity where uses have to end first."""
        lacking = amount - self.free(now)
        if lacking <= 0:
            return now
        for at, used in self._uses:
            lacking -= used
            if lacking <= 0:
                return at + self.span
        return math.inf

    def reserve(self, amount: int) -> None:
        """Count a use that begins, with the most that it can take."""
        self._reserved += amount

    def use(self, amount: int, *, reserved: int, now: float) -> None:
        """Replace a reservation by the amount used, at time `now`."""
        self._reserved -= reserved
        self._used += amount
        if self._uses and self._uses[-1][0] == now:
            self._uses[-1] = (now, self._uses[-1][1] + amount)
        else:
            self._uses.append((now, amount))

    def _forget(self, now: float) -> None:
        while self._uses and self._uses[0][0] + self.span <= now + _ROUNDING:
            self._used -= self._uses.popleft()[1]


class Rates:
    """Holds a rate limit.

    Requests count when they are sent, and go out evenly: of n a minute no more than n/60 in a second, or one
    in 60/n seconds. Tokens are known when the answer is there; until then the most that a request can take is
    counted.

    Examples
    --------
    >>> rates = Rates(RateLimit(requests_per_minute=120))
    >>> rates.start(0, now=0.0)
    >>> rates.start(0, now=0.0)
    >>> rates.free(0, now=0.5), rates.free_at(0, now=0.5), rates.free(0, now=1.0)
    (0.0, 1.0, 2.0)
    """

    def __init__(self, limit: RateLimit) -> None:
        self._requests: list[SlidingWindow] = []
        self._tokens: SlidingWindow | None = None
        if limit.requests_per_minute is not None:
            per_minute = limit.requests_per_minute
            burst = math.ceil(per_minute / MINUTE)
            self._requests = [
                SlidingWindow(burst, burst * MINUTE / per_minute),
                SlidingWindow(per_minute, MINUTE),
            ]
        if limit.tokens_per_minute is not None:
            self._tokens = SlidingWindow(limit.tokens_per_minute, MINUTE)

    def free(self, tokens: int, *, now: float) -> float:
        """Return how many requests of `tokens` each may start at time `now`."""
        free = [float(window.free(now)) for window in self._requests]
        if self._tokens is not None:
            free.append(self._tokens.free(now) // self._bounded(tokens))
        return max(0.0, min(free, default=math.inf))

    def free_at(self, tokens: int, *, now: float) -> float:
        """Return when a request of `tokens` may start; infinity where others have to end first."""
        times = [window.free_at(1, now) for window in self._requests]
        if self._tokens is not None:
            times.append(self._tokens.free_at(self._bounded(tokens), now))
        return max(times, default=now)

    def start(self, tokens: int, *, now: float) -> None:
        """Count a request that starts and takes `tokens` at most."""
        for window in self._requests:
            window.use(1, reserved=0, now=now)
        if self._tokens is not None:
            self._tokens.reserve(self._bounded(tokens))

    def end(self, tokens: int, used: int, *, now: float) -> None:
        """Count a request that has ended and `used` so many of its `tokens`."""
        if self._tokens is not None:
            self._tokens.use(used, reserved=self._bounded(tokens), now=now)

    def _bounded(self, tokens: int) -> int:
        """Return the reserved amount, at most all tokens of a minute."""
        assert self._tokens is not None
        return max(1, min(tokens, self._tokens.limit))
