"""The scorer ``python``: a user's function, called in another process; in this one if it is an object."""

import asyncio
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache, partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any

from pydantic import PrivateAttr

from adaptive_eval.errors import ScorerUnavailable, UsageError, UserCodeError, in_user_code
from adaptive_eval.options.mistakes import did_you_mean
from adaptive_eval.options.scorers import HERE, CallableScorerConfig
from adaptive_eval.scoring.scorer import (
    ScorerFailed,
    Undecided,
    form_signals,
    grade_or_failure,
    graded,
)
from adaptive_eval.scoring.text import answer_part
from adaptive_eval.scoring.workers import Home, in_worker
from adaptive_eval.trial import Completion, Question, Score, Signal

_IMPORT = 600.0
"""Seconds that the import of a function's module may take."""

PARAMETERS = ("answer", "target", "row", "question")
"""Names of the parameters that a function may have; `answer` is needed."""


class _Calling(CallableScorerConfig):
    """The common part of scorers that call a function of the user's."""

    def _arguments(self, text: str, completion: Completion, question: Question) -> dict[str, Any]:
        """Return what the function may ask for, by the names of :data:`PARAMETERS`."""
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
        row = dict(question.fields)
        return {"answer": text, "target": question.target, "row": row, "question": asked}

    def _part(self, completion: Completion) -> str:
        return answer_part(completion.text, strip_reasoning=self.strip_reasoning)

    def _scored(self, result: Mapping[str, Any], text: str, completion: Completion) -> Score:
        """Return the score of an answer for which the function returned `result`."""
        try:
            score = graded(self, result["score"], result["extracted"], result["reason"])
        except ScorerFailed as error:
            raise ScorerFailed(f"{result['place']}: {error}") from None
        own = {name: value for name, value in result["signals"].items() if name != "is_correct"}
        signals = {**own, **score.signals, **form_signals(text, completion)}
        return replace(score, signals=signals)


class CallableScorer(_Calling):
    """Calls a function of an importable module, or of a file, in another process.

    The function has a parameter ``answer``, the text without its reasoning, and any of ``target`` (a text),
    ``row`` (the dataset's columns by their names) and ``question``, a dict of ``id``, ``target``,
    ``choices`` and ``fields``; of ``tool_calls`` if the answer has any; with `with_reasoning` of
    ``reasoning``. It is plain or ``async``, and returns whether the answer is right (bool), a score from 0
    to 1 or of the range, or a mapping with ``score`` and optionally ``extracted``, ``reason`` and
    ``signals`` (name to number).

    Examples
    --------
    >>> CallableScorer(function="operator:contains").check_target(Question("t", "q", "4"))
    Traceback (most recent call last):
        ...
    adaptive_eval.errors.UserCodeError: task t: the scorer operator:contains cannot be used: contains() \
has the parameter 'a'; a scorer has answer, and any of target, row, question
    """

    _name: str = PrivateAttr("")
    _home: Home | None = PrivateAttr(None)

    def model_post_init(self, context: Any, /) -> None:
        """Remember where modules are imported from now: the next config may have another folder."""
        place, _, name = self.function.rpartition(":")
        self._name = self.function
        if not place.endswith(".py"):
            self._home = Home.here()
            return
        files = [Path(folder, Path(place).expanduser()) for folder in (*sys.path, "")]
        for file in filter(Path.is_file, files):
            self._name, self._home = f"{file.stem}:{name}", Home.here(file.resolve().parent)
            break

    def __reduce__(self) -> tuple[Any, ...]:
        # Another machine looks for modules in other folders.
        return type(self).model_validate, (self.model_dump(),)

    def check_target(self, question: Question) -> str | None:
        """Return None, as the target may be any text; raise UserCodeError for a fault of the function."""
        if self.function.startswith(HERE):
            return None  # its run can be read without it
        try:
            if self._home is None:
                place = self.function.rpartition(":")[0]
                raise UserCodeError(f"there is no file {place} in the config's folder ({sys.path[0]})")
            _require_function(self._name, self._home)
        except (UsageError, Undecided, ScorerFailed, ScorerUnavailable) as error:
            words = f"task {question.task}: the scorer {self.function} cannot be used: {error}"
            raise UserCodeError(words) from None
        return None

    def score(self, completion: Completion, question: Question) -> Score:
        """Score one answer; ScorerFailed if the function fails, hangs or returns no score."""
        if self.function.startswith(HERE):
            name = self.function.removeprefix(HERE)
            raise ScorerFailed(f"{name} was given to evaluate: call it again, with the same out")
        text = self._part(completion)
        asked = self._arguments(text, completion, question)
        try:
            result = in_worker(_call, self._name, asked, limit=self.time_limit, home=self._home)
        except Undecided as error:
            raise ScorerFailed(f"{self.function}: {error}") from None
        return self._scored(result, text, completion)


class FunctionScorer(_Calling):
    """Calls a function that was given to ``evaluate``, in this process: a plain one in a thread.

    Examples
    --------
    >>> scorer = FunctionScorer(function="in-process:f").calling(lambda answer, target: target in answer)
    >>> scorer.score(Completion("It is 4.", "stop"), Question("t", "q", "4")).category
    1
    """

    _function: Callable[..., Any] = PrivateAttr()

    def calling(self, function: Callable[..., Any]) -> "FunctionScorer":
        """Return this scorer, which calls `function`."""
        names_wanted(function)
        self._function = function
        return self

    def check_target(self, question: Question) -> str | None:
        """Return None: any target is a text."""
        return None

    async def grade(self, completion: Completion, question: Question) -> Score:
        """Score one answer; ScorerFailed if the function hangs or returns no score."""
        text = self._part(completion)
        given = _wanted(self._function, self._arguments(text, completion, question))
        try:
            async with asyncio.timeout(self.time_limit) as limit:
                result = await asyncio.to_thread(in_user_code, partial(self._function, **given))
                if inspect.isawaitable(result):
                    result = await result
        except TimeoutError:
            if not limit.expired():
                raise
            raise ScorerFailed(
                f"{_place_of(self._function)} took longer than {self.time_limit:g} s"
            ) from None
        return self._scored(_read(self._function, result), text, completion)

    def score(self, completion: Completion, question: Question) -> Score:
        """Score one answer, outside an event loop."""
        return asyncio.run(grade_or_failure(self, completion, question))


