"""The plan: whom a session asks while answers are overdue.

The answers of a model are read in the order of its trial sequence, so that one that hangs holds up all its
contrasts, and by Holm's levels those of others. While it is awaited, the model's most frequent answer stands
in its place on a copy of the board, which says who is asked next. No call rests on the copy: the answer
counts when it comes, and the board itself calls what follows.

That changes no error rate. The order in which a contrast reads answers is fixed, and does not depend on the
order of requests; a round is laid out before its trials are asked, from earlier answers of its model alone.
Counted as lost until it comes, an answer would change calls: which are late may depend on what they say.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import TypeVar

import numpy as np

from adaptive_eval.core.board import SessionAnswers, SessionContrasts
from adaptive_eval.core.budget import Budget
from adaptive_eval.core.issuing import Issuer
from adaptive_eval.core.model_states import Intake, ModelStates
from adaptive_eval.core.results import Decision
from adaptive_eval.trial import LAID_OUT
from scorio.sequential.parts import Mark, RunSequence

_Copied = TypeVar("_Copied", SessionAnswers, SessionContrasts)


class OverduePlan:
    """A copy of a board in which others stand for overdue answers; it asks, and decides nothing."""

    def __init__(self, comparison: SessionContrasts, budget: Budget, states: ModelStates) -> None:
        self.comparison = _copied(comparison, comparison.answers, comparison.rule)
        self.answers = self.comparison.answers
        self.issuer = Issuer(self.comparison, budget, states)
        self.overdue: dict[tuple[int, int], int] = {}
        """The category that stands for each overdue answer, by model and index."""
        self._budget = budget
        self._states = states
        self._read_at = -1

    def stand_in(self, model: int, index: int) -> None:
        """Let the most frequent answer of the model to the same task stand for one that is awaited."""
        answers, furthest = self.answers, self.answers.furthest[model]
        task = answers.run_sequence.task(0, max(furthest, index + 1))
        known, category = answers.answers[model, :furthest], int(Mark.MISSING)
        there = known[(known >= 0) & (task[:furthest] == task[index])]
        if there.size:
            category = int(np.bincount(there).argmax())
        self.overdue[model, index] = category
        answers.add(model, index, category, told=False)

    def absorb(self) -> Iterator[Decision]:
        """Take in what was told; yield the rounds that are laid out while answers before them are awaited."""
        laid_out = self.answers.run_sequence.laid_out
        before = {model: laid_out(model) for model, _ in self.overdue}
        self.answers.absorb()
        for model, end in before.items():
            if laid_out(model) > end:
                yield self._laid_out(model)

    def _laid_out(self, model: int) -> Decision:
        name, progress = self.answers.spec.names[model], int(self.answers.progress[model])
        awaited = []
        for (other, index), category in sorted(self.overdue.items()):
            if other == model and index < progress:
                awaited.append([index, category])
        completed = self._budget.completed
        return Decision(LAID_OUT, (name,), "", progress, completed, evidence={"awaited": awaited})

    def update(self) -> None:
        """Find what is needed after the answers until now."""
        if self.answers.answered != self._read_at:
            self._read_at = self.answers.answered
            self.comparison.advance()

    def awaited(self) -> set[tuple[int, int]]:
        """Return the overdue answers that are awaited still."""
        launched, stopped = self._states.launched, self._states.stopped
        return {key for key in self.overdue.keys() & launched.keys() if key[0] not in stopped}

    @property
    def is_due(self) -> bool:
        """Whether about each needed model has answered once more since the last look."""
        return self.answers.answered >= self._read_at + len(self.comparison.members)


class Planner:
    """Says who is asked next: the board of a session does, or while answers are overdue a plan."""

    def __init__(self, comparison: SessionContrasts, intake: Intake) -> None:
        self._comparison = comparison
        self._intake = intake
        self._own = Issuer(comparison, intake.budget, intake.states)
        self.plan: OverduePlan | None = None

    @property
    def issuer(self) -> Issuer:
        """What issues trials: that of the plan, while there is one."""
        if self.plan is not None:
            return self.plan.issuer
        return self._own

    def leave_out(self, model: int, index: int) -> None:
        """Let another answer stand for an awaited one in the plan, which is made if there is none."""
        answers, stops = self._comparison.answers, self._comparison.contrasts.stops
        if answers.determinism.claimed or not (stops or not answers.run_sequence.endless):
            return
        if self.plan is None:
            self.plan = OverduePlan(self._comparison, self._intake.budget, self._intake.states)
            self._intake.planned = self.plan.answers
        if (model, index) not in self.plan.overdue:
            self.plan.stand_in(model, index)

    def drop(self) -> None:
        """End the plan."""
        self.plan = self._intake.planned = None

    def follow(self) -> Iterator[Decision]:
        """Bring the plan up to what was told; yield the rounds that are laid out by it."""
        if self.plan is not None:
            yield from self.plan.absorb()
            if self.plan.is_due:
                self.plan.update()

    def lose(self, model: int) -> None:
        """Ask nothing more of a model."""
        self._comparison.lose(model)
        if self.plan is not None:
            self.plan.comparison.lose(model)

    def waiting(self) -> dict[int, list[int]]:
        """Return the models that wait for others: also those that need nothing but an overdue answer."""
        waiting = self.issuer.waiting()
        if self.plan is not None:
            held_back = set(self._comparison.members) - set(self.plan.comparison.members)
            for model in sorted(held_back):
                if not self._intake.states.in_flight[model]:
                    waiting[model] = sorted({late for late, _ in self.plan.overdue})
        return waiting


def lay_out_again(answers: SessionAnswers, decision: Decision) -> None:
    """Lay out a model's rounds as a stored run did while answers were awaited."""
    model, copy = answers.spec.names.index(decision.models[0]), _copied(answers, answers)
    for index, category in decision.evidence["awaited"]:
        task = int(copy.run_sequence.task(index, index + 1)[0])
        most = copy.cells[task].scale.scores.size - 1  # scored otherwise, there may be fewer
        copy.add(model, index, min(category, most), told=False)
    copy.complete[model] = min(copy.complete[model], decision.step)
    copy.absorb()


def _copied(one: _Copied, answers: SessionAnswers, *shared: object) -> _Copied:
    """Return a copy that shares what stays as it is, and the trial sequence: both boards follow one."""
    run_sequence: RunSequence = answers.run_sequence
    kept = (*shared, answers.spec, answers.previous, run_sequence, *run_sequence.sequences)
    return deepcopy(one, {id(part): part for part in kept})
