"""The scorers by their name in a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adaptive_eval.scoring.choice import ChoiceScorer
from adaptive_eval.scoring.code import CodeScorer
from adaptive_eval.scoring.exact import ExactScorer
from adaptive_eval.scoring.judge import JudgeScorer
from adaptive_eval.scoring.math import MathScorer
from adaptive_eval.scoring.numeric import NumericScorer
from adaptive_eval.scoring.overlap import F1Scorer, RougeScorer
from adaptive_eval.scoring.patterns import ContainsScorer, RegexScorer
from adaptive_eval.scoring.scorer import Scorer
from adaptive_eval.scoring.structured import JsonScorer
from adaptive_eval.scoring.tool_calls import ToolCallsScorer
from adaptive_eval.scoring.user_function import CallableScorer
from adaptive_eval.scoring.verifier import VerifierScorer

SCORERS: dict[str, Callable[..., Scorer]] = {
    "exact": ExactScorer,
    "numeric": NumericScorer,
    "choice": ChoiceScorer,
    "math": MathScorer,
    "regex": RegexScorer,
    "contains": ContainsScorer,
    "json": JsonScorer,
    "tool_calls": ToolCallsScorer,
    "f1": F1Scorer,
    "rouge": RougeScorer,
    "code": CodeScorer,
    "python": CallableScorer,
    "judge": JudgeScorer,
    "verifier": VerifierScorer,
}
"""Scorers by the name they have in a config; :mod:`adaptive_eval.build` adds those of other libraries."""

IN_WORKERS = frozenset({"math", "json", "rouge", "code", "python", "judge", "verifier"})
"""Scorers that wait for other processes or a server: score several answers at once."""


def build_scorer(kind: str, options: Mapping[str, Any] | None = None) -> Scorer:
    """Make a scorer from the options that its section of the config has checked.

    Examples
    --------
    >>> build_scorer("numeric", {"tolerance": 0.01}).tolerance
    0.01
    """
    given = dict(options or {})
    inner = given.get("is_correct")
    if isinstance(inner, Mapping):
        rest = {name: value for name, value in inner.items() if name != "kind"}
        given["is_correct"] = build_scorer(inner["kind"], rest)
    return SCORERS[kind](**given)
