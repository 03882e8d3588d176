"""The mock server as judge or verifier: it recognises what it is asked to grade and knows the right verdict.

What is to be graded stands between marker lines of one word and a digest, as
:func:`adaptive_eval.scoring.served.fenced` writes them; the word says what is asked.
"""

from __future__ import annotations

import re

from adaptive_eval.mock_server.answer_key import Answerable

__all__ = ["is_content_free", "is_letter_asked", "read_grading"]

_CONTENT_FREE = "content-free"

_BLOCK = re.compile(r"^((ANSWER|RESPONSE|FIRST|SECOND)-[0-9a-f]{16})\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
_QUESTION = re.compile(r"^Question:\n(.*?)\n\n", re.MULTILINE | re.DOTALL)
_REFERENCE = re.compile(r"^Reference answer:\n(.*?)\n\n", re.MULTILINE | re.DOTALL)


def read_grading(prompt: str, template: str) -> Answerable | None:
    r"""Return the verdict that a prompt asks for, and the wrong ones; None where nothing is to be graded.

    Examples
    --------
    >>> mark = "ANSWER-0123456789abcdef"
    >>> prompt = f"Reference answer:\n42\n\n{mark}\nI think it is 41.\n{mark}"
    >>> read_grading(prompt, "I think it is {answer}.").right
    'wrong'
    """
    blocks = {found[2]: found[3] for found in _BLOCK.finditer(prompt)}
    said = {word: _result(text, template) for word, text in blocks.items()}
    if "FIRST" in said and "SECOND" in said:
        if said["FIRST"] == said["SECOND"]:
            return Answerable("", "", "tie", ("first", "second"))
        first = len(blocks["FIRST"]) < len(blocks["SECOND"])
        return Answerable("", "", *(("first", ("second", "tie")) if first else ("second", ("first", "tie"))))
    reference = _REFERENCE.search(prompt)
    target = _plain(reference[1]) if reference is not None else None
    if "ANSWER" in said:
        right = said["ANSWER"] == target
        return Answerable("", "", *(("correct", ("wrong",)) if right else ("wrong", ("correct",))))
    if "RESPONSE" in said and _is_about_nothing(prompt, blocks["RESPONSE"]):
        return Answerable(_CONTENT_FREE, "", "A", ("B", "C"))
    if "RESPONSE" in said:
        letter = "C" if not blocks["RESPONSE"].strip() else "A" if said["RESPONSE"] == target else "B"
        return Answerable("", "", letter, tuple(other for other in "ABC" if other != letter))
    return None


def is_letter_asked(question: Answerable) -> bool:
    """Tell whether a verifier's label is asked for: one letter, and nothing around it."""
    graded = question.id == "" and question.right in ("A", "B", "C")
    return graded or is_content_free(question)


def is_content_free(question: Answerable) -> bool:
    """Tell whether a verifier is asked about nothing: then its labels are equally likely."""
    return question.id == _CONTENT_FREE


def _is_about_nothing(prompt: str, response: str) -> bool:
    """Tell whether question, reference and response are one text, as in a content-free prompt."""
    question, reference = _QUESTION.search(prompt), _REFERENCE.search(prompt)
    return question is not None and reference is not None and question[1] == reference[1] == response


def _result(text: str, template: str) -> str:
    before, _, after = template.partition("{answer}")
    found = text.rpartition(before)[2] if before in text else text
    return _plain(found.rpartition(after)[0] if after and after in found else found)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
