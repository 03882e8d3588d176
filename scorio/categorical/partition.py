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

import numpy as np

from scorio._arrays import Floats
from scorio.categorical.conditions import Condition, Operand, Scope
from scorio.categorical.signals import BASE_SIGNALS

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
        if categories[-1][1].word == "always":
            return
        raise ValueError(
            f"{where}: too many signals and thresholds to check that every attempt gets a category; "
            "end with a category whose condition is 'otherwise'"
        )
    cases = dict(zip(axes, np.ix_(*axes.values()), strict=True))
    thresholds = {operand.name: values for operand, values in cases.items() if operand.kind == "threshold"}
    signals = {operand.name: values for operand, values in cases.items() if operand.kind == "signal"}
    scope = Scope(signals, thresholds)
    undecided = np.ones(list(map(len, axes.values())), dtype=np.bool_)
    for label, condition in categories:
        found = undecided & condition.truth(scope).holds
        if not found.any():
            raise ValueError(
                f"{where}: {label} can never be assigned: whenever its condition holds, an earlier "
                "category's does; move it up or make the earlier conditions narrower"
            )
        undecided = undecided & ~found
    if undecided.any():
        case = zip(axes.items(), np.argwhere(undecided)[0], strict=True)
        facts = ", ".join(f"{operand} = {axis[place]:g}" for (operand, axis), place in case)
        tried = "; ".join(label for label, _ in categories)
        raise ValueError(
            f"{where}: no category holds for an attempt with {facts}; add one for it or end with "
            f"'otherwise' (tried: {tried})"
        )


def _axes(conditions: Sequence[Condition]) -> dict[Operand, Floats]:
    """Return the places that each signal and threshold takes in the cases."""
    groups: list[set[Operand]] = []
    for condition in conditions:
        for comparison, _ in condition.comparisons():
            joined = {*comparison.operands}
            # A number joins nobody: it is a cut of its own group.
            variables = {operand for operand in joined if operand.kind != "number"}
            for group in [group for group in groups if group & variables]:
                groups.remove(group)
                joined |= group
            groups.append(joined)
    axes = {}
    for group in groups:
        variables = {operand for operand in group if operand.kind != "number"}
        cuts = {operand.number for operand in group if operand.kind == "number"}
        for operand in variables:
            cuts |= {end for end in _range(operand) if math.isfinite(end)}
        for operand in sorted(variables, key=str):
            low, high = _range(operand)
            places = [0.0, 1.0] if _is_flag(operand) else _cells(sorted(cuts), len(variables))
            axes[operand] = np.array([place for place in places if low <= place <= high])
    return axes


def _range(operand: Operand) -> tuple[float, float]:
    kind = BASE_SIGNALS.get(operand.name) if operand.kind == "signal" else None
    if kind is None:
        return (-math.inf, math.inf)
    return (kind.low, kind.high)


def _is_flag(operand: Operand) -> bool:
    return operand.kind == "signal" and operand.name in BASE_SIGNALS and BASE_SIGNALS[operand.name].flag


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
