"""A scorer tried on a right and a wrong answer before a run pays for real ones."""

from __future__ import annotations

import json
from collections.abc import Iterator

from adaptive_eval.errors import Coded, UserCodeError
from adaptive_eval.scoring.model_graded import ModelGradedScorer
from adaptive_eval.scoring.patterns import RegexScorer
from adaptive_eval.scoring.scorer import AnswerScorer, Scorer, score_or_failure
from adaptive_eval.scoring.structured import JsonScorer
from adaptive_eval.trial import Completion, Question, Score

WRONG = "I do not know."
"""An answer that should be right for no question."""


def check_sample(scorer: Scorer, question: Question) -> Iterator[Coded]:
    """Score a right and a wrong answer to a question, and yield what looks wrong.

    Judges and verifiers are left out: their replies cost money.

    Raises
    ------
    UserCodeError
        If the scorer fails.

    Examples
    --------
    >>> from adaptive_eval.scoring.registry import build_scorer
    >>> list(check_sample(build_scorer("numeric"), Question("sums", "q1", "4")))
    []
    """
    if isinstance(scorer, ModelGradedScorer):
        return
    if _scored(scorer, WRONG, question).category:
        yield Coded("warning/all-alike", f"task {question.task}: the scorer calls the answer {WRONG!r} right")
    right = [_scored(scorer, text, question).category for text in _right_answers(scorer, question.target)]
    if isinstance(scorer, AnswerScorer) and right and not any(right):
        yield Coded(
            "warning/all-alike",
            f"task {question.task}: the scorer calls an answer wrong that is the target itself, "
            f"{question.target[:60]!r}",
        )


def _scored(scorer: Scorer, text: str, question: Question) -> Score:
    score = score_or_failure(scorer, Completion(text, "stop"), question)
    if score.reason.startswith("the scorer failed"):
        raise UserCodeError(f"task {question.task}: {score.reason}; the answer was {text[:60]!r}")
    return score


def _right_answers(scorer: Scorer, target: str) -> list[str]:
    """Return answers of which a scorer should call one right; none where the target does not tell."""
    if isinstance(scorer, RegexScorer) or (isinstance(scorer, JsonScorer) and scorer.schema is not None):
        return []
    if isinstance(scorer, JsonScorer) and scorer.field is not None:
        return [json.dumps({scorer.field: target})]
    marker = scorer.marker or "" if isinstance(scorer, AnswerScorer) else ""
    forms = (target, f"The answer is: {target}", rf"\boxed{{{target}}}")
    return [f"{marker} {form}" for form in forms]
