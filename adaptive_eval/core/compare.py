"""The comparison: the contrasts of a session, read and called in the order of the log.

Each contrast is read along its own two models (:mod:`scorio.sequential.fold`), so a slow answer delays the
contrasts of its model and no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from adaptive_eval.core.courses import Courses
from adaptive_eval.core.goals import OPEN, make_goal
from adaptive_eval.core.intervals import EXACT, Intervals
from adaptive_eval.core.spec import SessionSpec
from scorio.sequential.fold import NEVER, STEP_BITS, Course, Event, Fold, Piece, moments

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

NEAREST = 0.25
"""A distance to a call of this part of the noise is too small to wait for: 16 times the trials are needed."""


@dataclass(frozen=True, slots=True)
class Call:
    """A contrast was decided, as `event` says.

    `difference` and its confidence sequence from `low` to `high` are in unit scores; `statistic` is on the
    rule's own scale.
    """

    event: Event
    difference: float
    low: float
    high: float
    questions: int
    statistic: float


class Comparison:
    """All contrasts of a session."""

    def __init__(self, spec: SessionSpec, board: Board) -> None:
        self.spec = spec
        self.board = board
        self.goal = make_goal(spec)
        self.rule = spec.stopping.make_rule(spec.scale[1])
        self.scores = np.where(board.progress > 0, board.scores().difference[:, 0], 0.0)
        """Scores of the models when they were last reviewed, which order them for the best k; those of
        references from the start."""
        self._gone: set[int] = set()
        levels = spec.levels(self.rule, self.goal.hypotheses)
        self.fold = Fold(self.goal.measured, levels, self._needed)
        bets = (spec.stopping.rule == "anytime") & self.goal.single & ~self.goal.measured
        self.intervals = Intervals(self.goal, bets, levels.alpha, self.margin)
        self.courses = Courses(spec, board, self.goal, self.rule, levels, self.intervals)
        self.version = 0
        """Grows whenever what is known of the contrasts has changed."""
        self.members = self._members()
        """Models that a needed contrast has."""
        self._review_at = self.goal.review or NEVER

    @property
    def alpha(self) -> float:
        """1 minus the confidence."""
        return self.fold.levels.alpha

    @property
    def margin(self) -> float | None:
        """Equivalence margin in unit scores."""
        margin = self.spec.stopping.equivalence
        return None if margin is None else margin / self.spec.scale[1]

    @property
    def latest(self) -> Course:
        """Values of the contrasts at the last step read, or at their call."""
        return self.fold.latest

    @property
    def reached(self) -> int:
        """Steps that every needed contrast has been read to."""
        needed = self.fold.needed
        return int(self.fold.progress[needed].min()) if needed.any() else 0

    def exact(self, row: int) -> bool:
        """Return whether a contrast is known: all questions are answered, by models without noise."""
        return bool(self.latest.guarded[row] <= EXACT)

    def interval(self, rows: slice | list[int] = slice(None)) -> tuple[Floats, Floats]:
        """Confidence sequence of some contrasts at the run's confidence, in unit scores."""
        fold, latest = self.fold, self.latest
        estimates = (latest.difference[rows], latest.variance[rows], latest.guarded[rows], latest.slack[rows])
        return self.intervals.of(rows, fold.verdict[rows], *estimates)

    @property
    def undecidable(self) -> Bools:
        """Needed contrasts that hardly any number of trials could decide, since lost answers weigh too much.

        A winner needs |D| above what the lost answers could make of it, a tie needs both together below ε/2
        (:func:`scorio.sequential.evidence.tie_boundary`). The noise is below what the lost answers weigh, and
        many times the trials until now would be needed for it to fall below the distance to either.
        """
        needed, latest = self.fold.needed, self.latest
        size, slack = np.abs(latest.difference), latest.slack
        low, high = self.interval()
        noise = (high - low) / 2.0 - slack
        distance = np.maximum(size, 0.5 * (self.margin or 0.0) - size) - slack
        either = (noise <= slack) & (distance <= NEAREST * noise)
        wide = 2.0 * slack >= self.goal.width
        return np.asarray(needed & (slack > 0.0) & np.where(self.goal.measured, wide, either))

    def advance(self) -> list[Call]:
        """Read the trials absorbed since the last call, and return the new calls in order."""
        pieces = [self._piece(rows, stop) for rows, stop in self._readable()]
        if self.goal.review is None:
            events = self.fold.read(pieces)
        else:
            events = self.fold.read(pieces, self._next_review, self._review)
        self._note_needed()
        self._forget()
        return self._described(events) if events else []

    def _readable(self) -> Iterator[tuple[Ints, int]]:
        """Yield undecided contrasts that can be read on together, with the step to read to."""
        far, fold = self.board.progress, self.fold
        partner = np.where(self.goal.single, self.goal.first, self.goal.second)
        limit = np.minimum(far[self.goal.first], far[partner])
        ready = ((fold.verdict == OPEN) & (limit > fold.progress)).nonzero()[0]
        if ready.size == 0:
            return
        start, stop = int(fold.progress[ready[0]]), int(limit[ready[0]])
        if (limit[ready] == stop).all() and (fold.progress[ready] == start).all():
            yield ready, stop
            return
        key = fold.progress[ready] * (int(limit.max()) + 1) + limit[ready]
        order = np.argsort(key, kind="stable")
        for group in np.split(ready[order], np.flatnonzero(np.diff(key[order])) + 1):
            yield group, int(limit[group[0]])

    def _piece(self, rows: Ints, stop: int) -> Piece:
        start, goal = int(self.fold.progress[rows[0]]), self.goal
        position = self.board.positions(goal.first[rows], start, stop)
        if not goal.single[rows].all():
            other = np.where(goal.single, goal.first, goal.second)[rows]
            position = np.maximum(position, self.board.positions(other, start, stop))
        return Piece(rows, start, moments(position, start), self.courses.read(rows, start, stop))

    # ------------------------------------------------------------------ what is needed

    def _needed(self, verdict: Ints, lost: Bools) -> Bools:
        return self.goal.needed(verdict, self.scores, lost)

    def _note_needed(self) -> None:
        self.version += 1
        self.members = self._members()

    def _members(self) -> list[int]:
        if not self.goal.stops:
            return [model for model in range(len(self.spec.models)) if model not in self._gone]
        needed = np.zeros(len(self.spec.names) + 1, dtype=bool)  # the last one is no model, as second may be
        rows = self.fold.needed
        needed[self.goal.first[rows]] = needed[self.goal.second[rows]] = True
        members: list[int] = np.flatnonzero(needed[: len(self.spec.models)]).tolist()
        return members

    def _next_review(self) -> int:
        """Return the moment at which the first needed model has reached the step of the next review."""
        there = [model for model in self._members() if self.board.progress[model] >= self._review_at]
        if not there:
            return NEVER
        at = self.board.positions(np.array(there), self._review_at - 1, self._review_at)
        return (int(at.min()) << STEP_BITS) + self._review_at

    def _review(self, position: int) -> None:
        """Look at the scores that needed models had at a position of the log."""
        for model in self._members():
            steps = self.board.steps_at(model, position)
            if steps:
                self.scores[model] = self.board.score_at(model, steps)
        self._review_at += self.goal.review or NEVER

    def _described(self, events: list[Event]) -> list[Call]:
        """Return the calls with their estimates, their intervals found together."""
        rows = [event.contrast for event in events]
        latest, (low, high) = self.latest, self.interval(rows)
        columns = (latest.difference[rows], low, high, latest.questions[rows], latest.statistic[rows])
        estimates = zip(*(column.tolist() for column in columns), strict=True)
        return [Call(one, *values) for one, values in zip(events, estimates, strict=True)]

    def _forget(self) -> None:
        undecided = self.fold.verdict == OPEN
        if undecided.any():
            self.board.forget(max(int(self.fold.progress[undecided].min()) - 1, 0))

    # ------------------------------------------------------------------ from outside

    def lose(self, model: int) -> None:
        """Drop the undecided contrasts of a model that will get no more answers."""
        self._gone.add(model)
        self.fold.drop((self.goal.first == model) | (self.goal.second == model))
        self._note_needed()

    @property
    def met(self) -> tuple[str, ...]:
        """The parts of the goal that are reached; empty while none is."""
        return self.goal.condition.met(self.fold.verdict, self.scores)

    @property
    def lost(self) -> Bools:
        """Contrasts that were dropped undecided."""
        return np.asarray(self.fold.lost & (self.fold.verdict == OPEN))
