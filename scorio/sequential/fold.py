"""The fold: from the courses of contrasts to calls, in the order of the log.

Each contrast is read along its own two models, as far as both their completed prefixes go; nothing waits for
a third model. Step t of a contrast happens where the later of its two models has reached it in the log, so
its evidence is a function of the log alone: how outcomes are told in batches decides nothing, and another
order of arrival moves only when thresholds fall. Highest values of winners' e-values
count, so that Holm's thresholds, which fall with every winner, hold at any mixture of steps (Ville's
inequality holds in each contrast's own course). Ties have levels of their own and never count as winners.

Where the best models are sought and a margin ε is set, each side of an open pair may also be *good enough*:
the other is not better by more than ε. Such a claim has a fixed level of its own, and the pair stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scorio._arrays import Bools, Floats, Ints
from scorio.sequential.evidence import MIN_QUESTIONS, log_evidence_above
from scorio.sequential.families import Family

Signs = NDArray[np.int8]

OPEN, BETTER, WORSE, TIE = 0, 1, -1, 2
"""Verdicts of a contrast."""

STEP_BITS = 24
"""A moment is a log position, then a step: several steps of a contrast may fall on one position."""
NEVER = np.iinfo(np.int64).max


@dataclass(slots=True)
class Course:
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
    slack: Floats

    @classmethod
    def unread(cls, contrasts: int) -> Course:
        """Return the values before the first step."""

        def of(value: float) -> Floats:
            return np.full(contrasts, value)

        signs = np.zeros(contrasts, dtype=np.int8)
        none = np.zeros(contrasts, dtype=np.int64)
        unknown = of(np.inf), of(np.inf), of(np.inf)
        return cls(of(-np.inf), signs, of(-np.inf), of(0.0), *unknown, none, of(0.0))

    def put(self, rows: Ints, piece: Course, at: tuple[Ints, Ints] | int) -> None:
        """Take the values of `rows` from places of a piece: a column, or (row, column) of each."""
        where = (slice(None), at) if isinstance(at, int) else at
        for name in _NAMES:
            getattr(self, name)[rows] = getattr(piece, name)[where]


_NAMES = tuple(field.name for field in fields(Course))


@dataclass(frozen=True, slots=True)
class Piece:
    """New steps of contrasts: `rows` of shape (p,), all from step `start` on; `moment` of shape (p, k)."""

    rows: Ints
    start: int
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
        Error rate of winners, and of ties.
    fixed : float, optional
        Threshold of a statistic to which no family applies.
    claims : int
        Pairs any of which could make a claim wrong that models are good enough; 0 without such claims.
    margin : float
        Equivalence margin of these claims, in unit scores.
    """

    family: Family
    ties: Family
    hypotheses: int
    level: float
    alpha: float
    fixed: float | None = None
    claims: int = 0
    margin: float = 0.0

    def winner(self, won: int) -> float:
        """Return what a statistic must reach once so many winners are called."""
        if self.fixed is not None:
            return self.fixed
        return self.family.threshold(won, self.hypotheses, self.level)

    def tie(self, tied: int) -> float:
        """Return what the log e-value of a tie must reach once so many ties are called."""
        return self.ties.threshold(tied, self.hypotheses, self.alpha)

    @property
    def guard(self) -> float:
        """κ of the variances: the largest log e-value that is ever asked for."""
        winner = 0.0 if self.fixed is not None else self.winner(0)
        return max(winner, self.tie(0), log(max(self.claims, 1) / self.alpha))

    def good_enough(self, course: Course) -> Bools:
        """Return where the first model, and where the second, is not worse by more than the margin."""
        if not self.claims:
            return np.zeros((2, *course.difference.shape), dtype=bool)
        sides = [np.asarray(sign * course.difference - course.slack) for sign in (1.0, -1.0)]
        evidence = np.stack([log_evidence_above(side, course.margin, self.margin) for side in sides])
        return (evidence >= log(self.claims / self.alpha)) & (course.questions >= MIN_QUESTIONS)


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

    def __init__(self, measured: Bools, levels: Levels, needed: Callable[[Fold], Bools]) -> None:
        contrasts = measured.size
        self.levels = levels
        self.verdict = np.zeros(contrasts, dtype=np.int64)
        self.decided_at = np.full(contrasts, -1, dtype=np.int64)
        self.enough_at = np.full((2, contrasts), -1, dtype=np.int64)
        self.lost = np.zeros(contrasts, dtype=bool)
        self.latest = Course.unread(contrasts)
        self.progress = np.zeros(contrasts, dtype=np.int64)
        self.now = -1
        self.won = self.tied = 0
        self._measured = measured
        self._needed = needed
        self.needed = needed(self)

    @property
    def threshold(self) -> float:
        """Value the statistic must reach for the next winner."""
        return self.levels.winner(self.won)

    @property
    def tie_threshold(self) -> float:
        """Log e-value at which the next tie would be called."""
        return self.levels.tie(self.tied)

    def update_needed(self) -> None:
        """Ask the goal again which contrasts it needs."""
        self.needed = self._needed(self)

    def drop(self, rows: Bools) -> None:
        """Drop undecided contrasts: they get no more answers."""
        self.lost |= rows & (self.verdict == OPEN)
        self.update_needed()

    def read(
        self,
        pieces: Sequence[Piece],
        review: Callable[[], int] | None = None,
        reviewed: Callable[[int], None] | None = None,
    ) -> list[Event]:
        """Fold new steps of contrasts.

        Parameters
        ----------
        pieces : sequence of Piece
            Their statistics not yet at their highest; each contrast in one piece at most.
        review, reviewed : callable, optional
            The moment of the next review of what is needed, and what to do there.
        """
        pieces = [self._not_past(piece) for piece in pieces]
        for piece in pieces:
            self._raise_to_peak(piece)
        calls: list[Event] = []
        due = NEVER if review is None else review()
        thresholds = self.least_thresholds(pieces)
        reached = [self.reached(piece.rows, piece.course, *thresholds) for piece in pieces]
        may_call = due < NEVER
        for piece, steps in zip(pieces, reached, strict=True):
            may_call |= bool((steps & self.needed[piece.rows, None]).any())
        if may_call:
            candidates = _Candidates(self, pieces, reached, thresholds)
            while True:
                found = candidates.earliest(self)
                due = NEVER if review is None else review()
                if reviewed is not None and due < NEVER and due <= found.moment:
                    self.now = max(self.now, due)
                    reviewed(due >> STEP_BITS)
                elif found.moment < NEVER:
                    self.now = max(self.now, found.moment)
                    calls += candidates.call(self, found)
                else:
                    break
                self.update_needed()
        for piece in pieces:
            open_ = self.verdict[piece.rows] == OPEN
            if open_.all():
                self.latest.put(piece.rows, piece.course, -1)
            else:
                lines = np.flatnonzero(open_)
                self.latest.put(piece.rows[lines], piece.course, (lines, np.full(lines.size, -1)))
            self.progress[piece.rows] = piece.start + piece.moment.shape[1]
            self.now = max(self.now, int(piece.moment[:, -1].max()))
        return calls

    def _not_past(self, piece: Piece) -> Piece:
        """Return a piece whose steps come one after another from now on, if they come late."""
        first = self.now + 1 + np.arange(piece.moment.shape[1])
        return replace(piece, moment=np.maximum(piece.moment, first))

    def _raise_to_peak(self, piece: Piece) -> None:
        latest, course = self.latest, piece.course
        course.statistic, course.sign = running_peak(
            latest.statistic[piece.rows], latest.sign[piece.rows], course.statistic, course.sign
        )

    def least_thresholds(self, pieces: Sequence[Piece]) -> tuple[float, float]:
        """Return the thresholds, of winners and of ties, after all calls that may come.

        They fall with every call, so no contrast is called that does not reach them.
        """
        statistic, tie = self.latest.statistic.copy(), self.latest.tie.copy()
        for piece in pieces:
            statistic[piece.rows] = piece.course.statistic[:, -1]
            tie[piece.rows] = np.maximum(tie[piece.rows], piece.course.tie.max(axis=1))
        open_ = self.verdict == OPEN
        calls = 0
        while True:
            winner = self.levels.winner(self.won + calls)
            ties = self.levels.tie(self.tied + calls)
            more = int((((statistic >= winner) | (tie >= ties)) & open_).sum())
            if more == calls:
                return winner, ties
            calls = more

    def reached(self, rows: Ints, course: Course, winner: float, ties: float) -> Bools:
        """Return where `rows` reach these thresholds, or a model of theirs is newly good enough."""
        found = (course.statistic >= winner) | (course.tie >= ties)
        if self.levels.claims:
            for known, enough in zip(self.enough_at, self.levels.good_enough(course), strict=True):
                found |= (enough.T & (known[rows] < 0)).T
        return np.asarray(found)

    def decide(self, row: int, *, won: bool, step: int) -> Event:
        """Decide one contrast, of which the latest values are those of the call."""
        threshold = self.threshold
        if won:
            self.verdict[row] = BETTER if self.latest.sign[row] > 0 else WORSE
            self.won += 1
        else:
            self.verdict[row] = TIE
            self.tied += not self._measured[row]
        self.decided_at[row] = step
        return Event(row, int(self.verdict[row]), step, self.now >> STEP_BITS, threshold)


