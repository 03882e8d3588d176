"""The scorer ``numeric``: right when the answer is the target's number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from adaptive_eval.scoring.extract import Extract, last_stated
from adaptive_eval.scoring.numerals import FoundNumber, find_numbers, is_same_number, read_number
from adaptive_eval.scoring.scorer import Answer, AnswerScorer
from adaptive_eval.trial import Question

_USUALLY_ENOUGH = 400
"""Characters at the end of a text that are searched first for its last number."""

_REASON = re.compile(r",?[ ]\(?(?:because|since)\b|,[ ](?:as|where|given|which)\b", re.IGNORECASE)
"""Separators between a stated number and its explanation, which may hold further numbers."""


@dataclass(frozen=True, slots=True)
class NumericScorer(AnswerScorer):
    r"""Compares numbers, whatever their notation (:mod:`adaptive_eval.scoring.numerals`).

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> question = Question("sums", "q1", "1200")
    >>> NumericScorer().score(Completion(r"So it costs \boxed{\$1,200.00}.", "stop"), question).category
    1
    """

    # where the answer is: the last box; the number after the last "the answer is"; the last number of the
    # text. ``auto`` takes the first that the text has. A box that holds no number is a wrong answer.
    extract: Literal["auto", "boxed", "stated", "last-number"] = "auto"
    # largest difference that counts as right: absolute, or as a share of the target; the larger bound
    # holds. Default: none, the comparison is exact.
    tolerance: float = 0.0
    relative_tolerance: float = 0.0

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        if read_number(question.target) is None:
            return f"the target {question.target[:60]!r} is not a number; use the scorer exact, or correct it"
        return None

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the answer in `text`, whose last box is `box`, or None."""
        if self.extract in ("auto", "boxed") and box is not None:
            return Answer(box.text, "boxed", is_final=True)
        stated = last_stated(text) if self.extract in ("auto", "stated") else None
        if stated is not None:
            answer = _stated_number(stated, len(text))
            if answer is not None:
                return answer
        if self.extract in ("auto", "last-number"):
            last = _last_number(text)
            # In a text that was cut off, a later number may be missing.
            return Answer(last.text, "last number", is_final=False) if last is not None else None
        return None

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether `answer` is the target's number."""
        number, target = read_number(answer.text), read_number(question.target)
        if number is None or target is None:
            return False
        return is_same_number(number, target, self.tolerance, self.relative_tolerance)


def _last_number(text: str) -> FoundNumber | None:
    """Return the last number of a text, looking at its end first."""
    for length in (_USUALLY_ENOUGH, len(text)):
        numbers = list(find_numbers(text[-length:]))
        # The start of the piece may cut a number; the rest of it reads as two numbers at most, as {1}{2}.
        if len(numbers) > 2 or length == len(text):
            break
    return numbers[-1] if numbers else None


def _stated_number(stated: Extract, length: int) -> Answer | None:
    """Return the number of a statement: all of it, the result of its equation, or its first number."""
    line = stated.text
    reason = _REASON.search(line)
    if reason is not None and read_number(line[: reason.start()]) is not None:
        return Answer(line[: reason.start()], "stated", is_final=True)
    if read_number(line) is not None:
        return Answer(line, "stated", is_final=stated.end < length or not line[-1:].isdigit())
    found: FoundNumber | None = None
    for part in reversed(line.split("=")):
        found = next(find_numbers(part), None)
        if found is not None:
            break
    if found is None:
        return None
    return Answer(found.text, "stated", is_final=stated.end < length or not found.reaches_end)
