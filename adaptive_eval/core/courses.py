"""The courses of contrasts: from the board's answers to the evidence of each contrast, step by step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from adaptive_eval.core.goals import Goal
from adaptive_eval.core.intervals import EXACT, Intervals
from adaptive_eval.core.readers import contrast_reader
from adaptive_eval.core.spec import SessionSpec
from scorio.sequential.betting import ScoreBets
from scorio.sequential.contrasts import ContrastBlock
from scorio.sequential.evidence import MIN_QUESTIONS
from scorio.sequential.exact import ExactReader
from scorio.sequential.fold import Course, Levels
from scorio.sequential.rules import Rule

CERTAIN = 700.0
"""Logarithm of the evidence where a difference is known."""
ROUNDING = 1e-9
"""Differences below it are rounding."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Courses:
    """Reads contrasts of a session along their own models' trial sequences.

    Attributes
    ----------
    bet : ndarray of float, shape (P,)
        Log winnings of the bets on a number, NaN for other contrasts.
    """

    def __init__(
        self, spec: SessionSpec, board: Board, goal: Goal, rule: Rule, levels: Levels, intervals: Intervals
    ) -> None:
        self._board, self._goal, self._rule, self._intervals = board, goal, rule, intervals
        tasks = range(len(spec.tasks))
        self._readers = [
            contrast_reader(spec, board.cells[task], task, goal, intervals.margin, levels) for task in tasks
        ]
        self._last = [_no_estimate(goal.first.size) for _ in tasks]
        self._exact = None
        if spec.stopping.rule == "exact":
            self._exact = ExactReader(board.cells[0], goal.first, goal.second)
        self.bet = np.full(goal.first.size, np.nan)
        self._bet_row = np.cumsum(intervals.bets) - 1
        self._bets = ScoreBets(
            board.cells,
            board.run_sequence,
            spec.task_weights,
            goal.first[intervals.bets],
            goal.value[intervals.bets],
            spec.stopping.target,
            [task.clusters for task in spec.tasks],
        )

    def read(self, rows: Ints, start: int, stop: int) -> Course:
        """Read `rows` from step `start` up to step `stop`; the statistic is that of each step."""
        block = self._estimate(rows, start, stop)
        statistic, sign = self._statistic(rows, block, start, stop)
        tie = self._rule.tie_evidence(block)
        margin = self._intervals.margin or 0.0
        exact = block.guarded <= EXACT
        if exact.any():
            size, bar = np.abs(block.difference), max(margin - ROUNDING, ROUNDING)
            apart, near = size - block.slack > bar, size + block.slack <= bar
            statistic = np.where(exact, np.where(apart, CERTAIN, -np.inf), statistic)
            tie = np.where(exact, np.where(near, np.inf, -np.inf), tie)
        measured = self._goal.measured[rows, None]
        if measured.any():
            statistic = np.where(measured, -np.inf, statistic)
            tie = np.where(measured, np.where(self._narrow(rows, block), np.inf, -np.inf), tie)
        estimates = (block.difference, block.variance, block.guarded, block.margin)
        return Course(statistic, sign, tie, *estimates, block.questions, block.slack)

    def _statistic(
        self, rows: Ints, block: ContrastBlock, start: int, stop: int
    ) -> tuple[Floats, NDArray[np.int8]]:
        """Return the rule's statistic at each step, and the sign of what it speaks of."""
        if self._exact is not None:
            statistic, total = self._exact.read(rows, start, stop)
            return statistic, np.sign(total).astype(np.int8)
        statistic = self._rule.statistic(block, self._board.run_sequence.complete(start, stop))
        bets = self._intervals.bets[rows]
        if bets.any():
            log_e = self._bets.read(self._bet_row[rows[bets]], start, stop)
            statistic[bets] = np.where(block.questions[bets] >= MIN_QUESTIONS, log_e, -np.inf)
            self.bet[rows[bets]] = log_e[:, -1]
        return statistic, np.sign(block.difference).astype(np.int8)

    def _narrow(self, rows: Ints, block: ContrastBlock) -> NDArray[np.bool_]:
        """Return where a score's interval is as narrow as its contrast requires."""
        radius = self._intervals.of_scores(block.variance)
        narrow = 2.0 * (radius + block.slack) <= self._goal.width[rows, None]
        return np.asarray(narrow & (block.questions >= MIN_QUESTIONS))

    def _estimate(self, rows: Ints, start: int, stop: int) -> ContrastBlock:
        """Return the overall estimates at steps ``start .. stop-1`` of the trial sequence."""
        if len(self._readers) == 1:
            return self._readers[0].read(rows, stop)
        sequence, blocks = self._board.run_sequence, []
        local_start, local_stop = sequence.local(start), sequence.local(stop)
        for task, (begin, end) in enumerate(zip(local_start, local_stop, strict=True)):
            last = self._last[task].take(rows)
            block = last
            if end > begin:
                block = last.append(self._readers[task].read(rows, end))
            self._last[task] = self._last[task].put(rows, block)
            column = np.cumsum(sequence.task(start, stop) == task)
            blocks.append(block.columns(column))
        return self._board.combine(blocks)


def _no_estimate(contrasts: int) -> ContrastBlock:
    """Return the estimate before the first trial: nothing known, no call possible."""
    column = np.zeros((contrasts, 1))
    wide = column + 1e6
    return ContrastBlock(column, wide, wide, wide, wide, column.astype(np.int64), column)
