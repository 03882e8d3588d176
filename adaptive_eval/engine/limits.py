"""Limits on requests in flight and on rates, for a model and for a server that several models share."""

import math
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from adaptive_eval.engine.clock import MINUTE
from adaptive_eval.engine.health import SEVERAL
from adaptive_eval.errors import EndpointError, TransientEndpointError
from adaptive_eval.options.limit_options import AUTO_CONCURRENCY, RateLimit, SharedLimits


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
        """Return the amount free at time `now`; below 0 if more was used than reserved."""
        self._forget(now)
        return self.limit - self._used - self._reserved

    def free_at(self, amount: int, now: float) -> float:
        """Return when `amount` may be reserved: `now`, or later; infinity if uses have to end first."""
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
        while self._uses and self._uses[0][0] + self.span <= now:
            self._used -= self._uses.popleft()[1]


class RateLimiter:
    """Holds a rate limit.

    Requests count when they are sent, and go out evenly: of n a minute no more than n/60 in a second, or one
    in 60/n seconds. Tokens are known when the answer is there; until then the most that a request can take is
    counted.

    Examples
    --------
    >>> rates = RateLimiter(RateLimit(requests_per_minute=120))
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
        if not self._requests and self._tokens is None:
            return math.inf
        free = [float(window.free(now)) for window in self._requests]
        if self._tokens is not None:
            free.append(self._tokens.free(now) // self._bounded(tokens))
        return max(0.0, min(free, default=math.inf))

    def free_at(self, tokens: int, *, now: float) -> float:
        """Return when a request of `tokens` may start; infinity if others have to end first."""
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


class ConcurrencyLimit(Protocol):
    """Says how many requests may be in flight."""

    @property
    def slots(self) -> int:
        """Requests that may be in flight now, at least 1."""


@dataclass(frozen=True, slots=True)
class FixedConcurrency:
    """A fixed number of requests in flight.

    Examples
    --------
    >>> FixedConcurrency(64).slots
    64
    """

    slots: int


class BatchRounds:
    """As many requests as the run needs by the forecast, if answers come in batches.

    A round is the lower end of the forecast's 80 % interval for the further trials, shared by the models that
    are asked: all of it is needed with about 90 %. So most rounds are large, and the last ones small.

    Examples
    --------
    >>> limit = BatchRounds(start=100)
    >>> limit.expect(trials=2400.0, models=4)
    >>> limit.slots
    600
    """

    least, most = 20, 5000

    def __init__(self, start: int = 100) -> None:
        self.slots = start

    def expect(self, trials: float, models: int) -> None:
        """Take the fewest trials that the forecast expects of so many models."""
        self.slots = min(max(math.ceil(trials / max(models, 1)), self.least), self.most)


MOST = 512
"""Requests in flight at most, unless said otherwise."""

_OVERLOAD = frozenset({"rate_limit", "timeout"})


@dataclass(slots=True)
class _Round:
    """Answers to requests that were sent since `began`."""

    began: float
    answers: int = 0
    seconds: float = 0.0
    tokens: int = 0
    busiest: int = 0

    @property
    def pace(self) -> float:
        """Seconds per token, or per answer if no tokens are reported."""
        return max(self.seconds, 1e-9) / (self.tokens or self.answers)


class AdaptiveConcurrency:
    """Additive increase, multiplicative decrease [1]_.

    The limit doubles every round (one answer per request that may be in flight) until the first sign of
    overload, then grows by 4 a round. It is halved on 429, 503 and timeouts, once for all requests that were
    in flight together. A 429 that names a time to wait delays its own request, and lowers the limit to the
    share of the latest requests that were taken, at least to half. The limit decreases, to below what it was,
    if more requests brought hardly more answers a second, the sign of a queue; and if answers take 1.25
    times as long without more requests.

    Durations are measured per token, so that long answers are not taken for overload.

    References
    ----------
    .. [1] D.-M. Chiu and R. Jain, "Analysis of the increase and decrease algorithms for congestion avoidance
       in computer networks", Computer Networks and ISDN Systems 17, 1989.

    Examples
    --------
    >>> limit = AdaptiveConcurrency(start=8)
    >>> for _ in range(8):
    ...     limit.answered(sent_at=0.0, now=1.0, tokens=100, in_flight=8)
    >>> limit.slots
    16
    >>> limit.failed(EndpointError("busy", kind="rate_limit", status=429), sent_at=1.0, now=1.5)
    >>> limit.slots
    8
    """

    step = 4.0  # requests by which the limit grows in a round, once the first sign of a limit was seen
    notable = 1.25  # rounds are compared if one had so many times the requests of the other, or took as long
    worth = 0.25  # the share of a growth by which throughput must grow: twice the requests, 25 % more answers
    back = 0.9  # of the limit before a growth in vain: so a queue that was there before becomes shorter, too

    def __init__(self, start: int = AUTO_CONCURRENCY, most: int = MOST) -> None:
        self.most = most
        self._limit = float(start)
        self._doubling = True
        self._cut_at = -math.inf
        self._taken = 1.0  # the share of the latest requests that were answered and not refused
        self._eased_until = -math.inf  # no further decrease by refusals that name a time before this one
        self._delayed: deque[float] = deque()  # when requests that were told to wait may come back
        self._round = _Round(-math.inf)
        self._before: tuple[float, float] | None = None

    @property
    def slots(self) -> int:
        """Requests that may be in flight now."""
        return int(self._limit)

    def answered(self, *, sent_at: float, now: float, tokens: int, in_flight: int) -> None:
        """Count an answer; times are monotonic seconds, `tokens` 0 if unknown."""
        self._note(1.0, now)
        this = self._round
        if sent_at < this.began:
            return
        this.answers += 1
        this.seconds += now - sent_at
        this.tokens += tokens
        this.busiest = max(this.busiest, in_flight + len(self._delayed))
        if this.answers >= max(SEVERAL, self.slots):
            self._end_round(now)

    def failed(self, error: EndpointError, *, sent_at: float, now: float) -> None:
        """Count a failure; a request sent before the last cut reports the same overload."""
        if error.kind not in _OVERLOAD and error.status != 503:
            return
        self._note(0.0, now)
        wait = None
        if isinstance(error, TransientEndpointError):
            wait = error.retry_after
        if error.kind == "rate_limit" and wait:
            self._delayed.append(now + wait)
            if now >= self._eased_until:  # once for the time that the server names
                self._eased_until = now + wait
                self._doubling = False
                self._limit = max(1.0, max(0.5, self._taken) * self._limit)
        elif sent_at >= self._cut_at:
            self._cut(0.5, now)

    def _note(self, taken: float, now: float) -> None:
        """Count one request that was taken (1) or refused (0) in the share of the latest ones."""
        while self._delayed and self._delayed[0] <= now:
            self._delayed.popleft()
        self._taken += (taken - self._taken) / max(SEVERAL, self.slots)

    def _end_round(self, now: float) -> None:
        ended = self._round
        self._round = _Round(now)
        if ended.busiest < 0.8 * self.slots:
            return  # there was less to ask: nothing is known about more
        before, pace = self._before, ended.pace
        if before is None:
            self._before = (self._limit, pace)
        else:
            growth = self._limit / before[0]
            rise = pace / before[1]
            if max(growth, rise) >= self.notable:
                if growth / rise - 1.0 < self.worth * (growth - 1.0):
                    self._cut(self.back / growth, now)
                    return
                self._before = (self._limit, pace)
        if self._doubling:
            wanted = 2 * self._limit
        else:
            wanted = self._limit + self.step
        self._limit = min(float(self.most), wanted)

    def _cut(self, factor: float, now: float) -> None:
        """Decrease the limit and restart the measurement."""
        self._limit = max(1.0, factor * self._limit)
        self._doubling = False
        self._cut_at = now
        self._round = _Round(now)
        self._before = None


UNTRIED = 2
"""Requests in flight at a server of several that has answered nothing yet: if it hangs, these are lost."""

FIRST_ANSWER = 10.0
"""Seconds for which few requests are sent before a first answer shows that they are well spent."""


class Server:
    """Counts the requests in flight at one server, and how many more may start.

    Examples
    --------
    >>> server = Server("http://gpu1:8000/v1", SharedLimits(concurrency=2))
    >>> server.enter(tokens=0, now=0.0)
    >>> server.free(tokens=0, now=0.0)
    1
    """

    def __init__(self, url: str, limits: SharedLimits) -> None:
        self.url = url
        self.concurrency: ConcurrencyLimit | None = None
        if limits.concurrency == "auto":
            self.concurrency = AdaptiveConcurrency()
        elif limits.concurrency is not None:
            self.concurrency = FixedConcurrency(limits.concurrency)
        self.rates = RateLimiter(limits.rate_limit or RateLimit())
        self.in_flight = 0
        self.first_at = math.inf  # monotonic seconds when it got its first request
        self.answered = False  # whether any model has had an answer from it
        self.silent_since: float | None = None  # monotonic seconds when requests were found to hang there
        self.prove_at = -math.inf  # when one more request may show that it answers again

    @property
    def slots(self) -> float:
        """Requests that may be in flight, infinity if nothing bounds them."""
        if self.concurrency is None:
            return math.inf
        return self.concurrency.slots

    @property
    def adaptive(self) -> AdaptiveConcurrency | None:
        """The limit that learns from how requests go, if it is one."""
        if isinstance(self.concurrency, AdaptiveConcurrency):
            return self.concurrency
        return None

    @property
    def silent(self) -> bool:
        """Whether requests hung there, and it has answered nothing since."""
        return self.silent_since is not None

    def fall_silent(self, now: float) -> None:
        """Note that requests hang there."""
        if self.silent_since is None:
            self.silent_since, self.prove_at = now, -math.inf

    def heard(self) -> None:
        """Note that it has answered a request."""
        self.answered, self.silent_since = True, None

    def not_proven(self, now: float, longest: float) -> None:
        """Note that it did not reply to a request that was to show that it answers again.

        Each may have been billed, so the next follows after as long a silence again, or the `longest` wait.
        """
        self.prove_at = now + min(now - (self.silent_since or now), longest)

    def place(self, now: float) -> tuple[bool, int]:
        """Its place among servers that are free: the first has the fewest requests in flight."""
        return self.untried(now) and self.in_flight >= UNTRIED, self.in_flight

    def untried(self, now: float) -> bool:
        """Whether it has answered nothing yet: it may hang, so it gets few trials, for some seconds."""
        return not self.answered and now - self.first_at <= FIRST_ANSWER

    def free(self, tokens: int, *, now: float) -> float:
        """Return how many requests of `tokens` each may start at time `now`."""
        return max(0, min(self.slots - self.in_flight, self.rates.free(tokens, now=now)))

    def enter(self, tokens: int, *, now: float) -> None:
        """Count a request that starts and takes `tokens` at most."""
        self.in_flight += 1
        self.first_at = min(self.first_at, now)
        self.rates.start(tokens, now=now)

    def leave(self, tokens: int, used: int, *, now: float) -> None:
        """Count a request that has ended and `used` so many of its `tokens`."""
        self.in_flight -= 1
        self.rates.end(tokens, used, now=now)
