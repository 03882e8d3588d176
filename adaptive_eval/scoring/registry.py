"""The scorers by their name in a config."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from adaptive_eval.errors import UsageError
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
    """Make a scorer.

    Examples
    --------
    >>> build_scorer("numeric", {"tolerance": 0.01}).tolerance
    0.01
    """
    if kind not in SCORERS:
        raise UsageError(f"unknown scorer {kind!r}; choose one of {', '.join(SCORERS)}")
    factory = SCORERS[kind]
    parameters = inspect.signature(factory).parameters
    known = list(parameters)
    for name in options or {}:
        if name not in known:
            raise UsageError(f"the scorer {kind} has no option {name!r}; it has {', '.join(known)}")
    inner = (options or {}).get("is_correct")
    if isinstance(inner, Mapping):
        rest = {name: value for name, value in inner.items() if name != "kind"}
        options = {**(options or {}), "is_correct": build_scorer(inner["kind"], rest)}
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in (options or {}):
            raise UsageError(f"the scorer {kind} needs the option {name}")
    return factory(**(options or {}))
