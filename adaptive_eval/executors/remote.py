"""The executor with remote workers: it spreads jobs over them and replaces those that die."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol, Self, TypeAlias

from adaptive_eval.engine.protocols import Endpoint, Scoring
from adaptive_eval.errors import (
    AdaptiveEvalError,
    ScorerUnavailable,
    TransientEndpointError,
    UsageError,
    WorkersLost,
)
from adaptive_eval.executors.worker import Answered, Event, Failed, Job, JobScore
from adaptive_eval.trial import Completion, Message, Score, TrialKey, TrialRequest

_CHUNK = 64
"""Most jobs sent at once."""

_GATHERING = 0.002
"""Seconds that jobs wait for others that are sent with them."""

_MAX_DEATHS = 3
"""Consecutive workers that may die in a slot without a result before it stays empty."""


_NUMBERS = count(1)
"""The numbers of jobs."""


class WorkerGone(Exception):
    """A worker has died or could not start; the message says why."""


class RemoteWorker(Protocol):
    """A worker in another process or on another node."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Send jobs; does not wait."""

    def cancel(self, numbers: Sequence[int]) -> None:
        """Ask for jobs to be cancelled; does not wait."""

    async def collect(self) -> Sequence[Event]:
        """Wait for results, and return them."""

    async def stop(self) -> None:
        """Stop it; it sends nothing afterwards."""


_FutureScore: TypeAlias = "asyncio.Future[Score | Exception]"
"""A future score, or the error in its place: as a value, since an exception might never be retrieved."""


@dataclass(slots=True, eq=False)
class _PendingJob:
    """A job and the futures of its results."""

    job: Job
    answers: asyncio.Future[Sequence[Completion | None] | Exception]
    scores: Sequence[_FutureScore]
    slot: _Slot | None = None

    @property
    def finished(self) -> bool:
        """Whether all results have arrived."""
        return self.answers.done() and all(score.done() for score in self.scores)

    def deliver(self, event: Event) -> None:
        """Store a result."""
        if isinstance(event, JobScore):
            _resolve(self.scores[event.place], event.score)
        elif isinstance(event, Answered):
            _resolve(self.answers, event.answers)
            self.scores = self.scores[: len(event.answers)]
            for score, answer in zip(self.scores, event.answers, strict=False):
                if answer is None:
                    _resolve(score, LookupError("there is no answer to be scored"))
        elif isinstance(event, Failed):
            self.fail(event.error)
        else:
            self.fail(RuntimeError(f"a worker hit a bug:\n{event.words}"))

    def fail(self, request: Exception, score: Exception | None = None) -> None:
        """Let missing results fail: the `request`, or else the `score` of its answers."""
        _resolve(self.answers, request)
        for future in self.scores:
            _resolve(future, score or request)