@dataclass(frozen=True, slots=True)
class _Looks:
    """Moments at which contrasts might be called: one element of each array a contrast at a moment."""

    row: Ints
    piece: Ints  # number of the piece, and line of the contrast in it; −1 for what was read before
    line: Ints
    step: Ints
    moment: Ints  # when it begins, and when the contrast's next one does
    until: Ints
    statistic: Floats
    tie: Floats
    enough: Bools  # shape (2, looks): whether the first model, and the second, is good enough

    @classmethod
    def carried(cls, fold: Fold, rows: Ints, until: Ints) -> _Looks:
        """Return contrasts as they were read before, until their next steps."""
        none, latest = np.full(rows.size, -1), fold.latest
        return cls(
            row=rows,
            piece=none,
            line=none,
            step=fold.progress[rows] - 1,
            moment=none,
            until=until[rows],
            statistic=latest.statistic[rows],
            tie=latest.tie[rows],
            enough=fold.levels.good_enough(latest)[:, rows],
        )

    @classmethod
    def of_piece(cls, fold: Fold, number: int, piece: Piece, line: Ints, at: Ints) -> _Looks:
        """Return chosen steps of a piece."""
        until = np.concatenate([piece.moment[:, 1:], np.full((piece.rows.size, 1), NEVER)], axis=1)
        return cls(
            row=piece.rows[line],
            piece=np.full(line.size, number),
            line=line,
            step=piece.start + at,
            moment=piece.moment[line, at],
            until=until[line, at],
            statistic=piece.course.statistic[line, at],
            tie=piece.course.tie[line, at],
            enough=fold.levels.good_enough(piece.course)[:, line, at],
        )

    @classmethod
    def joined(cls, parts: Sequence[_Looks]) -> _Looks:
        """Return the looks of all parts."""

        def of(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts], axis=-1)

        return cls(*map(of, _LOOK_NAMES))

    def where(self, chosen: Bools | Ints) -> _Looks:
        """Return the chosen looks."""
        return _Looks(*(getattr(self, name)[..., chosen] for name in _LOOK_NAMES))


