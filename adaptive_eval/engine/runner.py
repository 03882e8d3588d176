"""The asynchronous shell around a session: launch, wait, store, tell, and again."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from adaptive_eval.core.results import Decision, Results, StopVerdict
from adaptive_eval.engine.answer_watch import AnswerWatch
from adaptive_eval.engine.clock import LONGEST_PAUSE, Deadlines, Stopwatch, SystemClock
from adaptive_eval.engine.drift import DriftWatch
from adaptive_eval.engine.events import (
    Attempted,
    Decided,
    Draining,
    Event,
    Finished,
    Launched,
    Observer,
    Progress,
    Remarked,
    Stopped,
)
from adaptive_eval.engine.in_flight import InFlightTrials
from adaptive_eval.engine.ledger import Committer, Ledger, ThreadCommitter
from adaptive_eval.engine.limits import ServerLimits
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.no_answers import NoAnswers
from adaptive_eval.engine.protocols import Allowance, Clock, Controller, Executor, Prompts, Recorder
from adaptive_eval.engine.trial_task import TrialTask, share
from adaptive_eval.errors import Coded, SessionError, UsageError
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import Score, TrialKey, TrialRequest

_TICK = 1.0
"""Seconds after which the loop looks at the time, whatever happens."""

_LEAST_TICK = 0.001
"""A deadline may be nearer than a clock that has run for months can tell; the loop must not spin then."""

_SNAPSHOT_SHARE = 20.0
"""A snapshot takes at most a twentieth of the time."""

_LONGEST_BETWEEN = 30.0
"""Most seconds between two snapshots, whatever they cost."""

_BUSY = 10.0
"""Seconds by which the event loop is late where a view warns of it."""

_BURST = 16
"""Requests started before others get their turn: building hundreds at once would hold up the event loop."""


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """The interval of a run's snapshots, and its time limit."""

    snapshot_every: float = 1.0  # seconds between two stored snapshots
    deadlines: Deadlines = field(default_factory=Deadlines)  # how long the run and its models may take
    # what happens to requests in flight when the time of the run is up
    at_deadline: Literal["drain", "cancel"] = "drain"
    elapsed: float = 0.0  # seconds of running time of previous sessions of the run

    def __post_init__(self) -> None:
        if not self.snapshot_every > 0.0:
            raise UsageError(f"snapshot_every is {self.snapshot_every}; it must be above 0 seconds")


