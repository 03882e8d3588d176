"""Whether a server is there: a pure decision from how its requests and its probes go."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, TypeAlias

from adaptive_eval.errors import EndpointError

__all__ = ["Presence", "State"]

State: TypeAlias = Literal["in", "trial", "out", "refused"]
"""In use; back, and on trial until its first answer; out, and probed; refuses this model for good."""

FAILURES = 8
"""So many trials that fail one after the other, with no answer in between, take a server out."""

PLACES_ON_TRIAL = 4
"""Requests that a server on trial may have in flight."""

_LONGEST_WAIT = 30.0
"""Most seconds between two probes of a server that is out."""

_LOST = frozenset({"connection", "dropped"})
"""Failures that take a server out at once: no connection, or one that broke."""

_COUNTED = frozenset({"server", "timeout"})
"""Failures that take a server out when there are many: it is there, and does not do its work."""


class Presence:
    """The state of one server towards one model.

    A failed connection takes it out at once: where it was nothing, the first probe, which follows without a
    wait, brings it back. Errors and timeouts of several trials in a row take it out as well. A server that
    is back is on trial until it has answered: it gets few requests, and one failure takes it out again, with
    longer waits between the probes each time.

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
    'trial'
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
        return self.state in ("in", "trial")

    @property
    def probe_wait(self) -> float:
        """Seconds to wait before the next probe: none at first, then 1, 2, 4, up to half a minute."""
        return 0.0 if self._probes == 0 else min(_LONGEST_WAIT, 2.0 ** (self._probes - 1))

    def answered(self) -> None:
        """Take note of an answer; one that was under way when the server went out changes nothing."""
        if self.usable:
            self.state, self.out_since, self.reason = "in", None, ""
            self._failed.clear()
            self._probes = 0

    def failed(self, error: EndpointError, trial: Hashable, *, now: float) -> bool:
        """Take note of a failed attempt; return whether the server has gone out with it.

        Parameters
        ----------
        error : EndpointError
            How it failed.
        trial : hashable
            Whose attempt it was: one question that no server can answer is counted once.
        now : float
            Monotonic seconds.
        """
        if not self.usable:
            return False
        if error.kind in _COUNTED:
            self._failed.add(trial)
        elif error.kind not in _LOST:
            return False
        if error.kind not in _LOST and self.state == "in" and len(self._failed) < FAILURES:
            return False
        self.state, self.reason = "out", str(error)
        self.out_since = now if self.out_since is None else self.out_since
        return True

    def refused(self, error: EndpointError) -> None:
        """Take note that the server will never answer for this model."""
        self.state, self.reason = "refused", str(error)

    def probed(self, *, there: bool) -> None:
        """Take note of a probe of a server that is out."""
        self._probes += 1
        if there and self.state == "out":
            self.state = "trial"
            self._failed.clear()
