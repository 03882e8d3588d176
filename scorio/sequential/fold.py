"""The fold: from the courses of contrasts to calls, in the order of the log.

Each contrast is read along its own two models, as far as both their completed prefixes go; nothing waits for
a third model. Step t of a contrast happens when the later of its two models has reached it in the log, so
its evidence is a function of the log alone: how outcomes are told in batches decides nothing, and another
order of arrival moves only when thresholds fall. Highest values of winners' e-values
count, so that Holm's thresholds, which fall with every winner, hold at any mixture of steps (Ville's
inequality holds in each contrast's own course). Ties have levels of their own and never count as winners.

A *claim* (one model is not worse than another by more than a margin) holds or fails. Claims have a level of
their own, which they share in each direction apart: as many as hold count for those that may hold, and
likewise for those that fail.

If the best models are sought and a margin ε is set, each side of an open pair may also be *good enough*:
the other is not better by more than ε. Such a claim has a fixed level of its own, and the pair stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scorio.arrays import AT_ONCE, Bools, Floats, Ints
from scorio.sequential.evidence import MIN_TRIALS, log_evidence_above
from scorio.sequential.families import Family

Signs = NDArray[np.int8]
Looks = NDArray[np.void]
"""Elements of the kind :data:`_LOOK`."""


class VerdictCode:
    """Verdicts of contrasts, as arrays hold them."""

    OPEN, BETTER, TIE = range(3)
    WORSE = -BETTER  # the sign of the difference


STEP_BITS = np.iinfo(np.int32).bits
"""A moment is a log position, then a step, half of its bits each: several steps may fall on one position."""
NEVER = np.iinfo(np.int64).max


class Course(NamedTuple):
    """Values of contrasts; arrays of shape (contrasts, steps), or (contrasts,) for the last step read.

    `statistic` is the highest so far and `sign` the sign of the difference at it; `tie` is the log e-value of
    a practical tie. `margin` is the variance that the difference would have at the equivalence margin.
    """

    statistic: Floats
    sign: Signs
    tie: Floats
    difference: Floats
    variance: Floats
    guarded: Floats
    margin: Floats
    questions: Ints
    trials: Floats
    slack: Floats

    @classmethod
    def unread(cls, contrasts: int) -> Course:
        """Return the values before the first step."""

        def filled(value: float) -> Floats:
            return np.full(contrasts, value)

        signs = np.zeros(contrasts, dtype=np.int8)
        none = np.zeros(contrasts, dtype=np.int64)
        unknown = filled(np.inf), filled(np.inf), filled(np.inf)
        return cls(
            filled(-np.inf), signs, filled(-np.inf), filled(0.0), *unknown, none, filled(0.0), filled(0.0)
        )

    def put(self, rows: Ints | int, course: Course, lines: Ints | int | slice, steps: Ints | int) -> None:
        """Take the values of `rows` from some lines and steps of a course."""
        for name, values in self._asdict().items():
            values[rows] = getattr(course, name)[lines, steps]


class Piece(NamedTuple):
    """New steps of contrasts: `rows` of shape (p,), the next ones of each; `moment` of shape (p, k)."""

    rows: Ints
    moment: Ints
    course: Course


@dataclass(frozen=True, slots=True)
class Event:
    """A contrast was called: at its own `step`, by the log's `position`, at a threshold of its statistic."""

    contrast: int
    verdict: int
    step: int
    position: int
    threshold: float


def moments(position: Ints, start: int) -> Ints:
    """Return the moments of steps ``start, start + 1, …``, given their log positions, shape (p, k)."""
    return (position << STEP_BITS) + np.arange(start, start + position.shape[-1])