def name_here(function: Callable[..., Any]) -> str:
    """Return the name under which a config has a function that was given to ``evaluate``.

    A function with other code has another name, so that a run is not continued with it.

    Examples
    --------
    >>> name_here(max)
    'in-process:max'
    """
    name = re.sub(r"[\W_]", "_", _name_of(function)).strip("_")
    code = getattr(function, "__code__", None)
    mark = ""
    if code:
        mark = f"@{sha256(_content(code).encode()).hexdigest()[:8]}"
    return f"{HERE}{name}" + mark


def _content(code: CodeType) -> str:
    inner = list(map(_constant, code.co_consts))
    return f"{code.co_code.hex()} {code.co_names} {inner}"


def _constant(value: object) -> str:
    if isinstance(value, CodeType):
        return _content(value)
    return repr(value)


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


def names_wanted(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameters that a function is to be given; raise UserCodeError if it is no scorer.

    Examples
    --------
    >>> names_wanted(lambda answer, target: target in answer)
    ('answer', 'target')
    """
    name = _name_of(function)
    if inspect.isclass(function):
        raise UserCodeError(
            f"{name} is a class and no scorer; an instance or its method may be one: write score = {name}() "
            f"or score = {name}().METHOD, and give score"
        )
    known = ", ".join(PARAMETERS[1:])
    place = _place_of(function)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise UserCodeError(f"{place} does not say which parameters it has; write a function") from None
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return PARAMETERS
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    for one in parameters:
        if one.name == "self":
            owner = getattr(function, "__qualname__", name).rpartition(".")[0].rpartition(".")[2]
            raise UserCodeError(
                f"{place} belongs to an instance: write score = {owner}().{name}, and give score"
            )
        if one.kind is one.VAR_POSITIONAL or one.default is not one.empty:
            continue
        if one.name not in PARAMETERS:
            near = did_you_mean(one.name, PARAMETERS) or ";"
            raise UserCodeError(
                f"{place} has the parameter {one.name!r}{near} a scorer has answer, and any of {known}"
            )
        if one.kind is one.POSITIONAL_ONLY:
            raise UserCodeError(f"{place}: a scorer's parameters are given by their names: remove the /")
    wanted = tuple(one.name for one in named if one.name in PARAMETERS)
    if "answer" not in wanted:
        raise UserCodeError(f"{place} has no parameter 'answer'; a scorer has answer, and any of {known}")
    return wanted


def _wanted(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: arguments[name] for name in names_wanted(function)}


@lru_cache
def _require_function(name: str, home: Home) -> None:
    """Raise unless the processes that call the function find it."""
    in_worker(_find, name, limit=_IMPORT, home=home)


def _find(name: str) -> None:
    names_wanted(find_function(name))


@cache
def _runner() -> asyncio.Runner:
    """Return the event loop of this process, in which asynchronous functions and their clients live."""
    return asyncio.Runner()


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a function in a process of its own."""
    function = find_function(name)

    async def awaited() -> Any:
        return await result

    result = function(**_wanted(function, arguments))
    given = result
    if inspect.isawaitable(result):
        given = _runner().run(awaited())
    return _read(function, given)


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _place_of(function: Callable[..., Any]) -> str:
    """Return where a function is defined, and its name, for a message."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    where = ""
    if code is not None:
        where = f"{Path(code.co_filename).name}, line {code.co_firstlineno}: "
    return f"{where}{_name_of(function)}()"


def _read(function: Callable[..., Any], result: Any) -> dict[str, Any]:
    """Return a function's result as a mapping with all its parts, of Python's own types."""
    if isinstance(result, Mapping):
        given = dict(result)
    else:
        given = {"score": result}
    score = _number(given.get("score"))
    place = _place_of(function)
    if score is None:
        raise ScorerFailed(
            f"{place} returned {result!r:.100}, neither a bool nor a score; return a bool, a number from 0 "
            'to 1, or {"score": …, "signals": {…}}'
        )
    signals = given.get("signals", {})
    numbers = {}
    if isinstance(signals, Mapping):
        for name, value in signals.items():
            number = _number(value)
            if number is not None:
                numbers[str(name)] = number
    extracted = given.get("extracted")
    shown = None
    if extracted is not None:
        shown = str(extracted)
    return {
        "score": float(score),
        "extracted": shown,
        "reason": str(given.get("reason", "")),
        "signals": numbers,
        "place": place,
    }


def _number(value: Any) -> Signal | None:
    """Return a number of Python's own types, as only the worker may know the module of another; or None.

    Examples
    --------
    >>> import numpy as np
    >>> _number(np.bool_(True)), _number(np.int64(3)), _number(Decimal("0.5")), _number("1")
    (True, 3, 0.5, None)
    """
    with suppress(AttributeError, TypeError, ValueError):
        value = value.item()  # a number of NumPy or of a tensor
    if isinstance(value, bool | int):
        if type(value) in (bool, int):
            return value
        return int(value)
    if isinstance(value, float | Decimal | Fraction):
        return float(value)
    return None
