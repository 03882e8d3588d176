"""From what a caller passes (a matrix, a padded or masked matrix, a table of counts) to counts."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arguments import question_index
from ._kernels import category_counts
from ._kernels._beta import FloatArray, IntArray

__all__ = [
    "BinaryTrials",
    "CategoryTrials",
    "Missing",
    "read_binary",
    "read_categories",
    "read_prior",
    "trial_numbers",
]

Missing: TypeAlias = "ArrayLike | None"
"""How missing trials are marked: a value, or a mask that is True at them."""


class BinaryTrials(NamedTuple):
    """Correct trials and trials of each question; `n` is an int where all questions have as many."""

    correct: NDArray[np.integer]
    n: IntArray | int
    question_weights: FloatArray | None


class CategoryTrials(NamedTuple):
    """Trials of each question in each category, shape (M, C + 1), and the rewards, shape (C + 1,)."""

    counts: IntArray
    w: FloatArray
    question_weights: FloatArray | None


def read_binary(
    R: ArrayLike | None, counts: ArrayLike | None, missing: Missing, question_weights: ArrayLike | None
) -> BinaryTrials:
    """Read binary outcomes.

    Parameters
    ----------
    R : array_like or None
        Outcomes 0 or 1, shape (M, N) or (N,); None with `counts`.
    counts : array_like or None
        Wrong and correct trials of each question, shape (M, 2) or (2,).
    missing : number, array_like of bool, or None
        Value in `R`, or mask of its shape, that marks trials that were not made.
    question_weights : array_like or None
        Shape (M,), at least 0, with sum 1.

    Returns
    -------
    BinaryTrials
    """
    if counts is not None:
        table = _read_counts("counts", counts, R, missing)
        if table.shape[1] != 2:
            raise ValueError(
                f"counts must have two columns, wrong and correct trials; got shape {table.shape}"
            )
        correct: NDArray[np.integer] = table[:, 1]
        n: IntArray | int = _uniform(table.sum(axis=1))
    else:
        outcomes, absent = _read_outcomes("R", R, missing)
        _check_categories("R", outcomes, 1, "a binary metric takes 0 and 1 only")
        correct = outcomes.sum(axis=1, dtype=np.int64)
        n = outcomes.shape[1]
        if absent is not None:
            n = _uniform(outcomes.shape[1] - absent.sum(axis=1))
    return BinaryTrials(correct, n, _read_question_weights(question_weights, correct.size))


def read_categories(
    R: ArrayLike | None,
    w: ArrayLike | None,
    counts: ArrayLike | None,
    missing: Missing,
    question_weights: ArrayLike | None,
) -> CategoryTrials:
    """Read categorical outcomes with their rewards.

    Parameters
    ----------
    R : array_like or None
        Categories ``0..C``, shape (M, N) or (N,); None with `counts`.
    w : array_like or None
        Rewards, shape (C + 1,); None means outcomes 0 and 1 with rewards 0 and 1.
    counts : array_like or None
        Trials of each question in each category, shape (M, C + 1) or (C + 1,).
    missing, question_weights
        As in `read_binary`.

    Returns
    -------
    CategoryTrials
    """
    rewards = np.array([0.0, 1.0]) if w is None else _read_rewards(w)
    if counts is not None:
        table = _read_counts("counts", counts, R, missing)
        if table.shape[1] != rewards.size:
            raise ValueError(
                f"counts must have one column a category, {rewards.size} for "
                f"w = {rewards.tolist()}; got shape {table.shape}"
            )
    else:
        outcomes, absent = _read_outcomes("R", R, missing)
        _check_categories("R", outcomes, rewards.size - 1, _why(w, rewards))
        if absent is not None:
            outcomes = np.where(absent, -1, outcomes)
        table = category_counts(outcomes, rewards.size)
    return CategoryTrials(table, rewards, _read_question_weights(question_weights, table.shape[0]))


def read_prior(
    R0: ArrayLike | None, prior_counts: ArrayLike | None, trials: CategoryTrials, missing: Missing
) -> IntArray | None:
    """Read prior outcomes as counts of shape (M, C + 1), or None.

    Parameters
    ----------
    R0 : array_like or None
        Categories, shape (M, D); one-dimensional input is one question's, or one trial of each question.
    prior_counts : array_like or None
        Prior trials of each question in each category, shape (M, C + 1).
    trials : CategoryTrials
        The trials that the prior goes with.
    missing : number, array_like of bool, or None
        A value that marks missing trials holds for `R0` too; a mask is that of `R`.
    """
    questions, size = trials.counts.shape
    if prior_counts is not None:
        if R0 is not None:
            raise ValueError("R0 must be None when prior_counts is given: both are prior trials")
        table = _read_counts("prior_counts", prior_counts, None, None)
        if table.shape != trials.counts.shape:
            raise ValueError(f"prior_counts must have shape {trials.counts.shape}; got {table.shape}")
        return table
    if R0 is None:
        return None
    marker = missing if missing is not None and np.ndim(missing) == 0 else None
    _refuse_masked("R0", R0, marker)
    array = _as_array("R0", R0)
    shape = array.shape
    if array.ndim == 1 and questions > 1:
        array = array[:, None]
    outcomes, absent = _read_outcomes("R0", array, marker, may_be_empty=True)
    if outcomes.shape[0] != questions:
        raise ValueError(f"R0 must have one row a question, {questions}; got shape {shape}")
    _check_categories("R0", outcomes, size - 1, _why(trials.w, trials.w))
    if absent is not None:
        outcomes = np.where(absent, -1, outcomes)
    return category_counts(outcomes, size)


def trial_numbers(trials: CategoryTrials) -> IntArray | int:
    """Return the trials of each question; an int where all questions have as many."""
    return _uniform(trials.counts.sum(axis=1))


def _why(w: Any, rewards: FloatArray) -> str:
    if w is None:
        return "without weights w the outcomes are 0 and 1 only"
    return f"w has rewards for the categories 0..{rewards.size - 1}"


def _read_outcomes(
    name: str, value: ArrayLike | None, missing: Missing, *, may_be_empty: bool = False
) -> tuple[NDArray[np.integer], NDArray[np.bool_] | None]:
    """Return integer outcomes of shape (M, N), 0 where missing, and the mask of missing trials or None."""
    if value is None:
        raise ValueError(f"{name} must be an outcome matrix; got None")
    _refuse_masked(name, value, missing)
    array = _as_array(name, value)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2:
        raise ValueError(f"{name} must have one or two dimensions; got shape {array.shape}")
    if array.shape[0] == 0 or (array.shape[1] == 0 and not may_be_empty):
        raise ValueError(f"{name} must have at least one question and one trial; got shape {array.shape}")
    absent = None if missing is None else _absent(name, array, missing)
    if absent is not None:
        array = np.where(absent, np.zeros((), dtype=array.dtype), array)
    if array.dtype.kind == "f":
        array = _integral(name, array)
    return array, absent


def _refuse_masked(name: str, value: ArrayLike, missing: Missing) -> None:
    """Refuse a masked array whose mask nobody asked to be used: plain conversion would drop it."""
    if missing is None and isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(
            f"{name} is a masked array with {int(np.ma.getmaskarray(value).sum())} masked trials; "
            "mark them by missing=, with the mask for R or with a value"
        )


def _as_array(name: str, value: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array; mark missing trials ({error})") from error
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold integers; got dtype {array.dtype}")
    return array


def _absent(name: str, array: NDArray[Any], missing: ArrayLike) -> NDArray[np.bool_]:
    """Return the mask of missing trials."""
    marker = np.asarray(missing)
    if marker.ndim > 0:
        mask = marker[None, :] if marker.ndim == 1 else marker
        if marker.dtype.kind != "b" or mask.shape != array.shape:
            raise ValueError(
                f"missing must be a value or a boolean mask of the shape of {name}, {array.shape}; "
                f"got an array of {marker.dtype}, shape {marker.shape}"
            )
        return np.asarray(mask)
    if marker.dtype.kind not in "iuf":
        raise ValueError(f"missing must be a number or a boolean mask; got {missing!r}")
    if marker.dtype.kind == "f" and np.isnan(marker):
        return np.asarray(np.isnan(array), dtype=np.bool_)
    return np.asarray(array == marker, dtype=np.bool_)


def _integral(name: str, array: NDArray[Any]) -> IntArray:
    whole = np.isfinite(array) & (array == np.rint(array))
    if not whole.all():
        q, i = np.argwhere(~whole)[0]
        raise ValueError(f"{name} must hold integers; got {name}[{q}, {i}] = {array[q, i]}")
    return array.astype(np.int64)


def _check_categories(name: str, outcomes: NDArray[np.integer], largest: int, why: str) -> None:
    if outcomes.size == 0 or (outcomes.min() >= 0 and outcomes.max() <= largest):
        return
    q, i = np.argwhere((outcomes < 0) | (outcomes > largest))[0]
    hint = "; a value that marks missing trials is passed as missing=" if outcomes[q, i] < 0 else ""
    raise ValueError(
        f"{name} must have categories in 0..{largest} ({why}); got {name}[{q}, {i}] = {outcomes[q, i]}{hint}"
    )


def _read_counts(name: str, counts: ArrayLike, R: ArrayLike | None, missing: Missing) -> IntArray:
    if R is not None:
        raise ValueError(f"R must be None when {name} is given: both say what the trials were")
    if missing is not None:
        raise ValueError(f"missing must be None when {name} is given; got {missing!r}")
    table = _as_array(name, counts)
    if table.ndim == 1:
        table = table[None, :]
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"{name} must have shape (questions, categories); got shape {table.shape}")
    if table.dtype.kind == "f":
        table = _integral(name, table)
    if table.min() < 0:
        q, k = np.argwhere(table < 0)[0]
        raise ValueError(f"{name} must be at least 0; got {name}[{q}, {k}] = {table[q, k]}")
    return table.astype(np.int64)


def _read_rewards(w: ArrayLike) -> FloatArray:
    try:
        rewards = np.array(w, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"w must be numbers; got {w!r}") from error
    if rewards.ndim != 1 or rewards.size == 0:
        raise ValueError(f"w must have shape (C + 1,), one reward a category; got shape {rewards.shape}")
    if not np.isfinite(rewards).all():
        k = question_index(~np.isfinite(rewards))
        raise ValueError(f"w must be finite; got w[{k}] = {rewards[k]}")
    return rewards


def _read_question_weights(weights: ArrayLike | None, questions: int) -> FloatArray | None:
    if weights is None:
        return None
    try:
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"question_weights must be numbers; got {weights!r}") from error
    if array.shape != (questions,):
        raise ValueError(f"question_weights must have shape ({questions},); got shape {array.shape}")
    if not np.isfinite(array).all() or array.min() < 0.0:
        q = question_index(~(np.isfinite(array) & (array >= 0.0)))
        raise ValueError(
            f"question_weights must be finite and at least 0; got question_weights[{q}] = {array[q]}"
        )
    if abs(array.sum() - 1.0) > 1e-9:
        raise ValueError(f"question_weights must have sum 1; got {array.sum()}")
    return array


def _uniform(n: NDArray[np.integer]) -> IntArray | int:
    """Return the common number of trials where there is one: equal counts are a rectangular matrix."""
    return int(n[0]) if (n == n[0]).all() else n.astype(np.int64)
