"""From arguments to trials along a trial sequence, and from estimates to intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.eval._arguments import positive
from scorio.sequential.betting import ScoreBets
from scorio.sequential.cells import Cells, unit_scores
from scorio.sequential.contrasts import ContrastBlock, Target
from scorio.sequential.evidence import MIN_QUESTIONS, confidence_radius, score_radius
from scorio.sequential.trial_sequence import RunSequence, TrialSequence

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Order: TypeAlias = "int | Sequence[int] | NDArray[np.integer[Any]] | None"
"""Seed of the questions' order, the order itself, or None for the order as given."""

_UNKNOWN = 1e6
"""Replaces the infinite variance of a single cluster."""


def sequence_of(order: Order, questions: int) -> TrialSequence:
    """Return the trial sequence with the questions in the given order, or drawn with it as seed."""
    if order is None:
        return TrialSequence(np.arange(questions))
    if isinstance(order, (int, np.integer)):
        return TrialSequence(np.random.default_rng(int(order)).permutation(questions))
    permutation = np.asarray(order)
    if permutation.shape != (questions,) or not np.array_equal(np.sort(permutation), np.arange(questions)):
        raise ValueError(f"order must be None, a seed or a permutation of 0..{questions - 1}; got {order!r}")
    return TrialSequence(permutation)


def lay_out(trials: Integers, order: Order) -> tuple[TrialSequence, Integers]:
    """Return the trial sequence of recorded trials (L, M, N), and the categories along it, shape (L, M N)."""
    _, questions, repeats = trials.shape
    sequence = sequence_of(order, questions)
    if repeats == 1:
        # The calibration repeats of the usual sequence need a second trial.
        sequence.end_passes()
        sequence.extend(np.arange(questions))
    steps = questions * repeats
    return sequence, trials[:, sequence.question(0, steps), sequence.repeats(0, steps)]


def interval(block: ContrastBlock, alpha: float, margin: float | None = None) -> tuple[Floats, Floats]:
    """Return the confidence sequence of a block's estimates; unbounded before the tenth question.

    Its variance is V₂: V is right where the models agree and too small elsewhere.
    """
    variance = np.minimum(block.guarded, _UNKNOWN)
    radius = np.where(block.questions >= MIN_QUESTIONS, confidence_radius(variance, alpha, margin), np.inf)
    radius = radius + block.slack
    return block.difference - radius, block.difference + radius


def log_e_against(cells: Cells, level: float, target: Target, steps: int) -> Floats:
    """Return the log e-values, after each step, that the only model's score differs from `level`."""
    bets = ScoreBets([cells], RunSequence.of_task(cells.sequence), [1.0], [0], [level], target)
    return np.asarray(bets.read(np.arange(1), 0, steps)[0])


def score_interval(block: ContrastBlock, alpha: float) -> tuple[Floats, Floats]:
    """Return the confidence sequence of models' own scores; unbounded before the tenth question."""
    radius = score_radius(block.difference, np.minimum(block.variance, _UNKNOWN), alpha)
    radius = np.where(block.questions >= MIN_QUESTIONS, radius + block.slack, np.inf)
    return block.difference - radius, block.difference + radius


def read_weights(weights: ArrayLike | None) -> tuple[Floats, float, float]:
    """Return the categories' unit scores, the lowest weight and the weights' range."""
    if weights is None:
        return np.array([0.0, 1.0]), 0.0, 1.0
    given = np.asarray(weights)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"weights must be numbers; got {weights!r}")
    numbers = given.astype(np.float64)
    return unit_scores(numbers), float(numbers.min()), float(np.ptp(numbers))


def read_margin(equivalence: float | None, scale: float) -> float | None:
    return None if equivalence is None else positive("equivalence", equivalence) / scale
