"""When to look next: while no call can end the need for a model's trials, answers wait and are read together.

Decisions fall at the same steps however the steps are read, and to read many at once costs little more than
to read one. A look that comes too late costs trials that were issued after the decision it would have found.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from adaptive_eval.core.compare import Comparison
from adaptive_eval.core.drain import DECIDERS
from scorio.sequential.parts import MIN_QUESTIONS, TRUST, log_evidence, log_evidence_above, log_tie_evidence

FIRST = 64
"""Steps that are looked at one by one."""
PARTS = np.array([64, 32, 16])
"""The next look is one of these parts of the steps away, or at the next step."""
DEVIATIONS = 4.0
"""Standard deviations by which a difference may move until then."""
READ_TOGETHER = 100_000
"""Contrasts times steps, so that a look takes little memory."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def next_look(comparison: Comparison) -> int:
    """Return after how many steps to read on: all but surely, every model is needed until then.

    Differences are taken to move by :data:`DEVIATIONS`, towards a winner and towards a tie.
    """
    now, rows = comparison.reached, np.flatnonzero(comparison.fold.needed)
    most = comparison.goal.review or now
    steps = np.minimum(now // PARTS, min(most, now))
    steps = steps[(steps > 1) & (steps * rows.size <= READ_TOGETHER)]
    if now < FIRST or steps.size == 0 or not _foreseeable(comparison, rows):
        return 1
    growth = steps / now
    called = _may_be_called(comparison, rows, growth, _least_variance(comparison.board, now, steps))
    goal = comparison.goal
    if goal.condition.separate:
        open_ = np.zeros((len(comparison.spec.names) + 1, steps.size), dtype=bool)
        for side in (goal.first[rows], goal.second[rows]):
            np.logical_or.at(open_, side, ~called)
        safe = open_[comparison.members].all(axis=0)
    else:
        safe = ~called.any(axis=0)
    return int(steps[safe].max(initial=1))


def _foreseeable(comparison: Comparison, rows: Ints) -> bool:
    """Return whether calls of these contrasts come gradually, and each at a threshold of its own."""
    return (
        comparison.rule.name in DECIDERS
        and not comparison.board.determinism.claimed
        and not comparison.goal.measured[rows].any()
        and bool(np.isnan(comparison.courses.bet[rows]).all())
        and bool((comparison.latest.questions[rows] >= MIN_QUESTIONS).all())
        and bool(np.isfinite(comparison.latest.variance[rows]).all())
    )


def _least_variance(board: Board, now: int, steps: Ints) -> Floats:
    """Return the least share of a variance that may be left after so many steps more.

    It shrinks in proportion to the trials, as the rest of a first pass does, and with the part of the spread
    between questions that repeats replace.
    """
    share = now / (now + steps)
    for column, step in enumerate(steps.tolist()):
        local = board.run_sequence.local(now), board.run_sequence.local(now + step)
        for cells, before, after in zip(board.cells, *local, strict=True):
            (seen, repeats), (seen_then, repeats_then) = map(cells.sequence.asked, (before, after))
            rest = cells.sequence.questions - seen
            left = (cells.sequence.questions - seen_then) / rest if rest else 1.0
            share[column] *= max(left, 0.01) * ((TRUST + repeats) / (TRUST + repeats_then)) ** 2
    return share


def _may_be_called(comparison: Comparison, rows: Ints, growth: Floats, left: Floats) -> NDArray[np.bool_]:
    """Return which contrasts may be called until trials have grown so much, of shape (rows, growths)."""
    difference, variance = (
        np.abs(comparison.latest.difference[rows, None]),
        comparison.latest.variance[rows, None],
    )
    move, margin = DEVIATIONS * np.sqrt(variance * growth / (1.0 + growth)), comparison.margin
    called = log_evidence(difference + move, variance * left, margin) >= comparison.fold.threshold
    if margin is not None:
        nearest, at_margin = np.maximum(difference - move, 0.0), comparison.latest.margin[rows, None] * left
        called |= log_tie_evidence(nearest, at_margin, margin) >= comparison.fold.tie_threshold
        if claims := comparison.fold.levels.claims:
            good_enough = log_evidence_above(difference + move, at_margin, margin)
            called |= good_enough >= log(claims / comparison.alpha)
    return np.asarray(called)
