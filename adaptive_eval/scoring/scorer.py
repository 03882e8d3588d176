"""What every scorer does: find the answer, compare it with the target, say why."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from adaptive_eval.scoring.extract import Extract, last_boxed
from adaptive_eval.scoring.text import answer_part, storable
from adaptive_eval.trial import Completion, Question, Score, Signal

__all__ = ["CUT_OFF", "Answer", "AnswerScorer", "Scorer", "Undecided"]

CUT_OFF = frozenset({"length", "max_tokens", "model_length"})
"""Finish reasons of an answer that ran into its token limit."""


class Undecided(Exception):
    """A comparison came to no end, or to no result; the message says why. The answer counts as wrong."""


@runtime_checkable
class Scorer(Protocol):
    """Turns a completion into a score: a pure function that never raises on an answer."""

    def score(self, completion: Completion, question: Question) -> Score:
        """Return the score of `completion` as an answer to `question`."""

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable for this scorer, or None."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as a scorer found it.

    Parameters
    ----------
    text : str
        The answer.
    how : str
        Where it was found, for the score's reason: ``boxed``, ``stated``, ``last number``, ….
    is_final : bool
        False where it may be something else than what the model was about to say, had the answer been cut
        off.
    """

    text: str
    how: str
    is_final: bool


@dataclass(frozen=True, slots=True)
class AnswerScorer(ABC):
    """A scorer that compares one extracted answer with the target: category 1 when right, else 0.

    An answer that ran into its token limit is an outcome too: category 0 with the reason ``truncated``,
    unless the result was out before (a closed box, a stated answer that the cut did not touch).

    Parameters
    ----------
    strip_reasoning : bool
        Leave out ``<think>…</think>`` and its like before looking for the answer.
    marker : str, optional
        Look only at what follows the last occurrence of this text, and for a tag (``<result>``) only up to
        the one that closes it; without one there is no answer.
    """

    strip_reasoning: bool = True
    marker: str | None = None

    @abstractmethod
    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the answer in `text`, whose last box is `box`, or None."""

    @abstractmethod
    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether `answer` is the target; :class:`Undecided` where that cannot be found out."""

    def score_signal(self, answer: Answer | None, question: Question) -> dict[str, Signal]:
        """Return further signals of the scorer's own; none by default."""
        return {}

    @abstractmethod
    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable for this scorer, or None."""

    def score(self, completion: Completion, question: Question) -> Score:
        """Score one answer.

        Parameters
        ----------
        completion : Completion
            The answer; its text may be anything.
        question : Question
            The question, whose target has passed :meth:`check_target`.

        Returns
        -------
        Score
            Category 0 or 1, the extracted answer (bounded, without control characters), the signals
            ``is_correct``, ``has_box`` and ``truncated``, and the reason.
        """
        text = self._part(completion.text)
        box = last_boxed(text)
        truncated = completion.finish_reason in CUT_OFF
        answer = self.find(text, box, question)
        if truncated and answer is not None and not answer.is_final:
            answer = None
        right, reason = False, "truncated" if truncated else "no answer found"
        own: dict[str, Signal] = {}
        if answer is not None:
            try:
                right = self.is_right(answer, question)
                own = self.score_signal(answer, question)
                reason = f"{'right' if right else 'wrong'} ({answer.how})"
            except Undecided as error:
                reason = f"undecided ({answer.how}): {storable(str(error))}"
        return Score(
            category=int(right),
            extracted=None if answer is None else storable(answer.text),
            signals={"is_correct": right, "has_box": box is not None, "truncated": truncated, **own},
            reason=reason,
        )

    def _part(self, text: str) -> str:
        """Return where the answer is looked for."""
        part = answer_part(text, strip_reasoning=self.strip_reasoning)
        if self.marker is None:
            return part
        if self.marker not in part:
            return ""
        after = part.rpartition(self.marker)[2]
        if self.marker[:1] == "<" and self.marker[-1:] == ">":  # a tag: up to the one that closes it
            after = after.partition(f"</{self.marker[1:]}")[0]
        return after.strip()
