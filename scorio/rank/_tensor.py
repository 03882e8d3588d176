"""From what a caller passes (a tensor, a padded or masked one, a table of counts) to counts by model."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.eval._arguments import resamples
from scorio.eval._kernels import category_counts

__all__ = ["BinaryTensor", "CategoryTensor", "Missing", "read_binary", "read_categories", "read_prior"]

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
Missing: TypeAlias = "float | NDArray[np.bool_] | None"
"""How missing trials are marked: a value, or a mask that is True at them."""


class BinaryTensor(NamedTuple):
    """Correct trials of each model and question, shape (L, M); `n` is an int where all have as many."""

    correct: IntArray
    n: IntArray | int
    question_weights: FloatArray | None

    def draws(self, k: Any) -> int:
        """Check a number of trials to draw from those of every model and question."""
        drawn: int = resamples(k)
        fewest = self.n if isinstance(self.n, int) else int(self.n.min())
        if drawn <= fewest:
            return drawn
        if isinstance(self.n, int):
            raise ValueError(f"k must satisfy 1 <= k <= N with N = {fewest} trials a question; got {k}")
        place = _first(self.n < k)
        raise ValueError(
            f"k must not exceed any question's number of trials; got {k}, but {_name(place)} "
            f"has {self.n[place]}"
        )


class CategoryTensor(NamedTuple):
    """Trials of each model and question in each category, shape (L, M, C + 1); rewards, shape (C + 1,)."""

    counts: IntArray
    w: FloatArray
    question_weights: FloatArray | None

    def drawn_from(self, k: Any) -> int:
        """Check a number of trials to draw from those of every model and question."""
        n = self.counts.sum(-1)
        even = bool((n == n.flat[0]).all())
        return BinaryTensor(n, int(n.flat[0]) if even else n, None).draws(k)

    def require_trials(self, metric: str) -> None:
        """Raise ValueError where a model has no trial of a question."""
        empty = self.counts.sum(-1) == 0
        if empty.any():
            raise ValueError(f"{metric} needs a trial of every question; {_name(_first(empty))} has none")


def read_binary(
    R: ArrayLike | None, counts: ArrayLike | None, missing: Missing, question_weights: ArrayLike | None
) -> BinaryTensor:
    """Read binary outcomes of several models.

    Parameters
    ----------
    R : array_like or None
        Outcomes 0 or 1, shape (L, M, N), or (L, M) for one trial a question; None with `counts`.
    counts : array_like or None
        Wrong and correct trials of each model and question, shape (L, M, 2).
    missing : float, ndarray of bool, or None
        Value in `R`, or mask of its shape, that marks trials that were not made.
    question_weights : array_like or None
        Shape (M,), at least 0, with sum 1.

    Raises
    ------
    ValueError
        If an argument is malformed.
    """
    if counts is not None:
        table = _read_counts("counts", counts, R, missing)
        if table.shape[-1] != 2:
            raise ValueError(f"counts must have 2 columns, wrong and correct trials; got shape {table.shape}")
        correct, n = table[..., 1], _uniform(table.sum(-1))
    else:
        outcomes, absent = _read_outcomes("R", R, missing)
        _check_categories("R", outcomes, 1, "a binary metric takes 0 and 1 only")
        correct = _sum_trials(outcomes)
        n = outcomes.shape[-1] if absent is None else _uniform(outcomes.shape[-1] - _sum_trials(absent))
    return BinaryTensor(correct, n, _read_question_weights(question_weights, correct.shape[1]))


def read_categories(
    R: ArrayLike | None,
    w: ArrayLike | None,
    counts: ArrayLike | None,
    missing: Missing,
    question_weights: ArrayLike | None,
) -> CategoryTensor:
    """Read categorical outcomes of several models and the rewards of the categories.

    Parameters
    ----------
    R : array_like or None
        Categories ``0..C``, shape (L, M, N), or (L, M) for one trial a question; None with `counts`.
    w : array_like or None
        Rewards, shape (C + 1,); None means outcomes 0 and 1 with rewards 0 and 1.
    counts : array_like or None
        Trials of each model and question in each category, shape (L, M, C + 1).
    missing, question_weights
        As in `read_binary`.

    Raises
    ------
    ValueError
        If an argument is malformed.
    """
    rewards = _read_rewards(w)
    if counts is not None:
        table = _read_counts("counts", counts, R, missing)
        if table.shape[-1] != rewards.size:
            raise ValueError(
                f"counts must have one column a category, {rewards.size} for w = {rewards.tolist()}; "
                f"got shape {table.shape}"
            )
    else:
        table = _count(*_read_outcomes("R", R, missing), "R", rewards.size, w is None)
    return CategoryTensor(table, rewards, _read_question_weights(question_weights, table.shape[1]))


def read_prior(
    R0: ArrayLike | None, prior_counts: ArrayLike | None, trials: CategoryTensor, missing: Missing
) -> IntArray | None:
    """Read prior outcomes as counts that broadcast to (L, M, C + 1), or None.

    Parameters
    ----------
    R0 : array_like or None
        Categories, shape (M, D) for all models alike or (L, M, D) for each; D = 0 is no prior.
    prior_counts : array_like or None
        Prior trials in each category, shape (M, C + 1) or (L, M, C + 1).
    trials : CategoryTensor
        The trials that the prior goes with.
    missing : float, ndarray of bool, or None
        A value that marks missing trials holds for `R0` too; a mask is that of `R`.

    Raises
    ------
    ValueError
        If an argument is malformed.
    """
    models, questions, size = trials.counts.shape
    if prior_counts is not None:
        if R0 is not None:
            raise ValueError("R0 must be None when prior_counts is given: both are prior trials")
        table = _as_integers("prior_counts", prior_counts)
        _check_at_least_zero("prior_counts", table)
        if table.shape not in ((questions, size), (models, questions, size)):
            raise ValueError(
                f"prior_counts must have shape {(questions, size)} or {(models, questions, size)}; "
                f"got {table.shape}"
            )
        return table
    if R0 is None:
        return None
    shape = np.shape(R0)
    if shape[:-1] not in ((questions,), (models, questions)):
        raise ValueError(
            f"R0 must have shape ({questions}, D), shared by all models, or ({models}, {questions}, D); "
            f"got {shape}"
        )
    if shape[-1] == 0:
        return None
    marker = None if isinstance(missing, np.ndarray) and missing.ndim > 0 else missing
    shared = len(shape) == 2
    outcomes, absent = _read_outcomes("R0", np.asarray(R0)[None] if shared else R0, marker)
    table = _count(outcomes, absent, "R0", size, False)
    return table[0] if shared else table


def _count(
    outcomes: NDArray[np.integer], absent: NDArray[np.bool_] | None, name: str, size: int, default_w: bool
) -> IntArray:
    """Return the trials in each category after checking that all lie in 0..size − 1."""
    reason = (
        "without weights w the outcomes are 0 and 1 only"
        if default_w
        else f"w has rewards for the categories 0..{size - 1}"
    )
    _check_categories(name, outcomes, size - 1, reason)
    if size == 2:
        correct = _sum_trials(outcomes)
        n = outcomes.shape[-1] - (0 if absent is None else _sum_trials(absent))
        return np.stack([n - correct, correct], axis=-1)
    return category_counts(outcomes if absent is None else np.where(absent, -1, outcomes), size)


def _sum_trials(outcomes: NDArray[Any]) -> IntArray:
    return np.asarray(outcomes.sum(axis=-1, dtype=np.int64))


def _read_outcomes(
    name: str, value: ArrayLike | None, missing: Missing
) -> tuple[NDArray[np.integer], NDArray[np.bool_] | None]:
    """Return integer outcomes of shape (L, M, N), 0 where missing, and the mask of missing trials or None."""
    if value is None:
        raise ValueError(f"{name} must be an outcome tensor; got None")
    if isinstance(value, np.ma.MaskedArray) and missing is None and np.ma.is_masked(value):
        raise ValueError(
            f"{name} is a masked array with {np.count_nonzero(value.mask)} masked trials; "
            f"pass missing={name}.mask to leave them out"
        )
    array = _as_numbers(name, value)
    mask = missing
    if array.ndim == 2:
        array = array[..., None]
        mask = missing[..., None] if isinstance(missing, np.ndarray) and missing.ndim == 2 else missing
    if array.ndim != 3:
        raise ValueError(f"{name} must have shape (L, M, N), or (L, M) for N = 1; got shape {array.shape}")
    if 0 in array.shape:
        raise ValueError(f"{name} must have at least one model, question and trial; got shape {array.shape}")
    absent = None if mask is None else _absent(name, array, mask)
    if absent is not None:
        array = np.where(absent, np.zeros((), dtype=array.dtype), array)
    return _integral(name, array), absent


def _as_numbers(name: str, value: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array; mark missing trials ({error})") from error
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold integers; got dtype {array.dtype}")
    return array


def _integral(name: str, array: NDArray[Any]) -> NDArray[np.integer]:
    if array.dtype.kind != "f":
        return array
    whole = np.isfinite(array) & (array == np.rint(array))
    if not whole.all():
        place = _first(~whole)
        raise ValueError(f"{name} must hold integers; got {name}{list(place)} = {array[place]}")
    return array.astype(np.int64)


def _as_integers(name: str, value: ArrayLike) -> IntArray:
    return _integral(name, _as_numbers(name, value)).astype(np.int64)


def _absent(name: str, array: NDArray[Any], missing: float | NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask of missing trials."""
    marker = np.asarray(missing)
    if marker.ndim > 0:
        if marker.dtype.kind != "b" or marker.shape != array.shape:
            raise ValueError(
                f"missing must be a value or a boolean mask of the shape of {name}, {array.shape}; "
                f"got an array of {marker.dtype}, shape {marker.shape}"
            )
        return marker
    if marker.dtype.kind not in "iuf":
        raise ValueError(f"missing must be a number or a boolean mask; got {missing!r}")
    if marker.dtype.kind == "f" and np.isnan(marker):
        return np.asarray(np.isnan(array))
    return np.asarray(array == marker)