class Runner:
    """Runs the trials a controller asks for until it stops.

    An outcome is stored before it is told. No more requests of a model are in flight than its limit allows.
    A failure is never scored: after all attempts a trial comes back to the queue, and at last is missing. A
    model whose endpoint refuses permanently, or has gone, is stopped alone.

    When the run ends, nothing more is launched, requests that are out come back and are stored, and waits
    between attempts are broken off. A trial that ends in neither an answer nor a verdict of missing leaves a
    launch in the store but no outcome, and is asked again by a resumed run.
    """

    def __init__(
        self,
        controller: Controller,
        recorder: Recorder,
        clients: Mapping[str, ModelClient],
        *,
        servers: Mapping[str, ServerLimits] | None = None,
        prompts: Prompts,
        executor: Executor,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        options: RunnerOptions | None = None,
        observer: Observer | None = None,
        committer: Committer | None = None,
        allowance: Allowance | None = None,
        no_answers: NoAnswers | None = None,
        answers: AnswerWatch | None = None,
        drift: DriftWatch | None = None,
    ) -> None:
        self._controller = controller
        self._prompts = prompts
        self._clock = clock or SystemClock()
        self._options = options or RunnerOptions()
        self._observer = observer
        self._allowance = allowance
        self._drift = drift or DriftWatch()
        self._answers = answers or AnswerWatch()
        self._committer = committer or ThreadCommitter()
        self._ledger = Ledger(recorder, self._clock, self._committer)
        self._wake = asyncio.Event()
        self._in_flight = InFlightTrials(
            clients,
            servers or {},
            clock=self._clock,
            executor=executor,
            jitter=jitter,
            on_change=self._wake.set,
            presume_billed=controller.presume_billed,
            no_answers=no_answers or NoAnswers(),
        )
        self._ending: StopVerdict | None = None
        self._trials = 0
        self._running = Stopwatch(self._clock, self._options.elapsed)
        self._snapshot_due = self._clock.now()
        self._snapshot_cost = 0.0
        self._lag = 0.0

    async def run(self) -> StopVerdict:
        """Run to the end; once."""
        self._running.start()
        self._snapshot_due = self._clock.now()
        try:
            async with asyncio.TaskGroup() as tasks:
                ticker = tasks.create_task(self._tick())
                try:
                    with self._in_flight.in_tasks(tasks):
                        return await self._loop()
                finally:
                    ticker.cancel()
        except BaseExceptionGroup as failures:
            # The first failure; the others follow from it.
            first = failures.exceptions[0]
            raise first from first.__cause__
        finally:
            self._committer.close()

    def request_stop(self) -> None:
        """Launch nothing more and let requests in flight finish; a second call cancels them."""
        if self._ending is None:
            self._end(StopVerdict("interrupted"))
        else:
            self._in_flight.abandon()
            self._wake.set()

    async def _loop(self) -> StopVerdict:
        try:
            self._check_deadline()  # previous sessions may have used up the time
            while True:
                self._check_verdict()
                if self._ending is None:
                    await self._launch()
                    self._check_verdict()  # a budget that is spent ends the session when it is asked
                if not self._in_flight:
                    if self._ending is not None:
                        return await self._finish()
                    self._require_progress()
                await self._snapshot_when_due()
                await self._wake.wait()
                if self._in_flight.running:
                    await self._ledger.gather()
                self._wake.clear()
                await self._absorb()
                self._check_deadline()
        except BaseException:
            # Answers that were paid for still go into the recorder's next commit, with all attempts: an
            # outcome without its attempt would hide a failed one before it.
            for trial in self._in_flight.ended():
                if trial.score is not None and trial.score.category is not None:
                    self._ledger.outcome(trial, missing=None, after_stop=False)
            self._log_attempts()
            raise

    async def _tick(self) -> None:
        """Wake the loop for what depends on time alone: snapshots, deadlines, the end of a pause."""
        while True:
            remaining = self._until_deadline()
            pause = min(_TICK, self._options.snapshot_every)
            seconds = max(min(pause, remaining), _LEAST_TICK) if remaining > 0.0 else pause
            due = self._clock.now() + seconds
            await self._clock.sleep(seconds)
            late = self._clock.now() - due
            if late <= LONGEST_PAUSE:  # more is the stopwatch's matter: it may have been asleep
                self._lag = max(self._lag, late)
            self._wake.set()

    async def _launch(self) -> None:
        """Fill the free places, queued trials first, then those that the session asks for.

        Places that one model leaves free at a shared server are offered to the others.
        """
        self._in_flight.relaunch()
        content: set[str] = set()
        while self._ending is None:
            capacity = self._affordable(self._in_flight.capacity(without=content))
            # Asked without any model too: the session may stop only now.
            if capacity and not any(capacity.values()):
                break
            asked = await self._launch_some(dict(capacity))
            self._check_verdict()
            content |= {model for model, free in capacity.items() if asked[model] < free}
            if not self._in_flight.constrained:
                break
        self._in_flight.wake_when_free()

    async def _launch_some(self, capacity: dict[str, int]) -> Counter[str]:
        """Launch the trials that the session asks for; return their number by model."""
        requests = self._controller.ask(capacity)
        asked = Counter(request.key.model for request in requests)
        if not requests:
            return asked
        trials = {request.key: self._trial(request, capacity) for request in requests}
        if len(trials) < len(requests):
            raise SessionError(f"the session asked for a trial twice at once: {requests}")
        share(trials.values())
        at = await self._ledger.launches(requests)
        self._emit(lambda: Launched(at, tuple(requests)))
        for number, trial in enumerate(trials.values()):
            if self._ending is not None:  # ended during the commit
                self._in_flight.drop(trial)
                continue
            self._in_flight.start(trial)
            if number % _BURST == _BURST - 1:
                await asyncio.sleep(0)
        return asked

    def _affordable(self, capacity: dict[str, int]) -> dict[str, int]:
        """Return the free places whose answers can be scored within the allowance, the same for every model.

        Where not even one answer of each model can be, and nothing is in flight, the run ends.
        """
        room = None if self._allowance is None else self._allowance.room()
        if self._allowance is None or room is None or not capacity:
            return capacity
        each = max(0, room - self._in_flight.unfinished) // len(capacity)
        if each < 1 and not self._in_flight and self._ending is None:
            self._end(StopVerdict("budget", evidence=self._allowance.spent()))
        return {model: min(free, each) for model, free in capacity.items()}

    def _trial(self, request: TrialRequest, capacity: dict[str, int]) -> TrialTask:
        model = request.key.model
        client = self._in_flight.client(model)
        if client is None:
            raise SessionError(f"the session asked for {request.key}, but the model is stopped or unknown")
        if request.key in self._in_flight:
            raise SessionError(f"the session asked for {request.key}, which is in flight")
        if capacity[model] < 1:
            raise SessionError(f"the session asked for {request.key}, but the model has no free place")
        capacity[model] -= 1
        messages = self._prompts.messages(request)
        return TrialTask(request, client, messages, client.prompt_tokens(messages))

    async def _absorb(self) -> None:
        """Store completed trials, commit once, and only then tell the session."""
        after_stop = self._controller.stopped is not None
        records: list[TrialRecord] = []
        servers: dict[TrialKey, str] = {}
        refusals: dict[str, str] = {}
        for trial in self._in_flight.ended():
            model = trial.request.key.model
            servers[trial.request.key] = trial.url
            match self._in_flight.settle(trial):
                case "scored":
                    records.append(self._ledger.outcome(trial, missing=None, after_stop=after_stop))
                case "missing" | "unscored" as end:
                    why = _why_missing(trial, end)
                    records.append(self._ledger.outcome(trial, missing=why, after_stop=after_stop))
                    if self._in_flight.answers_nothing(model):
                        # An answer that no scorer can use is not the server's fault.
                        words = (
                            _said(trial, f"no answer for trial after trial: {why}")
                            if end == "missing"
                            else f"no score for trial after trial: {why}"
                        )
                        refusals.setdefault(model, words)
                case "refused":
                    refusals.setdefault(model, _said(trial, str(trial.failure)))
        self._log_attempts()
        unrecorded = self._in_flight.take_unrecorded()
        await self._ledger.commit()
        for event in unrecorded:
            event.set()
        self._report_dropped()
        # Before the session gets outcomes: it must not call a ranking resolved that rests on such a model.
        for model in {record.request.key.model for record in records}:
            reason = self._in_flight.no_answers.refusal(model)
            if reason is not None:
                self._stop_model(model, reason)
        self._watch_answers(records)
        if records:
            self._emit(lambda: Finished(tuple(records)))
            self._decided(self._controller.tell([record.outcome for record in records]))
            self._watch_drift(records, servers)
            self._size_rounds()
        self._report_servers()
        lost = self._in_flight.lost() if self._ending is None else {}
        for model, reason in {**lost, **refusals}.items():
            self._stop_model(model, reason)

    def _size_rounds(self) -> None:
        """Let the next batches be as large as the forecast says."""
        rounds = self._in_flight.rounds
        results = self._controller.results() if rounds else None
        if results is not None and results.forecast is not None:
            asked = sum(line.state == "active" for line in results.models)
            for limit in rounds:
                limit.expect(results.forecast.trials.low, asked)

    def _watch_answers(self, records: Sequence[TrialRecord]) -> None:
        """Say what is wrong with answers, and end the run where most of them cannot be used."""
        for record in records:
            self._answers.add(record)
        for text in self._answers.take_news():
            self._emit(partial(Remarked, self._clock.time(), text))
        verdict = self._answers.verdict()
        if verdict is not None and self._controller.stopped is None:
            self._decided(self._controller.end(verdict.reason, verdict.text, verdict.evidence))

    def _watch_drift(self, records: Sequence[TrialRecord], servers: Mapping[TrialKey, str]) -> None:
        for record in records:
            request = record.request
            category = None if record.score is None else record.score.category
            self._drift.add(
                request.key,
                (request.task, request.question),
                category,
                at=record.finished_at,
                server=servers[request.key],
            )
        for text in self._drift.take_news():
            self._emit(partial(Remarked, self._clock.time(), text))

    def _report_servers(self) -> None:
        """Store which servers joined or left, and emit new warnings about them."""
        self._decided(self._in_flight.pool_changes.take_decisions(self._trials))
        for text in self._in_flight.pool_changes.news():
            self._emit(partial(Remarked, self._clock.time(), text))

    def _stop_model(self, model: str, reason: str, *, spent: bool = False) -> None:
        """Stop a model, unless it is stopped already."""
        if self._in_flight.client(model) is not None:
            self._in_flight.stop_model(model)
            self._decided(self._controller.stop_model(model, reason, spent=spent))

    def _report_dropped(self) -> None:
        """Tell the session which trials were dropped."""
        for key, billed in self._in_flight.take_dropped():
            self._controller.abandon(key, billed=billed)

    def _check_verdict(self) -> None:
        verdict = self._controller.stopped
        if verdict is not None and self._ending is None:
            self._end(verdict)

    def _check_deadline(self) -> None:
        if self._ending is not None:
            return
        deadlines, elapsed = self._options.deadlines, self._running.read()
        over = deadlines.over(elapsed)
        if over is not None:
            self._end(StopVerdict("budget", evidence=over))
            if self._options.at_deadline == "cancel":
                self._in_flight.abandon()
            return
        for model in deadlines.models_over(elapsed):
            limit = deadlines.models[model]
            self._stop_model(model, f"its wall clock limit of {limit:g} s is reached", spent=True)

    def _end(self, verdict: StopVerdict) -> None:
        """Launch nothing more."""
        self._ending = verdict
        self._in_flight.drain()
        self._wake.set()
        self._emit(lambda: Draining(verdict.reason, self._in_flight.running))

    async def _finish(self) -> StopVerdict:
        assert self._ending is not None
        ending = self._ending
        self._log_attempts()
        self._report_dropped()
        self._decided(self._controller.end(ending.reason, ending.text, ending.evidence))
        verdict = self._controller.stopped
        if verdict is None:
            raise SessionError("the session was ended but has no verdict")
        await self._snapshot()
        self._emit(lambda: Stopped(verdict))
        return verdict

    def _require_progress(self) -> None:
        """Raise instead of waiting for ever."""
        if not self._in_flight.held:
            raise SessionError(
                "the session asks for nothing, nothing is in flight and it has not stopped: it would wait "
                "for ever. Every open model had a free place"
            )

    def _decided(self, decisions: Sequence[Decision]) -> None:
        if decisions:
            at = self._ledger.decisions(decisions)
            self._emit(lambda: Decided(at, tuple(decisions)))

    async def _snapshot_when_due(self) -> None:
        if self._clock.now() >= self._snapshot_due:
            await self._snapshot()

    async def _snapshot(self) -> None:
        started, every = self._clock.now(), self._options.snapshot_every
        self._snapshot_due = started + every
        elapsed = self._running.read()
        results = self._with_engine_state(self._controller.results(), elapsed)
        lag, self._lag = self._lag, 0.0
        self._trials = results.trials
        endpoints = self._in_flight.health()
        at = await self._ledger.snapshot(results, endpoints, elapsed=elapsed)
        # A snapshot of hundreds of models takes a good part of a second. One alone says nothing: the first
        # forecast of a process loads what it computes with.
        cost, before = self._clock.now() - started, self._snapshot_cost
        self._snapshot_cost = cost
        self._snapshot_due = started + max(every, min(_SNAPSHOT_SHARE * min(cost, before), _LONGEST_BETWEEN))
        self._emit(lambda: Progress(at, elapsed, results, endpoints, lag))

    def _with_engine_state(self, results: Results, elapsed: float) -> Results:
        """Add the budgets of time and scoring, and the engine's warnings."""
        time = self._options.deadlines.lines(elapsed)
        scoring = () if self._allowance is None else tuple(self._allowance.lines())
        remarks = self._in_flight.remarks()
        no_answers = self._in_flight.no_answers
        return replace(
            results,
            models=tuple(replace(line, no_answer=no_answers.count(line.model)) for line in results.models),
            changes=tuple(self._drift.changes),
            budgets=(*results.budgets, *time, *scoring),
            warnings=(
                *results.warnings,
                *remarks,
                *self._answers.remarks(),
                *self._drift.remarks,
                *self._stall(),
            ),
        )

    def _stall(self) -> Iterator[str]:
        if self._lag >= _BUSY:
            yield Coded(
                "warning/busy",
                f"this process is busy: its event loop was late by {self._lag:.1f} s; fewer requests in "
                "flight, or workers (executor), help",
            )
        stall = self._running.longest_stall
        if stall:
            yield Coded(
                "warning/busy",
                f"this process was held up for {stall:.0f} s, so a limit of running time may have been "
                "exceeded by as much",
            )

    def _until_deadline(self) -> float:
        return self._options.deadlines.remaining(self._running.read(), self._in_flight.open_models)

    def _log_attempts(self) -> None:
        attempts = self._in_flight.take_attempts()
        self._ledger.attempts(attempts)
        if attempts:
            self._emit(lambda: Attempted(tuple(attempts)))

    def _emit(self, event: Callable[[], Event]) -> None:
        if self._observer is not None:
            self._observer(event())


def _why_missing(trial: TrialTask, end: Literal["missing", "unscored"]) -> str:
    """Return why a trial has no category; one whose scorer was out of reach gets a score that says so."""
    if end == "missing":
        return f"{trial.failure} (attempts: {trial.attempts})"
    if trial.score is None:
        trial.score = Score(None, reason=str(trial.failure))
    return f"unscored: {trial.score.reason}"


def _said(trial: TrialTask, words: str) -> str:
    """Return `words` about where `trial` was sent last."""
    return words if trial.asked is None else trial.asked.says(words)