def _resolve(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


@dataclass(slots=True, eq=False)
class _Slot:
    """A worker and its jobs."""

    worker: RemoteWorker
    jobs: dict[int, _PendingJob] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of an executor."""

    start: Callable[[int], Awaitable[RemoteWorker]]
    size: int
    most: int  # jobs of one worker
    patience: float  # seconds without any worker after which all jobs fail


class RemoteExecutor:
    """Has attempts made and answers scored by workers; an asynchronous context that starts and stops them.

    A job goes to the worker that has the fewest. The jobs of a worker that dies fail: requests as
    transient failures of kind ``worker``, presumed billed, which are no failures of the server; scores as
    :class:`~adaptive_eval.errors.ScorerUnavailable`, and the answer is kept. The engine has both done again.
    Another worker is started in its place.
    """

    def __init__(
        self,
        workers: Workers,
        *,
        scored: Collection[str],
        scoring: Scoring,
        remark: Callable[[str], None],
    ) -> None:
        self._workers = workers
        self._scored = frozenset(scored)
        self._scoring = scoring
        self._remark = remark
        self._slots: list[_Slot] = []
        self._queue: deque[_PendingJob] = deque()
        self._scores: dict[TrialKey, tuple[Completion, _FutureScore]] = {}
        self._sending: asyncio.TimerHandle | None = None
        self._supervisors: list[asyncio.Task[None]] = []
        self._ready: asyncio.Future[None]
        self._deadline: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None

    async def __aenter__(self) -> Self:
        """Start the workers and wait for the first."""
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        self._supervisors = [
            loop.create_task(self._supervise(number)) for number in range(self._workers.size)
        ]
        for supervisor in self._supervisors:
            supervisor.add_done_callback(self._on_supervisor_end)
        self._wait_for_a_worker("none could be started")
        try:
            await self._ready
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        for handle in (self._sending, self._deadline):
            if handle is not None:
                handle.cancel()
        for supervisor in self._supervisors:
            supervisor.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)

    @property
    def workers(self) -> dict[str, int]:
        """The number of jobs of each running worker, by name."""
        return {slot.worker.name: len(slot.jobs) for slot in self._slots}

    async def attempt(
        self, endpoint: Endpoint, messages: Sequence[Message], requests: Sequence[TrialRequest]
    ) -> Sequence[Completion | None]:
        """Have `endpoint` asked once for the answers to `requests`."""
        scored = 0
        if requests[0].task in self._scored:
            scored = len(requests)
        pending = self._enqueue(endpoint.url, tuple(messages), tuple(requests), None, scored)
        try:
            answers = await pending.answers
        except asyncio.CancelledError:
            self._withdraw(pending)
            raise
        if isinstance(answers, Exception):
            raise answers
        for request, answer, score in zip(requests, answers, pending.scores, strict=False):
            if answer is not None:
                self._scores[request.key] = answer, score
        return answers

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        """Return the category of `completion`; a worker sends it after the answer."""
        if request.task not in self._scored:
            return await self._scoring.score(request, completion)
        answer, future = self._scores.pop(request.key, (None, None))
        if future is None or answer is not completion:
            future = self._enqueue("", (), (request,), completion, 1).scores[0]
        score = await future
        if isinstance(score, Exception):
            raise score
        return score

    def _enqueue(
        self,
        url: str,
        messages: Sequence[Message],
        requests: Sequence[TrialRequest],
        answer: Completion | None,
        scored: int,
    ) -> _PendingJob:
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        pending = _PendingJob(
            Job(next(_NUMBERS), url, messages, requests, answer),
            loop.create_future(),
            tuple(loop.create_future() for _ in range(scored)),
        )
        if answer is not None:
            pending.answers.set_result((answer,))
        self._queue.append(pending)
        if self._sending is None:
            self._sending = loop.call_later(_GATHERING, self._send)
        return pending

    def _send(self) -> None:
        """Send queued jobs to the workers that have the fewest, up to the limit of each."""
        self._sending = None
        chunks: dict[_Slot, list[Job]] = {}
        while self._queue and self._slots:
            slot = min(self._slots, key=lambda one: len(one.jobs))
            if len(slot.jobs) >= self._workers.most:
                break
            pending = self._queue.popleft()
            pending.slot = slot
            slot.jobs[pending.job.number] = pending
            chunks.setdefault(slot, []).append(pending.job)
        for slot, jobs in chunks.items():
            for start in range(0, len(jobs), _CHUNK):
                slot.worker.submit(jobs[start : start + _CHUNK])

    def _withdraw(self, pending: _PendingJob) -> None:
        """Cancel a job that nobody awaits."""
        if pending in self._queue:
            self._queue.remove(pending)
        elif pending.slot is not None and pending.slot.jobs.pop(pending.job.number, None) is not None:
            pending.slot.worker.cancel([pending.job.number])

    async def _supervise(self, number: int) -> None:
        """Keep a worker in a slot until too many consecutive ones have died there."""
        deaths = 0
        while deaths < _MAX_DEATHS:
            try:
                worker = await self._workers.start(number)
            except WorkerGone as gone:
                deaths += 1
                self._remark(f"no worker could be started: {gone}")
                continue
            slot = _Slot(worker)
            self._add(slot)
            try:
                while True:
                    self._take(slot, await worker.collect())
                    deaths = 0
            except WorkerGone as gone:
                deaths += 1
                self._fail_jobs(slot, str(gone))
            finally:
                await worker.stop()

    def _add(self, slot: _Slot) -> None:
        self._slots.append(slot)
        _resolve(self._ready, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._send()

    def _take(self, slot: _Slot, events: Sequence[Event]) -> None:
        for event in events:
            pending = slot.jobs.get(event.number)
            if pending is not None:  # else it was withdrawn
                pending.deliver(event)
                if pending.finished:
                    del slot.jobs[event.number]
        if self._queue:
            self._send()

    def _fail_jobs(self, slot: _Slot, reason: str) -> None:
        """Let the jobs of a worker that has died fail, so that they are done again."""
        self._slots.remove(slot)
        words = f"the worker {slot.worker.name} has died: {reason}"
        self._remark(f"{words}; what it had in hand is done again ({len(slot.jobs)})")
        for pending in slot.jobs.values():
            lost = TransientEndpointError(words, kind="worker")
            pending.fail(lost, ScorerUnavailable(words, kind="worker"))
        slot.jobs.clear()
        if not self._slots:
            self._wait_for_a_worker(words)

    def _wait_for_a_worker(self, reason: str) -> None:
        patience = self._workers.patience
        words = f"there has been no worker for {patience:g} s ({reason}); resume continues the run"
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(patience, self.give_up, WorkersLost(words))

    def _on_supervisor_end(self, supervisor: asyncio.Task[None]) -> None:
        if supervisor.cancelled():
            return
        error = supervisor.exception()
        if isinstance(error, UsageError) and not self._ready.done():
            self.give_up(error)
        elif isinstance(error, AdaptiveEvalError):
            self._remark(f"a worker cannot work: {error}")
        elif isinstance(error, Exception):
            self.give_up(error)
        if all(one.done() for one in self._supervisors) and not self._slots:
            words = "no worker is left: each died, and so did its replacements; resume continues the run"
            self.give_up(WorkersLost(words))

    def give_up(self, why: Exception) -> None:
        """Let all present and later jobs fail with `why`."""
        if self._failure is not None:
            return
        self._failure = why
        if not self._ready.done():
            self._ready.set_exception(why)
        for pending in [*self._queue, *(pending for slot in self._slots for pending in slot.jobs.values())]:
            pending.fail(why)
        self._queue.clear()