def _check_categories(name: str, outcomes: NDArray[np.integer], largest: int, why: str) -> None:
    if outcomes.min() >= 0 and outcomes.max() <= largest:
        return
    place = _first((outcomes < 0) | (outcomes > largest))
    hint = "; a value that marks missing trials is passed as missing=" if outcomes[place] < 0 else ""
    raise ValueError(
        f"{name} must have categories in 0..{largest} ({why}); "
        f"got {name}{list(place)} = {outcomes[place]}{hint}"
    )


def _read_counts(name: str, counts: ArrayLike, R: ArrayLike | None, missing: Missing) -> IntArray:
    if R is not None:
        raise ValueError(f"R must be None when {name} is given: both say what the trials were")
    if missing is not None:
        raise ValueError(f"missing must be None when {name} is given; got {missing!r}")
    table = _as_integers(name, counts)
    if table.ndim != 3 or 0 in table.shape:
        raise ValueError(f"{name} must have shape (models, questions, categories); got shape {table.shape}")
    _check_at_least_zero(name, table)
    return table


def _check_at_least_zero(name: str, table: IntArray) -> None:
    if table.size and table.min() < 0:
        place = _first(table < 0)
        raise ValueError(f"{name} must be at least 0; got {name}{list(place)} = {table[place]}")


def _read_rewards(w: ArrayLike | None) -> FloatArray:
    if w is None:
        return np.array([0.0, 1.0])
    try:
        rewards = np.array(w, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"w must be numbers; got {w!r}") from error
    if rewards.ndim != 1 or rewards.size == 0:
        raise ValueError(f"w must have shape (C + 1,), one reward a category; got shape {rewards.shape}")
    if not np.isfinite(rewards).all():
        (k,) = _first(~np.isfinite(rewards))
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
    bad = ~(np.isfinite(array) & (array >= 0.0))
    if bad.any():
        (q,) = _first(bad)
        raise ValueError(f"question_weights must be finite and at least 0; got {array[q]} for question {q}")
    if abs(array.sum() - 1.0) > 1e-9:
        raise ValueError(f"question_weights must have sum 1; got {array.sum()}")
    return array


def _uniform(n: IntArray) -> IntArray | int:
    """Return the common number of trials where there is one: equal counts are a rectangular tensor."""
    return int(n.flat[0]) if (n == n.flat[0]).all() else n


def _first(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the first place where `bad`."""
    return tuple(int(i) for i in np.argwhere(bad)[0])


def _name(place: tuple[int, ...]) -> str:
    return f"model {place[0]}, question {place[1]}"
