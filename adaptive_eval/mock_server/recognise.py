"""Find the question that a prompt asks: the longest known text that occurs in it, white space aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adaptive_eval.mock_server.answer_key import Answerable

__all__ = ["Recogniser"]

_HEAD = 16


class Recogniser:
    r"""Recognises known questions in prompts.

    Questions are indexed by their first characters and length, so a prompt costs time in its own length,
    hardly in the number of questions.

    Parameters
    ----------
    questions : sequence of Answerable
        What can be recognised. Of questions with the same text, the one with the most of its choices in the
        prompt is meant, the first among equals.

    Examples
    --------
    >>> key = [Answerable("a", "What is 2 + 2?", "4", ("5",)), Answerable("b", "What is 2", "2", ("3",))]
    >>> Recogniser(key).find("Think hard.\nWhat  is 2 +\n2?  Answer:")
    0
    >>> Recogniser(key).find("What is 22?") is None
    True
    """

    def __init__(self, questions: Sequence[Answerable]) -> None:
        self._choices = [[squeeze(choice) for choice in question.choices] for question in questions]
        # First characters -> length of the whole text -> the text -> its questions.
        self._heads: dict[str, dict[int, dict[str, list[int]]]] = {}
        for index, question in enumerate(questions):
            text = squeeze(question.question)
            by_text = self._heads.setdefault(text[:_HEAD], {}).setdefault(len(text), {})
            by_text.setdefault(text, []).append(index)
        self._head_lengths = sorted({len(head) for head in self._heads})

    def find(self, prompt: str) -> int | None:
        """Return the index of the question that `prompt` asks, or None.

        The longest text wins, and the later place among equals, so that a worked example before the
        question does not hide it.
        """
        text = squeeze(prompt)
        best = max(self._matches(text), default=None)
        return None if best is None else -best[-1]

    def _matches(self, text: str) -> Iterator[tuple[int, int, int, int]]:
        """Yield (length, place, choices in the prompt, −index) of every question that stands in `text`."""
        for start in range(len(text)):
            for head in self._head_lengths:
                for length, by_text in self._heads.get(text[start : start + head], {}).items():
                    for index in by_text.get(text[start : start + length], ()):
                        if _is_whole(text, start, start + length):
                            yield length, start, self._choices_in(index, text), -index

    def _choices_in(self, index: int, text: str) -> int:
        return sum(choice in text for choice in self._choices[index])


def squeeze(text: str) -> str:
    """Return `text` with every run of white space made one space, and none at its ends."""
    return " ".join(text.split())


def _is_whole(text: str, start: int, end: int) -> bool:
    """Say whether ``text[start:end]`` neither starts nor ends within a word."""
    before = start > 0 and text[start].isalnum() and text[start - 1].isalnum()
    after = end < len(text) and text[end - 1].isalnum() and text[end].isalnum()
    return not (before or after)
