"""Which request meets which fault: a plan that counts requests and hashes attempts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from adaptive_eval.mock_server.draws import Stream
from adaptive_eval.mock_server.mock_spec import FaultSpec

__all__ = ["FaultPlan"]


class FaultPlan:
    """The faults of one model, or of the whole server.

    Examples
    --------
    >>> plan = FaultPlan([FaultSpec(kind="drop", attempts=1)], seed=0)
    >>> [fault and fault.kind for fault in (plan.strike("a"), plan.strike("b"), plan.strike("a"))]
    ['drop', 'drop', None]
    """

    def __init__(self, faults: Sequence[FaultSpec], seed: int, scope: str = "") -> None:
        self.faults = tuple(faults)
        self._seed = seed
        self._scope = scope
        self._requests = 0
        self._attempts: Counter[str] = Counter()
        self._struck: defaultdict[str, int] = defaultdict(int)

    @property
    def struck(self) -> dict[str, int]:
        """How many requests met each kind of fault."""
        return dict(self._struck)

    def strike(self, request: str) -> FaultSpec | None:
        """Count one more attempt at `request` and return the fault that it meets."""
        if not self.faults:
            return None
        self._requests += 1
        self._attempts[request] += 1
        attempt = self._attempts[request]
        for index, fault in enumerate(self.faults):
            if self._strikes(fault, index, request, attempt):
                self._struck[fault.kind] += 1
                return fault
        return None

    def _strikes(self, fault: FaultSpec, index: int, request: str, attempt: int) -> bool:
        if fault.probability is not None:
            stream = Stream(self._seed, "fault", self._scope, index, request)
            return stream.toss(attempt).coin < fault.probability
        if fault.first is not None:
            return self._requests <= fault.first
        if fault.requests is not None:
            low, high = fault.requests
            return low <= self._requests <= high
        if fault.every is not None:
            return self._requests % fault.every == 0
        if fault.attempts is not None:
            return attempt <= fault.attempts
        return True