@dataclass(frozen=True)
class Levels:
    """Thresholds of winners and ties.

    Parameters
    ----------
    family, ties : Family
        How winners and ties share their error rates.
    hypotheses : int
        Contrasts that can get a winner: fixed at the start, those that are dropped included.
    level, alpha : float
        Error rate of winners, and of ties and claims.
    fixed : float, optional
        Threshold of a statistic to which no family applies.
    claims : int
        Pairs any of which could make a claim wrong that models are good enough; 0 without such claims.
    margin : float
        Equivalence margin of these claims, in unit scores.
    claimed : int
        Contrasts that are claims: fixed at the start.
    """

    family: Family
    ties: Family
    hypotheses: int
    level: float
    alpha: float
    fixed: float | None = None
    claims: int = 0
    margin: float = 0.0
    claimed: int = 0

    def winner(self, won: int) -> float:
        """Return what a statistic must reach once so many winners are called."""
        if self.fixed is not None:
            return self.fixed
        return self.family.threshold(won, self.hypotheses, self.level)

    def tie(self, tied: int) -> float:
        """Return what the log e-value of a tie must reach once so many ties are called."""
        return self.ties.threshold(tied, self.hypotheses, self.alpha)

    def claim(self, called: int) -> float:
        """Return what the statistic of a claim must reach once so many are called in its direction."""
        return self.family.threshold(called, self.claimed, self.alpha)

    @property
    def guard(self) -> float:
        """κ of the variances: the largest log e-value that is ever asked for."""
        winner = 0.0
        if self.fixed is None:
            winner = self.winner(0)
        claim = 0.0
        if self.claimed:
            claim = self.claim(0)
        return max(winner, self.tie(0), claim, log(max(self.claims, 1) / self.alpha))

    def good_enough(self, course: Course) -> Bools:
        """Return where the first model, and where the second, is not worse by more than the margin."""
        if not self.claims:
            return np.zeros((2, *course.difference.shape), dtype=bool)
        sides = [np.asarray(sign * course.difference - course.slack) for sign in (1.0, -1.0)]
        evidence = np.stack([log_evidence_above(side, course.margin, self.margin) for side in sides])
        return (evidence >= log(self.claims / self.alpha)) & (course.trials >= MIN_TRIALS)


