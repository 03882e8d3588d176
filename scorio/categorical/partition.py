"""Proof by cases that a schema gives every possible attempt exactly one category.

A comparison depends only on the order of its two sides. The constants that signals and thresholds are
compared with cut their axis into finitely many cells; of n signals and thresholds that are compared with each
other, n representatives of each cell give every order that they can have. With the first matching category
winning, no attempt has two; what remains to be shown is that each case has one, and that each category has a
case.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scorio.arrays import Floats
from scorio.categorical.conditions import OTHERWISE, Condition, Variable
from scorio.categorical.signals import BASE_SIGNALS, SignalKind

_MAX_CASES = 4_000_000


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
    axes = _axes([condition for _, condition in categories])
    if math.prod(len(axis) for axis in axes.values()) > _MAX_CASES:
        if categories[-1][1].text == OTHERWISE:
            return
        raise ValueError(
            f"{where}: too many signals and thresholds to check that every attempt gets a category; "
            "end with a category whose condition is 'otherwise'"
        )
    cases = dict(zip(axes, np.ix_(*axes.values()), strict=True))
    undecided = np.ones(list(map(len, axes.values())), dtype=np.bool_)
    for label, condition in categories:
        found = undecided & (condition.truth(cases) == 1)
        if not found.any():
            raise ValueError(
                f"{where}: {label} can never be assigned: whenever its condition holds, an earlier "
                "category's does; move it up or make the earlier conditions narrower"
            )
        undecided = undecided & ~found
    if undecided.any():
        case = zip(axes.items(), np.argwhere(undecided)[0], strict=True)
        facts = ", ".join(f"{variable} = {axis[place]:g}" for (variable, axis), place in case)
        tried = "; ".join(label for label, _ in categories)
        raise ValueError(
            f"{where}: no category holds for an attempt with {facts}; add one for it or end with "
            f"'otherwise' (tried: {tried})"
        )


@dataclass
class _Group:
    """Signals and thresholds that are compared with each other, and the constants that cut their axis."""

    variables: set[Variable]
    cuts: set[float]


def _axes(conditions: Sequence[Condition]) -> dict[Variable, Floats]:
    """Return the places that each signal and threshold takes in the cases."""
    groups: dict[Variable, _Group] = {}
    for condition in conditions:
        for comparison, _ in condition.comparisons():
            group = _group_of(comparison.left, groups)
            if not isinstance(comparison.right, Variable):
                group.cuts.add(comparison.right)
                continue
            other = _group_of(comparison.right, groups)
            group.variables |= other.variables
            group.cuts |= other.cuts
            groups |= dict.fromkeys(other.variables, group)
    axes = {}
    for variable, group in groups.items():
        kind = _kind(variable)
        if not kind.flag:
            places = _cells(sorted(group.cuts), len(group.variables))
        else:
            places = [0.0, 1.0]
        axes[variable] = np.array([place for place in places if kind.low <= place <= kind.high])
    return axes


def _group_of(variable: Variable, groups: dict[Variable, _Group]) -> _Group:
    """Return the group of a variable, at first of it alone with the ends of its range."""
    kind = _kind(variable)
    ends = {end for end in (kind.low, kind.high) if math.isfinite(end)}
    return groups.setdefault(variable, _Group({variable}, ends))


def _kind(variable: Variable) -> SignalKind:
    """Return what is known of the values of a signal or threshold."""
    any_number = SignalKind("", "")
    if variable.kind == "signal":
        return BASE_SIGNALS.get(variable.name, any_number)
    return any_number


def _cells(cuts: Sequence[float], per_gap: int) -> list[float]:
    """Return each cut, and `per_gap` values in each gap between, below and above the cuts."""
    if not cuts:
        return list(map(float, range(per_gap)))
    steps = range(1, per_gap + 1)
    values = list(cuts)
    for i in steps:
        values += [cuts[0] - i, cuts[-1] + i]
    for low, high in itertools.pairwise(cuts):
        values += [low + (high - low) * i / (per_gap + 1) for i in steps]
    return sorted(values)
