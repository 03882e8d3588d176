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
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from scorio._arrays import Bools, Floats, floats

OPERATORS = {
    "above": (">", operator.gt),
    "at_least": (">=", operator.ge),
    "below": ("<", operator.lt),
    "at_most": ("<=", operator.le),
    "equals": ("=", operator.eq),
}

OTHERWISE = "otherwise"
Word: TypeAlias = Literal["always", "compare", "named", "and", "or", "not", "if known,"]

_JOINED: Mapping[Any, Word] = {"all": "and", "any": "or"}
_WRAPPED: Mapping[Any, Word] = {"not": "not", "if_known": "if known,"}


class SignalValues(Protocol):
    """Values of signals by name."""

    def __contains__(self, name: object) -> bool:
        """Return whether a signal was recorded."""

    def __getitem__(self, name: str) -> Floats:
        """Return the values of a signal, NaN if it is missing."""


class Scope(NamedTuple):
    """The signals and the values of thresholds that a condition reads; those without are NaN."""

    signals: SignalValues
    thresholds: Mapping[str, Any]

    def read(self, operand: Operand) -> Floats:
        """Return the values of an operand."""
        if operand.kind == "signal" and operand.name in self.signals:
            return self.signals[operand.name]
        number = operand.number if operand.kind == "number" else self.thresholds.get(operand.name, math.nan)
        return floats(number)


class Truth(NamedTuple):
    """The trials in which a condition is known to hold and known not to hold; elsewhere it is unknown."""

    holds: Bools
    fails: Bools


@dataclass(frozen=True, slots=True)
class Operand:
    """A signal, a threshold or a number."""

    kind: Literal["signal", "threshold", "number"]
    name: str = ""
    number: float = 0.0

    def __str__(self) -> str:
        return self.name or f"{self.number:g}"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; ``str()`` of it reads as a formula."""

    word: Word
    parts: tuple[Condition, ...] = ()
    name: str = ""
    operands: tuple[Operand, ...] = ()

    def truth(self, scope: Scope) -> Truth:
        """Evaluate over every attempt in `scope`."""
        if self.word == "always":
            return Truth(np.asarray(True), np.asarray(False))
        if self.word == "compare":
            left, right = (scope.read(operand) for operand in self.operands)
            known = ~(np.isnan(left) | np.isnan(right))
            result = OPERATORS[self.name][1](left, right)
            return Truth(result & known, ~result & known)
        holds, fails = zip(*(part.truth(scope) for part in self.parts), strict=True)
        if self.word == "and":
            return Truth(reduce(operator.and_, holds), reduce(operator.or_, fails))
        if self.word == "or":
            return Truth(reduce(operator.or_, holds), reduce(operator.and_, fails))
        if self.word == "not":
            return Truth(fails[0], holds[0])
        return Truth(holds[0], ~holds[0] if self.word == "if known," else fails[0])

    def __str__(self) -> str:
        if self.word == "compare":
            left, right = self.operands
            return f"{left} {OPERATORS[self.name][0]} {right}"
        if self.word == "if known,":
            return f"if known, {self.parts[0]}"
        inner = []
        for part in self.parts:
            bare = part.word not in ("and", "or", "if known,")
            inner.append(str(part) if bare else f"({part})")
        if self.word == "not":
            return f"not {inner[0]}"
        return self.name or f" {self.word} ".join(inner)

    def comparisons(self, optional: bool = False) -> Iterator[tuple[Condition, bool]]:
        """Yield every comparison within, and whether it is under ``if_known``."""
        if self.word == "compare":
            yield self, optional
        for part in self.parts:
            yield from part.comparisons(optional or self.word == "if known,")


class Used(NamedTuple):
    """Names in conditions: signals, those under ``if_known`` only, and thresholds."""

    signals: frozenset[str]
    optional: frozenset[str]
    thresholds: frozenset[str]


def names_in(conditions: Iterable[Condition]) -> Used:
    """Return the names that `conditions` refer to."""
    found: dict[str, set[str]] = {"signal": set(), "optional": set(), "threshold": set(), "number": set()}
    for condition in conditions:
        for comparison, optional in condition.comparisons():
            for operand in comparison.operands:
                may_lack = optional and operand.kind == "signal"
                found["optional" if may_lack else operand.kind].add(operand.name)
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
            return Condition("always", name=OTHERWISE)
        if isinstance(data, str):
            if data not in self.variables or data in within:
                known = ", ".join(sorted({*self.variables} - {*within}))
                raise self._error(data, f"names no rubric variable, or itself; known: {known}, {OTHERWISE}")
            return Condition("named", (self.parse(self.variables[data], (*within, data)),), data)
        given = data if isinstance(data, Mapping) else {}
        if "signal" in given:
            return self._comparisons(given)
        key, value = next(iter(given.items())) if len(given) == 1 else (None, None)
        if key in _WRAPPED:
            return Condition(_WRAPPED[key], (self.parse(value, within),))
        if key in _JOINED and isinstance(value, (list, tuple)) and value:
            return Condition(_JOINED[key], tuple(self.parse(item, within) for item in value))
        forms = ", ".join(("signal", *_JOINED, *_WRAPPED))
        raise self._error(data, f"must be a mapping with one of {forms}; all and any take a list")

    def _comparisons(self, data: Mapping[Any, object]) -> Condition:
        name, others = data["signal"], {key: value for key, value in data.items() if key != "signal"}
        if not (isinstance(name, str) and name and others and others.keys() <= OPERATORS.keys()):
            raise self._error(data, f"needs a signal's name and one or more of {', '.join(OPERATORS)}")
        left = Operand("signal", name)
        found = []
        for key, value in others.items():
            found.append(Condition("compare", name=key, operands=(left, self._operand(data, value))))
        if len(found) == 1:
            return found[0]
        return Condition("and", tuple(found))

    def _operand(self, data: object, value: object) -> Operand:
        if isinstance(value, str) and value in self.thresholds:
            return Operand("threshold", value)
        if isinstance(value, Mapping) and set(value) == {"signal"} and isinstance(value["signal"], str):
            return Operand("signal", value["signal"])
        number = float(value) if isinstance(value, bool) else finite_number(value)
        if number is not None:
            return Operand("number", number=number)
        known = ", ".join(sorted(self.thresholds)) or "none"
        raise self._error(
            data, f"compares with {value!r}; use a finite number, {{signal: NAME}} or a threshold: {known}"
        )

    def _error(self, data: object, problem: str) -> ValueError:
        return ValueError(f"{self.where}: condition {data!r} {problem}")
