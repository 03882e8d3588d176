"""A small language of conditions over signals, written as plain data and evaluated with numpy.

A condition is one of

- a name: a rubric variable such as ``"wrong"`` (:data:`scorio.categorical.RUBRIC_VARIABLES`, or a schema's
  own);
- ``"otherwise"`` (or ``True``): always holds;
- a comparison, ``{"signal": NAME, OPERATOR: OPERAND}`` with one or more of the operators ``above``,
  ``at_least``, ``below``, ``at_most``, ``equals``. An operand is a number, the name of a threshold, or
  ``{"signal": OTHER}``;
- ``{"all": [...]}``, ``{"any": [...]}``, ``{"not": CONDITION}``;
- ``{"if_known": CONDITION}``: holds if the condition is known to hold, so that a signal which was not
  recorded counts against it instead of being an error.

Everything is a string, number, list or mapping, hence the same in Python, JSON and YAML.

A comparison with a missing signal is neither true nor false but unknown, and unknown passes through
``all``, ``any`` and ``not`` by Kleene's strong three-valued logic: a truncated answer is invalid whatever
a verifier would have said, so nobody has to run the verifier on it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Real
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.arrays import Floats, floats

OPERATORS = {
    "above": (">", operator.gt),
    "at_least": (">=", operator.ge),
    "below": ("<", operator.lt),
    "at_most": ("<=", operator.le),
    "equals": ("=", operator.eq),
}

OTHERWISE = "otherwise"
_WORDS = {"all": "and", "any": "or", "not": "not", "if_known": "if known,"}
"""What joins the parts of a condition, or stands before its only part."""

Truth: TypeAlias = NDArray[np.int8]
"""1 where a condition holds, −1 where it does not, 0 where that is unknown."""


class Variable(NamedTuple):
    """A signal or a threshold: what has a value only when attempts are judged."""

    kind: Literal["signal", "threshold"]
    name: str

    def __str__(self) -> str:
        return self.name


Operand: TypeAlias = Variable | float
Values: TypeAlias = Mapping[Variable, ArrayLike]
"""Values of variables: NaN is a missing one."""


def value_of(operand: Operand, values: Values) -> Floats:
    """Return the values of an operand."""
    if isinstance(operand, Variable):
        value = values.get(operand, math.nan)
    else:
        value = operand
    return floats(value)


@dataclass(frozen=True, slots=True)
class SignalComparison:
    """A signal compared with a number, a threshold or another signal."""

    left: Variable
    operator: str
    right: Operand
    text: str

    def truth(self, values: Values) -> Truth:
        """Say of every attempt whether the comparison holds."""
        left = value_of(self.left, values)
        right = value_of(self.right, values)
        known = ~(np.isnan(left) | np.isnan(right))
        holds = OPERATORS[self.operator][1](left, right)
        return np.where(holds, np.int8(1), np.int8(-1)) * known

    def comparisons(self, optional: bool = False) -> Iterator[tuple[SignalComparison, bool]]:
        """Yield this comparison, and whether it is under ``if_known``."""
        yield self, optional

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Combination:
    """Conditions joined by ``all``, ``any``, ``not`` or ``if_known``; ``otherwise`` joins none."""

    kind: str
    text: str
    parts: tuple[Condition, ...] = ()

    def truth(self, values: Values) -> Truth:
        """Say of every attempt whether the condition holds."""
        truths = [part.truth(values) for part in self.parts]
        if self.kind == "all":
            return reduce(np.minimum, truths)
        if self.kind == "any":
            return reduce(np.maximum, truths)
        if self.kind == "not":
            return -truths[0]
        if self.kind == "if_known":
            return np.where(truths[0] == 1, np.int8(1), np.int8(-1))
        return np.asarray(1, dtype=np.int8)

    def comparisons(self, optional: bool = False) -> Iterator[tuple[SignalComparison, bool]]:
        """Yield every comparison within, and whether it is under ``if_known``."""
        for part in self.parts:
            yield from part.comparisons(optional or self.kind == "if_known")

    def __str__(self) -> str:
        return self.text


Condition: TypeAlias = SignalComparison | Combination
"""One condition; its `text` reads as a formula."""


class Used(NamedTuple):
    """Names in conditions: signals, those under ``if_known`` only, and thresholds."""

    signals: frozenset[str]
    optional: frozenset[str]
    thresholds: frozenset[str]


def names_in(conditions: Iterable[Condition]) -> Used:
    """Return the names that `conditions` refer to."""
    found: dict[str, set[str]] = {"signal": set(), "optional": set(), "threshold": set()}
    for condition in conditions:
        for comparison, optional in condition.comparisons():
            for operand in (comparison.left, comparison.right):
                if isinstance(operand, Variable):
                    may_lack = optional and operand.kind == "signal"
                    kind = "optional"
                    if not may_lack:
                        kind = operand.kind
                    found[kind].add(operand.name)
    needed = frozenset(found["signal"])
    return Used(needed, frozenset(found["optional"]) - needed, frozenset(found["threshold"]))


def finite_number(value: object) -> float | None:
    """Return `value` as a float, or None if it is not a finite number; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if math.isfinite(value):
        return float(value)
    return None


