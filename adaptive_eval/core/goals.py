"""Goals: which contrasts a run decides, which of them are still needed, and when the goal is reached.

A contrast is a pair of models, a claim about a pair (the first is not worse than the second by more than a
margin), one model compared with a number, or one model's score to be measured to a width. A goal names its
contrasts before any outcome. The family of the error control is all contrasts that can get a winner, over
all parts of a composed goal, so that reaching one part first cannot weaken the promise; claims are a family
of their own. The *needed* contrasts may become fewer as others are decided: for the best k only pairs across
the cut matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from math import isnan
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.results import ContrastKind
from adaptive_eval.core.spec import GoalSpec, SessionSpec
from scorio.arrays import Bools, Ints
from scorio.sequential import rank_intervals
from scorio.sequential.parts import Contrasts, ContrastStates, VerdictCode


@dataclass(frozen=True, eq=False)
class AllDecided:
    """Every one of some contrasts has a verdict."""

    rows: Ints  # the contrasts
    text: str  # the condition in words
    review: int | None = None  # every how many steps `needed` must be asked again
    separate: bool = True  # whether a call says nothing about which other contrasts are needed

    def needed(self, states: ContrastStates) -> Bools:
        """Mark its open contrasts, which can still help to reach it."""
        marked = np.zeros(states.verdict.size, dtype=bool)
        marked[self.rows] = True
        return np.asarray(marked & (states.verdict == VerdictCode.OPEN) & ~states.lost)

    def met(self, states: ContrastStates) -> tuple[str, ...]:
        """Return which parts are reached, nothing if the condition does not hold: its text or nothing."""
        if bool((states.verdict[self.rows] != VerdictCode.OPEN).all()):
            return (self.text,)
        return ()


@dataclass(frozen=True, eq=False)
class BestK:
    """The best k: pairs across the cut of the present order, without those that follow from other calls.

    A pair across the cut is also settled when its model of the top set is good enough. Such a claim about a
    set is wrong only through a pair of a model not among the true best and one of these: k(L − k) pairs.
    """

    rows: Ints  # the pairs
    # their models
    first: Ints
    second: Ints
    # size of the top set, and of the board
    k: int
    models: int
    text: str  # the condition in words
    review: int | None = 16
    separate: bool = False

    def needed(self, states: ContrastStates) -> Bools:
        """Mark undecided pairs across the cut that nothing settles."""
        marked = np.zeros(states.verdict.size, dtype=bool)
        marked[self.rows] = self._unsettled(states)
        return marked & ~states.lost

    def met(self, states: ContrastStates) -> tuple[str, ...]:
        """Return its text once the best k are known."""
        if self._unsettled(states).any():
            return ()
        return (self.text,)

    def good_enough(self, states: ContrastStates) -> list[int]:
        """Return the top set if it rests on a claim that its models are good enough; nothing otherwise."""
        top, open_ = self._cut(states)
        chosen: list[int] = np.flatnonzero(top).tolist()
        if open_.any():
            return chosen
        return []

    def _unsettled(self, states: ContrastStates) -> Bools:
        top, open_ = self._cut(states)
        first, second = states.enough[:, self.rows]
        enough: Bools = np.where(top[self.first], first, second)
        return np.asarray(open_ & ~enough)

    def _cut(self, states: ContrastStates) -> tuple[Bools, Bools]:
        """Return the models of the top set, and the pairs across the cut that no chain of winners settles."""
        said = states.verdict[self.rows]
        better = np.zeros((self.models, self.models), dtype=bool)
        won, lost = said == VerdictCode.BETTER, said == VerdictCode.WORSE
        better[self.first[won], self.second[won]] = True
        better[self.second[lost], self.first[lost]] = True
        for middle in range(self.models):
            better |= better[:, middle, None] & better[None, middle, :]
        top = np.zeros(self.models, dtype=bool)
        beaten = better.sum(axis=0)
        top[np.lexsort((np.arange(self.models), -states.score, beaten >= self.k))[: self.k]] = True
        across = top[self.first] != top[self.second]
        settled = better[self.first, self.second] | better[self.second, self.first]
        return top, np.asarray((said == VerdictCode.OPEN) & across & ~settled)


@dataclass(frozen=True, eq=False)
class AllOf:
    """Every one of several conditions holds."""

    parts: tuple[Condition, ...]
    text: str

    @property
    def review(self) -> int | None:
        """The shortest of the parts."""
        return min((part.review for part in self.parts if part.review is not None), default=None)

    @property
    def separate(self) -> bool:
        """Whether all parts are."""
        return all(part.separate for part in self.parts)

    def needed(self, states: ContrastStates) -> Bools:
        """Mark the contrasts that any part needs."""
        return np.asarray(np.logical_or.reduce([part.needed(states) for part in self.parts]))

    def met(self, states: ContrastStates) -> tuple[str, ...]:
        """Return all parts once every part is reached."""
        met = [part.met(states) for part in self.parts]
        if all(met):
            return tuple(chain.from_iterable(met))
        return ()


Condition: TypeAlias = AllDecided | BestK | AllOf
"""The condition under which a goal is reached."""


@dataclass(frozen=True, eq=False)
class Goal(Contrasts):
    """The contrasts of a goal, and when it is reached."""

    condition: Condition  # when it is reached
    stops: bool = True  # whether reaching it ends the run and retires models


def make_goal(spec: SessionSpec) -> Goal:
    """Return the goal of a session.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, TaskSpec
    >>> spec = SessionSpec(tuple(map(ModelSpec, "abc")), (TaskSpec("t", ("q",)),))
    >>> make_goal(spec).first.tolist()
    [0, 0, 1]
    """
    contrasts = _Contrasts(spec)
    condition = contrasts.condition(spec.goal)
    first, second, value, width, claim = np.array(contrasts.rows, dtype=np.float64).reshape(-1, 5).T.copy()
    models = first.astype(np.int64), second.astype(np.int64)
    return Goal(*models, value, width, claim, condition, stops=spec.goal.kind != "budget")


class _Contrasts:
    """The contrasts of a goal, each once, even if several parts need it."""

    def __init__(self, spec: SessionSpec) -> None:
        self.spec = spec
        self.rows: list[tuple[int, int, float, float, float]] = []
        self._known: dict[tuple[int, int, float, float, float], int] = {}

    def condition(self, goal: GoalSpec) -> Condition:
        """Return the condition of `goal`, its contrasts added."""
        if goal.kind == "all":
            return AllOf(tuple(map(self.condition, goal.goals)), goal.text)
        if goal.kind in ("width", "threshold"):
            singles = [self._single(goal, model) for model in range(len(self.spec.models))]
            return AllDecided(np.array(singles), goal.text)
        pairs = list(self._pairs(goal))
        if goal.kind == "not-worse":
            claim = self.spec.claim_margin(goal)
        else:
            claim = np.nan
        rows = np.array([self._add(a, b, claim=claim) for a, b in pairs], dtype=np.int64)
        if goal.kind != "top-k":
            return AllDecided(rows, goal.text)
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return BestK(rows, table[:, 0], table[:, 1], goal.k, len(self.spec.names), goal.text)

    def _pairs(self, goal: GoalSpec) -> Iterator[tuple[int, int]]:
        names = self.spec.names
        index = {name: position for position, name in enumerate(names)}
        if goal.kind == "baseline":
            found = [(index[goal.model], other) for other in range(len(names)) if other != index[goal.model]]
        elif goal.kind == "not-worse":
            found = [(other, index[goal.model]) for other in range(len(names)) if other != index[goal.model]]
        elif goal.kind == "pairs":
            found = [(index[a], index[b]) for a, b in goal.pairs]
        else:
            found = list(combinations(range(len(names)), 2))
        # Two references have nothing left to ask: no goal compares them.
        return (pair for pair in found if min(pair) < len(self.spec.models))

    def _single(self, goal: GoalSpec, model: int) -> int:
        origin, unit = self.spec.scale
        if goal.kind == "width":
            return self._add(model, Contrasts.SINGLE, width=goal.width / unit)
        return self._add(model, Contrasts.SINGLE, (goal.value - origin) / unit)

    def _add(
        self, first: int, second: int, value: float = 0.0, width: float = np.nan, claim: float = np.nan
    ) -> int:
        """Return the row of a contrast, as it was added first; a claim is about one direction of a pair."""
        low, high = (first, second) if claim > 0.0 else sorted((first, second))
        key = (low, high, value, _number(width), _number(claim))
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append((first, second, value, width, claim))
        return self._known[key]


def _number(value: float) -> float:
    if isnan(value):  # as NaN equals nothing
        return -1.0
    return value


def rank_ranges(goal: Goal, verdict: NDArray[np.integer], models: int) -> list[tuple[int, int]]:
    """Return the interval of each model's rank that the winners of pairs leave.

    A claim that fails has one: the other model. A claim that holds has none.
    """
    first, second = goal.first.tolist(), goal.second.tolist()
    won = []
    has_winner = ((verdict == VerdictCode.BETTER) & ~goal.claimed) | (verdict == VerdictCode.WORSE)
    for row in np.flatnonzero(~goal.single & has_winner).tolist():
        pair = (first[row], second[row])
        if verdict[row] == VerdictCode.BETTER:
            won.append(pair)
        else:
            won.append(pair[::-1])
    return rank_intervals(models, won)


def contrast_kind(goal: Contrasts, row: int) -> ContrastKind:
    """Return what kind of contrast is in a row.

    Examples
    --------
    >>> contrast_kind(Contrasts.pairs(2), 0)
    'pair'
    """
    if goal.measured[row]:
        return "width"
    if goal.single[row]:
        return "threshold"
    if goal.claimed[row]:
        return "not-worse"
    return "pair"


def claimed_margin(spec: SessionSpec, goal: Goal, row: int) -> float | None:
    """Return the margin of a claim in score units; None of any other contrast."""
    if goal.claimed[row]:
        return float(spec.scale[1] * goal.claim[row])
    return None


def sides(spec: SessionSpec, goal: Goal, row: int) -> tuple[str, str]:
    """Return the two sides of a contrast as text: two models, or a model and a number or width.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, TaskSpec
    >>> models, tasks = (ModelSpec("a"), ModelSpec("b")), (TaskSpec("t", ("q",)),)
    >>> spec = SessionSpec(models, tasks, GoalSpec("threshold", value=0.8))
    >>> sides(spec, make_goal(spec), 1)
    ('b', '0.8')
    """
    origin, unit = spec.scale
    first = spec.names[goal.first[row]]
    second = int(goal.second[row])
    width = float(goal.width[row])
    if second != Contrasts.SINGLE:
        return first, spec.names[second]
    if goal.measured[row]:
        return first, f"width {unit * width:g}"
    return first, f"{origin + unit * float(goal.value[row]):g}"
