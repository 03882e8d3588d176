"""Model states: the trials issued and in flight of each model, and why it was dropped; outcomes are counted.

Outcomes are checked as a batch, then counted; a repeated outcome counts once.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.budget import Budget, InFlightTrial
from adaptive_eval.core.determinism import COPY_READERS
from adaptive_eval.errors import SessionError
from adaptive_eval.trial import COPY_REASON, NOT_THERE, DiscardCause, Missing, TrialKey, TrialOutcome
from scorio.sequential.parts import Mark


class ModelStates:
    """Bookkeeping per model; every list has one entry for each model."""

    def __init__(self, models: int) -> None:
        none = [0] * models
        self.issued = none.copy()
        """Indices issued, in flight included."""
        self.in_flight = none.copy()
        """Trials in flight."""
        self.missing = none.copy()
        """Missing trials."""
        self.copies = none.copy()
        """Those of them that are copies."""
        self.discarded = none.copy()
        """Answered trials that are lost to verdicts: earlier draws of them were given up."""
        self.redrawn = none.copy()
        """Answered trials that count although earlier draws of them were given up: the user says so."""
        self.causes: list[Counter[DiscardCause]] = [Counter() for _ in none]
        """How many draws of lost trials were given up for each cause."""
        self.redrawn_causes: list[Counter[DiscardCause]] = [Counter() for _ in none]
        """The same of trials that count although draws of them were given up."""
        self.after_stop = none.copy()
        """Trials completed after the session had stopped."""
        self.skipped = none.copy()
        """Indices counted as issued that needed no trial."""
        self.retired = [False] * models
        """Models that no needed contrast asks for."""
        self.gaps: list[list[int]] = [[] for _ in none]
        """Indices to be issued again, because they were launched but never finished; the first one last."""
        self.stopped: dict[int, str] = {}
        """Dropped models, with the reason."""
        self.spent: set[int] = set()
        """Models whose own budget has ended, dropped or no longer needed."""
        self.unusable: set[int] = set()
        """Dropped models whose answers say nothing about them."""
        self.launched: dict[tuple[int, int], InFlightTrial] = {}
        """Trials in flight, by model and index."""
        self.absent: Counter[tuple[int, int, int]] = Counter()
        """Trials that the logs of an imported run lack, by model, task and question."""

    def launch(self, model: int, index: int, trial: InFlightTrial) -> None:
        """Count a trial as in flight."""
        self.launched[model, index] = trial
        self.in_flight[model] += 1
        if index >= self.issued[model]:
            self.issued[model] = index + 1

    def complete(self, model: int, index: int) -> InFlightTrial | None:
        """Count a trial as completed; return None if it was not in flight."""
        trial = self.launched.pop((model, index), None)
        if trial is not None:
            self.in_flight[model] -= 1
        return trial

    def is_awaiting(self) -> bool:
        """Return whether a trial of a model that is not dropped is in flight."""
        return any(trials for model, trials in enumerate(self.in_flight) if model not in self.stopped)

    def reissue(self, model: int, index: int) -> None:
        """Note an index that was launched and not finished; it is issued again."""
        self.gaps[model].append(index)
        self.gaps[model].sort(reverse=True)


Completed: TypeAlias = TrialOutcome | Missing


class Intake:
    """Counts outcomes in board, budget and model states."""

    def __init__(self, board: SessionAnswers, budget: Budget, states: ModelStates) -> None:
        spec = self.spec = board.spec
        self.board = board
        self.planned: SessionAnswers | None = None
        """The board of a plan, which gets every answer too."""
        self.budget = budget
        self.states = states
        self._categories = [len(task.unit_scores) for task in spec.tasks]
        self._repeating = bool(board.determinism.claimed)
        self._reads_copies = spec.stopping.rule in COPY_READERS

    def in_flight(self, key: TrialKey) -> InFlightTrial:
        """Return a trial in flight."""
        trial = self.states.launched.get((self.board.model(key.model), key.index))
        if trial is None:
            raise SessionError(f"trial {key.index} of model {key.model!r} is not in flight")
        return trial

    def check(self, outcomes: Sequence[Completed]) -> None:
        """Raise SessionError unless every outcome can be taken."""
        launched, seen = self.states.launched, dict[tuple[int, int], int]()
        for outcome in outcomes:
            counted = self._counted(outcome)
            key = (self.board.model(outcome.key.model), outcome.key.index)
            trial = launched.get(key)
            if trial is not None:
                known_category = seen.setdefault(key, counted)
                categories = self._categories[trial.task]
                if isinstance(outcome, TrialOutcome) and not 0 <= outcome.category < categories:
                    raise SessionError(
                        f"{_trial(outcome)} has category {outcome.category}, but task "
                        f"{self.spec.tasks[trial.task].name!r} has categories 0..{categories - 1}"
                    )
            else:
                known = self.board.category(*key)
                if known is None:
                    raise SessionError(
                        f"{_trial(outcome)} was never asked for; tell only what ask() has returned"
                    )
                known_category = known
            if known_category != counted:
                raise SessionError(
                    f"{_trial(outcome)} was told before with category {known_category}, now with {counted}"
                )

    def count(self, outcomes: Sequence[Completed], *, after_stop: bool) -> None:
        """Count outcomes, checked before; one that was counted already is left out."""
        states = self.states
        budget = self.budget
        boards = [self.board]
        if self.planned is not None:
            boards.append(self.planned)
        for outcome in outcomes:
            key = outcome.key
            model, index = self.board.model(key.model), key.index
            trial = states.complete(model, index)
            if trial is None:
                continue
            category, answered = self._counted(outcome), isinstance(outcome, TrialOutcome)
            states.missing[model] += category < 0 and not outcome.discarded
            states.copies[model] += category == Mark.DROPPED
            if isinstance(outcome, Missing) and outcome.reason == NOT_THERE:
                states.absent[model, trial.task, trial.question] += 1
            if outcome.discarded:
                states.missing[model] += not answered
                kept = states.redrawn_causes if category >= 0 else states.causes
                kept[model].update(outcome.discarded)
                states.discarded[model] += answered and category < 0
                states.redrawn[model] += category >= 0
            amount = budget.charge(model, trial, outcome.usage, answered=answered)
            for board in boards:
                if category >= 0 and self._may_be_copy(outcome):
                    board.doubt(model, index, _text(outcome))
                board.add(model, index, category)
                if board.costs is not None:
                    board.costs[model, index] = budget.spent(amount)
                if self._repeating:
                    board.determinism.note(model, index, category, _text(outcome))
            if after_stop:
                states.after_stop[model] += 1

    def _may_be_copy(self, outcome: Completed) -> bool:
        """Return whether an answer may be a copy of an earlier one, for all that the user has said."""
        return isinstance(outcome, TrialOutcome) and outcome.repeats and not self.spec.independent_copies

    def _counted(self, outcome: Completed) -> int:
        """Return the category that counts for verdicts: none if the first draw is not known."""
        category = self._category(outcome)
        if category >= 0 and set(outcome.discarded) - self.spec.redrawn:
            return Mark.MISSING
        return category

    def _category(self, outcome: Completed) -> int:
        """Return the category with which an outcome counts.

        A rule that reads single trials cannot tell how many draws copies are, so that it takes them as lost.
        """
        if isinstance(outcome, TrialOutcome):
            lost = self._may_be_copy(outcome) and not self._reads_copies
            if lost:
                return Mark.MISSING
            return outcome.category
        if outcome.reason == COPY_REASON:
            return Mark.DROPPED
        return Mark.MISSING


def _text(outcome: Completed) -> int:
    """Return what tells different texts apart: a digest, or the number of tokens."""
    if isinstance(outcome, TrialOutcome) and outcome.answer is not None:
        return outcome.answer
    return outcome.usage.completion_tokens


def _trial(outcome: Completed) -> str:
    return f"trial {outcome.key.index} of model {outcome.key.model!r}"