@dataclass(frozen=True, slots=True)
class Grammar:
    """Turns plain data into conditions.

    Parameters
    ----------
    variables : mapping
        Rubric variables that may be named: name to condition as plain data.
    thresholds : collection of str
        Names of thresholds that may be used as operands.
    where : str
        Whose conditions they are, for messages: ``"schema 'x', category 'y'"``.

    Examples
    --------
    >>> grammar = Grammar({}, ["len_p33"], "example")
    >>> print(grammar.parse({"signal": "token_ratio", "above": "len_p33"}))
    token_ratio > len_p33
    """

    variables: Mapping[str, object]
    thresholds: Collection[str]
    where: str

    def parse(self, data: object, within: tuple[str, ...] = ()) -> Condition:
        """Return the condition; `within` are the variables being parsed around it.

        Raises
        ------
        ValueError
            If the condition is malformed; the message begins with `where` and shows the offending part.
        """
        if data is True or data == OTHERWISE:
            return Combination(OTHERWISE, OTHERWISE)
        if isinstance(data, str):
            if data not in self.variables or data in within:
                known = ", ".join(sorted({*self.variables} - {*within}))
                raise self._error(data, f"names no rubric variable, or itself; known: {known}, {OTHERWISE}")
            return replace(self.parse(self.variables[data], (*within, data)), text=data)
        given = data if isinstance(data, Mapping) else {}
        if "signal" in given:
            return self._comparisons(given)
        kind, inner = next(iter(given.items())) if len(given) == 1 else (None, None)
        if kind in ("not", "if_known"):
            return _joined(kind, [self.parse(inner, within)])
        if kind in ("all", "any") and isinstance(inner, (list, tuple)) and inner:
            return _joined(kind, [self.parse(item, within) for item in inner])
        forms = ", ".join(("signal", *_WORDS))
        raise self._error(data, f"must be a mapping with one of {forms}; all and any take a list")

    def _comparisons(self, data: Mapping[Any, object]) -> Condition:
        name = data["signal"]
        others = {key: value for key, value in data.items() if key != "signal"}
        if not (isinstance(name, str) and name and others and others.keys() <= OPERATORS.keys()):
            raise self._error(data, f"needs a signal's name and one or more of {', '.join(OPERATORS)}")
        found: list[Condition] = []
        for key, value in others.items():
            right = self._operand(data, value)
            if isinstance(right, float):
                shown = f"{right:g}"
            else:
                shown = right.name
            text = f"{name} {OPERATORS[key][0]} {shown}"
            found.append(SignalComparison(Variable("signal", name), key, right, text))
        if len(found) == 1:
            return found[0]
        return _joined("all", found)

    def _operand(self, data: object, value: object) -> Operand:
        if isinstance(value, str) and value in self.thresholds:
            return Variable("threshold", value)
        if isinstance(value, Mapping) and set(value) == {"signal"} and isinstance(value["signal"], str):
            return Variable("signal", value["signal"])
        number = float(value) if isinstance(value, bool) else finite_number(value)
        if number is not None:
            return number
        known = ", ".join(sorted(self.thresholds)) or "none"
        raise self._error(
            data, f"compares with {value!r}; use a finite number, {{signal: NAME}} or a threshold: {known}"
        )

    def _error(self, data: object, problem: str) -> ValueError:
        return ValueError(f"{self.where}: condition {data!r} {problem}")


def _joined(kind: str, parts: list[Condition]) -> Condition:
    word, texts = _WORDS[kind], []
    for part in parts:
        bare = kind == "if_known" or isinstance(part, SignalComparison) or part.kind == "not"
        if bare or " " not in part.text:
            texts.append(part.text)
        else:
            texts.append(f"({part.text})")
    if kind in ("all", "any"):
        text = f" {word} ".join(texts)
    else:
        text = f"{word} {texts[0]}"
    return Combination(kind, text, tuple(parts))
