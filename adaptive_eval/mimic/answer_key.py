"""The answer key: questions with their right answer and plausible wrong ones, found again in prompts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from adaptive_eval.errors import DatasetError
from adaptive_eval.mimic.mimic_spec import AnswerKind, DatasetSpec, KnownQuestion, MimicSpec
from adaptive_eval.tasks.rows import read_rows

_OFFSETS = (1, -1, 2, -2, 10, -10, 5, -3)
_TEXT_DISTRACTORS = 8
_HEAD = 16  # characters of a question by which it is indexed


@dataclass(frozen=True, slots=True)
class Answerable:
    """A question that a mimic model can answer right and wrong."""

    # its name and its text
    id: str
    question: str
    right: str  # the right answer as it is written down: a number, a choice's letter, a text
    wrong: tuple[str, ...]  # plausible wrong answers, at least one; none equals the right one
    choices: tuple[str, ...] = ()  # texts of the options, where it has them


def load_answer_key(spec: MimicSpec) -> list[list[Answerable]]:
    """Return the questions of every dataset of `spec`, a list for each; those given outright come last.

    Examples
    --------
    >>> from adaptive_eval.mimic.mimic_spec import MimicModelSpec
    >>> question = KnownQuestion(id="q1", question="How many legs have two spiders?", target="16")
    >>> key = load_answer_key(MimicSpec(models=(MimicModelSpec(name="a", mean=0.5),), questions=(question,)))
    >>> key[0][0].right, key[0][0].wrong[:3]
    ('16', ('17', '15', '18'))
    """
    outright: dict[str, list[tuple[str, KnownQuestion]]] = {}
    for question in spec.questions:
        outright.setdefault(question.dataset, []).append((f"question {question.id!r}", question))
    groups = [*(_rows(dataset) for dataset in spec.datasets), *outright.values()]
    key = []
    for group in groups:
        targets = list(dict.fromkeys(row.target.strip() for _, row in group))
        key.append([_one(place, row, targets, index) for index, (place, row) in enumerate(group)])
    return key


def _rows(dataset: DatasetSpec) -> list[tuple[str, KnownQuestion]]:
    file = read_rows(Path(dataset.path))
    for line, words in file.problems:
        if line:
            where = f"{dataset.path}: line {line}: {words}"
        else:
            where = f"{dataset.path}: {words}"
        raise DatasetError(where)
    found = []
    for index, row in enumerate(file.rows):
        place = f"{dataset.path}:{row.line}"
        found.append((place, _known(dataset, row.values, index, place)))
    return found


def _known(dataset: DatasetSpec, row: Mapping[str, Any], index: int, place: str) -> KnownQuestion:
    for field in (dataset.question, dataset.target):
        if not isinstance(row.get(field), str | int | float) or not str(row[field]).strip():
            known = ", ".join(map(str, row))
            raise DatasetError(f"{place}: field {field!r} is missing or is no text or number; it has {known}")
    choices = row.get(dataset.choices) or ()
    if not isinstance(choices, list | tuple) or not all(isinstance(choice, str | int) for choice in choices):
        raise DatasetError(f"{place}: field {dataset.choices!r} is not a list of texts")
    target = row[dataset.target]
    if isinstance(target, int) and choices and dataset.kind in ("auto", "choice"):
        if not 0 <= target < len(choices):
            raise DatasetError(f"{place}: choice {target} is not in 0..{len(choices) - 1}")
        target = _letter(target)
    return KnownQuestion(
        id=str(row.get(dataset.id, index)),
        question=str(row[dataset.question]),
        target=str(target),
        choices=tuple(map(str, choices)),
        kind=dataset.kind,
    )


def _letter(position: int) -> str:
    return chr(ord("A") + position)


def _one(place: str, row: KnownQuestion, targets: Sequence[str], index: int) -> Answerable:
    kind = _kind(row)
    right = row.target.strip()
    if kind == "choice":
        right, wrong = _choice_answers(row, place)
    elif kind == "numeric":
        wrong = _near(right, place)
    else:
        wrong = _other_targets(right, targets, index)
    return Answerable(row.id, row.question, right, wrong, row.choices)


def _kind(row: KnownQuestion) -> AnswerKind:
    if row.kind != "auto":
        return row.kind
    if row.choices:
        return "choice"
    if _number(row.target) is None:
        return "text"
    return "numeric"


def _choice_answers(row: KnownQuestion, place: str) -> tuple[str, tuple[str, ...]]:
    letters = list(map(_letter, range(len(row.choices))))
    target = row.target.strip()
    label = target.strip("().").upper()
    if label in letters:
        right = label
    elif target in row.choices:
        right = letters[row.choices.index(target)]
    else:
        raise DatasetError(f"{place}: answer {target!r} is neither one of {', '.join(letters)} nor a choice")
    if len(letters) < 2:
        raise DatasetError(f"{place}: a multiple-choice question needs at least two choices")
    return right, tuple(letter for letter in letters if letter != right)


def _number(text: str) -> Decimal | None:
    plain = re.sub(r"^\$|,(?=\d{3})|%$", "", text.strip())
    try:
        number = Decimal(plain)
    except InvalidOperation:
        return None
    if number.is_finite():
        return number
    return None


def _near(right: str, place: str) -> tuple[str, ...]:
    number = _number(right)
    if number is None:
        raise DatasetError(f"{place}: answer {right!r} is not a number")
    step = Decimal(1)
    if number != number.to_integral_value():
        step = Decimal((0, (1,), int(number.as_tuple().exponent)))
    near = dict.fromkeys(number + offset * step for offset in _OFFSETS)
    return tuple(f"{value:f}" for value in near if number < 0 or value >= 0)


def _other_targets(right: str, targets: Sequence[str], index: int) -> tuple[str, ...]:
    # A window that moves with the question, so that not every question has the same distractors.
    window = [targets[(index + k) % len(targets)] for k in range(1, min(len(targets), _TEXT_DISTRACTORS) + 1)]
    others = [text for text in window if text.casefold() != right.casefold()]
    return tuple(others) or (("unknown",) if right.casefold() != "unknown" else ("nothing",))


class Recogniser:
    r"""Recognises known questions in prompts.

    Questions are indexed by their first characters, so a prompt costs time in its own length, hardly in the
    number of questions.

    Examples
    --------
    >>> key = [Answerable("a", "What is 2 + 2?", "4", ("5",)), Answerable("b", "What is 2", "2", ("3",))]
    >>> Recogniser(key).find("Think hard.\nWhat  is 2 +\n2?  Answer:")
    0
    >>> Recogniser(key).find("What is 22?") is None
    True
    """

    def __init__(self, questions: Sequence[Answerable]) -> None:
        self._choices = [list(map(squeeze, question.choices)) for question in questions]
        self._heads: dict[str, list[tuple[str, int]]] = {}
        for index, question in enumerate(questions):
            text = squeeze(question.question)
            self._heads.setdefault(text[:_HEAD], []).append((text, index))
        self._head_lengths = sorted({len(head) for head in self._heads})

    def find(self, prompt: str) -> int | None:
        """Return the index of the question that `prompt` asks, or None.

        The longest text wins, and the later place among equals, so that a worked example before the
        question does not hide it.
        """
        text = squeeze(prompt)
        best = max(self._matches(text), default=None)
        if best is None:
            return None
        return -best[-1]

    def _matches(self, text: str) -> Iterator[tuple[int, int, int, int]]:
        """Yield (length, place, choices in the prompt, −index) of every question that occurs in `text`."""
        for start in range(len(text)):
            for head in self._head_lengths:
                for known, index in self._heads.get(text[start : start + head], ()):
                    if text.startswith(known, start) and _is_whole(text, start, start + len(known)):
                        shown = sum(choice in text for choice in self._choices[index])
                        yield len(known), start, shown, -index


def squeeze(text: str) -> str:
    """Return `text` with every run of white space made one space, and none at its ends."""
    return " ".join(text.split())


def _is_whole(text: str, start: int, end: int) -> bool:
    """Say whether ``text[start:end]`` neither starts nor ends within a word."""
    before = start > 0 and text[start].isalnum() and text[start - 1].isalnum()
    after = end < len(text) and text[end - 1].isalnum() and text[end].isalnum()
    return not (before or after)
