"""The comparison: reads every contrast along the trial sequence and calls winners and ties.

Two promises shape this file. Decisions depend on the outcomes alone, not on when they arrive: contrasts are
folded in lockstep, index by index, and an index is folded only when every needed contrast has reached it. And
the family's error holds although the board is looked at after every trial. A contrast that is ahead of the
others and already meets its condition is *settled*: its call is certain and only waits for the fold, so no
further trial is spent on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from adaptive_eval.core.goals import BETTER, OPEN, TIE, WORSE, make_goal
from adaptive_eval.core.intervals import EXACT, Intervals
from adaptive_eval.core.readers import contrast_reader
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.core.window import Evidence, EvidenceWindow
from scorio.sequential.betting import ScoreBets
from scorio.sequential.contrasts import ContrastBlock
from scorio.sequential.evidence import MIN_QUESTIONS
from scorio.sequential.exact import ExactReader
from scorio.sequential.families import Family, TopSet

CERTAIN = 700.0
"""Logarithm of the evidence where a difference is known."""
ROUNDING = 1e-9
"""Differences below it are rounding."""

EVIDENCE_CELLS = 2_000_000
"""Contrasts times indices read beyond the common prefix: each keeps 45 bytes and is looked at in every
batch, so a model that is far behind the others must not let them grow."""
LEAST_AHEAD = 64

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Call:
    """A contrast was decided.

    `difference` and its confidence sequence from `low` to `high` are in unit scores; `statistic` and
    `threshold` are on the rule's own scale. All belong to `step`.
    """

    contrast: int
    verdict: int
    step: int
    difference: float
    low: float
    high: float
    questions: int
    statistic: float
    threshold: float


class Comparison:
    """All contrasts of a session."""

    def __init__(self, spec: SessionSpec, board: Board) -> None:
        self.spec = spec
        self.board = board
        self.goal = make_goal(spec)
        self._measured = self.goal.measured
        self._partner = np.where(self.goal.single, self.goal.first, self.goal.second)
        self._measures = bool(self._measured.any())
        self._hypotheses = max(self.goal.hypotheses, 1)
        self.rule = spec.stopping.make_rule(spec.scale[1])
        self.family: Family = spec.stopping.make_family()
        if spec.of_a_set:
            self.family = TopSet(spec.goal.k, len(spec.names))
        self._tie_family = spec.stopping.make_tie_family()
        self.alpha = 1.0 - spec.stopping.confidence
        pairs = self.goal.first.size
        self.most_ahead = max(LEAST_AHEAD, EVIDENCE_CELLS // max(pairs, 1))
        """Indices beyond the common prefix that are read."""
        self.verdict = np.zeros(pairs, dtype=np.int64)
        self.decided_at = np.full(pairs, -1, dtype=np.int64)
        self.needed = np.ones(pairs, dtype=bool)
        self.settled = np.zeros(pairs, dtype=bool)
        self.common_prefix = 0
        self.version = 0
        """Grows whenever what is known of the contrasts has changed."""
        self.progress = np.zeros(pairs, dtype=np.int64)
        self.difference = np.zeros(pairs)
        self.variance = np.full(pairs, np.inf)
        self.guarded = np.full(pairs, np.inf)
        self.at_margin = np.full(pairs, np.inf)
        self.bet = np.full(pairs, np.nan)
        self.questions = np.zeros(pairs, dtype=np.int64)
        self.statistic = np.full(pairs, -np.inf)
        self._sign = np.zeros(pairs, dtype=np.int8)
        self._lost = np.zeros(pairs, dtype=bool)
        self._gone: set[int] = set()
        self.members = self._members()
        self._called: list[float] = []
        self._called_ties: list[float] = []
        # References have their scores from the start, the others when they are first reviewed.
        self._score = np.where(board.progress > 0, board.scores().difference[:, 0], 0.0)
        self._window = EvidenceWindow(pairs)
        tasks = range(len(spec.tasks))
        level = exp(-self.threshold) if self.rule.fixed_threshold is None else self.alpha
        self._readers = [
            contrast_reader(spec, board.cells[task], task, self.goal, self.margin, level) for task in tasks
        ]
        self._last = [_no_estimate(pairs) for _ in tasks]
        self._exact = None
        if spec.stopping.rule == "exact":
            self._exact = ExactReader(board.cells[0], self.goal.first, self.goal.second)
        self._bets = (spec.stopping.rule == "anytime") & self.goal.single & ~self.goal.measured
        self.intervals = Intervals(self.goal, self._bets, self.alpha, self.margin)
        self._bet_row = np.cumsum(self._bets) - 1
        self._bet_reader = ScoreBets(
            board.cells,
            board.run_sequence,
            spec.task_weights,
            self.goal.first[self._bets],
            self.goal.value[self._bets],
            spec.stopping.target,
            [task.clusters for task in spec.tasks],
        )

    @property
    def margin(self) -> float | None:
        """Equivalence margin in unit scores."""
        margin = self.spec.stopping.equivalence
        return None if margin is None else margin / self.spec.scale[1]

    @property
    def threshold(self) -> float:
        """Value the statistic must reach for the next call."""
        return self.threshold_after(0)

    def threshold_after(self, calls: int) -> float:
        """Value the statistic must reach when so many more winners are called."""
        fixed = self.rule.fixed_threshold
        if fixed is not None:
            return fixed
        return self.family.threshold(len(self._called) + calls, self._hypotheses, self.rule.level)

    @property
    def tie_threshold(self) -> float:
        """Log e-value of a difference smaller than the margin at which the next tie would be called."""
        return self._tie_family.threshold(len(self._called_ties), self._hypotheses, self.alpha)

    @property
    def scores(self) -> Floats:
        """Scores of the models when they were last reviewed, which order them for the best k."""
        return self._score

    @property
    def open(self) -> Bools:
        """Needed contrasts that more trials can still decide."""
        return np.asarray(self.needed & ~self.settled)

    def exact(self, row: int) -> bool:
        """Return whether a contrast is known: all questions are answered, by models without noise."""
        return bool(self.guarded[row] <= EXACT)

    def interval(self, rows: slice | list[int] = slice(None)) -> tuple[Floats, Floats]:
        """Confidence sequence of some contrasts at the run's confidence, in unit scores."""
        estimates = (self.difference[rows], self.variance[rows], self.guarded[rows])
        return self.intervals.of(rows, self.verdict[rows], *estimates, self.progress[rows])

    # ------------------------------------------------------------------ reading

    def advance(self) -> list[Call]:
        """Read the trials absorbed since the last call, fold them, and return the new calls in order."""
        calls: list[Call] = []
        furthest = int(self.board.progress[: len(self.spec.models)].max())
        while True:
            held_back = furthest > self.common_prefix + self.most_ahead
            groups = list(self._readable())
            for rows, stop in groups:
                self._read(rows, int(self.progress[rows[0]]), stop)
            calls += self._fold()
            if not (groups and held_back):
                break
        self._settle()
        self._forget()
        self.version += 1
        return calls

    def _readable(self) -> Iterator[tuple[Ints, int]]:
        """Yield undecided contrasts that can be read on together, with the step to read to."""
        far = self.board.progress
        limit = np.minimum(far[self.goal.first], far[self._partner])
        limit = np.minimum(limit, self.common_prefix + self.most_ahead)
        ready = ((self.verdict == OPEN) & (limit > self.progress)).nonzero()[0]
        if ready.size == 0:
            return
        start, stop = int(self.progress[ready[0]]), int(limit[ready[0]])
        if (limit[ready] == stop).all() and (self.progress[ready] == start).all():
            yield ready, stop
            return
        key = self.progress[ready] * (int(limit.max()) + 1) + limit[ready]
        order = np.argsort(key, kind="stable")
        for group in np.split(ready[order], np.flatnonzero(np.diff(key[order])) + 1):
            yield group, int(limit[group[0]])

    def _read(self, rows: Ints, start: int, stop: int) -> None:
        block = self._estimate(rows, start, stop)
        if self._exact is not None:
            statistic, total = self._exact.read(rows, start, stop)
            sign = np.sign(total).astype(np.int8)
        else:
            statistic = self.rule.statistic(block, self.board.run_sequence.complete(start, stop))
            sign = np.sign(block.difference).astype(np.int8)
        tie = self.rule.tie_evidence(block)
        bets, measured = self._bets[rows], self._measured[rows]
        if bets.any():
            log_e = self._bet_reader.read(self._bet_row[rows[bets]], start, stop)
            statistic[bets] = np.where(block.questions[bets] >= MIN_QUESTIONS, log_e, -np.inf)
            self.bet[rows[bets]] = log_e[:, -1]
        exact = block.guarded <= EXACT
        if exact.any():
            apart = np.abs(block.difference) > max((self.margin or 0.0) - ROUNDING, ROUNDING)
            statistic = np.where(exact, np.where(apart, CERTAIN, -np.inf), statistic)
            tie = np.where(exact, np.where(apart, -np.inf, np.inf), tie)
        if measured.any():
            statistic = np.where(measured[:, None], -np.inf, statistic)
            tie = np.where(measured[:, None], np.where(self._narrow(rows, block), np.inf, -np.inf), tie)
        peak, peak_sign = _running_peak(self.statistic[rows], self._sign[rows], statistic, sign)
        estimates = (block.difference, block.variance, block.guarded, block.questions)
        evidence = Evidence(peak, peak_sign, tie, *estimates)
        self._window.write(rows, start, evidence)
        self.progress[rows] = stop
        self.difference[rows], self.variance[rows] = block.difference[:, -1], block.variance[:, -1]
        self.guarded[rows], self.at_margin[rows] = block.guarded[:, -1], block.margin[:, -1]
        self.questions[rows] = block.questions[:, -1]
        self.statistic[rows], self._sign[rows] = peak[:, -1], peak_sign[:, -1]

    def _narrow(self, rows: Ints, block: ContrastBlock) -> Bools:
        """Return where a score's interval is as narrow as its contrast requires."""
        radius = self.intervals.of_scores(block.difference, block.variance)
        narrow = 2.0 * radius <= self.goal.width[rows, None]
        return np.asarray(narrow & (block.questions >= MIN_QUESTIONS))

    def _estimate(self, rows: Ints, start: int, stop: int) -> ContrastBlock:
        """Return the overall estimates at steps ``start .. stop-1`` of the trial sequence."""
        local_start, local_stop = self.board.run_sequence.local(start), self.board.run_sequence.local(stop)
        blocks = []
        for task, (begin, end) in enumerate(zip(local_start, local_stop, strict=True)):
            if len(local_start) == 1:
                return self._readers[task].read(rows, end)
            last = self._last[task].take(rows)
            block = last
            if end > begin:
                block = last.append(self._readers[task].read(rows, end))
            self._last[task] = self._last[task].put(rows, block)
            column = np.cumsum(self.board.run_sequence.task(start, stop) == task)
            blocks.append(block.columns(column))
        return self.board.combine(blocks)

    # ------------------------------------------------------------------ folding

    def _fold(self) -> list[Call]:
        """Fold the indices that every needed contrast has reached."""
        calls: list[int] = []
        steps: list[int] = []
        thresholds: list[float] = []
        while self.needed.any() or (self.members and not self.goal.stops):
            rows = np.flatnonzero(self.needed)
            limit = int(min(self._reached(rows), self.next_stop()))
            if limit <= self.common_prefix:
                break
            won, tied = self._conditions(rows, self.common_prefix, limit)
            hits = np.flatnonzero((won | tied).any(axis=0))
            if hits.size == 0:
                self.common_prefix = limit
                self._pause(limit)
                continue
            column = int(hits[0])
            self.common_prefix += column
            called = np.flatnonzero(won[:, column] | tied[:, column])
            for row, wins in zip(rows[called].tolist(), won[called, column].tolist(), strict=True):
                calls.append(row)
                steps.append(self.common_prefix + 1)
                thresholds.append(self.threshold)
                self._decide(row, wins)
                self.decided_at[row] = self.common_prefix + 1
            self._update_needed()
        if not calls:
            return []
        return list(self._described(calls, steps, self.statistic[calls].tolist(), thresholds))

    def _reached(self, rows: Ints) -> int:
        """Return the index that all of `rows` have reached, and all models where the goal does not stop.

        Then models continue although all their pairs are decided, and rounds depend on their answers too.
        """
        reached = self.progress[rows]
        if not self.goal.stops:
            reached = np.concatenate([reached, self.board.progress[self.members]])
        return int(reached.min())

    def next_stop(self) -> float:
        """Return the next index at which the fold must pause, even where more has been read."""
        review = self.goal.review
        return float("inf") if review is None else (self.common_prefix // review + 1) * review

    def _pause(self, step: int) -> None:
        """Review the needed pairs if that is due at `step`."""
        review = self.goal.review
        if review is not None and step % review == 0:
            self._review(step)

    def _conditions(self, rows: Ints, start: int, stop: int) -> tuple[Bools, Bools]:
        """Return where contrasts win and where they tie, each of shape (rows, steps)."""
        if rows.size == 0:
            none = np.zeros((0, stop - start), dtype=bool)
            return none, none
        peak, tie = self._window.read(rows, start, stop)
        claims = tie
        if self._measures:  # a score that is measured claims nothing, so it has no part in the family of ties
            claims = np.where(self._measured[rows, None], -np.inf, tie)
        tied = claims >= self.tie_threshold
        if self._measures:
            tied |= self._measured[rows, None] & (tie > 0.0)
        return peak >= self.threshold, tied

    def _decide(self, row: int, won: bool) -> None:
        """Decide one contrast at the step now folded; its latest values become those of this step."""
        at = self._window.at(row, self.common_prefix)
        self.verdict[row] = (BETTER if at.sign[0, 0] > 0 else WORSE) if won else TIE
        if won:
            self._called.append(float(at.statistic[0, 0]))
        elif not self.goal.measured[row]:
            self._called_ties.append(float(at.tie[0, 0]))
        self.difference[row], self.variance[row] = at.difference[0, 0], at.variance[0, 0]
        self.guarded[row], self.questions[row] = at.guarded[0, 0], at.questions[0, 0]
        self.statistic[row] = at.statistic[0, 0]

    def _described(
        self, rows: list[int], steps: list[int], statistics: list[float], thresholds: list[float]
    ) -> Iterator[Call]:
        """Describe the calls of contrasts that were just decided, their intervals found together."""
        self.decided_at[rows] = steps
        low, high = self.interval(rows)
        columns = (self.verdict[rows], steps, self.difference[rows], low, high, self.questions[rows])
        listed = (column.tolist() if isinstance(column, np.ndarray) else column for column in columns)
        return map(Call, rows, *listed, statistics, thresholds)

    def _update_needed(self) -> None:
        self.version += 1
        self.needed = self.goal.needed(self.verdict, self._score, self._lost)
        self.settled &= self.needed
        self.members = self._members()

    def _members(self) -> list[int]:
        if not self.goal.stops:
            return [model for model in range(len(self.spec.models)) if model not in self._gone]
        needed = np.zeros(len(self.spec.names) + 1, dtype=bool)  # the last one is no model, as second may be
        needed[self.goal.first[self.needed]] = needed[self.goal.second[self.needed]] = True
        members: list[int] = np.flatnonzero(needed[: len(self.spec.models)]).tolist()
        return members

    def _review(self, step: int) -> None:
        """Let a goal that follows the order of scores look at the scores of needed models at `step`."""
        models = np.array(self.members)
        weights = self.spec.task_weights
        score = np.zeros(models.size)
        for weight, cells, local in zip(
            weights, self.board.cells, self.board.run_sequence.local(step), strict=True
        ):
            if local:
                path = cells.path(models, local - 1, local)
                score += weight * path.total[:, -1] / np.maximum(path.seen[:, -1], 1.0)
        self._score[models] = score
        self._update_needed()

    def _settle(self) -> None:
        """Mark needed contrasts beyond the common prefix whose call is already certain."""
        rows = np.flatnonzero(self.needed & (self.progress > self.common_prefix))
        self.settled[:] = False
        if rows.size == 0:
            return
        stop = int(self.progress[rows].max())
        won, tied = self._conditions(rows, self.common_prefix, stop)
        read = np.arange(self.common_prefix, stop) < self.progress[rows, None]
        self.settled[rows] = ((won | tied) & read).any(axis=1)

    def _forget(self) -> None:
        undecided = self.verdict == OPEN
        if undecided.any():
            self._window.forget(self.common_prefix)
            oldest = int(self.progress[undecided].min())
            self.board.forget(max(min(oldest, self.common_prefix) - 1, 0))

    # ------------------------------------------------------------------ from outside

    def lose(self, model: int) -> None:
        """Drop the undecided contrasts of a model that will get no more answers."""
        self._gone.add(model)
        theirs = (self.goal.first == model) | (self.goal.second == model)
        self._lost |= theirs & (self.verdict == OPEN)
        self._update_needed()

    @property
    def met(self) -> tuple[str, ...]:
        """The parts of the goal that are reached; empty while none is."""
        return self.goal.condition.met(self.verdict, self._score)

    @property
    def lost(self) -> Bools:
        """Contrasts that were dropped undecided."""
        return np.asarray(self._lost & (self.verdict == OPEN))


def _running_peak(
    peak: Floats, sign: NDArray[np.int8], statistic: Floats, signs: NDArray[np.int8]
) -> tuple[Floats, NDArray[np.int8]]:
    """Running maximum along steps, with the sign of the difference at the maximum."""
    if statistic.shape[1] == 1:
        later = statistic > peak[:, None]
        return np.where(later, statistic, peak[:, None]), np.where(later, signs, sign[:, None])
    joined = np.concatenate([peak[:, None], statistic], axis=1)
    running = np.maximum.accumulate(joined, axis=1)
    record = np.concatenate([np.ones((peak.size, 1), dtype=bool), joined[:, 1:] > running[:, :-1]], axis=1)
    at = np.maximum.accumulate(np.where(record, np.arange(joined.shape[1]), 0), axis=1)
    joined_signs = np.concatenate([sign[:, None], signs], axis=1)
    return running[:, 1:], np.take_along_axis(joined_signs, at, axis=1)[:, 1:]


def _no_estimate(contrasts: int) -> ContrastBlock:
    """Return the estimate before the first trial: nothing known, no call possible."""
    column = np.zeros((contrasts, 1))
    wide = column + 1e6
    return ContrastBlock(column, wide, wide, wide, wide, column.astype(np.int64))
