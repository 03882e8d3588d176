"""The scorer ``exact``: right when the answer is the target, up to layout."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from adaptive_eval.scoring.extract import Extract, last_stated
from adaptive_eval.scoring.scorer import Answer, AnswerScorer
from adaptive_eval.scoring.text import normalised, unwrapped
from adaptive_eval.trial import Question

LONGEST_TARGET = 10_000
"""Characters that a target compared exactly may have."""

_SENTENCE_END = re.compile(r"[.!?]\s")


@dataclass(frozen=True, slots=True)
class ExactScorer(AnswerScorer):
    r"""Compares texts after normalising Unicode, white space punctuation and, by default, case.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> question = Question("capitals", "fr", "Paris")
    >>> ExactScorer().score(Completion("The answer is **paris**.", "stop"), question).reason
    'right (stated)'
    """

    # where the answer is: the last box; after the last "the answer is"; the whole text. ``auto`` takes the
    # first that the text has.
    extract: Literal["auto", "boxed", "stated", "whole"] = "auto"
    ignore_case: bool = True  # ignore letter case

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        if len(question.target) > LONGEST_TARGET:
            return (
                f"the target has {len(question.target)} characters; exact compares at most {LONGEST_TARGET}"
            )
        return None if self._form(question.target) else "the target is empty"

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the answer in `text`, whose last box is `box`, or None."""
        if self.extract in ("auto", "boxed") and box is not None:
            return Answer(unwrapped(box.text), "boxed", is_final=True)
        stated = last_stated(text) if self.extract in ("auto", "stated") else None
        if stated is not None:
            answer = unwrapped(stated.text)
            return Answer(answer, "stated", stated.end < len(text) or self._is_target(answer, question))
        if self.extract in ("auto", "whole") and text:
            return Answer(text, "whole text", self._is_target(text, question))
        return None

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether `answer`, or for a stated one its first sentence, is the target."""
        if answer.how == "stated" and self._is_target(_SENTENCE_END.split(answer.text, 1)[0], question):
            return True
        return self._is_target(answer.text, question)

    def _is_target(self, text: str, question: Question) -> bool:
        # A far longer text cannot be the target; an essay is not normalised.
        far_longer = len(text) > 4 * LONGEST_TARGET
        return not far_longer and self._form(text) == self._form(question.target)

    def _form(self, text: str) -> str:
        return normalised(unwrapped(text), ignore_case=self.ignore_case)
