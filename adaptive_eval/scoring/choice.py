"""The scorer ``choice``: right when the answer is the target's option, by letter or by text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from adaptive_eval.scoring.extract import Extract
from adaptive_eval.scoring.options import Options
from adaptive_eval.scoring.scorer import Answer, AnswerScorer
from adaptive_eval.trial import Question

__all__ = ["ChoiceScorer"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Labels of the options, in order."""

_WHOLE_NUMBER = re.compile(r"\d{1,3}")


@dataclass(frozen=True, slots=True)
class ChoiceScorer(AnswerScorer):
    """Compares options. The article "A" is not taken for one, nor is an answer that names several.

    Parameters
    ----------
    strip_reasoning : bool
        Leave out ``<think>…</think>`` and its like before looking for the answer.
    letters : str
        Letters of the options, for questions that list no options themselves.
    index_from : {0, 1}, optional
        Whether a target that is a number counts options from 0 or from 1; by default numbers are texts.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> question = Question("colours", "q1", "B", choices=("red", "blue"))
    >>> scorer = ChoiceScorer()
    >>> answers = [Completion(text, "stop") for text in ("(B)", "It is blue.", "A guess.")]
    >>> [scorer.score(answer, question).extracted for answer in answers]
    ['B', 'B', None]
    """

    letters: str = "ABCD"
    index_from: int | None = None

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        options = self._options(question)
        by_letter, by_text = self._by_letter(question, options), options.by_text(question.target)
        if by_letter and by_text and by_letter != by_text:
            return f"the target {question.target!r} is the letter of one option and the text of another"
        if by_letter or by_text:
            return None
        known = f"{', '.join(options.letters)}, or the text of an option"
        hint = "; set the scorer's index_from to 0 or 1" if _WHOLE_NUMBER.fullmatch(question.target) else ""
        return f"the target {question.target[:60]!r} is none of {known}{hint}"

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the letter of the answer in `text`, whose last box is `box`, or None."""
        options = self._options(question)
        if box is not None:
            return Answer(options.read(box.text) or box.text, "boxed", is_final=True)
        whole = options.read(text)
        if whole is not None:
            return Answer(whole, "whole text", is_final=True)
        stated = options.stated(text)
        if stated is not None:
            return Answer(stated.text, "stated", is_final=stated.end < len(text))
        last = options.in_last_line(text)
        return Answer(last, "last line", is_final=False) if last is not None else None

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether `answer` is the letter of the target."""
        options = self._options(question)
        target = self._by_letter(question, options) or options.by_text(question.target)
        return target is not None and answer.text == target

    def _options(self, question: Question) -> Options:
        return _cached_options(LETTERS[: len(question.choices)] or self.letters, question.choices)

    def _by_letter(self, question: Question, options: Options) -> str | None:
        target = question.target.strip()
        if self.index_from is not None and _WHOLE_NUMBER.fullmatch(target):
            place = int(target) - self.index_from
            return options.letters[place] if 0 <= place < len(options.letters) else None
        return options.by_label(target)


@lru_cache(maxsize=1024)
def _cached_options(letters: str, texts: tuple[str, ...]) -> Options:
    return Options(letters, texts)
