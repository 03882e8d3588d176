"""A question with its options in another order."""

from __future__ import annotations

import random
from dataclasses import replace

from adaptive_eval.tasks.questions import LETTERS, option_lines
from adaptive_eval.trial import Question

__all__ = ["shuffled", "target_option"]


def target_option(question: Question) -> int | None:
    """Return the place of the option that is right, named by its letter or its text; None where it is not.

    Examples
    --------
    >>> target_option(Question("t", "q", "B", choices=("red", "blue")))
    1
    >>> target_option(Question("t", "q", "red", choices=("red", "blue")))
    0
    """
    target = question.target.strip()
    if target in question.choices:
        return question.choices.index(target)
    letters = LETTERS[: len(question.choices)]
    return letters.index(target.upper()) if len(target) == 1 and target.upper() in letters else None


def shuffled(question: Question, seed: int) -> Question:
    """Return `question` with its options in the order that `seed` gives, and the target's new letter.

    Parameters
    ----------
    question : Question
        With options, one of which is the target.
    seed : int
        The trial's seed: the same trial has the same order whenever it is asked or scored.

    Examples
    --------
    >>> question = Question("t", "q", "B", {"choices": "", "input": "Sky?"}, ("red", "blue", "green"))
    >>> one = shuffled(question, 4)
    >>> one.choices["ABC".index(one.target)]
    'blue'
    """
    place = target_option(question)
    if place is None:
        return question
    order = list(range(len(question.choices)))
    random.Random(f"options:{question.id}:{seed}").shuffle(order)
    choices = tuple(question.choices[option] for option in order)
    target = LETTERS[order.index(place)]
    fields = {**question.fields, "choices": option_lines(choices), "target": target}
    return replace(question, choices=choices, target=target, fields=fields)
