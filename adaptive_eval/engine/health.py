"""Health of a server: rolling statistics of its answers, and whether it is available."""

import math
from collections import Counter, deque
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal, TypeAlias

from adaptive_eval.engine.clock import MINUTE, backoff
from adaptive_eval.errors import EndpointError
from adaptive_eval.store.records import FEWER_CHOICES, IMPOSSIBLE_USAGE, NO_USAGE, EndpointHealth
from adaptive_eval.trial import Completion

SEVERAL = 8
"""Outcomes that say how a server, a model or a scorer is doing: fewer may be so by chance.

So many answers before their times are compared; so many trials that fail in a row before a server is out, or
are missing before a model is stopped.
"""

KEPT = 5_000
"""Most entries of a kind that are kept of a model, so that memory does not grow with the run."""


class HealthMonitor:
    """Rolling statistics of one model at one server.

    Examples
    --------
    >>> from adaptive_eval.trial import Usage
    >>> monitor = HealthMonitor("qwen3-4b", "http://gpu1:8000/v1")
    >>> for _ in range(20):
    ...     monitor.answered(Completion("42", "stop", Usage(90, 10), latency=0.5), now=1.0)
    >>> health = monitor.health(now=11.0, in_flight=4, limit=8)
    >>> health.requests_per_second, health.tokens_per_second, round(health.p50, 1)
    (2.0, 200.0, 0.5)
    """

    def __init__(self, model: str, endpoint: str) -> None:
        self._model = model
        self._endpoint = endpoint
        self.answers = 0
        self.longest = 0.0  # seconds of the longest answer
        self.last = -math.inf  # monotonic seconds of the last answer
        self._first: float | None = None
        # when the latest answers came, how long they took, and their tokens
        self._recent: deque[tuple[float, float, int]] = deque(maxlen=KEPT)
        self._errors: Counter[str] = Counter()
        self.names: list[str] = []  # the model that the first answer names, and the first other one

    def took(self, seconds: float) -> None:
        """Note how long a reply took that counts as no answer."""
        self.longest = max(self.longest, seconds)

    def answered(self, completion: Completion, *, now: float) -> None:
        """Count an answer that came at time `now`."""
        self.answers += 1
        self.took(completion.latency)
        self.last = now
        if self._first is None:
            self._first = now
        self._recent.append((now, completion.latency, completion.paid.total_tokens))
        if completion.model and completion.model not in self.names and len(self.names) < 2:
            self.names.append(completion.model)
        if completion.impossible_usage:
            self._errors[IMPOSSIBLE_USAGE] += 1
        elif completion.usage.total_tokens == 0 and self._endpoint.startswith(
            "http"
        ):  # a function need not report
            self._errors[NO_USAGE] += 1

    def usages_lacking(self) -> Iterator[tuple[int, str]]:
        """Yield how many answers reported no tokens, or more than can be."""
        if self._errors[NO_USAGE]:
            yield self._errors[NO_USAGE], "no tokens"
        if self._errors[IMPOSSIBLE_USAGE]:
            yield self._errors[IMPOSSIBLE_USAGE], "more tokens than can be"

    def withheld(self, answers: int) -> None:
        """Count answers that were asked for and not returned."""
        if answers:
            self._errors[FEWER_CHOICES] += answers

    def failed(self, error: EndpointError) -> None:
        """Count a failed attempt."""
        self._errors[error.kind] += 1

    def health(self, *, now: float, in_flight: int, limit: int, state: str = "in") -> EndpointHealth:
        """Return the figures at time `now`."""
        recent = self._recent
        latest = now - MINUTE
        while recent and recent[0][0] <= latest:
            recent.popleft()
        since = now
        if self._first is not None:
            since = max(self._first, latest)
        if len(recent) == KEPT:
            since = recent[0][0]
        span = max(1.0, now - since)  # a rate over less than a second says nothing
        latencies = sorted(latency for _, latency, _ in recent)
        return EndpointHealth(
            model=self._model,
            endpoint=self._endpoint,
            in_flight=in_flight,
            limit=limit,
            answered=self.answers,
            requests_per_second=len(recent) / span,
            tokens_per_second=sum(tokens for _, _, tokens in recent) / span,
            p50=_percentile(latencies, 0.50),
            p95=_percentile(latencies, 0.95),
            errors=dict(self._errors),
            state=state,
        )


def _percentile(latencies: Sequence[float], share: float) -> float | None:
    """Return the smallest latency that at least `share` of the answers do not exceed."""
    if latencies:
        return latencies[math.ceil(share * len(latencies)) - 1]
    return None


State: TypeAlias = Literal["in", "probation", "out", "refused"]
"""In use; available again and on probation; out and probed; refuses this model permanently."""

_LOST = frozenset({"connection", "dropped"})
"""Failures that take a server out at once: no connection, or one that broke."""

_COUNTED = frozenset({"server", "timeout", "too_large", "malformed"})
"""Failures that take a server out when there are many: it answers, but not usefully."""


FEW = 4
"""Requests that together show that a server hangs; one that is back gets as many until it answers."""


class Presence:
    """The state of one server towards one model.

    A failed connection takes it out at once; the first probe follows without a wait. Errors, timeouts and
    unreadable answers of several consecutive trials take it out too. A server that answers a probe is on
    probation until it answers a request: it gets few requests, and one failure takes it out again, with
    longer waits between probes.

    Examples
    --------
    >>> presence = Presence()
    >>> lost = EndpointError("connection refused", kind="connection")
    >>> presence.failed(lost, "trial 7", now=100.0), presence.state, presence.probe_wait
    (True, 'out', 0.0)
    >>> presence.probed(there=False)
    >>> presence.state, presence.probe_wait
    ('out', 1.0)
    >>> presence.probed(there=True)
    >>> presence.state
    'probation'
    >>> presence.answered()
    >>> presence.state
    'in'
    """

    def __init__(self) -> None:
        self.state: State = "in"
        self.out_since: float | None = None
        self.reason = ""
        self._failed: set[Hashable] = set()
        self._probes = 0

    @property
    def usable(self) -> bool:
        """Whether requests may go there."""
        return self.state in ("in", "probation")

    @property
    def probe_wait(self) -> float:
        """Seconds to wait before the next probe."""
        return backoff(self._probes)

    @property
    def slots(self) -> float:
        """Requests that it may have in flight, as far as its presence is concerned."""
        if self.state == "in":
            return math.inf
        return FEW

    def answered(self) -> None:
        """Count an answer; one from before the server went out changes nothing."""
        if self.usable:
            self.state = "in"
            self.out_since = None
            self.reason = ""
            self._failed.clear()
            self._probes = 0

    def failed(self, error: EndpointError, trial: Hashable, *, now: float) -> bool:
        """Count a failed attempt of `trial`; return whether it takes the server out."""
        if not self.usable:
            return False
        if error.kind in _COUNTED:
            self._failed.add(trial)
        elif error.kind not in _LOST:
            return False
        if error.kind not in _LOST and self.state == "in" and len(self._failed) < SEVERAL:
            return False
        self.leave(str(error), now=now)
        return True

    def leave(self, reason: str, *, now: float) -> None:
        """Take it out."""
        self.state, self.reason = "out", reason
        self.out_since = now if self.out_since is None else self.out_since

    def refused(self, error: EndpointError) -> None:
        """Note that the server refuses this model permanently."""
        self.state = "refused"
        self.reason = str(error)

    def probed(self, *, there: bool) -> None:
        """Count a probe of a server that is out."""
        self._probes += 1
        if there and self.state == "out":
            self.state = "probation"
            self._failed.clear()
