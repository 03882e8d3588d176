"""From arguments to trials along a trial sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from scorio._arrays import Floats, Integers, Ints
from scorio._labels import Outcomes
from scorio.eval._arguments import positive
from scorio.eval._inputs import Missing, read_trials
from scorio.sequential.contrasts import Target
from scorio.sequential.evidence import MIN_QUESTIONS
from scorio.sequential.moments import unit_scores
from scorio.sequential.trial_sequence import TrialSequence

Order: TypeAlias = "int | Sequence[int] | Integers | None"
"""Seed of the questions' order, the order itself, or None for the order as given."""


def sequence_of(order: Order, questions: int) -> TrialSequence:
    """Return the trial sequence with the questions in the given order, or drawn with it as seed."""
    if questions < MIN_QUESTIONS:
        raise ValueError(
            f"questions must be at least {MIN_QUESTIONS} for a verdict that holds at any time; got "
            f"{questions}. Fix the number of trials in advance and take permutation_test of all trials once; "
            "if no trial repeats a question, pass the outcomes of each model as a vector"
        )
    if order is None:
        return TrialSequence(np.arange(questions))
    if isinstance(order, (int, np.integer)):
        return TrialSequence(np.random.default_rng(int(order)).permutation(questions))
    permutation = np.asarray(order)
    if permutation.shape != (questions,) or not np.array_equal(np.sort(permutation), np.arange(questions)):
        raise ValueError(f"order must be None, a seed or a permutation of 0..{questions - 1}; got {order!r}")
    return TrialSequence(permutation)


Reading: TypeAlias = tuple[list[Any], Order, Target, ArrayLike | None, Missing]


def read_streams(
    outcomes: Sequence[Any], order: Order, target: Target, weights: ArrayLike | None, missing: Missing
) -> Reading:
    """Return outcomes as matrices of categories, with what else they say of how they are read.

    Vectors are streams of trials that repeat no question: a sample, read in its order as far as all go.
    Numbers between 0 and 1 are scores, to a thousandth, unless there are `weights`.
    """
    given = list(outcomes)
    if all(np.ndim(one) == 1 for one in given):
        steps = min(len(one) for one in given)
        given, order, target = [np.asarray(one)[:steps, None] for one in given], None, "population"
    if weights is not None or not all(np.asarray(one).dtype.kind == "f" for one in given):
        return given, order, target, weights, missing
    scores = [np.asarray(one, dtype=np.float64) for one in given]
    absent = [np.isnan(one) for one in scores]
    if missing is not None and np.ndim(missing) == 0:
        absent = [none | (one == missing) for one, none in zip(scores, absent, strict=True)]
    known = np.concatenate([one[~none] for one, none in zip(scores, absent, strict=True)])
    unit = known.size > 0 and known.min() >= 0.0 and known.max() <= 1.0
    if not unit or np.ndim(missing or 0) > 0 or (known == known.round()).all():
        return given, order, target, weights, missing
    values = np.unique(np.append(known.round(3), [0.0, 1.0]))
    found = [np.searchsorted(values, one.round(3)) for one in scores]
    coded = [np.where(none, -1, one) for one, none in zip(found, absent, strict=True)]
    return coded, order, target, values, -1


def read_pair(A: Outcomes, B: ArrayLike, categories: int, missing: Missing) -> Ints:
    """Return the trials of two models, shape (2, M, N)."""
    first, second = (read_trials(name, R, categories, missing) for name, R in (("A", A), ("B", B)))
    if first.shape != second.shape:
        raise ValueError(
            f"A and B must have the same shape; got {first.shape} and {second.shape}. Fill up the shorter "
            "with a value that `missing` names"
        )
    return np.stack([first, second])


def lay_out(trials: Ints, order: Order) -> tuple[TrialSequence, Ints]:
    """Return the trial sequence of recorded trials (L, M, N), and the categories along it, shape (L, M N)."""
    _, questions, repeats = trials.shape
    sequence = sequence_of(order, questions)
    if repeats == 1:
        # The calibration repeats of the usual sequence need a second trial.
        sequence.end_passes()
        sequence.extend(np.arange(questions))
    steps = questions * repeats
    return sequence, trials[:, sequence.question(0, steps), sequence.repeats(0, steps)]


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
