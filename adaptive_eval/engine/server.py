"""What one server may be sent, by all the models that it serves together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from adaptive_eval.engine.adaptive import AdaptiveConcurrency
from adaptive_eval.engine.limits import ConcurrencyLimit
from adaptive_eval.engine.rates import RateLimit, Rates
from adaptive_eval.errors import EndpointError

__all__ = ["Server", "ServerLimits", "Servers"]


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits of a server.

    Parameters
    ----------
    concurrency : ConcurrencyLimit, optional
        Requests in flight; without it the limits of the models alone hold. An
        :class:`~adaptive_eval.engine.adaptive.AdaptiveConcurrency` learns from how they go.
    rate : RateLimit
        Requests and tokens a minute.
    """

    concurrency: ConcurrencyLimit | None = None
    rate: RateLimit = field(default_factory=RateLimit)


class Server:
    """Counts what is in flight at one server, and says how much more may start.

    Parameters
    ----------
    url : str
        Its base address.
    limits : ServerLimits, optional
        Default: none.

    Examples
    --------
    >>> from adaptive_eval.engine.limits import FixedConcurrency
    >>> server = Server("http://gpu1:8000/v1", ServerLimits(FixedConcurrency(2)))
    >>> server.enter(tokens=0, now=0.0)
    >>> server.free(tokens=0, now=0.0)
    1
    """

    def __init__(self, url: str, limits: ServerLimits | None = None) -> None:
        limits = limits or ServerLimits()
        self.url = url
        self.concurrency = limits.concurrency
        self.rates = Rates(limits.rate)
        self.in_flight = 0

    @property
    def slots(self) -> float:
        """Requests that may be in flight, infinity where nothing bounds them."""
        return math.inf if self.concurrency is None else self.concurrency.slots

    @property
    def adaptive(self) -> AdaptiveConcurrency | None:
        """The limit that learns from how requests go, where it is one."""
        return self.concurrency if isinstance(self.concurrency, AdaptiveConcurrency) else None

    def answered(self, *, sent_at: float, now: float, tokens: int) -> None:
        """Take note of an answer, before its request is counted as ended."""
        if self.adaptive is not None:
            self.adaptive.answered(sent_at=sent_at, now=now, tokens=tokens, in_flight=self.in_flight)

    def failed(self, error: EndpointError, *, sent_at: float, now: float) -> None:
        """Take note of a failure."""
        if self.adaptive is not None:
            self.adaptive.failed(error, sent_at=sent_at, now=now)

    def free(self, tokens: int, *, now: float) -> float:
        """Return how many requests of `tokens` each may start at time `now`."""
        return max(0, min(self.slots - self.in_flight, self.rates.room(tokens, now=now)))

    def enter(self, tokens: int, *, now: float) -> None:
        """Count a request that starts and takes `tokens` at most."""
        self.in_flight += 1
        self.rates.start(tokens, now=now)

    def leave(self, tokens: int, used: int, *, now: float) -> None:
        """Count a request that has ended and `used` so many of its `tokens`."""
        self.in_flight -= 1
        self.rates.end(tokens, used, now=now)


class Servers:
    """All servers of a run by their address; models that name the same address share the server.

    Parameters
    ----------
    limits : mapping of str to ServerLimits
        Limits by address.

    Examples
    --------
    >>> servers = Servers({})
    >>> servers.at("http://gpu1:8000/v1") is servers.at("http://gpu1:8000/v1")
    True
    """

    def __init__(self, limits: Mapping[str, ServerLimits]) -> None:
        self._limits = limits
        self._known: dict[str, Server] = {}

    def at(self, url: str, limits: Callable[[], ServerLimits] = ServerLimits) -> Server:
        """Return the server at `url`; one that is new and has no limits gets `limits`."""
        if url not in self._known:
            self._known[url] = Server(url, self._limits.get(url) or limits())
        return self._known[url]
