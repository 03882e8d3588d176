"""Reads summaries from a run file: once for a report, or repeatedly while the run asks."""

from __future__ import annotations

import json
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from adaptive_eval.core.results import Decision, Results, StopVerdict, from_json
from adaptive_eval.errors import RunFileError
from adaptive_eval.store.codec import moment
from adaptive_eval.store.file_errors import decoding
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SnapshotRecord, TargetLookup
from adaptive_eval.store.run_files import RUN_FILE, RunFiles
from adaptive_eval.trial import LAID_OUT
from adaptive_eval.views.details import NAME, STARTED_AT, read_details
from adaptive_eval.views.summary import RunHeader, RunSummary, summary_at, waiting_summary

if TYPE_CHECKING:
    from pydantic import TypeAdapter

ELSEWHERE = 300.0
"""Seconds for which a snapshot shows that a run on another host lives, whose process cannot be asked for."""


def is_running(directory: Path, age: float) -> bool:
    """Return whether a process is running the run in `directory`.

    The run's lock is not touched, since a writer that finds it taken gives up: its note says which process
    holds it, and that process is looked for.
    """
    try:
        note = json.loads(RunFiles(directory).lock.read_text(encoding="utf-8"))
        host = str(note["host"])
        process = int(note["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return False  # released, or never taken
    if host == socket.gethostname():
        return _exists(process)
    return age <= ELSEWHERE


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it is there and belongs to someone else
    return True


def files_mark(directory: Path) -> object:
    """Return what changes whenever the run file does."""
    marks: list[object] = []
    for path in (RunFiles(directory).database, RunFiles(directory).wal):
        try:
            status = path.stat()
        except OSError:
            marks.append(None)
        else:
            marks.append((status.st_ino, status.st_mtime_ns, status.st_size))
    return marks


MOST_REPLAYED = 100_000
"""Trials up to which a report is made again from them; ``validate`` and ``check`` replay any number."""

RATE_SPAN = 15.0
"""Seconds of running time over which rates are taken."""


class Seen:
    """A run as it has been seen so far: its decisions, and the snapshots from which rates are taken.

    Those are the ones of the last :data:`RATE_SPAN` seconds of running time, and the one before them.

    Examples
    --------
    >>> seen = Seen(RunHeader("demo"))
    >>> for second in range(60):
    ...     seen.add(SnapshotRecord(second, second, 10 * second, {}))
    >>> seen.previous.elapsed
    44
    """

    def __init__(self, header: RunHeader) -> None:
        self._header = header
        self.decisions: list[Decision] = []
        self._times: list[float] = []
        self._snapshots: deque[SnapshotRecord] = deque()

    def decide(self, at: float, decisions: Sequence[Decision]) -> None:
        """Take in decisions."""
        self.decisions += decisions
        self._times += [at] * len(decisions)

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
        if len(self._snapshots) > 1:
            return self._snapshots[0]
        return None

    def summary(self, snapshot: SnapshotRecord | None, *, alive: bool = True) -> RunSummary:
        """Take in a snapshot, and return the summary of the run at it."""
        if snapshot is None:
            return waiting_summary(self._header)
        self.add(snapshot)
        return summary_at(
            self._header,
            snapshot,
            self.decisions,
            times=self._times,
            previous=self.previous,
            alive=alive,
        )


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a run's trials lead to, results as JSON-able data, and where what is stored says otherwise."""

    results: Mapping[str, Any]
    decisions: tuple[Decision, ...]
    disagreements: tuple[str, ...]


Replaying: TypeAlias = Callable[[RunReader], Replayed | None]
"""Makes a run again from its trials; None where there are too many to do so for a report."""


@dataclass(eq=False)
class Attachment:
    """Summaries of one run as its run file changes."""

    reader: RunReader
    clock: Callable[[], float]
    running: Callable[[Path, float], bool] = is_running

    def __post_init__(self) -> None:
        self._seen = Seen(header_of(self.reader))

    def summary(self) -> RunSummary:
        """Return the summary of the run as it is stored now, without details."""
        with decoding(self.reader.directory / RUN_FILE):  # what cannot be read as results is damage
            return self._summary()

    def _summary(self) -> RunSummary:
        latest = self.reader.latest_snapshot()
        if latest is None:
            return self._seen.summary(None)
        if self._seen.previous is None:
            for snapshot in self.reader.snapshots(since=latest.at - RATE_SPAN):
                self._seen.add(snapshot)
        for record in self.reader.decisions(since=len(self._seen.decisions)):  # a large board has thousands
            self._seen.decide(record.at, [decision_from(record.body)])
        alive = self.running(self.reader.directory, self.clock() - latest.at)
        summary = self._seen.summary(latest, alive=alive)
        require_described(summary.results.stop)
        return summary

    def follow(
        self, sleep: Callable[[float], None], every: float = 0.5, *, wait_out: bool = False
    ) -> Iterator[RunSummary]:
        """Yield summaries until the run has stopped or no process runs it; the last one says which."""
        while True:
            summary = self.summary()
            yield summary
            if summary.state == "stopped" or (summary.state == "interrupted" and not wait_out):
                return
            is_unheld = summary.state == "waiting" and not self.running(self.reader.directory, 0.0)
            if is_unheld and not wait_out:
                return  # its process has ended before it stored any results
            sleep(every)


def summarise(
    reader: RunReader,
    *,
    examples_with: TargetLookup | None = None,
    replay: Replaying | None = None,
) -> RunSummary:
    """Return the summary of a run with all details.

    With `examples_with`, which knows the expected answers, it has a few answers. With `replay` it says what
    the trials lead to, where what is stored disagrees.
    """
    summary = Attachment(reader, time.time).summary()
    if summary.state == "waiting":
        raise RunFileError(
            f"{reader.directory} has no results to report yet. Start or continue the run, and report when "
            "it has asked its first questions",
            code="run/no-results",
        )
    if replay is not None:
        summary = as_trials_say(reader, summary, replay)
    with decoding(reader.directory / RUN_FILE):
        details = read_details(reader, summary.results, examples_with=examples_with)
    return replace(summary, details=details)


def as_trials_say(reader: RunReader, summary: RunSummary, replay: Replaying) -> RunSummary:
    """Return the summary if the trials lead to it, else that to which they lead, with a warning."""
    latest = reader.latest_snapshot()
    trials = reader.count()
    if latest is None or not trials:
        return summary
    made = replay(reader)
    if made is None:
        return _warned(summary, _not_replayed(trials))
    if not made.disagreements:
        return summary
    from_trials = summary_at(
        header_of(reader),
        replace(latest, results=made.results),
        made.decisions,
        times=[latest.at] * len(made.decisions),
        alive=summary.state == "running",
    )
    return _warned(from_trials, disagreeing(made.disagreements))


def _warned(summary: RunSummary, words: str) -> RunSummary:
    results = replace(summary.results, warnings=(words, *summary.results.warnings))
    return replace(summary, results=results)


def _not_replayed(trials: int) -> str:
    return (
        f"not replayed: these are the stored results, and whether the {trials:,} trials lead to them is what "
        "adaptive-eval validate says"
    )


DISAGREE = "the stored results are not those that the trials lead to"


def disagreeing(disagreements: Sequence[str]) -> str:
    """Say that what is shown is made from the trials, since the stored results say otherwise."""
    others = ""
    if len(disagreements) > 1:
        others = f" and {len(disagreements) - 1:,} more"
    return f"{DISAGREE}, which are shown here ({disagreements[0]}{others}); adaptive-eval validate names all"


def stored_results(reader: RunReader) -> Results | None:
    """Return the latest stored results, None if there are none yet; RunDamaged if they are no results."""
    latest = reader.latest_snapshot()
    if latest is None:
        return None
    with decoding(reader.directory / RUN_FILE):
        return from_json(latest.results)


def header_of(reader: RunReader) -> RunHeader:
    """Return the name and the first start of a run."""
    meta = reader.meta()
    return RunHeader(meta.get(NAME) or reader.directory.name, started_at(meta))


def started_at(meta: Mapping[str, str]) -> float | None:
    """Return the Unix time of the run's first start, None if it is not stored.

    Examples
    --------
    >>> started_at({"started_at": "1750000000.5"}), started_at({})
    (1750000000.5, None)
    """
    try:
        return moment(float(meta.get(STARTED_AT, "nan")))
    except ValueError:
        return None


def decision_from(body: Mapping[str, Any]) -> Decision:
    """Rebuild a decision from its stored form; one of UNREADABLE if it is none, or its evidence is odd."""
    decision = _adapter().validate_python(dict(body))
    require_described(decision)
    if not isinstance(decision.evidence.get("threshold", 0.0), int | float):
        raise TypeError("the threshold of a decision is no number")
    return decision


def layouts(reader: RunReader) -> list[Decision]:
    """Return the stored decisions that laid out rounds while answers before them were awaited."""
    stored = reader.decisions()
    return [decision_from(record.body) for record in stored if record.body.get("kind") == LAID_OUT]


def require_described(what: Decision | StopVerdict | None) -> None:
    """Raise one of UNREADABLE if the stored evidence of a decision or stop gives no sentence."""
    from adaptive_eval.views.decision_sentences import describe  # for what is stored alone

    if what is not None:
        describe(what)


@cache
def _adapter() -> TypeAdapter[Decision]:
    from pydantic import TypeAdapter  # a run that shows nothing stored needs none of it

    return TypeAdapter(Decision)


def still_valid(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the decisions that none of the later ones withdraws, oldest first, without the withdrawals.

    Examples
    --------
    >>> first = Decision("pair", ("a", "b"), "better", 40, 80, "a separated from b", {})
    >>> second = Decision("pair", ("a", "c"), "better", 52, 150, "a separated from c", {})
    >>> withdrawn = withdrawals([first, second], [second])
    >>> [(one.kind, one.models) for one in withdrawn]
    [('withdrawn', ('a', 'b'))]
    >>> still_valid([first, second, *withdrawn]) == [second]
    True
    """
    valid: list[Decision] = []
    for decision in decisions:
        if decision.kind != "withdrawn":
            valid.append(decision)
            continue
        valid = [one for one in valid if _mark(one) != _mark(decision)]
    return valid


def withdrawals(valid: Sequence[Decision], replayed: Sequence[Decision]) -> list[Decision]:
    """Return a withdrawal of every verdict and retirement that the same answers do not lead to any more."""
    pairs = {_mark(one) for one in replayed if one.kind == "pair"}
    retired = {one.models for one in replayed if one.kind == "retired"}
    lost = []
    for one in valid:
        if one.kind == "pair":
            again = _mark(one) in pairs
        else:
            again = one.models in retired
        if one.kind in ("pair", "retired") and not again:
            words = ""
            if one.text:
                words = f"withdrawn, since the settings were changed: {one.text}"
            lost.append(replace(one, kind="withdrawn", text=words))
    return lost


def _mark(decision: Decision) -> tuple[tuple[str, ...], str, int]:
    return decision.models, decision.verdict, decision.step
