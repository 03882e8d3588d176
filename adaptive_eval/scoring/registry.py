"""The scorers by their name in a config, tried on a sample and applied to many answers."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from adaptive_eval.errors import Coded, UserCodeError
from adaptive_eval.options.scorers import (
    SCORERS,
    ChoiceProbabilityScorerConfig,
    JsonScorerConfig,
    RegexScorerConfig,
)
from adaptive_eval.scoring.model_graded import grader_of
from adaptive_eval.scoring.scorer import AnswerScorer, Scorer, score_or_failure
from adaptive_eval.trial import Completion, Question, Score

Given: TypeAlias = Mapping[str, Callable[..., Any]]
"""Functions that were given to ``evaluate``, by the names that a config has for them."""


def build_scorer(
    kind: str, options: Mapping[str, Any] | None = None, given: Given = MappingProxyType({})
) -> Scorer:
    """Make a scorer from the options that its section of the config has checked.

    Examples
    --------
    >>> build_scorer("numeric", {"tolerance": 0.01}).tolerance
    0.01
    """
    options = options or {}
    function = given.get(options.get("function", ""))
    if function is not None:
        from adaptive_eval.scoring.user_function import FunctionScorer

        return FunctionScorer(**options).calling(function)
    module, name = SCORERS[kind].place.split(":")
    scorer: Any = getattr(import_module(f"adaptive_eval.{module}"), name)(**options)
    made: Scorer = scorer
    if given and kind == "checks":
        made = scorer.taking(given)
    return made


WRONG = "I do not know."
"""An answer that should be right for no question."""


def check_sample(scorer: Scorer, question: Question) -> Iterator[Coded]:
    """Score a right and a wrong answer to a question, and yield what looks wrong.

    Judges and verifiers are left out, since their replies cost money, and what reads log-probabilities.

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
    if isinstance(scorer, ChoiceProbabilityScorerConfig) or grader_of(scorer) is not None:
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
    """Return answers of which a scorer should call one right; none if the target does not tell."""
    if isinstance(scorer, RegexScorerConfig):
        return []
    if isinstance(scorer, JsonScorerConfig):
        if scorer.json_schema is not None:
            return []
        if scorer.field is not None:
            return [json.dumps({scorer.field: target})]
    marker = ""
    if isinstance(scorer, AnswerScorer):
        marker = scorer.marker or ""
    forms = (target, f"The answer is: {target}", rf"\boxed{{{target}}}")
    return [f"{marker} {form}" for form in forms]


Answers: TypeAlias = Sequence[tuple[Completion, Question]]
"""Answers to be scored, each with its question."""

Tag = TypeVar("Tag")

_AT_ONCE = 8
"""Answers that are scored at the same time if most of the time is spent waiting."""


def score_here(
    scorer: Scorer | None, batches: Iterable[tuple[Tag, Answers]], *, at_once: bool
) -> Iterator[tuple[Tag, list[Score]]]:
    """Yield the tag and scores of each batch in order, scored here; `at_once`: several answers at a time.

    Without a scorer the batches must be empty.
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        apply = threads.map if at_once else map
        for tag, answers in batches:
            if scorer is None or not answers:
                yield tag, []
            elif (score_all := getattr(scorer, "score_all", None)) is not None:
                yield tag, score_all(answers)
            else:
                yield tag, list(apply(lambda one: score_or_failure(scorer, *one), answers))
