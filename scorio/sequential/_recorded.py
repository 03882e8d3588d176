"""From arguments to trials along a trial sequence."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._arguments import positive
from scorio._arrays import Floats, Integers, Ints
from scorio._named import Outcomes
from scorio.eval._inputs import Missing, as_array, missing_mask, read_trials, refuse_masked
from scorio.sequential.contrasts import Target
from scorio.sequential.evidence import MIN_QUESTIONS
from scorio.sequential.moments import unit_scores
from scorio.sequential.trial_sequence import TrialSequence

Order: TypeAlias = "int | Sequence[int] | Integers | None"
"""Seed of the questions' order, the order itself, or None for the order as given."""


def sequence_of(order: Order, questions: int, *, early_repeats: bool = True) -> TrialSequence:
    """Return the trial sequence with the questions in the given order, or drawn with it as seed."""
    if questions < MIN_QUESTIONS:
        raise ValueError(
            f"questions must be at least {MIN_QUESTIONS} for a verdict that holds at any time; got "
            f"{questions}. Fix the number of trials in advance and take permutation_test of all trials once "
            "(of one model: posterior_interval); if no trial repeats a question, pass vectors to compare"
        )
    if order is None:
        permutation = np.arange(questions)
    elif isinstance(order, (int, np.integer)) and order >= 0:
        permutation = np.random.default_rng(int(order)).permutation(questions)
    else:
        permutation = np.asarray(order)
    if permutation.shape != (questions,) or not np.array_equal(np.sort(permutation), np.arange(questions)):
        raise ValueError(f"order must be None, a seed or a permutation of 0..{questions - 1}; got {order!r}")
    return TrialSequence(permutation, early_repeats=early_repeats)


Reading: TypeAlias = tuple[list[NDArray[Any]], Order, Target, ArrayLike | None, Missing]


def read_streams(
    outcomes: Mapping[str, Outcomes],
    order: Order,
    target: Target,
    weights: ArrayLike | None,
    missing: Missing,
) -> Reading:
    """Return outcomes, by name of the argument, as matrices of categories, with how they are read.

    Vectors are streams of trials that repeat no question: a sample, read in its order as far as all go.
    """
    given = [read_array(name, R, missing) for name, R in outcomes.items()]
    if all(one.ndim == 1 for one in given):
        steps = min(len(one) for one in given)
        given = [one[:steps, None] for one in given]
        order = None
        target = "population"
        if missing is not None and np.ndim(missing) == 1:
            missing = np.asarray(missing)[:steps, None]
    found, weights, missing = read_scores(dict(zip(outcomes, given, strict=True)), weights, missing)
    return found, order, target, weights, missing


def read_scores(
    outcomes: Mapping[str, ArrayLike], weights: ArrayLike | None, missing: Missing
) -> tuple[list[NDArray[Any]], ArrayLike | None, Missing]:
    """Return outcomes, by name of the argument, as categories with their weights and what marks missing ones.

    Numbers between 0 and 1 are scores, to a thousandth, unless there are `weights`.
    """
    given = {name: read_array(name, R, missing) for name, R in outcomes.items()}
    if weights is not None or all(one.dtype.kind != "f" for one in given.values()):
        return list(given.values()), weights, missing
    absent = [np.isnan(one) for one in given.values()]
    if missing is not None:
        marker = np.asarray(missing)
        for none, (name, one) in zip(absent, given.items(), strict=True):
            none |= missing_mask(name, one, marker)
    known = np.concatenate([one[~none] for one, none in zip(given.values(), absent, strict=True)])
    if (known == known.round()).all():
        return list(given.values()), weights, missing
    if known.min() < 0.0 or known.max() > 1.0:
        raise ValueError(
            f"{' and '.join(given)} must hold categories, or scores between 0 and 1; got numbers from "
            f"{known.min():g} to {known.max():g}"
        )
    values = np.unique(np.append(known.round(3), [0.0, 1.0]))
    found = [np.searchsorted(values, one.round(3)) for one in given.values()]
    return [np.where(none, -1, one) for one, none in zip(found, absent, strict=True)], values, -1


def read_array(name: str, R: Outcomes, missing: Missing) -> NDArray[Any]:
    """Return an argument as an array of numbers that hides no missing trials."""
    refuse_masked(name, R, missing)
    return as_array(name, R)


def read_pair(A: ArrayLike, B: ArrayLike, categories: int, missing: Missing) -> Ints:
    """Return the trials of two models, shape (2, M, N)."""
    first, second = (read_trials(name, R, categories, missing) for name, R in (("A", A), ("B", B)))
    if first.shape != second.shape:
        raise ValueError(
            f"A and B must have the same shape; got {first.shape} and {second.shape}. Fill up the shorter "
            "with a value that `missing` names"
        )
    return np.stack([first, second])


def lay_out(trials: Ints, order: Order) -> tuple[TrialSequence, Ints, Ints]:
    """Return the trial sequence of recorded trials (L, M, N), the categories along it, and their numbers.

    Categories have shape (L, M N). Trials that are missing at a model's end were not made.
    """
    _, questions, repeats = trials.shape
    sequence = sequence_of(order, questions, early_repeats=repeats > 1)  # which need a second trial
    steps = questions * repeats
    categories = trials[:, sequence.question(0, steps), sequence.repeats(0, steps)]
    return sequence, categories, np.where(categories >= 0, np.arange(1, steps + 1), 0).max(axis=1)


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
    """Return the margin in unit scores."""
    if equivalence is None:
        return None
    if positive("equivalence", equivalence) >= scale:
        raise ValueError(f"equivalence must be less than the range of scores, {scale:g}; got {equivalence!r}")
    return equivalence / scale
