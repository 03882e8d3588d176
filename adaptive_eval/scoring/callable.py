"""The scorer ``python``: a function of one's own, in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from adaptive_eval.errors import UsageError
from adaptive_eval.scoring.extract import last_boxed
from adaptive_eval.scoring.scorer import CUT_OFF, Undecided
from adaptive_eval.scoring.text import answer_part, storable
from adaptive_eval.scoring.workers import in_worker, require_workers
from adaptive_eval.trial import Completion, Question, Score, Signal

__all__ = ["CallableScorer", "find_function"]

_IMPORT = 600.0
"""Seconds that the import of a function's module may take."""


@dataclass(frozen=True, slots=True)
class CallableScorer:
    """Calls ``function(answer, question)``.

    `answer` is the text without its reasoning; `question` a dict of ``id``, ``target``, ``choices`` and the
    dataset's ``fields``. The function returns whether the answer is right (bool), a score from 0 to 1, or a
    mapping with ``score`` and, as it likes, ``extracted``, ``reason`` and ``signals`` (name to number).

    Parameters
    ----------
    function : str
        ``module:function``; modules beside the config are found.
    strip_reasoning : bool
        Leave out ``<think>…</think>`` and its like.
    right_from : float
        Least score that counts as right.
    time_limit : float
        Seconds that one answer may take.

    Examples
    --------
    >>> scorer = CallableScorer("operator:contains")
    >>> question = Question("t", "q", "4")
    >>> scorer.check_target(question) is None
    True
    """

    function: str
    strip_reasoning: bool = True
    right_from: float = 0.5
    time_limit: float = 60.0

    def check_target(self, question: Question) -> str | None:
        """Return what is wrong with the function, or None; any target will do."""
        require_workers("the scorer python")
        try:
            _require_function(self.function, tuple(sys.path))
        except (UsageError, Undecided) as error:
            return str(error)
        return None

    def score(self, completion: Completion, question: Question) -> Score:
        """Score one answer; a function that fails, hangs or talks nonsense gives category 0 and a reason."""
        text = answer_part(completion.text, strip_reasoning=self.strip_reasoning)
        asked = {
            "id": question.id,
            "target": question.target,
            "choices": list(question.choices),
            "fields": dict(question.fields),
        }
        signals: dict[str, Signal] = {
            "is_correct": False,
            "has_box": last_boxed(text) is not None,
            "truncated": completion.finish_reason in CUT_OFF,
        }
        try:
            result = _read(in_worker(_call, self.function, text, asked, limit=self.time_limit))
        except Undecided as error:
            return Score(0, None, signals, f"undecided: {storable(str(error))}")
        right = result["score"] >= self.right_from
        own = {name: value for name, value in result["signals"].items() if name not in signals}
        signals = {**signals, "is_correct": right, "score": result["score"], **own}
        extracted = None if result["extracted"] is None else storable(str(result["extracted"]))
        return Score(
            int(right), extracted, signals, storable(result["reason"]) or ("right" if right else "wrong")
        )


def find_function(name: str) -> Callable[..., Any]:
    """Return the function ``module:function``.

    Raises
    ------
    UsageError
        If there is none.

    Examples
    --------
    >>> find_function("math:sqrt")(4.0)
    2.0
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f"{name!r} names no function; write module:function")
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        raise UsageError(f"{name!r}: the module cannot be imported: {error}") from None
    if not callable(found):
        raise UsageError(f"{name!r}: the module {module} has no function {attribute!r}")
    function: Callable[..., Any] = found
    return function


@lru_cache
def _require_function(name: str, path: tuple[str, ...]) -> None:
    """Raise unless the processes that will call the function find it along `path`."""
    in_worker(_find, name, limit=_IMPORT)


def _find(name: str) -> None:
    find_function(name)


def _call(name: str, answer: str, question: dict[str, Any]) -> Any:
    result = find_function(name)(answer, question)
    if isinstance(result, Mapping):
        return dict(result)
    return result


def _read(result: Any) -> dict[str, Any]:
    """Return what the function said in full.

    Raises
    ------
    Undecided
        If it is neither a bool, a number from 0 to 1, nor a mapping with such a score.
    """
    given = dict(result) if isinstance(result, Mapping) else {"score": result}
    score = given.get("score")
    if not isinstance(score, bool | int | float) or not 0.0 <= float(score) <= 1.0:
        raise Undecided(f"the function returned {result!r:.100}, not a bool or a score from 0 to 1")
    signals = given.get("signals", {})
    numbers = {
        str(name): value
        for name, value in (signals.items() if isinstance(signals, Mapping) else ())
        if isinstance(value, bool | int | float)
    }
    reason = str(given.get("reason", ""))
    return {"score": float(score), "extracted": given.get("extracted"), "reason": reason, "signals": numbers}
