"""The session: ask for trials, tell outcomes, read decisions.

It is synchronous and pure: no clock, no network, no global randomness. The engine drives it; a notebook, a
simulation or another harness can do so too. Its state is a fold over the log of outcomes:
:meth:`Session.replay` of the stored log gives the state back, in any batches.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from adaptive_eval.core.board import SessionAnswers, SessionContrasts
from adaptive_eval.core.budget import Budget
from adaptive_eval.core.evidence import (
    StopVerdicts,
    account_evidence,
    pair_decision,
    stop_decision,
)
from adaptive_eval.core.forecast import Forecasts
from adaptive_eval.core.foresight import LookSchedule
from adaptive_eval.core.goals import Goal, make_goal
from adaptive_eval.core.model_states import Completed, Intake, ModelStates
from adaptive_eval.core.overdue_plan import Planner
from adaptive_eval.core.overview import results
from adaptive_eval.core.results import Decision, Results, RunForecast, StopVerdict
from adaptive_eval.core.spec import GoalSpec, SessionSpec
from adaptive_eval.core.spec_checks import check_budgets
from adaptive_eval.core.stored_log import StoredLog
from adaptive_eval.stops import StopReason
from adaptive_eval.trial import FIXED, TrialKey, TrialRequest
from scorio.sequential.parts import Levels

LOOKED_AT = frozenset({"lost", "partial"})
"""Reasons to stop that depend on when the open contrasts were looked at; a replay stops where its run did."""


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
        self._planner = Planner(self.comparison, self._intake)
        self._looks = LookSchedule(self.comparison)
        self._verdicts = StopVerdicts(self.spec, self.comparison, self.budget, self.states)
        self._forecasts = Forecasts(self.comparison, self.budget, self.states)
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
            slots = {self.board.model(name): free for name, free in capacity.items()}
        requests = self._issue(slots)
        if not requests and self._planner.plan is not None:
            self._planner.plan.update()
            requests = self._issue(slots)
        if not requests and not self.states.is_awaiting():
            self._decide(now=True)  # what waits unread may show what is needed next
            requests = self._issue(slots)
            if not requests and self.stopped is None:
                verdict = self._verdicts.without_work(self._planner.issuer)
                if verdict is not None:
                    self._stop(verdict)
        return requests

    def _issue(self, slots: int | Mapping[int, int]) -> list[TrialRequest]:
        """Drop the models whose own budget has ended, and issue trials of the others."""
        if any(self._planner.issuer.spent()):
            self._decide(now=True)  # what waits unread may show that they are not needed any more
        for model, account in list(self._planner.issuer.spent()):
            self.states.spent.add(model)
            self._give_up(model, "", account_evidence(self.spec, account))
        if self.stopped is None:
            return self._planner.issuer.issue(slots)
        return []

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
            self._intake.in_flight(key)
            self._plan_without(self.board.model(key.model), key.index)
        self._follow_plan()
        return self._report()

    def _follow_plan(self) -> None:
        """Bring the plan up to what was told, or make it again without what is not overdue any more."""
        plan = self._planner.plan
        if plan is None:
            return
        awaited = plan.awaited()
        if self.stopped is not None or awaited != plan.overdue.keys():
            self._planner.drop()
            self._decide(now=True)
            for model, index in sorted(awaited):
                self._plan_without(model, index)
        self.decisions += self._planner.follow()

    def _plan_without(self, model: int, index: int) -> None:
        if self.stopped is None:
            self._planner.leave_out(model, index)

    def _take(self, outcomes: Sequence[Completed]) -> None:
        self._intake.check(outcomes)
        self._intake.count(outcomes, after_stop=self.stopped is not None)
        self.board.fill()

    def _report(self) -> list[Decision]:
        """Return the decisions that have not been returned yet."""
        new = self.decisions[self._reported :]
        self._reported = len(self.decisions)
        return new

    def _decide(self, *, now: bool = False) -> None:
        """Read the completed trials and make calls, if it is time to look."""
        if self.stopped is not None or not (now or self._looks.is_due()):
            return
        horizon = None if now else self._looks.horizon()
        self.board.absorb(horizon)
        calls = self.comparison.advance()
        if self.spec.labels is None:
            self.decisions += [pair_decision(self.comparison, call) for call in calls]
        self._conclude(whole=horizon is None)
        self._looks.plan_next()

    # ------------------------------------------------------------------ retiring and stopping

    def _conclude(self, *, whole: bool = True) -> None:
        """Note which models no open contrast needs any more; stop if nothing is needed, or it stays open.

        The latter depends on when one looks: it is looked for once the `whole` log is read, and a replay
        looks where its run did.
        """
        if not self.comparison.contrasts.stops:
            return
        stopped = {self.spec.names[model] for model in self.states.stopped}
        for one in self.comparison.retired:
            if one.models[0] not in stopped:
                self.decisions.append(replace(one, trials=self.budget.completed))
        self.comparison.retired.clear()
        without = self.states.stopped.keys() | self.comparison.members
        for model in range(len(self.spec.models)):
            self.states.retired[model] = model not in without
        if not self.comparison.fold.needed.any():
            self._stop(self._verdicts.conclusion())
        elif not self._replaying and (verdict := self._verdicts.stays_open()):
            self._stop(verdict) if whole else self._decide(now=True)

    def _stop(self, verdict: StopVerdict) -> None:
        self.stopped = verdict
        self.decisions.append(stop_decision(self.comparison, verdict, self.budget.completed))

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
        self._fill_now()
        if decision.kind == "stop" and decision.verdict in LOOKED_AT:
            replaying, self._replaying = self._replaying, False
            self._decide(now=True)
            self._replaying = replaying
        elif decision.kind == "stop":
            self.end(cast("StopReason", decision.verdict), decision.text, decision.evidence)
        elif decision.kind == "model_stopped":
            model = self.board.model(decision.models[0])
            is_spent = decision.verdict == "budget"
            if is_spent:
                self.states.spent.add(model)
            if "unusable" in decision.evidence:
                self.states.unusable.add(model)
            if model not in self.states.stopped:
                self._give_up(model, decision.text, decision.evidence if is_spent else None)

    def _fill_now(self) -> None:
        """Complete what needed no trial before a stop from outside, which a replay leaves to its end."""
        determinism = self.board.determinism
        paused, determinism.paused = determinism.paused, False
        self.board.absorb()
        determinism.paused = paused

    def stop_model(
        self, name: str, reason: str, *, spent: bool = False, unusable: bool = False
    ) -> list[Decision]:
        """Drop a model: its endpoint refuses it, its time is `spent`, or its answers are `unusable`.

        The other models continue. Its open pairs stay undecided. Its trials in flight still count when they
        are completed.
        """
        model = self.board.model(name)
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
        self._planner.lose(model)
        self._follow_plan()
        self._conclude()

    # ------------------------------------------------------------------ trials without an outcome

    def presume_billed(self, key: TrialKey) -> bool:
        """Count a failed request of a trial in flight that may have been billed, at its worst case.

        Returns
        -------
        bool
            Whether the budgets allow the trial another request.
        """
        trial = self._intake.in_flight(key)
        return self.budget.presume_billed(self.board.model(key.model), trial.task, trial.question)

    def may_repeat(self, key: TrialKey) -> bool:
        """Count another request of a launched trial at its worst case, if the budgets have room for it."""
        model = self.board.model(key.model)
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
        trial, model = self._intake.in_flight(key), self.board.model(key.model)
        self.states.complete(model, key.index)
        self.budget.release(model, trial.task, trial.reservation)
        if billed:
            self.budget.presume_billed(model, trial.task, trial.question)
        self.states.reissue(model, key.index)
        self._follow_plan()

    # ------------------------------------------------------------------ the log

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
        stored = StoredLog(self._intake, self._planner.issuer, decisions)
        self.board.determinism.paused = self._replaying = True
        for outcomes in stored.portions(log):
            self._take(outcomes)
            if not self.board.determinism.claimed:  # what needs no trial is filled in at the end
                self._decide()
        self.board.determinism.paused = self._replaying = False
        self.board.absorb()  # what needs no trial, or is found to need one, is known only now
        stored.note_gaps()
        stored.bill(unanswered)
        self._decide(now=True)
        self._decide_by_labels()
        return self._report()

    def _decide_by_labels(self) -> None:
        """Stop if labels reach the goal. They are of answers that are in the log, so this is asked once."""
        if self.spec.labels is None:
            return
        self.results()
        verdict = None if self._labelled is None else self._labelled.stop
        if self.stopped is None and verdict is not None and verdict.reason == "resolved":
            self._stop(verdict)

    # ------------------------------------------------------------------ looking

    def results(self) -> Results:
        """Return scores, intervals, pairs, budgets and forecasts as plain data."""
        self._decide(now=True)
        self.board.absorb()
        waiting = self._planner.waiting() if self.stopped is None else {}
        found = results(self.comparison, self.budget, self.states, waiting, self.stopped)
        if self.spec.stopping.rule == FIXED:
            from adaptive_eval.core.one_look import OneLook, counted_answers

            found = OneLook(self.spec, counted_answers(self.board, self.states)).within(found)
        elif self.spec.labels is not None:  # further answers do not change what they say
            from adaptive_eval.core.by_labels import results_by_labels, with_verdicts

            if self._labelled is None:
                self._labelled = results_by_labels(self.spec, self.board, self.spec.labels, found)
            found = with_verdicts(found, self._labelled)
        else:
            found = replace(found, forecast=self.forecast())
        return replace(found, warnings=(*found.warnings, *self._remarks()))

    def forecast(self) -> RunForecast | None:
        """Return the forecast of the rest of the run, or None if there is none (yet).

        The last forecast is kept until the number of trials has grown by a twentieth.
        """
        return self._forecasts.now(self.stopped)

    @property
    def in_flight(self) -> int:
        """Trials issued and not completed."""
        return len(self.states.launched)