class Fold:
    """Calls contrasts at the earliest moment of the log at which they may be called.

    Parameters
    ----------
    measured : ndarray of bool, shape (P,)
        Contrasts that end at a width and claim nothing: their tie evidence is infinite, or none.
    levels : Levels
        The thresholds.
    needed : callable
        From this fold to the contrasts that the goal still needs.
    claimed : ndarray of bool, shape (P,), optional
        Contrasts that are claims; by default none.
    changed : callable, optional
        Called whenever `needed` was asked again, at its moment of the log.

    Attributes
    ----------
    verdict, decided_at : ndarray of int64, shape (P,)
        Verdicts, and the step of each contrast's own course at which it was called (−1 before).
    enough_at : ndarray of int64, shape (2, P)
        The step at which the first model, and the second, was found good enough (−1 before).
    needed, lost : ndarray of bool, shape (P,)
        Contrasts that are needed, and those that were dropped.
    latest : Course
        Values at the last step read, or at the call.
    progress : ndarray of int64, shape (P,)
        Steps read.
    now : int
        Moment up to which all is folded.
    """

    def __init__(
        self,
        measured: Bools,
        levels: Levels,
        needed: Callable[[Fold], Bools],
        claimed: Bools | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        contrasts = measured.size
        self.levels = levels
        self.verdict = np.zeros(contrasts, dtype=np.int64)
        self.decided_at = np.full(contrasts, -1, dtype=np.int64)
        self.enough_at = np.full((2, contrasts), -1, dtype=np.int64)
        self.lost = np.zeros(contrasts, dtype=bool)
        self.latest = Course.unread(contrasts)
        self.progress = np.zeros(contrasts, dtype=np.int64)
        self.now = -1
        self.won = self.tied = self.held = self.failed = 0
        self._measured = measured
        if claimed is None:
            self._claimed = np.zeros(contrasts, dtype=bool)
        else:
            self._claimed = claimed
        self._needed = needed
        self._changed = changed
        self.needed = needed(self)

    @property
    def undecided(self) -> Bools:
        """Contrasts without a verdict."""
        return np.asarray(self.verdict == VerdictCode.OPEN)

    @property
    def position(self) -> int:
        """The position of the log up to which it is read."""
        return self.now >> STEP_BITS

    @property
    def threshold(self) -> float:
        """Value the statistic must reach for the next winner."""
        return self.levels.winner(self.won)

    def thresholds(self, rows: Ints, sign: Signs) -> Floats:
        """Return what the statistics of `rows`, which speak for this side, must reach now."""
        found = np.full(rows.shape, self.threshold)
        claimed = self._claimed[rows]
        if claimed.any():
            of_claims = np.where(sign > 0, self.levels.claim(self.held), self.levels.claim(self.failed))
            found[claimed] = of_claims[claimed]
        return found

    @property
    def tie_threshold(self) -> float:
        """Log e-value at which the next tie would be called."""
        return self.levels.tie(self.tied)

    def update_needed(self) -> None:
        """Ask the goal again which contrasts it needs."""
        self.needed = self._needed(self)
        self._changed()

    def drop(self, rows: Bools) -> None:
        """Drop undecided contrasts: they get no more answers."""
        self.lost |= rows & self.undecided
        self.update_needed()

    def read(
        self,
        pieces: Sequence[Piece],
        review: Callable[[], int] = lambda: NEVER,
        reviewed: Callable[[int], None] = lambda position: None,
    ) -> list[Event]:
        """Fold new steps of contrasts.

        Parameters
        ----------
        pieces : sequence of Piece
            Their statistics not yet at their highest; each contrast in one piece at most.
        review, reviewed : callable
            The moment of the next review of what is needed, and what to do there.
        """
        pieces = list(map(self._follows, pieces))
        calls: list[Event] = []
        was_needed = bool(self.needed.any())
        thresholds = self.least_thresholds(pieces)
        reached = [self.reached(piece.rows[:, None], piece.course, *thresholds) for piece in pieces]
        may_call = review() < NEVER
        for piece, steps in zip(pieces, reached, strict=True):
            may_call |= bool((steps & self.needed[piece.rows, None]).any())
        if may_call:
            candidates = _Candidates(self, pieces, reached, thresholds)
            while True:
                moment, ready = candidates.earliest()
                due = review()
                if due < NEVER and due <= moment:
                    self.now = max(self.now, due)
                    reviewed(due >> STEP_BITS)
                elif moment < NEVER:
                    self.now = max(self.now, moment)
                    calls += candidates.call(ready)
                else:
                    break
                self.update_needed()
        end = NEVER
        if was_needed and not self.needed.any():
            end = self.now
        for rows, begins, course in pieces:
            # Where a call has ended all, what came after it is not read: it depends on who looked when.
            steps = (begins <= end).sum(axis=1)
            lines = np.flatnonzero((self.verdict[rows] == VerdictCode.OPEN) & (steps > 0))
            self.latest.put(rows[lines], course, lines, steps[lines] - 1)
            self.progress[rows] += steps
            self.now = max(self.now, min(int(begins[:, -1].max()), end))
        return calls

    def _follows(self, piece: Piece) -> Piece:
        """Return a piece with statistics at their highest; its steps, if they come late, begin now."""
        rows, moment, course = piece
        first = self.now + 1 + np.arange(moment.shape[1])
        peak = self.latest.statistic[rows], self.latest.sign[rows]
        statistic, sign = running_peak(*peak, course.statistic, course.sign)
        return Piece(rows, np.maximum(moment, first), course._replace(statistic=statistic, sign=sign))

    def least_thresholds(self, pieces: Sequence[Piece]) -> tuple[Floats, float]:
        """Return the thresholds, of each contrast's statistic and of ties, after all calls that may come.

        They fall with every call, so no contrast is called that does not reach them.
        """
        statistic = self.latest.statistic.copy()
        tie = self.latest.tie.copy()
        for piece in pieces:
            statistic[piece.rows] = piece.course.statistic[:, -1]
            tie[piece.rows] = np.maximum(tie[piece.rows], piece.course.tie.max(axis=1))
        open_ = self.undecided
        calls = 0
        while True:
            winner = np.full(statistic.shape, self.levels.winner(self.won + calls))
            winner[self._claimed] = self.levels.claim(max(self.held, self.failed) + calls)
            ties = self.levels.tie(self.tied + calls)
            more = int((((statistic >= winner) | (tie >= ties)) & open_).sum())
            if more == calls:
                return winner, ties
            calls = more

    def reached(self, rows: Ints, course: Course, winner: Floats, ties: float) -> Bools:
        """Return where `rows` (p, 1) reach these thresholds, or a model of theirs is newly good enough."""
        found = (course.statistic >= winner[rows]) | (course.tie >= ties)
        if self.levels.claims:
            for known, enough in zip(self.enough_at, self.levels.good_enough(course), strict=True):
                found |= enough & (known[rows] < 0)
        return np.asarray(found)

    def decide(self, row: int, *, won: bool, step: int) -> Event:
        """Decide one contrast, of which the latest values are those of the call."""
        sign = self.latest.sign[row]
        threshold = float(self.thresholds(np.array([row]), np.array([sign]))[0])
        if won:
            self.verdict[row] = VerdictCode.BETTER if sign > 0 else VerdictCode.WORSE
            self._count(row)
        else:
            self.verdict[row] = VerdictCode.TIE
            self.tied += not self._measured[row]
        self.decided_at[row] = step
        return Event(row, int(self.verdict[row]), step, self.position, threshold)

    def _count(self, row: int) -> None:
        """Count a winner, or a claim that holds or fails."""
        if not self._claimed[row]:
            self.won += 1
        elif self.verdict[row] == VerdictCode.BETTER:
            self.held += 1
        else:
            self.failed += 1


_LOOK = np.dtype(
    [
        ("row", np.int64),
        ("piece", np.int64),  # its number, with the line of the contrast in it, and the step
        ("line", np.int64),
        ("at", np.int64),
        ("moment", np.int64),  # when it begins, and when the contrast's next one does
        ("until", np.int64),
        ("statistic", np.float64),
        ("sign", np.int8),
        ("tie", np.float64),
        ("enough", np.bool_, 2),  # whether the first model, and the second, is good enough
    ]
)
"""A moment at which a contrast might be called."""


class _Candidates:
    """The looks at which contrasts might be called, if every other one were called before.

    Most looks are far ahead or past: those in front, which are examined for every call, are neither.
    """

    def __init__(
        self, fold: Fold, pieces: Sequence[Piece], reached: Sequence[Bools], thresholds: tuple[Floats, float]
    ) -> None:
        every = np.arange(fold.verdict.size)
        next_step = np.full(every.size, NEVER)
        for piece in pieces:
            next_step[piece.rows] = piece.moment[:, 0]
        # What was read before lasts until the next step of a contrast. It is a piece of one step, number -1.
        before = Course._make(values[:, None] for values in fold.latest)
        ready = fold.reached(every[:, None], before, *thresholds) & fold.undecided[:, None]
        old = Piece(every, np.full((every.size, 1), -1), before)
        self._fold = fold
        self._pieces = [*pieces, old]
        parts = [_looks(fold, -1, old, ready, next_step)]
        for number, (piece, steps) in enumerate(zip(pieces, reached, strict=True)):
            parts.append(_looks(fold, number, piece, steps, np.full(piece.rows.size, NEVER)))
        looks = np.concatenate(parts)
        self._looks = looks[np.argsort(looks["moment"], kind="stable")]
        self._column = {name: np.ascontiguousarray(self._looks[name]) for name in _LOOK.names or ()}
        self._front = np.empty(0, dtype=np.int64)
        self._next = 0

    def earliest(self) -> tuple[int, Ints]:
        """Return when a contrast may first be called or a model is good enough, and the looks that are ready.

        Looks of the past are left out. The moment is :data:`NEVER` if none is ready.
        """
        fold, column = self._fold, self._column
        until = column["until"]
        row = column["row"]
        begins = column["moment"]
        front = np.concatenate([self._front, self._looks_until(fold.now)])
        self._front = front[(until[front] > fold.now) & (fold.verdict[row[front]] == VerdictCode.OPEN)]
        moment, ready = self._ready(self._front)
        while moment == NEVER and self._next < begins.size:
            further = self._looks_until(begins[min(self._next + AT_ONCE, begins.size) - 1])
            self._front = np.concatenate([self._front, further])
            moment, ready = self._ready(further)
        return moment, ready

    def _looks_until(self, moment: int) -> Ints:
        """Return the next looks, those that begin by a moment."""
        first = self._next
        self._next = max(first, int(np.searchsorted(self._column["moment"], moment, side="right")))
        return np.arange(first, self._next)

    def _ready(self, looks: Ints) -> tuple[int, Ints]:
        """Return the first moment at which one of these looks, none of them past, is ready, and all such."""
        fold, column = self._fold, self._column
        row = column["row"][looks]
        ready = column["statistic"][looks] >= fold.thresholds(row, column["sign"][looks])
        ready |= column["tie"][looks] >= fold.tie_threshold
        if fold.levels.claims:
            ready |= (column["enough"][looks] & (fold.enough_at[:, row].T < 0)).any(axis=1)
        found = looks[ready & fold.needed[row]]
        moment = np.maximum(column["moment"][found], fold.now).min(initial=NEVER)
        return int(moment), found

    def call(self, ready: Ints) -> list[Event]:
        """Call the contrasts of those ready looks that have begun, in the order of their rows."""
        fold = self._fold
        looks = self._looks[ready[self._column["moment"][ready] <= fold.now]]
        looks = looks[np.argsort(looks["row"], kind="stable")]
        row, ties = looks["row"], fold.tie_threshold
        won = looks["statistic"] >= fold.thresholds(row, looks["sign"])
        steps = fold.progress[row] + looks["at"] + 1
        enough = looks["enough"].T & (fold.enough_at[:, row] < 0)
        for known, those in zip(fold.enough_at, enough, strict=True):
            known[row[those]] = steps[those]
        calls = []
        for look, is_won, step in zip(looks, won.tolist(), steps.tolist(), strict=True):
            if is_won or look["tie"] >= ties:
                fold.latest.put(look["row"], self._pieces[look["piece"]].course, look["line"], look["at"])
                calls.append(fold.decide(int(look["row"]), won=is_won, step=step))
        return calls


def _looks(fold: Fold, number: int, piece: Piece, chosen: Bools, end: Ints) -> Looks:
    """Return chosen steps of a piece, of which each contrast's last one ends at a moment of `end`."""
    line, at = np.nonzero(chosen)
    looks = np.zeros(line.size, _LOOK)
    looks["row"] = piece.rows[line]
    looks["piece"] = number
    looks["line"] = line
    looks["at"] = at if number >= 0 else -1
    looks["moment"] = piece.moment[line, at]
    looks["until"] = np.concatenate([piece.moment[:, 1:], end[:, None]], axis=1)[line, at]
    looks["statistic"] = piece.course.statistic[line, at]
    looks["sign"] = piece.course.sign[line, at]
    looks["tie"] = piece.course.tie[line, at]
    looks["enough"] = fold.levels.good_enough(piece.course)[:, line, at].T
    return looks


def running_peak(peak: Floats, sign: Signs, statistic: Floats, signs: Signs) -> tuple[Floats, Signs]:
    """Return the running maximum along steps, with the sign of the difference at the maximum."""
    if statistic.shape[1] == 1:
        later = statistic > peak[:, None]
        return np.where(later, statistic, peak[:, None]), np.where(later, signs, sign[:, None])
    joined = np.concatenate([peak[:, None], statistic], axis=1)
    running = np.maximum.accumulate(joined, axis=1)
    record = joined > np.roll(running, 1, axis=1)  # the first column is at place 0 anyhow
    at = np.maximum.accumulate(np.where(record, np.arange(joined.shape[1]), 0), axis=1)
    joined_signs = np.concatenate([sign[:, None], signs], axis=1)
    return running[:, 1:], np.take_along_axis(joined_signs, at, axis=1)[:, 1:]
