"""The plan: whom a session asks while answers are overdue.

The answers of a model are read in the order of its trial sequence, so that one that hangs holds up all its
contrasts, and by Holm's levels those of others. While it is awaited, a copy of the board counts it as lost,
in its place, and says who is asked next. No call rests on the copy: the answer counts when it comes, and the
board itself calls what follows.

That changes no error rate. Each contrast is read along fixed trial sequences, whoever is asked when, and a
round is laid out before its trials are asked, from earlier answers of its model alone. A loss that decides
until the answer is there would be no martingale: which answers are late may depend on what they say.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import TypeVar

from adaptive_eval.core.board import SessionAnswers, SessionContrasts
from adaptive_eval.core.budget import Budget
from adaptive_eval.core.issuing import Issuer
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.results import Decision
from adaptive_eval.trial import LAID_OUT
from scorio.sequential.parts import Mark, RunSequence

_Copied = TypeVar("_Copied", SessionAnswers, SessionContrasts)


class Plan:
    """A copy of a board in which overdue answers are lost; it asks, and decides nothing."""

    def __init__(self, comparison: SessionContrasts, budget: Budget, states: ModelStates) -> None:
        self.comparison = _copied(comparison, comparison.answers, comparison.rule)
        self.answers = self.comparison.answers
        self.issuer = Issuer(self.comparison, budget, states)
        self.lost: set[tuple[int, int]] = set()
        """The overdue answers, by model and index."""
        self._budget = budget
        self._read_at = -1

    def lose(self, model: int, index: int) -> None:
        """Count an awaited answer as lost."""
        self.lost.add((model, index))
        self.answers.add(model, index, Mark.MISSING, told=False)

    def absorb(self) -> Iterator[Decision]:
        """Take in what was told; yield the rounds that are laid out while answers before them are awaited."""
        laid_out = self.answers.run_sequence.laid_out
        before = {model: laid_out(model) for model, _ in self.lost}
        self.answers.absorb()
        for model, end in before.items():
            if laid_out(model) > end:
                yield self._laid_out(model)

    def _laid_out(self, model: int) -> Decision:
        name, progress = self.answers.spec.names[model], int(self.answers.progress[model])
        awaited = sorted(index for other, index in self.lost if other == model and index < progress)
        completed = self._budget.completed
        return Decision(LAID_OUT, (name,), "", progress, completed, evidence={"awaited": awaited})

    def read(self) -> None:
        """Find what is needed after the answers until now."""
        if self.answers.answered != self._read_at:
            self._read_at = self.answers.answered
            self.comparison.advance()

    @property
    def is_due(self) -> bool:
        """Whether about each needed model has answered once more since the last look."""
        return self.answers.answered >= self._read_at + len(self.comparison.members)


def lay_out_again(answers: SessionAnswers, decision: Decision) -> None:
    """Lay out a model's rounds as a stored run did while answers were awaited."""
    model, copy = answers.spec.names.index(decision.models[0]), _copied(answers, answers)
    for index in decision.evidence["awaited"]:
        if index < copy.furthest[model]:  # other answers followed it
            copy.add(model, index, Mark.MISSING, told=False)
    copy.complete[model] = min(copy.complete[model], decision.step)
    copy.absorb()


def _copied(one: _Copied, answers: SessionAnswers, *shared: object) -> _Copied:
    """Return a copy that shares what stays as it is, and the trial sequence: both boards follow one."""
    run_sequence: RunSequence = answers.run_sequence
    kept = (*shared, answers.spec, answers.previous, run_sequence, *run_sequence.sequences)
    return deepcopy(one, {id(part): part for part in kept})
