"""The scorer ``python``: a user's function, called in another process."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from pydantic import PrivateAttr

from adaptive_eval.errors import ScorerUnavailable, UsageError, UserCodeError
from adaptive_eval.options.scorers import CallableScorerConfig
from adaptive_eval.scoring.scorer import ScorerFailed, Undecided, form_signals, graded
from adaptive_eval.scoring.text import answer_part
from adaptive_eval.scoring.workers import Home, in_worker, require_workers
from adaptive_eval.trial import Completion, Question, Score, Signal

_IMPORT = 600.0
"""Seconds that the import of a function's module may take."""


class CallableScorer(CallableScorerConfig):
    """Calls ``function(answer, question)``.

    `answer` is the text without its reasoning, `question` a dict of ``id``, ``target``, ``choices`` and the
    dataset's ``fields``; of ``tool_calls`` where the answer has any; with `with_reasoning` of ``reasoning``.
    The function returns whether the answer is right (bool), a score from 0 to 1 or of the range, or a mapping
    with ``score`` and optionally ``extracted``, ``reason`` and ``signals`` (name to number).

    Examples
    --------
    >>> scorer = CallableScorer(function="operator:contains")
    >>> question = Question("t", "q", "4")
    >>> scorer.check_target(question) is None
    True
    """

    _home: Home = PrivateAttr(default_factory=Home.here)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another machine looks for modules in other folders.
        return type(self).model_validate, (self.model_dump(),)

    def check_target(self, question: Question) -> str | None:
        """Return the fault of the function, or None; the target may be any text."""
        require_workers("the scorer python")
        try:
            _require_function(self.function, self._home)
        except (UsageError, Undecided, ScorerFailed) as error:
            return str(error)
        except ScorerUnavailable as error:  # the same for every question
            raise UserCodeError(f"the scorer python: {error}") from None
        return None

    def score(self, completion: Completion, question: Question) -> Score:
        """Score one answer; ScorerFailed if the function fails, hangs or returns no score."""
        text = answer_part(completion.text, strip_reasoning=self.strip_reasoning)
        asked: dict[str, Any] = {
            "id": question.id,
            "target": question.target,
            "choices": list(question.choices),
            "fields": dict(question.fields),
        }
        if completion.tool_calls:
            asked["tool_calls"] = list(completion.tool_calls)
        if self.with_reasoning:
            asked["reasoning"] = completion.reasoning
        try:
            result = in_worker(_call, self.function, text, asked, limit=self.time_limit, home=self._home)
        except Undecided as error:
            raise ScorerFailed(str(error)) from None
        score = graded(self, result["score"], result["extracted"], result["reason"])
        own = {name: value for name, value in result["signals"].items() if name != "is_correct"}
        signals = {**own, **score.signals, **form_signals(text, completion)}
        return replace(score, signals=signals)


def find_function(name: str) -> Callable[..., Any]:
    """Return the function ``module:function``; raise UsageError if there is none.

    Examples
    --------
    >>> find_function("math:sqrt")(4.0)
    2.0
    """
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        raise UserCodeError(f"{name!r}: the module cannot be imported: {error}") from None
    if not callable(found):
        raise UserCodeError(f"{name!r}: the module {module} has no function {attribute!r}")
    function: Callable[..., Any] = found
    return function


@lru_cache
def _require_function(name: str, home: Home) -> None:
    """Raise unless the processes that call the function find it."""
    in_worker(_find, name, limit=_IMPORT, home=home)


def _find(name: str) -> None:
    find_function(name)


def _call(name: str, answer: str, question: dict[str, Any]) -> dict[str, Any]:
    return _read(find_function(name)(answer, question))


def _read(result: Any) -> dict[str, Any]:
    """Return a function's result as a mapping with all its parts, of Python's own types."""
    given = dict(result) if isinstance(result, Mapping) else {"score": result}
    score: Any = given.get("score")
    if hasattr(score, "item"):  # a number of NumPy or of a tensor
        score = score.item()
    if not isinstance(score, bool | int | float):
        raise ScorerFailed(f"the function returned {result!r:.100}, neither a bool nor a score")
    signals = given.get("signals", {})
    numbers = {
        str(name): _plain(value)
        for name, value in (signals.items() if isinstance(signals, Mapping) else ())
        if isinstance(value, bool | int | float)
    }
    extracted = given.get("extracted")
    return {
        "score": float(score),
        "extracted": None if extracted is None else str(extracted),
        "reason": str(given.get("reason", "")),
        "signals": numbers,
    }


def _plain(value: bool | int | float) -> Signal:
    """Return a number of Python's own types; only the worker may know the module of another."""
    if isinstance(value, bool | int):
        return value if type(value) in (bool, int) else int(value)
    return float(value)
