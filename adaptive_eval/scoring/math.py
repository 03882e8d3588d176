"""The scorer ``math``: right when the answer is mathematically equal to the target."""

import logging
import re
from functools import lru_cache
from typing import Any

from adaptive_eval.errors import library
from adaptive_eval.options.scorers import MathScorerConfig
from adaptive_eval.scoring.numeric import read_number
from adaptive_eval.scoring.scorer import Answer, AnswerScorer
from adaptive_eval.scoring.text import Extract, last_stated, normalised, unwrapped
from adaptive_eval.scoring.workers import in_worker
from adaptive_eval.trial import Question

LONGEST = 1_000
"""Characters that a mathematical answer, or target, may have."""

_PROSE = re.compile(r"(?<!\\)\b[A-Za-z]{2,}[ ,]+[A-Za-z]{2,}\b")
_DENIAL = re.compile(r"[,;]?\s+(?:and\s+)?(?:not|instead of|rather than)\s+(?=[$\\\d({-])")
"""What stands between the answer and an expression that it is not."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_PACKAGE = "math-verify[antlr4_13_2]"
_PRELOAD = "adaptive_eval.scoring.math_preload"


class MathScorer(MathScorerConfig, AnswerScorer):
    r"""Compares expressions with math-verify: fractions, roots, sets, intervals, matrices, equations.

    An answer with the text or the number of the target is right; an integer other than the target's is wrong.
    All other answers are compared in another process under a time limit: no answer hangs or crashes a run.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> question = Question("algebra", "q1", r"\frac{1}{2}")
    >>> MathScorer().score(Completion(r"So it is \boxed{1/2}.", "stop"), question).category
    1
    """

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        library("math_verify", "the scorer math", _PACKAGE)
        target = question.target
        if len(target) > LONGEST:
            return f"the target has {len(target)} characters; math compares at most {LONGEST}"
        if target.strip():
            return None
        return "the target is empty"

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the answer in `text`, whose last box is `box`, or None."""
        if self.extract in ("auto", "boxed") and box is not None:
            return Answer(box.text, "boxed", is_final=True)
        stated = None
        if self.extract in ("auto", "stated"):
            stated = last_stated(text)
        if stated is not None:
            answer = _DENIAL.split(stated.text, maxsplit=1)[0]
            return Answer(answer.rstrip("."), "stated", stated.end < len(text))
        if self.extract in ("auto", "whole") and text:
            return Answer(text, "whole text", is_final=False)
        return None

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether `answer` is equal to the target; Undecided if that fails or takes too long."""
        if _form(answer.text[: 2 * LONGEST]) == _form(question.target):
            return True
        number = read_number(answer.text[: 2 * LONGEST])
        target = read_number(question.target)
        if number is not None and target is not None:
            if number == target:
                return True
            if _INTEGER.fullmatch(answer.text.strip()) and _INTEGER.fullmatch(question.target.strip()):
                return False
        if answer.how != "whole text" and len(answer.text) > LONGEST:
            return False
        text = answer.text[-LONGEST:]
        return in_worker(is_equal, question.target, text, limit=self.time_limit, imports=_PRELOAD)


def is_equal(target: str, answer: str) -> bool:
    r"""Tell whether two texts, LaTeX or plain, are the same expression, set, interval, matrix or equation.

    Examples
    --------
    >>> is_equal(r"\{1, 2\}", r"\{2, 1\}"), is_equal("(0, 1)", "[0, 1]")
    (True, False)
    """
    verify = library("math_verify", "the scorer math", _PACKAGE).verify
    # math-verify's own limits rest on a signal, which only a main thread can use; ours ends the process.
    return bool(verify(list(_parsed(target)), list(_parsed(answer)), timeout_seconds=None))


def _form(text: str) -> str:
    return normalised(unwrapped(text), ignore_case=False, ignore_punctuation=False)


def _as_latex(text: str) -> str:
    is_prose = "$" in text or "\\boxed" in text or _PROSE.search(text) is not None
    if is_prose:
        return text
    return f"${text}$"


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Any, ...]:
    parse = library("math_verify", "the scorer math", _PACKAGE).parse
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    return tuple(parse(_as_latex(text), parsing_timeout=None)) or tuple(parse(text, parsing_timeout=None))
