"""The limit on trials in flight: no more than the open contrasts can use.

With hundreds of trials in flight, most trials issued near the end of a comparison complete after its call.
So a contrast gets no more trials once those in flight are predicted to decide it, and a run starts slowly,
because its first trials may decide many contrasts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.compare import Comparison
from adaptive_eval.core.references import FINISHED
from scorio.sequential.evidence import MIN_QUESTIONS, log_evidence, log_tie_evidence

SLOW_START = 32
"""Trials a model may have in flight before any is complete; a call needs at least about 21."""


def most_in_flight(complete: Sequence[int]) -> list[int]:
    """Return how many trials each model may have in flight, given the length of its common prefix.

    Examples
    --------
    >>> most_in_flight([0, 100])
    [32, 132]
    """
    return [SLOW_START + steps for steps in complete]


NEARLY = 0.65
"""Least share of the evidence that trials in flight must promise before no more are issued, where run-ahead
is capped; measured with ``benchmarks/run_ahead.py``."""


_NONE = np.zeros(0, dtype=np.int64)
_PARTS = np.arange(1, 17)  # few calls on small arrays: a search in 16 parts, not in halves
FORESIGHT = 4
"""Steps beyond the furthest model that a prediction covers; beyond them a new one is made."""
ALMOST = 1.0 - 1e-9
"""Share of a threshold below which rounding cannot reach it."""
DECIDERS = ("anytime", "directional", "budgeted")
"""Rules whose evidence can be predicted."""


class Drain:
    """Which contrasts are predicted to be decided, or nearly so, by the trials in flight.

    The prediction keeps the present difference and lets its variance shrink in proportion to the trials; the
    log winnings of bets on a number grow in proportion to them. It only holds back trials: when it fails, the
    contrast asks again as soon as the trials are complete.
    """

    def __init__(self, comparison: Comparison, *, capped: bool) -> None:
        self._comparison = comparison
        self._capped = capped
        self._predicts = comparison.rule.name in DECIDERS
        self._version = -1
        self._foreseen = 0
        self._closing: list[tuple[int, int, int, int]] = []
        self._closed: list[int] = []
        self._found = _NONE

    def closed(self, issued: Sequence[int]) -> NDArray[np.int64]:
        """Return the contrasts that need no further trials, given the steps that each model was issued."""
        complete = self._comparison.board.complete
        if not self._predicts or issued == complete:
            return _NONE
        furthest = max(filter(FINISHED.__gt__, issued), default=0)
        if self._version != self._comparison.version or furthest > self._foreseen:
            self._look(issued, furthest)
        closed = []
        for step, row, first, second in self._closing:
            if step > furthest:
                break
            reach = min(issued[first], issued[second])
            if reach >= step and reach > min(complete[first], complete[second]):
                closed.append(row)
        if closed != self._closed:
            self._closed, self._found = closed, np.sort(np.array(closed, dtype=np.int64))
        return self._found

    def _share_of_evidence(self, issued: Sequence[int]) -> float:
        """Return the share of the evidence that must be promised: the less, the more trials are in flight.

        So trials beyond a decision stay in proportion to the trials that it takes, and a run with few in
        flight, which would save nothing, does not wait for them.
        """
        if not self._capped:
            return 1.0
        asked = list(zip(issued, self._comparison.board.complete, strict=True))
        asked = [(steps, done) for steps, done in asked if steps < FINISHED]
        flight, done = (sum(steps - done for steps, done in asked), sum(done for _, done in asked))
        return max(NEARLY, 1.0 - 2.0 * flight / max(done, 1))

    def _look(self, issued: Sequence[int], furthest: int) -> None:
        """Find the step at which each contrast is predicted to be decided, if it is soon."""
        comparison, goal = self._comparison, self._comparison.goal
        self._version, self._foreseen = comparison.version, furthest + FORESIGHT
        ready = comparison.open & (comparison.questions >= MIN_QUESTIONS) & ~goal.measured
        rows = np.flatnonzero(ready)
        share = self._share_of_evidence(issued)
        thresholds = share * comparison.threshold, share * comparison.tie_threshold
        # Evidence of a difference is at most D²/2V, that of a tie at most ε²/2V.
        most = 0.5 * comparison.difference[rows] ** 2 / comparison.variance[rows] / thresholds[0]
        if comparison.margin is not None:
            ties = 0.5 * comparison.margin**2 / comparison.at_margin[rows] / thresholds[1]
            most = np.maximum(most, ties)
        most = np.where(np.isnan(comparison.bet[rows]), most, np.inf)
        rows = rows[most * self._foreseen >= ALMOST * comparison.progress[rows]]
        rows, steps = self._first_decided(rows, thresholds)
        first, second = goal.first[rows], np.where(goal.single[rows], goal.first[rows], goal.second[rows])
        columns = (steps.tolist(), rows.tolist(), first.tolist(), second.tolist())
        self._closing = sorted(zip(*columns, strict=True))

    def _first_decided(
        self, rows: NDArray[np.int64], thresholds: tuple[float, float]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the contrasts that are decided within what is foreseen, each with its first such step."""
        progress = self._comparison.progress[rows]
        low, high = progress, np.maximum(self._foreseen, progress + 1)
        while rows.size:
            steps = low[:, None] + ((high - low)[:, None] * _PARTS + _PARTS.size - 1) // _PARTS.size
            decided = self._decided(rows, steps / progress[:, None], thresholds)
            some, at = decided.any(axis=1), decided.argmax(axis=1)
            which = np.arange(rows.size)
            high, low = steps[which, at], np.where(at > 0, steps[which, at - 1], low)
            rows, progress, low, high = rows[some], progress[some], low[some], high[some]
            if (high - low <= 1).all():
                break
        return rows, high

    def _decided(
        self, rows: NDArray[np.int64], growth: NDArray[np.float64], thresholds: tuple[float, float]
    ) -> NDArray[np.bool_]:
        """Return where contrasts are decided, or nearly, when they have so many times their trials."""
        comparison, margin = self._comparison, self._comparison.margin
        difference, bet = comparison.difference[rows, None], comparison.bet[rows, None]
        evidence = log_evidence(difference, comparison.variance[rows, None] / growth, margin)
        won, tied = thresholds
        decided = np.asarray(np.where(np.isnan(bet), evidence, bet * growth) >= won)
        if margin is not None:
            decided |= log_tie_evidence(difference, comparison.at_margin[rows, None] / growth, margin) >= tied
        return decided
