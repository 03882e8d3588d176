"""Proof by cases that a schema gives every possible attempt exactly one category.

A comparison depends only on which side of its operands a signal lies. Constants and thresholds cut a
signal's axis into finitely many cells; one representative of each cell, for every order in which the
thresholds may lie, is therefore every case there is. With the first matching category winning, no
attempt has two; what remains to be shown is that each case has one, and that each category has a case.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from scorio.categorical.conditions import (
    Always,
    Comparison,
    Condition,
    Constant,
    Scope,
    SignalRef,
    ThresholdRef,
    comparisons,
)
from scorio.categorical.signals import BASE_SIGNALS

FloatArray: TypeAlias = NDArray[np.float64]

_MAX_CASES = 4_000_000
_CASES_PER_ORDER = 1_000
"""An order of thresholds costs at least as much as this many cases."""


@dataclass(frozen=True, slots=True)
class Group:
    """Signals that are compared with each other or with the same threshold, and their cut points."""

    signals: tuple[str, ...]
    thresholds: tuple[str, ...]
    constants: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CaseScope(Scope):
    """Every case at one order of the thresholds."""

    signals: Mapping[str, FloatArray]
    thresholds: Mapping[str, float]

    def signal(self, name: str) -> FloatArray:
        """Return the signal's value in each case, along its own axis."""
        return self.signals[name]

    def threshold(self, name: str) -> float:
        """Return the threshold's place in this order."""
        return self.thresholds[name]


def check_partition(where: str, categories: Sequence[tuple[str, Condition]]) -> None:
    """Check that every attempt gets a category and that every category can be got.

    Parameters
    ----------
    where : str
        Whose categories they are, for messages.
    categories : sequence of (str, Condition)
        How to call each category in a message, and its condition; the first that holds wins.

    Raises
    ------
    ValueError
        If a case has no category, a category has no case, or there are too many cases to look at and the
        last category is not ``otherwise``.
    """
    conditions = [condition for _, condition in categories]
    groups = _groups([pair for condition in conditions for pair in comparisons(condition)])
    if _count(groups) > _MAX_CASES:
        if isinstance(conditions[-1], Always):
            return
        raise ValueError(
            f"{where}: too many signals and thresholds to check that every attempt gets a category; "
            "end with a category whose condition is 'otherwise'"
        )
    reached = [False] * len(categories)
    for scope in _scopes(groups):
        _check_cases(where, categories, scope, reached)
    for (label, _), found in zip(categories, reached, strict=True):
        if not found:
            raise ValueError(
                f"{where}: {label} can never be assigned: wherever its condition holds, an earlier "
                "category's does; move it up or make the earlier conditions narrower"
            )


def _check_cases(
    where: str, categories: Sequence[tuple[str, Condition]], scope: CaseScope, reached: list[bool]
) -> None:
    shape = np.broadcast_shapes(*(array.shape for array in scope.signals.values()))
    undecided = np.ones(shape, dtype=np.bool_)
    for index, (_, condition) in enumerate(categories):
        holds = np.broadcast_to(condition.truth(scope).holds, shape)
        reached[index] = reached[index] or bool((undecided & holds).any())
        undecided = undecided & ~holds
    if undecided.any():
        case = tuple(np.argwhere(undecided)[0])
        values = {name: float(np.broadcast_to(array, shape)[case]) for name, array in scope.signals.items()}
        facts = [f"{name} = {value:g}" for name, value in {**values, **scope.thresholds}.items()]
        tried = "; ".join(label for label, _ in categories)
        raise ValueError(
            f"{where}: no category holds for an attempt with {', '.join(facts)}; add one for it or end with "
            f"'otherwise' (tried: {tried})"
        )


def _groups(found: Sequence[tuple[Comparison, bool]]) -> list[Group]:
    """Return the connected groups of signals and thresholds."""
    clusters: list[tuple[set[str], set[str], set[float]]] = []
    for comparison, _ in found:
        signals, thresholds, constants = {comparison.left.name}, set[str](), set[float]()
        if isinstance(comparison.right, SignalRef):
            signals.add(comparison.right.name)
        elif isinstance(comparison.right, ThresholdRef):
            thresholds.add(comparison.right.name)
        elif isinstance(comparison.right, Constant):
            constants.add(comparison.right.number)
        apart = []
        for other in clusters:
            if other[0] & signals or other[1] & thresholds:
                signals, thresholds, constants = (
                    signals | other[0],
                    thresholds | other[1],
                    constants | other[2],
                )
            else:
                apart.append(other)
        clusters = [*apart, (signals, thresholds, constants)]
    return [
        Group(tuple(sorted(signals)), tuple(sorted(thresholds)), tuple(sorted(constants | _bounds(signals))))
        for signals, thresholds, constants in clusters
    ]


def _bounds(signals: set[str]) -> set[float]:
    """Return the finite ends of the ranges of `signals`."""
    kinds = [BASE_SIGNALS[name] for name in signals if name in BASE_SIGNALS]
    return {end for kind in kinds for end in (kind.low, kind.high) if math.isfinite(end)}


def _count(groups: Sequence[Group]) -> float:
    """Return an upper bound of the number of cases, without listing them."""
    orders, cases = 1.0, 1.0
    for group in groups:
        points = len(group.constants)
        for _ in group.thresholds:
            orders *= 2 * points + 1
            points += 1
        cases *= ((points + 1) * len(group.signals) + points) ** len(group.signals)
    return orders * max(cases, _CASES_PER_ORDER)


def _scopes(groups: Sequence[Group]) -> Iterator[CaseScope]:
    """Yield all cases, one scope for every order of the thresholds."""
    names = [name for group in groups for name in group.signals]
    for placed in itertools.product(*(_orders(group.thresholds, group.constants) for group in groups)):
        signals: dict[str, FloatArray] = {}
        thresholds: dict[str, float] = {}
        for group, places in zip(groups, placed, strict=True):
            thresholds |= places
            points = sorted({*group.constants, *places.values()})
            for name in group.signals:
                axis = [1] * len(names)
                axis[names.index(name)] = -1
                signals[name] = _representatives(name, points, len(group.signals)).reshape(axis)
        yield CaseScope(signals, thresholds)


def _orders(names: tuple[str, ...], points: tuple[float, ...]) -> Iterator[dict[str, float]]:
    """Yield a place for each threshold, for every order they may have among themselves and `points`."""
    if not names:
        yield {}
        return
    for value in _cells(sorted(points), 1):
        for rest in _orders(names[1:], tuple({*points, value})):
            yield {names[0]: value, **rest}


def _cells(points: Sequence[float], per_gap: int) -> list[float]:
    """Return each point, and `per_gap` values in each gap between, below and above the points."""
    if not points:
        return [float(i) for i in range(per_gap)]
    steps = range(1, per_gap + 1)
    values = [*points, *(points[0] - i for i in steps), *(points[-1] + i for i in steps)]
    for low, high in itertools.pairwise(points):
        values += [low + (high - low) * i / (per_gap + 1) for i in steps]
    return sorted(values)


def _representatives(name: str, points: Sequence[float], per_gap: int) -> FloatArray:
    """Return a value of each cell of a signal's axis that the signal can take."""
    kind = BASE_SIGNALS.get(name)
    if kind is None:
        return np.array(_cells(points, per_gap))
    if kind.flag:
        return np.array([0.0, 1.0])
    return np.array([value for value in _cells(points, per_gap) if kind.low <= value <= kind.high])
