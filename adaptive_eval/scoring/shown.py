"""A question as another model is shown it."""

from __future__ import annotations

import json
from string import ascii_uppercase

from adaptive_eval.trial import GIVEN, Question

__all__ = ["asked"]


def asked(question: Question) -> str:
    r"""Return the question as another model is shown it: its text or its conversation, and its options.

    Examples
    --------
    >>> asked(Question("t", "q", "B", {"input": "The sky?"}, ("red", "blue")))
    'The sky?\nA. red\nB. blue'
    >>> asked(Question("t", "q", "4", {GIVEN: '[["system", "Add."], ["user", "2 + 2?"]]'}))
    'system: Add.\nuser: 2 + 2?'
    """
    if GIVEN in question.fields:
        said = json.loads(str(question.fields[GIVEN]))
        text = "\n".join(f"{role}: {content}" for role, content in said)
    else:
        text = str(question.fields.get("input", ""))
    options = (
        f"{letter}. {option}" for letter, option in zip(ascii_uppercase, question.choices, strict=False)
    )
    return "\n".join((text, *options))
