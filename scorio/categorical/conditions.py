"""A small language of conditions over signals, written as plain data and evaluated with numpy.

A condition is one of

- a name: a rubric variable such as ``"wrong"`` (:mod:`scorio.categorical.variables`, or a schema's own);
- ``"otherwise"`` (or ``True``): always holds;
- a comparison, ``{"signal": NAME, OPERATOR: OPERAND}`` with one or more of the operators ``above``,
  ``at_least``, ``below``, ``at_most``, ``equals``. An operand is a number, the name of a threshold, or
  ``{"signal": OTHER}``;
- ``{"all": [...]}``, ``{"any": [...]}``, ``{"not": CONDITION}``;
- ``{"if_known": CONDITION}``: holds where the condition is known to hold, so that a signal which was not
  recorded counts against it instead of being an error.

Everything is a string, number, list or mapping, hence the same in Python, JSON and YAML.

A comparison with a missing signal is neither true nor false but unknown, and unknown passes through
``all``, ``any`` and ``not`` by Kleene's strong three-valued logic: a truncated answer is invalid whatever
a verifier would have said, so nobody has to run the verifier on it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
Compare: TypeAlias = Callable[[FloatArray, FloatArray], BoolArray]

OPERATORS: Mapping[str, tuple[str, Compare]] = {
    "above": (">", operator.gt),
    "at_least": (">=", operator.ge),
    "below": ("<", operator.lt),
    "at_most": ("<=", operator.le),
    "equals": ("=", operator.eq),
}

OTHERWISE = "otherwise"


class Scope(Protocol):
    """The values that a condition reads."""

    def signal(self, name: str) -> FloatArray:
        """Return the values of a signal, NaN where it is missing."""

    def threshold(self, name: str) -> float:
        """Return the value of a threshold, NaN where it is not set."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The trials where a condition is known to hold and known not to hold; elsewhere it is unknown."""

    holds: BoolArray
    fails: BoolArray


