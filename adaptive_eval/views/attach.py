"""Watching a run from outside: its run file is read again and again, read-only."""

from __future__ import annotations

import json
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SnapshotRecord
from adaptive_eval.store.run_files import RunFiles
from adaptive_eval.views.snapshot import RunHeader, RunView, run_view, waiting_view
from adaptive_eval.views.stored import NAME, decision_from, started_at

ELSEWHERE = 300.0
"""Seconds for which a snapshot shows that a run on another host lives, whose process cannot be asked for."""


def is_running(directory: Path, age: float) -> bool:
    """Return whether a process is running the run in `directory`.

    The run's lock is not touched, since a writer that finds it taken gives up: its note says which process
    holds it, and that process is looked for.
    """
    try:
        note = json.loads(RunFiles(directory).lock.read_text(encoding="utf-8"))
        host, process = str(note["host"]), int(note["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return False  # released, or never taken
    return _exists(process) if host == socket.gethostname() else age <= ELSEWHERE


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it is there and belongs to someone else
    return True


RATE_SPAN = 15.0
"""Seconds of running time over which rates are taken."""


class Recent:
    """Keeps the snapshots of the last :data:`RATE_SPAN` seconds of running time, and the one before them.

    Examples
    --------
    >>> recent = Recent()
    >>> for second in range(60):
    ...     recent.add(SnapshotRecord(second, second, 10 * second, {}))
    >>> recent.previous.elapsed
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
    def previous(self) -> SnapshotRecord | None:
        """The snapshot to take rates from, None while there is only one."""
        return self._snapshots[0] if len(self._snapshots) > 1 else None


class Attachment:
    """Views of one run as its run file changes."""

    def __init__(
        self,
        reader: RunReader,
        clock: Callable[[], float],
        running: Callable[[Path, float], bool] = is_running,
    ) -> None:
        self._reader = reader
        self._clock = clock
        self._running = running
        meta = reader.meta()
        self._header = RunHeader(meta.get(NAME) or reader.directory.name, started_at(meta))
        self._recent = Recent()

    def view(self) -> RunView:
        """Return the view of the run as it is stored now."""
        latest = self._reader.latest_snapshot()
        if latest is None:
            return waiting_view(self._header)
        if self._recent.previous is None:
            for snapshot in self._reader.snapshots(since=latest.at - RATE_SPAN):
                self._recent.add(snapshot)
        self._recent.add(latest)
        decisions = [decision_from(record.body) for record in self._reader.decisions()]
        alive = self._running(self._reader.directory, self._clock() - latest.at)
        return run_view(self._header, latest, decisions, previous=self._recent.previous, alive=alive)

    def follow(
        self, sleep: Callable[[float], None], every: float = 0.5, *, wait_out: bool = False
    ) -> Iterator[RunView]:
        """Yield views until the run has stopped or no process runs it any more; the last one says which."""
        while True:
            view = self.view()
            yield view
            if view.state == "stopped" or (view.state == "interrupted" and not wait_out):
                return
            sleep(every)
