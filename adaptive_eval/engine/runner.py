"""The asynchronous shell around a session: launch, wait, store, tell, and again."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from adaptive_eval.core.results import BudgetLine, Decision, Results, StopVerdict
from adaptive_eval.engine.clock import TICK, Deadlines, Pace, SystemClock
from adaptive_eval.engine.events import (
    Attempted,
    Decided,
    Draining,
    Finished,
    Launched,
    Observer,
    Progress,
    Remarked,
    Stopped,
)
from adaptive_eval.engine.in_flight import InFlightTrials, Unlogged
from adaptive_eval.engine.ledger import Committer, Ledger, ThreadCommitter
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.protocols import (
    Clock,
    Controller,
    Executor,
    Prompts,
    Recorder,
    ScoringBudget,
    Unusable,
)
from adaptive_eval.engine.trial_task import TrialTask, share
from adaptive_eval.engine.watches import Watches
from adaptive_eval.errors import SessionError
from adaptive_eval.options.limit_options import SharedLimits
from adaptive_eval.store.records import AttemptRecord, LoggedTrial, TrialRecord
from adaptive_eval.trial import COPY_REASON, UNSCORED, Score, TrialKey, TrialRequest


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """The time limits of a run, and which of its models must be there."""

    deadlines: Deadlines = field(default_factory=Deadlines)  # how long the run and its models may take
    # what happens to requests in flight when the time of the run is up
    at_deadline: Literal["drain", "cancel"] = "drain"
    elapsed: float = 0.0  # seconds of running time of previous sessions of the run
    allow_missing: bool = False  # whether to go on without a model whose very first request is refused
    reached: frozenset[str] = frozenset()  # models that have answered in previous sessions
    # failed attempts of trials that previous sessions have left, and seconds of each server's fastest answer
    unfinished: Mapping[TrialKey, Sequence[AttemptRecord]] = field(default_factory=dict)
    fastest: Mapping[str, float] = field(default_factory=dict)


class Runner:
    """Runs the trials a controller asks for until it stops.

    An outcome is stored before it is told. No more requests of a model are in flight than its limit allows.
    A failure is never scored: after all attempts a trial comes back to the queue, and at last is missing. A
    model whose endpoint refuses permanently, or has gone, is stopped alone.

    When the run ends, nothing more is launched, requests that are out come back and are stored, and waits
    between attempts are broken off. A trial that ends in neither an answer nor a verdict of missing leaves a
    launch in the store but no outcome, and is asked again by a resumed run.
    """

    burst = 16  # requests started before others get their turn: hundreds would hold up the event loop

    def __init__(
        self,
        controller: Controller,
        recorder: Recorder,
        clients: Mapping[str, ModelClient],
        *,
        servers: Mapping[str, SharedLimits] | None = None,
        prompts: Prompts,
        executor: Executor,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        options: RunnerOptions | None = None,
        observer: Observer | None = None,
        committer: Committer | None = None,
        scoring_budget: ScoringBudget | None = None,
        watches: Watches | None = None,
    ) -> None:
        self._controller = controller
        self._prompts = prompts
        clock = clock or SystemClock()
        self._options = options or RunnerOptions()
        self._emit = observer or (lambda event: None)
        self._scoring_budget = scoring_budget
        self._watches = watches or Watches()
        self._told: set[str] = set()  # warnings that are not said again
        self._ledger = Ledger(recorder, clock, committer or ThreadCommitter())
        self._wake = asyncio.Event()
        self._in_flight = InFlightTrials(
            clients,
            servers or {},
            clock=clock,
            executor=executor,
            jitter=jitter,
            on_change=self._wake.set,
            presume_billed=controller.presume_billed,
            may_repeat=controller.may_repeat,
            proven=self._options.reached,
            fastest=self._options.fastest,
        )
        self._ending: StopVerdict | None = None
        self._ticked = False  # since the loop has looked for overdue answers
        self._pace = Pace(clock, self._options.elapsed)

    async def run(self) -> StopVerdict:
        """Run to the end; once."""
        self._pace.start()
        try:
            async with self._in_flight.tasks as tasks:
                ticker = tasks.create_task(self._tick())
                self._in_flight.fleet.changes.begin()
                try:
                    return await self._loop()
                finally:
                    self._in_flight.fleet.close()
                    ticker.cancel()
        except BaseExceptionGroup as failures:
            # The first failure; the others follow from it.
            first = failures.exceptions[0]
            raise first from first.__cause__
        finally:
            self._ledger.close()

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
                if not self._in_flight:
                    if self._ending is not None:
                        return await self._finish(self._ending)
                    if not self._in_flight.held:
                        raise SessionError(
                            "the session asks for nothing, nothing is in flight and it has not stopped: it "
                            "would wait for ever. Every open model had a free slot"
                        )
                if self._pace.due:
                    await self._snapshot()
                await self._wake.wait()
                if self._in_flight.running:
                    await self._ledger.gather()
                self._wake.clear()
                await self._absorb()
                self._check_deadline()
                if self._ticked and self._ending is None:
                    self._ticked = False
                    self._decided(self._controller.overdue(self._in_flight.overdue()))
        except BaseException:
            # Answers that were paid for still go into the recorder's next commit, with all attempts: an
            # outcome without its attempt would hide a failed one before it.
            for trial in self._in_flight.ended():
                if trial.score is not None and trial.score.category is not None:
                    self._outcome(trial, missing=None, after_stop=False)
            self._log_attempts()
            raise

    async def _tick(self) -> None:
        """Wake the loop for what depends on time alone: snapshots, deadlines, the end of a pause."""
        while True:
            seconds = TICK
            remaining = self._options.deadlines.remaining(self._pace.elapsed(), self._in_flight.lanes)
            if remaining > 0.0:  # one nearer than a clock that has run for months can tell must not spin
                seconds = max(min(seconds, remaining), 0.001)
            due = self._pace.clock.now() + seconds
            await self._pace.clock.sleep(seconds)
            self._pace.late(self._pace.clock.now() - due)
            self._in_flight.fleet.give_up_silent(ending=self._ending is not None)
            self._ticked = True
            self._wake.set()

    async def _launch(self) -> None:
        """Fill the free slots, queued trials first, then those that the session asks for.

        Slots that one model leaves free at a shared server are offered to the others.
        """
        self._in_flight.relaunch()
        content: set[str] = set()
        while self._ending is None:
            capacity = self._affordable(self._in_flight.capacity(without=content))
            # Asked without any model too: the session may stop only now.
            if capacity and not any(capacity.values()):
                break
            asked = await self._launch_some(dict(capacity))
            self._check_verdict()  # a budget that is spent ends the session when it is asked
            content |= {model for model, free in capacity.items() if asked[model] < free}
            if not (self._in_flight.constrained or self._in_flight.opening):
                break
        self._in_flight.fleet.ring_when_free(self._in_flight.constrained)

    async def _launch_some(self, capacity: dict[str, int]) -> Counter[str]:
        """Launch the trials that the session asks for; return their number by model."""
        requests = self._controller.ask(capacity)
        asked = Counter(request.key.model for request in requests)
        if not requests:
            return asked
        trials: dict[TrialKey, TrialTask] = {}
        for request in requests:
            if request.key in trials or request.key in self._in_flight:
                raise SessionError(f"the session asked for {request.key} twice")
            trials[request.key] = self._trial(request, capacity)
        share(trials.values())
        at = await self._ledger.launches(requests)
        self._emit(Launched(at, tuple(requests)))
        for number, trial in enumerate(trials.values(), start=1):
            if self._ending is not None:  # ended during the commit
                self._in_flight.drop(trial)
                continue
            self._in_flight.start(trial)
            if number % self.burst == 0:
                await asyncio.sleep(0)
        return asked

    def _affordable(self, capacity: dict[str, int]) -> dict[str, int]:
        """Return the free slots whose answers the scoring budget allows, the same for every model.

        If not even one answer of each model can be, and nothing is in flight, the run ends. Nothing is
        queued here: :meth:`_launch` has started that again.
        """
        room = None
        if self._scoring_budget is not None:
            room = self._scoring_budget.room()
        if self._scoring_budget is None or room is None or not capacity:
            return capacity
        each = max(0, room - len(self._in_flight)) // len(capacity)
        if each < 1 and not self._in_flight and self._ending is None:
            self._end(StopVerdict("budget", evidence=self._scoring_budget.spent()))
        return {model: min(free, each) for model, free in capacity.items()}

    def _trial(self, request: TrialRequest, capacity: dict[str, int]) -> TrialTask:
        model = request.key.model
        lane = self._in_flight.lanes.get(model)
        if lane is None:
            raise SessionError(f"the session asked for {request.key}, but the model is stopped or unknown")
        if capacity[model] < 1:
            raise SessionError(f"the session asked for {request.key}, but the model has no free slot")
        capacity[model] -= 1
        failed = self._options.unfinished.get(request.key, ())
        return TrialTask.from_request(request, lane.client, self._prompts.messages(request), failed)

    async def _absorb(self) -> None:
        """Store completed trials, commit once, and only then tell the session."""
        after_stop = self._controller.stopped is not None
        records: list[TrialRecord] = []
        servers: dict[TrialKey, str] = {}
        refused: dict[str, str] = {}
        causes: dict[str, tuple[str, ...]] = {}
        for trial in self._in_flight.ended():
            model = trial.request.key.model
            servers[trial.request.key] = trial.sending.url
            match self._in_flight.settle(trial):
                case "scored":
                    records.append(self._outcome(trial, missing=None, after_stop=after_stop))
                case "missing" | "unscored" as end:
                    why = _why_missing(trial, end)
                    records.append(self._outcome(trial, missing=why, after_stop=after_stop))
                    lane = self._in_flight.lanes.get(model)
                    if lane is not None and lane.answers_nothing:
                        # An answer that no scorer can use is not the server's fault.
                        words = f"consecutive trials without a score: {why}"
                        if end == "missing":
                            words = _said(trial, f"consecutive trials without an answer: {why}")
                        refused.setdefault(model, words)
                case "refused":
                    refused.setdefault(model, _said(trial, str(trial.failure)))
                    if trial.failure:
                        cause = trial.failure.cause
                    else:
                        cause = ()
                    causes.setdefault(model, cause)
        self._end_where_refused_first(refused, causes)
        unlogged = self._log_attempts()
        await self._ledger.commit()
        for event in unlogged.recorded:
            event.set()
        for key, billed in unlogged.dropped:
            self._controller.abandon(key, billed=billed)
        if records:
            self._emit(Finished(tuple(records)))
            self._tell(record.logged(servers[record.request.key]) for record in records)
            self._size_rounds()
        self._decided(self._in_flight.fleet.changes.take_decisions(self._pace.trials))
        fleet = self._in_flight.fleet
        self._remark(fleet.take_news())
        warnings = fleet.changes.remarks()
        self._remark([words for words in warnings if words not in self._told])
        self._told.update(warnings)
        if not self._ending:
            lost = fleet.lost(self._reached_models())
        else:
            lost = {}
        for model, reason in {**lost, **refused}.items():
            self._stop_model(model, reason)

    def _reached_models(self) -> list[str]:
        """Return the models whose loss is not known by the end of their first trial: it may come later."""
        pools = self._in_flight.fleet.pools
        return [name for name, lane in self._in_flight.lanes.items() if lane.proven or pools[name].grows]

    def _outcome(self, trial: TrialTask, *, missing: str | None, after_stop: bool) -> TrialRecord:
        discarded = self._in_flight.discarded(trial)
        return self._ledger.outcome(trial, discarded, missing=missing, after_stop=after_stop)

    def _end_where_refused_first(
        self, refused: dict[str, str], causes: Mapping[str, tuple[str, ...]]
    ) -> None:
        """End the run if a model was never reached: the others would cost money.

        Such a model is not stopped: the run may continue once the cause is removed.
        """
        never = [model for model in refused if not self._in_flight.lanes[model].proven]
        if not never or self._options.allow_missing:
            return
        known: dict[str, Any] = {"refused": {model: causes.get(model, ()) for model in never}}
        known["models"] = {model: refused.pop(model) for model in never}
        if self._ending is None:
            self._end(StopVerdict("endpoints", evidence=known))
        elif "refused" in self._ending.evidence:  # further requests were out when the run was ended
            before = self._ending.evidence
            evidence = {name: {**found, **before[name]} for name, found in known.items()}
            self._ending = replace(self._ending, evidence=evidence)

    def _size_rounds(self) -> None:
        """Let the next batches be as large as the forecast says."""
        rounds = self._in_flight.rounds
        if not rounds:
            return
        results = self._controller.results()
        asked = sum(line.state == "active" for line in results.models)
        for limit in rounds:
            if results.forecast is not None:
                limit.expect(results.forecast.trials.low, asked)

    def _tell(self, trials: Iterable[LoggedTrial]) -> None:
        """Tell the session outcomes, and say what is wrong with answers.

        A model is stopped, or the run ended, before the session counts the answer that shows why: it must not
        call a ranking resolved that rests on such answers.
        """
        for found in self._watches.follow(trials):
            match found:
                case list():
                    if found:
                        self._decided(self._controller.tell(found))
                    else:
                        self._decided(())
                case Unusable():
                    self._stop_model(found.model, found.reason, unusable=True)
                case StopVerdict():
                    if self._controller.stopped is None:
                        self._decided(self._controller.end(found.reason, found.text, found.evidence))
                case _:
                    self._remark([found])

    def _remark(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._emit(Remarked(self._pace.clock.time(), text))

    def _stop_model(self, model: str, reason: str, *, spent: bool = False, unusable: bool = False) -> None:
        """Stop a model, unless it is stopped already."""
        if model in self._in_flight.lanes:
            self._in_flight.stop_model(model)
            self._watches.answers.leave(model)
            self._decided(self._controller.stop_model(model, reason, spent=spent, unusable=unusable))

    def _check_verdict(self) -> None:
        verdict = self._controller.stopped
        if verdict is not None and self._ending is None:
            self._end(verdict)

    def _check_deadline(self) -> None:
        if self._ending is not None:
            return
        deadlines = self._options.deadlines
        elapsed = self._pace.elapsed()
        over = deadlines.over(elapsed)
        if over is not None:
            self._end(StopVerdict("budget", evidence=over), cancel=self._options.at_deadline == "cancel")
            return
        for model in deadlines.models_over(elapsed):
            limit = deadlines.models[model]
            self._stop_model(model, f"its wall clock limit of {limit:g} s is reached", spent=True)

    def _end(self, verdict: StopVerdict, *, cancel: bool = False) -> None:
        """Launch nothing more; await the requests in flight, or cancel them."""
        self._ending = verdict
        self._in_flight.drain()
        self._wake.set()
        if cancel:
            self._in_flight.abandon()
        else:
            self._emit(Draining(verdict.reason, self._in_flight.running))

    async def _finish(self, ending: StopVerdict) -> StopVerdict:
        await self._absorb()  # what was dropped at the end
        self._decided(self._controller.end(ending.reason, ending.text, ending.evidence))
        verdict = self._controller.stopped
        if verdict is None:
            raise SessionError("the session was ended but has no verdict")
        await self._snapshot()
        self._emit(Stopped(verdict))
        return verdict

    def _decided(self, decisions: Sequence[Decision]) -> None:
        if decisions:
            at = self._ledger.decisions(decisions)
            self._emit(Decided(at, tuple(decisions)))

    async def _snapshot(self) -> None:
        self._pace.begin()
        elapsed = self._pace.elapsed()
        deadlines = self._options.deadlines.lines(elapsed)
        results = with_limits(
            self._watches.added_to(self._controller.results()),
            deadlines=deadlines,
            scoring_budget=self._scoring_budget,
        )
        warnings = (*results.warnings, *self._in_flight.fleet.remarks(), *self._pace.warnings())
        results = replace(results, warnings=warnings)
        lag = self._pace.end_of_lag()
        endpoints = self._in_flight.health()
        at = await self._ledger.snapshot(results, endpoints, elapsed=elapsed)
        self._pace.end(results.trials)
        self._emit(Progress(at, elapsed, results, endpoints, lag))

    def _log_attempts(self) -> Unlogged:
        unlogged = self._in_flight.take_unlogged()
        self._ledger.attempts(unlogged.attempts)
        if unlogged.attempts:
            self._emit(Attempted(tuple(unlogged.attempts)))
        return unlogged


def with_limits(
    results: Results, *, deadlines: Iterable[BudgetLine], scoring_budget: ScoringBudget | None
) -> Results:
    """Add to the results the limits that the session does not see: times, and costs of scoring."""
    if scoring_budget is not None:
        scoring = tuple(scoring_budget.lines())
    else:
        scoring = ()
    return replace(results, budgets=(*results.budgets, *deadlines, *scoring))


def _why_missing(trial: TrialTask, end: Literal["missing", "unscored"]) -> str:
    """Return why a trial has no category; one whose scorer was out of reach gets a score that says so."""
    if end == "missing":
        return f"{trial.failure} (attempts: {trial.attempts})"
    if trial.score is None:
        trial.score = Score(None, reason=str(trial.failure))
    reason = trial.score.reason
    if reason == COPY_REASON:
        return reason
    return f"{UNSCORED}{reason}"


def _said(trial: TrialTask, words: str) -> str:
    """Return `words` about where `trial` was sent last."""
    if trial.sending.last is None:
        return words
    return trial.sending.last.says(words)
