"""Which attempts gave up a draw: the ledger of discarded samples between engine and session.

A trial's outcome is its first draw. An attempt of which the server may have begun to answer, and whose
answer is not the trial's, has discarded that draw, maybe because it took long or for what it said: another
draw in its place would be chosen by its content. So the causes are recorded with the trial, and for verdicts
it is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from adaptive_eval.store.records import CANCELLED, FEWER_CHOICES, KILLED, AttemptRecord
from adaptive_eval.trial import DiscardCause

_ALWAYS: Mapping[str, DiscardCause] = {
    "timeout": "timeout",
    "dropped": "connection",
    "malformed": "server",
    "too_large": "server",
    "aborted": "server",
    FEWER_CHOICES: "server",
    "worker": "killed",
    KILLED: "killed",
    CANCELLED: "killed",
}
"""Kinds of failure after which the server may have begun to answer, whenever they came."""

_NEVER = frozenset({"rate_limit", "connection", "expired"})
"""Kinds of failure of requests that were never sent or never carried out."""


def cause_of(kind: str, status: int | None, latency: float, fastest: float | None) -> DiscardCause | None:
    """Return why a failed attempt may have given up a draw; None if it has not.

    Parameters
    ----------
    kind : str
        Kind of failure.
    status : int or None
        HTTP status. One that came faster than this server has ever answered says nothing about an answer; a
        later one may be a gateway's word for an answer that was cut in the middle.
    latency : float
        Seconds after which it failed.
    fastest : float or None
        Seconds of the fastest answer of this server so far; None before its first one.

    Examples
    --------
    >>> cause_of("server", 504, 60.0, fastest=2.0), cause_of("server", 503, 0.1, fastest=2.0)
    ('server', None)
    >>> cause_of("dropped", None, 0.1, fastest=2.0), cause_of("rate_limit", 429, 9.0, fastest=2.0)
    ('connection', None)
    """
    if kind in _NEVER:
        return None
    if status is None:
        return _ALWAYS.get(kind)
    begun = fastest is not None and latency >= fastest
    if not begun:
        return None
    if kind == "timeout":
        return "timeout"
    return "server"


@dataclass
class Discards:
    """How fast each server has answered so far, and with it which attempts gave up a draw."""

    fastest: dict[str, float] = field(default_factory=dict)  # seconds, by address

    def answered(self, server: str, latency: float) -> None:
        """Note an answer."""
        self.fastest[server] = min(latency, self.fastest.get(server, latency))

    def causes(
        self, attempts: Iterable[AttemptRecord], servers: Collection[str], *, batched: bool = False
    ) -> list[DiscardCause]:
        """Return why failed attempts of a trial gave up a draw, one cause for each that did.

        A server that has not answered yet is judged by the other `servers` of its model. If requests are
        `batched`, those of a killed process keep their answers or were never sent, and a status says nothing
        about time.
        """
        known = [self.fastest[server] for server in servers if server in self.fastest]
        found = []
        for attempt in attempts:
            if batched and attempt.error in (KILLED, CANCELLED):
                continue
            fastest = self.fastest.get(attempt.endpoint, min(known, default=None))
            if batched:
                fastest = 0.0
            cause = cause_of(attempt.error or "", attempt.status, attempt.latency, fastest)
            if cause is not None:
                found.append(cause)
        return found
