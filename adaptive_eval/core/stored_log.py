"""A stored log on its way into a session: its trials count as issued, in rounds as they were laid out."""

from collections.abc import Iterable, Iterator, Sequence

from adaptive_eval.core.issuing import Issuer
from adaptive_eval.core.model_states import Completed, Intake
from adaptive_eval.core.overdue_plan import lay_out_again
from adaptive_eval.core.results import Decision
from adaptive_eval.errors import SessionError
from adaptive_eval.trial import LAID_OUT, TrialKey

_MOST_IN_FLIGHT = 1_000_000
"""A log that lacks more trials than these before another is no run's."""


class StoredLog:
    """Counts the trials of a log as issued, and says when its outcomes are told."""

    def __init__(self, intake: Intake, issuer: Issuer, decisions: Iterable[Decision]) -> None:
        self._intake = intake
        self._issuer = issuer
        self._board = intake.board
        models = self._board.spec.models
        self._known: list[set[int]] = [set() for _ in models]
        self._laid_out: list[list[Decision]] = [[] for _ in models]
        for decision in decisions:
            if decision.kind == LAID_OUT:
                self._laid_out[self._board.model(decision.models[0])].append(decision)

    def portions(self, log: Iterable[Sequence[Completed]]) -> Iterator[list[Completed]]:
        """Yield a log in portions, each of which is told before the next one is taken."""
        trials = 0
        for batch in log:
            pending: list[Completed] = []
            for outcome in batch:
                model, index = self._board.model(outcome.key.model), outcome.key.index
                if self._needs_layout(model, index):
                    yield pending
                    pending = []
                    self._lay_out(model, index)
                if index not in self._known[model]:
                    trials += 1
                    if index > trials + _MOST_IN_FLIGHT:
                        name = outcome.key.model
                        raise SessionError(f"trial {index:,} of {name!r} follows {trials:,} trials in all")
                    self._known[model].add(index)
                    self._issuer.adopt(model, index)
                pending.append(outcome)
            yield pending
        for decisions in self._laid_out:
            for decision in decisions:
                lay_out_again(self._board, decision)
        self._board.absorb()  # trials in flight may be of rounds that follow from what is not read yet

    def _needs_layout(self, model: int, index: int) -> bool:
        """Return whether an answer follows a round that is not laid out, or one that did without it."""
        decisions = self._laid_out[model]
        awaited = [place for decision in decisions for place, _ in decision.evidence["awaited"]]
        return index in awaited or not self._issuer.is_laid_out(model, index)

    def _lay_out(self, model: int, index: int) -> None:
        """Lay out the rounds that were laid out before this answer came."""
        board, decisions = self._board, self._laid_out[model]
        board.absorb()
        while decisions and self._needs_layout(model, index):
            lay_out_again(board, decisions.pop(0))
        # It was laid out when all before was complete, so the log has no more of that.
        while not self._issuer.is_laid_out(model, index) and board.fill_next(model):
            board.absorb()

    def note_gaps(self) -> None:
        """Note the trials that the log lacks: those that need one are issued again."""
        states, complete = self._intake.states, self._board.complete
        fills = self._board.determinism.needs_no_trial
        for model, known in enumerate(self._known):
            without = set(range(states.issued[model])) - known
            gaps = {index for index in without if index >= complete[model] and not fills(model, index)}
            states.gaps[model] = sorted(gaps, reverse=True)
            states.skipped[model] = len(without) - len(gaps)

    def bill(self, unanswered: Iterable[tuple[TrialKey, int]]) -> None:
        """Count requests that may have been billed and have left no answer."""
        for key, times in unanswered:
            model = self._board.model(key.model)
            task, question = self._board.run_sequence.at(key.index, model)
            self._intake.budget.presume_billed(model, task, question, times, fitted=True)