_LOOK_NAMES = tuple(field.name for field in fields(_Looks))


@dataclass(frozen=True, slots=True)
class _Found:
    """The first moment at which something is to be called, or NEVER, and which looks are ready by then."""

    moment: int
    places: Ints  # of the looks
    ready: Bools
    won: Bools
    enough: Bools


_AT_ONCE = 8192
"""Future looks that are examined together."""


class _Candidates:
    """The looks at which contrasts might be called, if every other one were called before.

    Most looks are far ahead or past: those in front, which are examined for every call, are neither.
    """

    def __init__(
        self, fold: Fold, pieces: Sequence[Piece], reached: Sequence[Bools], thresholds: tuple[float, float]
    ) -> None:
        self._pieces = pieces
        next_step = np.full(fold.verdict.size, NEVER)
        parts = []
        for number, piece in enumerate(pieces):
            next_step[piece.rows] = piece.moment[:, 0]
            parts.append(_Looks.of_piece(fold, number, piece, *np.nonzero(reached[number])))
        every = np.arange(fold.verdict.size)
        before = fold.reached(every, fold.latest, *thresholds) & (fold.verdict == OPEN)
        looks = _Looks.joined([_Looks.carried(fold, np.flatnonzero(before), next_step), *parts])
        self._looks = looks.where(np.argsort(looks.moment, kind="stable"))
        self._front = np.empty(0, dtype=np.int64)
        self._next = 0

    def earliest(self, fold: Fold) -> _Found:
        """Return when a contrast may first be called or a model is good enough, looks of the past aside."""
        looks, first = self._looks, self._next
        self._next = max(first, int(np.searchsorted(looks.moment, fold.now, side="right")))
        front = np.concatenate([self._front, np.arange(first, self._next)])
        self._front = front[(looks.until[front] > fold.now) & (fold.verdict[looks.row[front]] == OPEN)]
        found = self._ready(fold, self._front)
        while found.moment == NEVER and self._next < looks.moment.size:
            last = looks.moment[min(self._next + _AT_ONCE, looks.moment.size) - 1]
            further = np.arange(self._next, np.searchsorted(looks.moment, last, side="right"))
            self._next += further.size
            self._front = np.concatenate([self._front, further])
            found = self._ready(fold, further)
        return found

    def _ready(self, fold: Fold, places: Ints) -> _Found:
        """Return which of these looks, none of them past, are ready, and the first moment of one."""
        looks = self._looks
        row = looks.row[places]
        won = looks.statistic[places] >= fold.threshold
        ready = won | (looks.tie[places] >= fold.tie_threshold)
        enough = looks.enough[:, places] & (fold.enough_at[:, row] < 0)
        some = np.flatnonzero((ready | enough.any(axis=0)) & fold.needed[row])
        moment = np.maximum(looks.moment[places[some]], fold.now).min(initial=NEVER)
        return _Found(int(moment), places[some], ready[some], won[some], enough[:, some])

    def call(self, fold: Fold, found: _Found) -> list[Event]:
        """Call the contrasts that were found ready for this moment, in the order of their rows."""
        looks = self._looks
        present = looks.moment[found.places] <= fold.now
        for side, those in enumerate(found.enough & present):
            places = found.places[those]
            fold.enough_at[side, looks.row[places]] = looks.step[places] + 1
        order = np.argsort(looks.row[found.places], kind="stable")
        calls = []
        for which in order[(found.ready & present)[order]].tolist():
            place = found.places[which]
            row = int(looks.row[place])
            number = int(looks.piece[place])
            step = int(looks.step[place])
            if number >= 0:
                piece = self._pieces[number]
                at = np.array([looks.line[place]]), np.array([step - piece.start])
                fold.latest.put(np.array([row]), piece.course, at)
            calls.append(fold.decide(row, won=bool(found.won[which]), step=step + 1))
        return calls


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
