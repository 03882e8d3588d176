"""Writes the engine's records in order, and commits them in groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Protocol

from adaptive_eval.core.results import Decision, Results, to_json
from adaptive_eval.engine.protocols import Clock, Recorder
from adaptive_eval.engine.trial_task import TrialTask
from adaptive_eval.errors import SessionError
from adaptive_eval.store.records import AttemptRecord, EndpointHealth, SnapshotRecord, TrialRecord
from adaptive_eval.trial import DiscardCause, TrialRequest


class Ledger:
    """Writes to the recorder, and groups results into commits.

    Results gather for as long as the last commits took: commits take at most half of the time.
    """

    longest_linger = 0.02  # most seconds that a result waits for others; a model takes far longer to answer

    def __init__(self, recorder: Recorder, clock: Clock, committer: Committer) -> None:
        self._recorder = recorder
        self._clock = clock
        self._committer = committer
        self._committed_at = clock.now()
        self._cost = 0.0

    async def launches(self, requests: Sequence[TrialRequest]) -> float:
        """Log launches and commit; return their Unix time."""
        at = self._clock.time()
        self._recorder.launch(requests, at)
        await self.commit()
        return at

    def attempts(self, records: Iterable[AttemptRecord]) -> None:
        """Log attempts."""
        for record in records:
            self._recorder.attempt(record)

    def outcome(
        self,
        trial: TrialTask,
        discarded: tuple[DiscardCause, ...],
        *,
        missing: str | None,
        after_stop: bool,
    ) -> TrialRecord:
        """Add a finished trial with the causes of its discarded draws; `missing`: why it has no category."""
        record = TrialRecord(
            request=trial.request,
            finished_at=self._clock.time(),
            completion=trial.completion,
            score=trial.score,
            missing=missing,
            after_stop=after_stop,
            sent=trial.sending.body(),
            charged=trial.spent if trial.spent.total_tokens else None,
            discarded=discarded,
        )
        if not self._recorder.outcome(record):
            raise SessionError(f"trial {trial.request.key} was asked for although it has an outcome")
        return record

    def decisions(self, decisions: Iterable[Decision]) -> float:
        """Log decisions; return their Unix time."""
        at = self._clock.time()
        for decision in decisions:
            self._recorder.decision(at, decision.trials, asdict(decision))
        return at

    async def snapshot(
        self, results: Results, endpoints: tuple[EndpointHealth, ...], *, elapsed: float
    ) -> float:
        """Store the results of the moment and commit; return its Unix time."""
        at = self._clock.time()
        self._recorder.snapshot(SnapshotRecord(at, elapsed, results.trials, to_json(results), endpoints))
        await self.commit()
        return at

    async def commit(self) -> None:
        """Make everything so far durable."""
        started = self._clock.now()
        await self._committer.commit(self._recorder.commit)
        self._committed_at = self._clock.now()
        self._cost += self._committed_at - started

    def close(self) -> None:
        """Release the committer."""
        self._committer.close()

    async def gather(self) -> None:
        """Wait for more results before the next commit, in proportion to the cost of the last ones."""
        linger = min(self.longest_linger, self._cost)
        self._cost = 0.0
        remaining = self._committed_at + linger - self._clock.now()
        if remaining > 0.0:
            await self._clock.sleep(remaining)


class Committer(Protocol):
    """Makes commits, one at a time."""

    async def commit(self, commit: Callable[[], int]) -> None:
        """Call `commit` in a thread and wait for it.

        It waits for the commit even when cancelled: later calls must not meet a commit in progress.
        """

    def close(self) -> None:
        """Release the thread."""


class ThreadCommitter:
    """Makes commits in a thread: a sync to the disk takes milliseconds, at worst seconds.

    Examples
    --------
    >>> async def main():
    ...     committer = ThreadCommitter()
    ...     await committer.commit(lambda: print("on the disk") or 0)
    ...     committer.close()
    >>> asyncio.run(main())
    on the disk
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "commit")

    async def commit(self, commit: Callable[[], int]) -> None:
        """Call `commit` in the thread."""
        work = asyncio.get_running_loop().run_in_executor(self._thread, commit)
        cancelled: asyncio.CancelledError | None = None
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError as error:
                cancelled = error
        failure = work.exception()
        if cancelled is not None:
            raise cancelled
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()
