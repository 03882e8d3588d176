"""The session: ask for trials, tell outcomes, read decisions.

It is synchronous and pure: no clock, no network, no global randomness. The engine drives it; a notebook, a
simulation or another harness can do so too. Its state is a fold over the log of outcomes:
:meth:`Session.replay` of the stored log gives the state back, in any batches.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from adaptive_eval.core.board import SessionAnswers, SessionContrasts
from adaptive_eval.core.budget import Budget, InFlightTrial
from adaptive_eval.core.discarded import open_for_good
from adaptive_eval.core.evidence import (
    account_evidence,
    lost_evidence,
    pair_decision,
    partial_evidence,
    resolved_evidence,
    retirement,
    stopped_models,
)
from adaptive_eval.core.forecast import forecast
from adaptive_eval.core.foresight import next_look, too_noisy
from adaptive_eval.core.goals import Goal, make_goal
from adaptive_eval.core.issuing import Issuer
from adaptive_eval.core.model_states import Completed, Intake, ModelStates
from adaptive_eval.core.overview import results
from adaptive_eval.core.results import Decision, Results, RunForecast, StopVerdict
from adaptive_eval.core.spec import GoalSpec, SessionSpec
from adaptive_eval.core.spec_checks import check_budgets
from adaptive_eval.errors import SessionError
from adaptive_eval.stops import StopReason
from adaptive_eval.trial import FIXED, LAID_OUT, TrialKey, TrialRequest
from scorio.sequential.parts import Answers, Levels

if TYPE_CHECKING:
    from adaptive_eval.core.one_look import AnswerCounts
    from adaptive_eval.core.overdue_plan import OverduePlan

_MOST_IN_FLIGHT = 1_000_000
"""A log that lacks more trials than these before another is no run's."""

LOOKED_AT = frozenset({"lost", "partial"})
"""Reasons to stop that depend on when the open contrasts were looked at; a replay stops where its run did."""

READ_BATCH = 64
"""Outcomes that may wait before contrasts are read, while not every needed model has made a step."""