@dataclass(frozen=True, slots=True)
class SignalRef:
    """The value of a signal."""

    name: str

    def value(self, scope: Scope) -> FloatArray:
        """Return the signal's values."""
        return scope.signal(self.name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ThresholdRef:
    """The value of a named threshold."""

    name: str

    def value(self, scope: Scope) -> FloatArray:
        """Return the threshold as a 0-d array."""
        return np.asarray(scope.threshold(self.name), dtype=np.float64)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A number."""

    number: float

    def value(self, scope: Scope) -> FloatArray:
        """Return the number as a 0-d array."""
        return np.asarray(self.number, dtype=np.float64)

    def __str__(self) -> str:
        return f"{self.number:g}"


Operand: TypeAlias = SignalRef | ThresholdRef | Constant


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left OPERATOR right``; unknown where either side is NaN."""

    left: SignalRef
    operator: str
    right: Operand

    def truth(self, scope: Scope) -> Truth:
        """Evaluate over every attempt in `scope`."""
        left, right = self.left.value(scope), self.right.value(scope)
        known = ~(np.isnan(left) | np.isnan(right))
        result = OPERATORS[self.operator][1](left, right)
        return Truth(result & known, ~result & known)

    def __str__(self) -> str:
        return f"{self.left} {OPERATORS[self.operator][0]} {self.right}"


@dataclass(frozen=True, slots=True)
class Joined:
    """Every condition holds (``and``), or at least one (``or``)."""

    conditions: tuple[Condition, ...]
    word: Literal["and", "or"]

    def truth(self, scope: Scope) -> Truth:
        """Evaluate over every attempt in `scope`."""
        truths = [condition.truth(scope) for condition in self.conditions]
        both, either = operator.and_, operator.or_
        if self.word == "or":
            both, either = either, both
        return Truth(
            reduce(both, (one.holds for one in truths)), reduce(either, (one.fails for one in truths))
        )

    def __str__(self) -> str:
        return f" {self.word} ".join(_bracketed(condition) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Not:
    """The condition fails."""

    condition: Condition

    def truth(self, scope: Scope) -> Truth:
        """Evaluate over every attempt in `scope`."""
        inner = self.condition.truth(scope)
        return Truth(inner.fails, inner.holds)

    def __str__(self) -> str:
        return f"not {_bracketed(self.condition)}"


@dataclass(frozen=True, slots=True)
class IfKnown:
    """The condition is known to hold; unknown counts as failing."""

    condition: Condition

    def truth(self, scope: Scope) -> Truth:
        """Evaluate over every attempt in `scope`."""
        holds = self.condition.truth(scope).holds
        return Truth(holds, ~holds)

    def __str__(self) -> str:
        return f"if known, {self.condition}"


@dataclass(frozen=True, slots=True)
class Named:
    """A rubric variable: a condition with a name."""

    name: str
    condition: Condition

    def truth(self, scope: Scope) -> Truth:
        """Evaluate over every attempt in `scope`."""
        return self.condition.truth(scope)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Always:
    """Holds for every attempt."""

    def truth(self, scope: Scope) -> Truth:
        """Return true and not false for whatever shape the others have."""
        return Truth(np.asarray(True), np.asarray(False))

    def __str__(self) -> str:
        return OTHERWISE


Condition: TypeAlias = Comparison | Joined | Not | IfKnown | Named | Always


def parts(condition: Condition) -> tuple[Condition, ...]:
    """Return the conditions that a condition is made of."""
    if isinstance(condition, Joined):
        return condition.conditions
    return (condition.condition,) if isinstance(condition, (Not, IfKnown, Named)) else ()


@dataclass(frozen=True, slots=True)
class Operands:
    """Names that conditions refer to.

    Parameters
    ----------
    signals : frozenset of str
        Signals without which a condition may stay unknown.
    optional : frozenset of str
        Signals used under ``if_known`` only.
    thresholds : frozenset of str
        Thresholds.
    """

    signals: frozenset[str]
    optional: frozenset[str]
    thresholds: frozenset[str]


def comparisons(condition: Condition) -> Iterator[tuple[Comparison, bool]]:
    """Yield every comparison within `condition`, and whether it is under ``if_known``."""
    if isinstance(condition, Comparison):
        yield condition, False
    for part in parts(condition):
        for comparison, optional in comparisons(part):
            yield comparison, optional or isinstance(condition, IfKnown)


def operands(conditions: Iterable[Condition]) -> Operands:
    """Return the names that `conditions` refer to."""
    needed: set[str] = set()
    optional: set[str] = set()
    thresholds: set[str] = set()
    for condition in conditions:
        for comparison, may_lack in comparisons(condition):
            names = optional if may_lack else needed
            names.add(comparison.left.name)
            if isinstance(comparison.right, SignalRef):
                names.add(comparison.right.name)
            elif isinstance(comparison.right, ThresholdRef):
                thresholds.add(comparison.right.name)
    return Operands(frozenset(needed), frozenset(optional - needed), frozenset(thresholds))


def _bracketed(condition: Condition) -> str:
    return f"({condition})" if isinstance(condition, (Joined, IfKnown)) else str(condition)


def parse(
    data: object, variables: Mapping[str, object], thresholds: Collection[str], where: str
) -> Condition:
    """Turn a condition written as plain data into one that can be evaluated.

    Parameters
    ----------
    data : str, bool or mapping
        The condition, in the language of this module.
    variables : mapping
        Rubric variables that may be named: name to condition as plain data.
    thresholds : collection of str
        Names of thresholds that may be used as operands.
    where : str
        Whose condition it is, for messages: ``"schema 'x', category 'y'"``.

    Returns
    -------
    Condition
        The parsed condition; ``str()`` of it reads as a formula.

    Raises
    ------
    ValueError
        If the condition is malformed; the message begins with `where` and shows the offending part.

    Examples
    --------
    >>> condition = parse({"signal": "token_ratio", "above": "len_p33"}, {}, ["len_p33"], "example")
    >>> print(condition)
    token_ratio > len_p33
    """
    return _Parser(variables, frozenset(thresholds), where).condition(data, ())


def finite_number(value: object) -> float | None:
    """Return `value` as a float, or None where it is not a finite number; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class _Parser:
    variables: Mapping[str, object]
    thresholds: frozenset[str]
    where: str

    def condition(self, data: object, open_names: tuple[str, ...]) -> Condition:
        """Parse `data`; `open_names` are the variables being parsed around it."""
        if data is True or data == OTHERWISE:
            return Always()
        if isinstance(data, str):
            return self._named(data, open_names)
        if isinstance(data, Mapping) and data:
            if "signal" in data:
                return self._comparison(data)
            return self._combination(data, open_names)
        raise self._error(data, "is not a condition: use a variable's name or a mapping")

    def _named(self, name: str, open_names: tuple[str, ...]) -> Named:
        if name not in self.variables:
            known = ", ".join(sorted(self.variables))
            raise self._error(name, f"is not a rubric variable; known: {known}, {OTHERWISE}")
        if name in open_names:
            raise self._error(name, f"is defined by itself ({' -> '.join([*open_names, name])})")
        return Named(name, self.condition(self.variables[name], (*open_names, name)))

    def _combination(self, data: Mapping[Any, object], open_names: tuple[str, ...]) -> Condition:
        if len(data) != 1:
            raise self._error(data, "has several keys; write {all: [...]} to join conditions")
        ((key, value),) = data.items()
        if key in ("all", "any"):
            if not isinstance(value, (list, tuple)) or not value:
                raise self._error(data, f"needs a list of conditions under {key!r}")
            inner = tuple(self.condition(item, open_names) for item in value)
            return Joined(inner, "and" if key == "all" else "or")
        if key == "not":
            return Not(self.condition(value, open_names))
        if key == "if_known":
            return IfKnown(self.condition(value, open_names))
        raise self._error(data, f"has unknown key {key!r}; known: signal, all, any, not, if_known")

    def _comparison(self, data: Mapping[Any, object]) -> Condition:
        name = data["signal"]
        if not isinstance(name, str) or not name:
            raise self._error(data, "needs the name of a signal under 'signal'")
        unknown = [key for key in data if key != "signal" and key not in OPERATORS]
        if unknown:
            raise self._error(data, f"has unknown operator {unknown[0]!r}; known: {', '.join(OPERATORS)}")
        left = SignalRef(name)
        comparisons = tuple(
            Comparison(left, str(key), self._operand(data, value))
            for key, value in data.items()
            if key != "signal"
        )
        if not comparisons:
            raise self._error(data, f"compares nothing; add one of {', '.join(OPERATORS)}")
        return comparisons[0] if len(comparisons) == 1 else Joined(comparisons, "and")

    def _operand(self, data: Mapping[Any, object], value: object) -> Operand:
        if isinstance(value, str):
            if value not in self.thresholds:
                known = ", ".join(sorted(self.thresholds)) or "none"
                raise self._error(data, f"names unknown threshold {value!r}; known: {known}")
            return ThresholdRef(value)
        if isinstance(value, Mapping) and set(value) == {"signal"} and isinstance(value["signal"], str):
            return SignalRef(value["signal"])
        number = float(value) if isinstance(value, bool) else finite_number(value)
        if number is not None:
            return Constant(number)
        raise self._error(
            data, f"compares with {value!r}; use a finite number, a threshold's name or {{signal: NAME}}"
        )

    def _error(self, data: object, problem: str) -> ValueError:
        return ValueError(f"{self.where}: condition {data!r} {problem}")
