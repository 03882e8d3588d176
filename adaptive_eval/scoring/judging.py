"""One task's scoring: the scorer says what an answer is, the rubric which category that makes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.scoring.rubric import Rubric, SignalMissing
from adaptive_eval.scoring.scorer import Scorer
from adaptive_eval.scoring.signals import attempt_signals
from adaptive_eval.trial import Completion, Question, Score

__all__ = ["TaskScoring"]


@dataclass(frozen=True)
class TaskScoring:
    """A scorer and a rubric.

    Parameters
    ----------
    scorer : Scorer
        Extracts the answer and compares it with the target.
    rubric : Rubric
        Turns the signals into a category; its thresholds are frozen.
    """

    scorer: Scorer
    rubric: Rubric

    def score(self, completion: Completion, question: Question) -> Score:
        """Return the category of an answer, with every signal it was found from.

        Raises
        ------
        TransientEndpointError
            Where the endpoint left out what the category depends on, such as log-probabilities that were
            asked for. Such an answer is not scored.
        """
        return self.categorised(self.scorer.score(completion, question), completion)

    def categorised(self, score: Score, completion: Completion) -> Score:
        """Return the scorer's `score` with the rubric's category in place of its own; none stays none.

        Raises
        ------
        TransientEndpointError
            As :meth:`score`.
        """
        signals = {**attempt_signals(completion), **score.signals}
        if score.category is None:
            return replace(score, signals=signals)
        try:
            category = self.rubric.category(signals)
        except SignalMissing as error:
            raise TransientEndpointError(f"the answer cannot be scored: {error}", kind="malformed") from None
        reason = score.reason
        if self.rubric.schema is not None:
            reason = f"{reason}: {self.rubric.categories[category]}"
        elif score.category and not category:
            reason = f"{reason}, truncated"
        return replace(score, category=category, signals=signals, reason=reason)
