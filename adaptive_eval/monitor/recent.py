"""The recent past of a run, over which rates are taken."""

from __future__ import annotations

from collections import deque

from adaptive_eval.store.records import SnapshotRecord

__all__ = ["RATE_SPAN", "Recent"]

RATE_SPAN = 15.0
"""Seconds of running time over which rates are taken."""


class Recent:
    """Keeps the snapshots of the last :data:`RATE_SPAN` seconds of running time, and the one before them.

    Examples
    --------
    >>> recent = Recent()
    >>> for second in range(60):
    ...     recent.add(SnapshotRecord(second, second, 10 * second, {}))
    >>> recent.earlier.elapsed
    44
    """

    def __init__(self) -> None:
        self._snapshots: deque[SnapshotRecord] = deque()

    def add(self, snapshot: SnapshotRecord) -> None:
        """Take in a snapshot; one that is not newer than the last is ignored."""
        if self._snapshots and snapshot.at <= self._snapshots[-1].at:
            return
        self._snapshots.append(snapshot)
        start = snapshot.elapsed - RATE_SPAN
        while len(self._snapshots) > 2 and self._snapshots[1].elapsed <= start:
            self._snapshots.popleft()

    @property
    def earlier(self) -> SnapshotRecord | None:
        """The snapshot to take rates from, None while there is only one."""
        return self._snapshots[0] if len(self._snapshots) > 1 else None