class Session:
    """One run's decisions.

    Parameters
    ----------
    spec : SessionSpec
        Models, tasks, goal, rule, allocation and budget.
    remarks : callable
        Returns warnings from outside, such as of an audit of the answers, to be shown with the others.
    asked : tuple of Goal and Levels, optional
        What is decided in place of the spec's goal, with its thresholds.

    Raises
    ------
    UsageError
        If the spec cannot be run, or its budgets cannot be held.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, SessionSpec, TaskSpec
    >>> from adaptive_eval.trial import TrialOutcome
    >>> questions = tuple(f"q{number}" for number in range(30))
    >>> session = Session(SessionSpec((ModelSpec("good"), ModelSpec("bad")), (TaskSpec("t", questions),)))
    >>> while session.stopped is None:
    ...     requests = session.ask(8)
    ...     outcomes = [TrialOutcome(r.key, int(r.key.model == "good")) for r in requests]
    ...     decisions = session.tell(outcomes)
    >>> session.stopped.reason
    'resolved'
    >>> print(session.results().models[0].model)
    good
    """

    def __init__(
        self,
        spec: SessionSpec,
        remarks: Callable[[], tuple[str, ...]] = tuple,
        asked: tuple[Goal, Levels] | None = None,
    ) -> None:
        self.spec = spec
        if spec.labels is not None:  # they decide, and what the scores say must not end anything
            spec = replace(spec, goal=GoalSpec("budget"))
        read = spec
        if spec.stopping.rule == FIXED:  # nothing is decided before the last trial, and so nothing is read
            read = replace(spec, goal=GoalSpec("budget"))
            none = replace(make_goal(replace(spec, goal=GoalSpec("pairs"))), stops=False)
            asked = asked or (none, spec.levels(spec.rule(), 0))
        self.board = SessionAnswers(read)
        check_budgets(spec)
        self.comparison = SessionContrasts(spec, self.board, *(asked or ()))
        self.budget = Budget(spec)
        self.states = ModelStates(len(spec.models))
        self.stopped: StopVerdict | None = None
        self.decisions: list[Decision] = []
        self._remarks = remarks
        self._reported = 0
        self._intake = Intake(self.board, self.budget, self.states)
        self._issuer = Issuer(self.comparison, self.budget, self.states)
        self._plan: OverduePlan | None = None  # while answers are overdue
        self._next_look = 1
        self._look_at = READ_BATCH
        self._forecast: RunForecast | None = None
        self._forecast_due = 0
        self._forecast_ended = False
        self._replaying = False
        self._labelled: Results | None = None

    # ------------------------------------------------------------------ asking

    def ask(self, capacity: int | Mapping[str, int]) -> list[TrialRequest]:
        """Return the next trials to run.

        Parameters
        ----------
        capacity : int or mapping of str to int
            Trials that can be run now: in all, or per model (its free slots).

        Returns
        -------
        list of TrialRequest
            At most `capacity` trials; empty when the session has stopped or when nothing should be issued
            before more outcomes are told.

        Raises
        ------
        SessionError
            If a capacity names an unknown model or is negative.
        """
        if self.stopped is not None:
            return []
        slots: int | dict[int, int]
        if isinstance(capacity, int):
            slots = capacity
        else:
            slots = {self._intake.model(name): free for name, free in capacity.items()}
        requests = self._issue(slots)
        if not requests and self._plan is not None:
            self._plan.read()
            requests = self._issue(slots)
        if not requests and not self._waiting():
            self._decide(now=True)  # what waits unread may show what is needed next
            requests = self._issue(slots)
            if not requests:
                self._stop_without_work()
        return requests

    def _issue(self, slots: int | Mapping[int, int]) -> list[TrialRequest]:
        """Drop the models whose own budget has ended, and issue trials of the others."""
        if any(self._asking.spent()):
            self._decide(now=True)  # what waits unread may show that they are not needed any more
        for model, account in list(self._asking.spent()):
            self.states.spent.add(model)
            self._give_up(model, "", account_evidence(self.spec, account))
        if self.stopped is None:
            return self._asking.issue(slots)
        return []

    @property
    def _asking(self) -> Issuer:
        """What says who is asked: that of the plan, while there is one."""
        if self._plan is not None:
            return self._plan.issuer
        return self._issuer

    def _waiting(self) -> bool:
        """Whether a trial of a model that is not dropped is in flight."""
        in_flight = self.states.in_flight
        return any(in_flight[model] for model in range(len(in_flight)) if model not in self.states.stopped)

    # ------------------------------------------------------------------ telling

    def tell(self, outcomes: Sequence[Completed]) -> list[Decision]:
        """Count outcomes, in any order, and return the decisions that follow.

        Parameters
        ----------
        outcomes : sequence of TrialOutcome or Missing
            Outcomes of trials that were asked for. One told twice is ignored the second time.

        Returns
        -------
        list of Decision
            New decisions, in order. A pair that is called while both models are still needed for others may
            be returned up to a sixteenth of the steps later than it was; :meth:`results` reads all answers.
            When it is read changes no call.

        Raises
        ------
        SessionError
            If a trial was never asked for, a category is out of range, or an outcome contradicts an earlier
            one. Nothing of the batch is counted then.
        """
        self._take(outcomes)
        self._follow_plan()
        self._decide()
        return self._report()

    def overdue(self, keys: Iterable[TrialKey]) -> list[Decision]:
        """Plan without answers that are awaited for far too long; return the decisions that follow.

        Until they come, others stand for them where :meth:`ask` chooses whom to ask, and nowhere else.

        Parameters
        ----------
        keys : iterable of TrialKey
            Trials in flight.

        Returns
        -------
        list of Decision
            Rounds that are laid out although answers before them are awaited. A replay needs them.

        Raises
        ------
        SessionError
            If a trial is not in flight.
        """
        for key in keys:
            self._in_flight(key)
            self._plan_without(self._intake.model(key.model), key.index)
        self._follow_plan()
        return self._report()

    def _plan_without(self, model: int, index: int) -> None:
        """Let another answer stand for an awaited one in the plan, which is made if there is none."""
        plans = self.comparison.contrasts.stops or not self.board.run_sequence.endless
        if self.stopped is not None or not plans or self.board.determinism.claimed:
            return
        if self._plan is not None and (model, index) in self._plan.overdue:
            return
        if self._plan is None:
            from adaptive_eval.core.overdue_plan import OverduePlan  # most runs need none

            self._plan = OverduePlan(self.comparison, self.budget, self.states)
            self._intake.planned = self._plan.answers
        self._plan.stand_in(model, index)

    def _follow_plan(self) -> None:
        """Bring the plan up to what was told, or make it again without what is not overdue any more."""
        if self._plan is None:
            return
        in_flight = self._plan.overdue.keys() & self.states.launched.keys()
        overdue = {key for key in in_flight if key[0] not in self.states.stopped}
        if overdue != self._plan.overdue.keys() or self.stopped is not None:
            self._plan = self._intake.planned = None
            self._decide(now=True)
            for model, index in sorted(overdue):
                self._plan_without(model, index)
        if self._plan is not None:
            self.decisions += self._plan.absorb()
            if self._plan.is_due:
                self._plan.read()

    def _take(self, outcomes: Sequence[Completed]) -> None:
        self._intake.check(outcomes)
        self._intake.take(outcomes, after_stop=self.stopped is not None)
        self.board.fill()

    def _report(self) -> list[Decision]:
        """Return the decisions that have not been returned yet."""
        new = self.decisions[self._reported :]
        self._reported = len(self.decisions)
        return new

    def _decide(self, *, now: bool = False) -> None:
        """Read the completed trials and make calls, if it is time to look."""
        if self.stopped is not None or not (now or self._is_look_due()):
            return
        horizon = None if now else self._horizon()
        self.board.absorb(horizon)
        calls = self.comparison.advance()
        if self.spec.labels is None:
            self.decisions += [pair_decision(self.comparison, call) for call in calls]
        self._retire()
        self._stop_when_done(whole=horizon is None)
        ahead = next_look(self.comparison)
        members = len(self.comparison.members)
        self._next_look = self.comparison.reached + ahead
        self._look_at = self.board.answered + max(READ_BATCH, ahead * members)

    def _horizon(self) -> int | None:
        """Return how far in the log to read: to a step that all needed models made, unless much lies beyond.

        Models at one step are read together. What lies beyond waits for the next look.
        """
        board, members = self.board, self.comparison.members
        common = min(map(board.complete.__getitem__, members), default=0)
        if common < self._next_look:
            return None
        horizon = board.position_by(members, common)
        if board.answered - horizon < READ_BATCH + len(members):
            return horizon
        return None

    def _is_look_due(self) -> bool:
        """Return whether a call may depend on what has come since the last look.

        When it is read decides nothing: calls are those of the log.
        """
        if self.board.answered >= self._look_at:
            return True
        complete, members = self.board.complete, self.comparison.members
        return min(map(complete.__getitem__, members), default=Answers.FINISHED) >= self._next_look

    # ------------------------------------------------------------------ retiring and stopping

    def _retire(self) -> None:
        """Note which models no open contrast needs any more."""
        if not self.comparison.contrasts.stops:
            return
        active = set(self.comparison.members)
        for model, retired in enumerate(self.states.retired):
            idle = model not in active and model not in self.states.stopped
            if idle and not retired:
                self.decisions.append(retirement(self.comparison, model, self.budget.completed))
            self.states.retired[model] = idle

    def _stop_when_done(self, *, whole: bool = True) -> None:
        """Stop if nothing is needed any more, or what is needed stays open.

        The latter depends on when one looks: it is looked for once the `whole` log is read, and a replay
        looks where its run did.
        """
        if not self.comparison.contrasts.stops:
            return
        if not self.comparison.fold.needed.any():
            self._stop(self._conclusion())
        elif not self._replaying and (verdict := self._open_for_good()):
            self._stop(verdict) if whole else self._decide(now=True)

    def _open_for_good(self) -> StopVerdict | None:
        """Return why what is needed stays open whatever is asked; None if it may be decided."""
        comparison = self.comparison
        needed = comparison.fold.needed
        if comparison.latest.slack[needed].all() and open_for_good(comparison, self.budget.run)[needed].all():
            return StopVerdict("lost", evidence=lost_evidence(comparison, self.states))
        noisy = () if comparison.hopeless else too_noisy(comparison)
        if not comparison.hopeless and not noisy:
            return None
        evidence = partial_evidence(comparison, self.states)
        if noisy:
            evidence["open"] += int(needed.sum())
            return StopVerdict("partial", evidence=evidence | {"noisy": noisy})
        evidence["open"] += int(needed.sum())
        return StopVerdict("partial", evidence=evidence | {"sample": True})

    def _conclusion(self) -> StopVerdict:
        """Return the verdict once no open contrast can be decided."""
        comparison, states = self.comparison, self.states
        ending = comparison.ending if comparison.contrasts.stops else None
        if ending == "resolved":
            return StopVerdict("resolved", evidence=resolved_evidence(comparison))
        if ending == "partial":
            return StopVerdict("partial", evidence=partial_evidence(comparison, states))
        stopped = stopped_models(self.budget, states)
        if states.stopped.keys() <= states.spent:
            is_goal = self.spec.goal.kind == "budget"
            grounds = {"scope": "models", "owner": "", "models": stopped, "is_goal": is_goal}
            return StopVerdict("budget", evidence=grounds)
        if states.unusable:
            return StopVerdict("unusable", evidence={"cause": "models", "models": stopped})
        return StopVerdict("endpoints", evidence={"models": stopped})

    def _stop_without_work(self) -> None:
        """Stop if nothing is in flight and nothing can be issued, unless only free slots are lacking."""
        if self.stopped is not None:
            return
        exhausted = self._issuer.exhausted()
        if len(self.states.stopped) == len(self.spec.models):
            self._stop(self._conclusion())
        elif exhausted is not None:
            self._stop(StopVerdict("budget", evidence=account_evidence(self.spec, exhausted)))
        elif self._issuer.capped():
            stopped, done = self.states.stopped, self.board.determinism.done
            known = [one.name for number, one in enumerate(self.spec.models) if done(number)]
            whole = all(done(model) for model in self.comparison.members if model not in stopped)
            passes = {"passes": self.spec.stopping.max_passes} if not whole else {}
            self._stop(StopVerdict("max_passes", evidence={**passes, "known": known}))

    def _stop(self, verdict: StopVerdict) -> None:
        self.stopped = verdict
        read, completed = self.comparison.fold.progress, self.budget.completed
        if not read.size:
            read = self.board.progress[: len(self.spec.models)]  # that of a reference has no end
        step = int(read.max())
        self.decisions.append(
            Decision("stop", (), verdict.reason, step, completed, verdict.text, verdict.evidence)
        )

    def end(
        self, reason: StopReason, text: str = "", evidence: Mapping[str, Any] | None = None
    ) -> list[Decision]:
        """Stop from outside, such as at a deadline or an interrupt, and return what was decided on the way.

        Parameters
        ----------
        reason : str
            As in :class:`StopVerdict`.
        text : str
            Why, in words, if `evidence` does not say it.
        evidence : mapping, optional
            As in :class:`StopVerdict`.
        """
        self._decide(now=True)
        if self.stopped is None:
            found = dict(evidence or {})
            if reason == "budget":
                found["is_goal"] = self.spec.goal.kind == "budget" and found.get("scope") != "scorer"
            self._stop(StopVerdict(reason, text, found))
        return self._report()

    def repeat(self, decision: Decision) -> None:
        """Make a stored stop again, of a model or of the session, that did not follow from outcomes."""
        if decision.kind == "stop" and decision.verdict in LOOKED_AT:
            replaying, self._replaying = self._replaying, False
            self._decide(now=True)
            self._replaying = replaying
        elif decision.kind == "stop":
            self.end(cast("StopReason", decision.verdict), decision.text, decision.evidence)
        elif decision.kind == "model_stopped":
            model = self._intake.model(decision.models[0])
            is_spent = decision.verdict == "budget"
            if is_spent:
                self.states.spent.add(model)
            if "unusable" in decision.evidence:
                self.states.unusable.add(model)
            if model not in self.states.stopped:
                self._give_up(model, decision.text, decision.evidence if is_spent else None)

    def stop_model(
        self, name: str, reason: str, *, spent: bool = False, unusable: bool = False
    ) -> list[Decision]:
        """Drop a model: its endpoint refuses it, its time is `spent`, or its answers are `unusable`.

        The other models continue. Its open pairs stay undecided. Its trials in flight still count when they
        are completed.
        """
        model = self._intake.model(name)
        if unusable:
            self.states.unusable.add(model)
        if spent:
            self.states.spent.add(model)
        if model not in self.states.stopped and not (spent and self.states.retired[model]):
            self._give_up(model, reason, {} if spent else None)
        return self._report()

    def _give_up(self, model: int, reason: str, spent: Mapping[str, Any] | None) -> None:
        """Ask nothing more of a model, whose own budget is `spent` or which has failed."""
        if self.stopped is None:
            self._decide(now=True)
        if self.stopped is not None:
            return
        self.states.stopped[model] = reason
        name, issued = self.spec.models[model].name, self.states.issued[model]
        verdict, completed = "stopped" if spent is None else "budget", self.budget.completed
        ground = {"unusable": True} if model in self.states.unusable else spent or {}
        self.decisions.append(Decision("model_stopped", (name,), verdict, issued, completed, reason, ground))
        self.comparison.lose(model)
        if self._plan is not None:
            self._plan.comparison.lose(model)
            self._follow_plan()
        self._retire()
        self._stop_when_done()

    # ------------------------------------------------------------------ trials without an outcome

    def presume_billed(self, key: TrialKey) -> bool:
        """Count a failed request of a trial in flight that may have been billed, at its worst case.

        Returns
        -------
        bool
            Whether the budgets allow the trial another request.
        """
        trial = self._in_flight(key)
        return self.budget.presume_billed(self._intake.model(key.model), trial.task, trial.question)

    def may_repeat(self, key: TrialKey) -> bool:
        """Count another request of a launched trial at its worst case, if the budgets have room for it."""
        model = self._intake.model(key.model)
        task, question = self.board.run_sequence.at(key.index, model)
        return self.budget.repeat(model, task, question)

    def abandon(self, key: TrialKey, *, billed: bool) -> None:
        """Remove a trial that will not be completed; it is issued again unless its model is dropped.

        Parameters
        ----------
        key : TrialKey
            The trial.
        billed : bool
            Whether a request was out, which may have been billed: it counts at its worst case.

        Raises
        ------
        SessionError
            If the trial is not in flight.
        """
        trial, model = self._in_flight(key), self._intake.model(key.model)
        self.states.complete(model, key.index)
        self.budget.release(model, trial.task, trial.reservation)
        if billed:
            self.budget.presume_billed(model, trial.task, trial.question)
        self.states.reissue(model, key.index)
        self._follow_plan()

    def _in_flight(self, key: TrialKey) -> InFlightTrial:
        trial = self.states.launched.get((self._intake.model(key.model), key.index))
        if trial is None:
            raise SessionError(f"trial {key.index} of model {key.model!r} is not in flight")
        return trial

    # ------------------------------------------------------------------ the log

    def keep_questions(self, asked: Iterable[tuple[TrialKey, str, str]]) -> None:
        """Give trials the task and question that they had, for a log that is scored otherwise than it was.

        Rounds follow from scores: otherwise :meth:`replay` would take answers for those to other questions.
        """
        if not any(self.spec.own_rounds):
            return
        places = {
            (task.name, question): place
            for task in self.spec.tasks
            for place, question in enumerate(task.questions)
        }
        for key, task, question in asked:
            model = self._intake.model(key.model)
            self.board.run_sequence.keep(model, key.index, places[task, question])

    def require_asked(self, trials: Iterable[tuple[TrialKey, str, str]]) -> None:
        """Raise SessionError unless each trial of a log that was replayed is of its index's question."""
        for key, task, question in trials:
            number, place = self.board.run_sequence.at(key.index, self._intake.model(key.model))
            wanted = self.spec.tasks[number]
            asked = wanted.name, wanted.questions[place]
            if asked != (task, question):
                words = " of task ".join(map(repr, reversed(asked)))
                raise SessionError(f"trial {key.index} of {key.model!r} is not of question {words}")

    def replay(
        self,
        log: Iterable[Sequence[Completed]],
        unanswered: Iterable[tuple[TrialKey, int]] = (),
        decisions: Iterable[Decision] = (),
    ) -> list[Decision]:
        """Rebuild the state from stored outcomes, in batches.

        Indices that the log lacks (launched but never finished) are issued again first.

        Parameters
        ----------
        log : iterable of sequence of TrialOutcome or Missing
            What :meth:`tell` had been told, in that order; the batches decide nothing.
        unanswered : iterable of (TrialKey, int)
            Trials with the number of their requests that may have been billed and have left no answer.
        decisions : iterable of Decision
            The stored decisions, of which those that laid out rounds while answers were awaited are needed.

        Returns
        -------
        list of Decision
            The decisions, as they fell.
        """
        known: list[set[int]] = [set() for _ in self.spec.models]
        trials = 0
        laid_out: list[list[Decision]] = [[] for _ in self.spec.models]
        for decision in decisions:
            if decision.kind == LAID_OUT:
                laid_out[self._intake.model(decision.models[0])].append(decision)
        self.board.determinism.paused = self._replaying = True
        for batch in log:
            pending: list[Completed] = []
            for outcome in batch:
                model, index = self._intake.model(outcome.key.model), outcome.key.index
                if self._needs_layout(laid_out[model], model, index):
                    self._tell_again(pending)
                    self.board.absorb()
                    pending = []
                    while laid_out[model] and self._needs_layout(laid_out[model], model, index):
                        self._lay_out_again(laid_out[model].pop(0))
                    # It was laid out when all before was complete, so the log has no more of that.
                    while not self._issuer.is_laid_out(model, index) and self.board.fill_next(model):
                        self.board.absorb()
                if index not in known[model]:
                    trials += 1
                    if index > trials + _MOST_IN_FLIGHT:
                        raise SessionError(
                            f"trial {index:,} of {outcome.key.model!r} follows {trials:,} trials in all"
                        )
                    known[model].add(index)
                    self._issuer.adopt(model, index)
                pending.append(outcome)
            self._tell_again(pending)
        for left in laid_out:
            for decision in left:
                self._lay_out_again(decision)
        self.board.absorb()  # trials in flight may be of rounds that follow from what is not read yet
        fills, complete = self.board.determinism.needs_no_trial, self.board.complete
        self.board.determinism.paused = self._replaying = False
        for model, indices in enumerate(known):
            without = set(range(self.states.issued[model])) - indices
            gaps = {index for index in without if index >= complete[model] and not fills(model, index)}
            self.states.gaps[model] = sorted(gaps, reverse=True)
            self.states.skipped[model] = len(without) - len(gaps)
        for key, times in unanswered:
            model = self._intake.model(key.model)
            task, question = self.board.run_sequence.at(key.index, model)
            self.budget.presume_billed(model, task, question, times, fitted=True)
        self._decide(now=True)
        self._decide_by_labels()
        return self._report()

    def _lay_out_again(self, decision: Decision) -> None:
        from adaptive_eval.core.overdue_plan import lay_out_again  # most runs need none

        lay_out_again(self.board, decision)

    def _needs_layout(self, decisions: Iterable[Decision], model: int, index: int) -> bool:
        """Return whether a stored answer follows a round that is not laid out, or one that did without it."""
        awaited = [place for decision in decisions for place, _ in decision.evidence["awaited"]]
        return index in awaited or not self._issuer.is_laid_out(model, index)

    def _decide_by_labels(self) -> None:
        """Stop if labels reach the goal. They are of answers that are in the log, so this is asked once."""
        if self.spec.labels is None:
            return
        self.results()
        verdict = None if self._labelled is None else self._labelled.stop
        if self.stopped is None and verdict is not None and verdict.reason == "resolved":
            self._stop(verdict)

    def _tell_again(self, outcomes: Sequence[Completed]) -> None:
        self._take(outcomes)
        if not self.board.determinism.claimed:  # what needs no trial is filled in at the end
            self._decide()

    # ------------------------------------------------------------------ looking

    def results(self) -> Results:
        """Return scores, intervals, pairs, budgets and forecasts as plain data."""
        self._decide(now=True)
        self.board.absorb()
        waiting = self._waits_for() if self.stopped is None else {}
        found = results(self.comparison, self.budget, self.states, waiting, self.stopped)
        if self.spec.stopping.rule == FIXED:
            from adaptive_eval.core.one_look import OneLook

            found = OneLook(self.spec, self._answers()).within(found)
            return replace(found, warnings=(*found.warnings, *self._remarks()))
        if self.spec.labels is not None:
            return self._by_labels(found)
        forecast = self.forecast()
        return replace(found, forecast=forecast, warnings=(*found.warnings, *self._remarks()))

    def _waits_for(self) -> dict[int, list[int]]:
        """Return the models that wait for others: also those that need nothing but an overdue answer."""
        waiting = self._asking.waiting()
        if self._plan is not None:
            held_back = set(self.comparison.members) - set(self._plan.comparison.members)
            for model in sorted(held_back):
                if not self.states.in_flight[model]:
                    waiting[model] = sorted({late for late, _ in self._plan.overdue})
        return waiting

    def _by_labels(self, alone: Results) -> Results:
        """Return results by labels, which further answers do not change."""
        from adaptive_eval.core.by_labels import results_by_labels, with_verdicts

        assert self.spec.labels is not None
        if self._labelled is None:
            self._labelled = results_by_labels(self.spec, self.board, self.spec.labels, alone)
        found = with_verdicts(alone, self._labelled)
        return replace(found, warnings=(*found.warnings, *self._remarks()))

    def _answers(self) -> "AnswerCounts":
        """Return all answers that are counted; what the logs of an import lack was not asked."""
        from adaptive_eval.core.one_look import AnswerCounts

        cells, absent = self.board.cells, self.states.absent
        number = np.concatenate([one.counts.sum(axis=2) for one in cells], axis=1)
        total = np.concatenate([one.counts @ one.scale.levels for one in cells], axis=1)
        lost = np.concatenate([one.lost for one in cells], axis=1)
        for (model, task, question), times in absent.items():
            lost[model, self.spec.columns[task].start + question] -= times
        return AnswerCounts(np.rint(number).astype(np.int64), total, lost).asked_of_all()

    def forecast(self) -> RunForecast | None:
        """Return the forecast of the rest of the run, or None if there is none (yet).

        The last forecast is kept until the number of trials has grown by a twentieth.
        """
        ended = self.stopped is not None
        if self.stopped is not None and self.stopped.reason not in ("budget", "max_passes"):
            return None
        if self.budget.completed >= self._forecast_due or ended is not self._forecast_ended:
            self._forecast_due = self.budget.completed + max(self.budget.completed // 20, 10)
            self._forecast_ended = ended
            self._forecast = forecast(self.comparison, self.budget, self.states, ended=ended)
        return self._forecast

    @property
    def in_flight(self) -> int:
        """Trials issued and not completed."""
        return len(self.states.launched)
