"""When to look next, and whether any later look can bring a call.

While no call can end the need for a model's trials, answers wait and are read together.

Decisions fall at the same steps however the steps are read, and to read many at once costs little more than
to read one. A look that comes too late costs trials that were issued after the decision it would have found.
"""

from math import log

import numpy as np

from adaptive_eval.core.board import Board, Comparison
from adaptive_eval.core.drain import DECIDERS
from scorio.sequential.parts import (
    MIN_QUESTIONS,
    TRUST,
    Bools,
    Floats,
    Ints,
    contrast_variance,
    log_evidence,
    log_evidence_above,
    log_tie_evidence,
)

FIRST = 64
"""Steps that are looked at one by one."""
PARTS = np.array([64, 32, 16])
"""The next look is one of these parts of the steps away, or at the next step."""
DEVIATIONS = 4.0
"""Standard deviations by which a difference may move until then."""
PASSES = 2
"""Passes over the questions from which on the noise of a model's answers is taken as known."""
READ_TOGETHER = 100_000
"""Contrasts times steps, so that a look takes little memory."""


def next_look(comparison: Comparison) -> int:
    """Return after how many steps to read on: all but surely, every model is needed until then.

    Differences are taken to move by :data:`DEVIATIONS`, towards a winner and towards a tie.
    """
    now, rows = comparison.reached, np.flatnonzero(comparison.fold.needed)
    most = comparison.contrasts.condition.review or now
    steps = np.minimum(now // PARTS, min(most, now))
    steps = steps[(steps > 1) & (steps * rows.size <= READ_TOGETHER)]
    if now < FIRST or steps.size == 0 or not _foreseeable(comparison, rows):
        return 1
    growth = steps / now
    left = _least_variance(comparison.answers, now, steps)
    goal, latest = comparison.contrasts, comparison.latest
    size = np.abs(latest.difference[rows, None])
    variance = latest.variance[rows, None]
    move = DEVIATIONS * np.sqrt(variance * growth / (1.0 + growth))
    called = _is_called(comparison, size, move, variance * left, latest.margin[rows, None] * left)
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
        and not comparison.answers.determinism.claimed
        and not comparison.contrasts.measured[rows].any()
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


def _is_called(
    comparison: Comparison, size: Floats, move: Floats, variance: Floats, at_margin: Floats
) -> Bools:
    """Return which contrasts are called where their differences move so much, either way."""
    margin, fold = comparison.margin, comparison.fold
    called = log_evidence(size + move, variance, margin) >= fold.threshold
    if margin is not None:
        nearest = np.maximum(size - move, 0.0)
        called |= log_tie_evidence(nearest, at_margin, margin) >= fold.tie_threshold
        if claims := fold.levels.claims:
            good_enough = log_evidence_above(size + move, at_margin, margin)
            called |= good_enough >= log(claims / comparison.alpha)
    return np.asarray(called)


def too_noisy(comparison: Comparison) -> list[str]:
    """Return the references whose noise alone leaves every needed contrast open, whatever is still asked.

    Nothing is returned while any needed contrast may be decided, or is one without a reference.
    """
    spec = comparison.spec
    if not spec.references:
        return []
    goal, rows = comparison.contrasts, np.flatnonzero(comparison.fold.needed)
    stored = np.maximum(goal.first, goal.second)[rows]
    known = comparison.rule.name in DECIDERS and not any(task.clusters for task in spec.tasks)
    if not known or not rows.size or stored.min() < len(spec.models):
        return []
    if any(_may_be_decided(comparison, row) for row in rows.tolist()):
        return []
    return [spec.names[number] for number in np.unique(stored).tolist()]


def _may_be_decided(comparison: Comparison, row: int) -> bool:
    """Return whether a contrast with a reference can get a verdict once its model has no noise any more."""
    live, stored = sorted((int(comparison.contrasts.first[row]), int(comparison.contrasts.second[row])))
    spec = comparison.spec
    variance = 0.0
    moving = 0.0
    for weight, cells in zip(spec.task_weights, comparison.answers.cells, strict=True):
        asked = cells.counts[live].any(axis=1)
        there = cells.counts[stored].any(axis=1)
        if (there & ~asked).any() or comparison.fold.progress[row] < PASSES * spec.questions:
            return True
        (score, noise, _), (other, held, shown) = cells.noise(live), cells.noise(stored)
        latest = cells.latest()
        questions = np.array(there.sum(), dtype=np.float64)
        square = np.maximum(((score - other)[there] ** 2).sum() - noise[there].sum(), 0.0)
        remaining = (
            held[there].sum() / questions,
            shown[there].sum() / questions,
            latest.g[stored, 0],
            latest.r[stored, 0],
        )
        exact = cells.binary and not remaining[3]
        guard = 0.0 if exact else comparison.fold.levels.guard
        least = contrast_variance(square, guard, questions, len(there), remaining, spec.stopping.target)
        variance += weight**2 * float(least)
        moving += weight**2 * float(noise[there].sum() / questions**2)
    size = np.abs(comparison.latest.difference[row])
    move = DEVIATIONS * np.sqrt(moving)
    return bool(_is_called(comparison, size, move, np.asarray(variance), np.asarray(variance)))
