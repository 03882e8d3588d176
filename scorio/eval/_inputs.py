"""From arguments (an array, a padded or masked one, a table of counts) to counts.

The metrics of one model read a matrix (M, N), the rankings a tensor (L, M, N) with ``models=True``.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._arguments import first, numbers, resamples
from scorio.arrays import Bools, Floats, Integers, Ints

from ._kernels._aggregate import Counted, row_sums
from ._kernels._categories import category_counts

Missing: TypeAlias = "ArrayLike | None"
"""The marker of missing trials: a value, or a mask that is True at them."""

Given: TypeAlias = "ArrayLike | Mapping[str, ArrayLike] | None"
"""Outcomes as a caller may pass them; what is no array is refused in words."""
MOST_TRIALS = 10**7
"""Most trials of a question of which k are drawn: tables of this length take seconds."""
MOST_COUNTED = 2**53
"""Most trials of a question: floats hold whole numbers up to here."""


class BinaryTrials(Counted):
    """Correct trials and trials of each question, with checks of `k`."""

    def draws(self, k: Any) -> int:
        """Check a number of trials to draw from those of every question."""
        return _draws(k, self.n)

    def budget(self, k: Any) -> int:
        """Check a number of new trials that the reference limits to N: the most trials of any question."""
        number = resamples(k)
        if isinstance(self.n, int):
            most = self.n
        else:
            most = int(self.n.max())
        if number > most:
            raise ValueError(f"k must satisfy 1 <= k <= N with N = {most} trials a question; got {number}")
        return number


class CategoryTrials(NamedTuple):
    """Trials of each question in each category, shape (..., M, C + 1), and the rewards, shape (C + 1,)."""

    counts: Ints
    w: Floats
    question_weights: Floats | None

    @property
    def size(self) -> float:
        """The largest absolute reward: what the rounding of a mean is relative to."""
        return float(np.abs(self.w).max())

    def draws(self, k: Any) -> int:
        """Check a number of trials to draw from those of every question."""
        return _draws(k, _uniform(row_sums(self.counts)))

    def require_trials(self, metric: str) -> None:
        """Raise ValueError if a question has no trial."""
        empty = row_sums(self.counts) == 0
        if empty.any():
            raise ValueError(f"{metric} needs a trial of every question; {_place(first(empty))} has none")


def read_binary(
    R: Given,
    counts: ArrayLike | None,
    missing: Missing,
    question_weights: ArrayLike | None,
    *,
    models: bool = False,
) -> BinaryTrials:
    """Read outcomes 0 and 1, or a table of wrong and correct trials."""
    correct: Integers
    if counts is not None:
        table = _read_counts(counts, R, missing, 2, models)
        correct = table[..., 1]
        n = _uniform(row_sums(table))
    else:
        outcomes, absent = _read_outcomes("R", R, missing, models)
        _check_categories("R", outcomes, 1, "a binary metric takes 0 and 1 only")
        correct = row_sums(outcomes)
        if absent is None:
            n = outcomes.shape[-1]
        else:
            n = _uniform(outcomes.shape[-1] - row_sums(absent))
    return BinaryTrials(correct, n, read_question_weights(question_weights, correct.shape[-1]))


def read_categories(
    R: Given,
    w: ArrayLike | None,
    counts: ArrayLike | None,
    missing: Missing,
    question_weights: ArrayLike | None,
    *,
    models: bool = False,
) -> CategoryTrials:
    """Read categories 0..C, or a table of trials by category, with the rewards `w` (None: 0 and 1)."""
    if w is None:
        rewards = np.array([0.0, 1.0])
    else:
        rewards = numbers("w", w, "one reward a category")
    if counts is not None:
        table = _read_counts(counts, R, missing, rewards.size, models)
    else:
        table = _count("R", *_read_outcomes("R", R, missing, models), rewards.size, _why(w, rewards))
    return CategoryTrials(table, rewards, read_question_weights(question_weights, table.shape[-2]))


def read_outcomes(R: Given) -> Integers:
    """Read complete outcomes 0 and 1 of at least two models, shape (L, M, N)."""
    return read_observed(R, None)[0]


def read_observed(R: Given, missing: Missing) -> tuple[Integers, Bools | None]:
    """Read outcomes 0 and 1 of at least two models, 0 if missing, and the mask of missing ones or None."""
    outcomes, absent = _read_outcomes("R", R, missing, models=True)
    _check_categories("R", outcomes, 1, "a ranking of pairs takes 0 and 1 only")
    if len(outcomes) < 2:
        raise ValueError(f"R must have at least two models; got shape {outcomes.shape}")
    return outcomes, absent


def read_trials(name: str, R: Given, categories: int, missing: Missing, *, models: bool = False) -> Ints:
    """Read single trials in their order: categories, -1 if a trial is missing."""
    outcomes, absent = _read_outcomes(name, R, missing, models)
    _check_categories(name, outcomes, categories - 1, f"there are {categories} weights")
    trials = outcomes.astype(np.int64)
    if absent is None:
        return trials
    return np.where(absent, -1, trials)


def read_prior(
    R0: ArrayLike | None, prior_counts: ArrayLike | None, trials: CategoryTrials, missing: Missing
) -> Ints | None:
    """Read prior outcomes as counts that broadcast to those of `trials`, or None.

    A value of `missing` holds for `R0` too; a mask is that of `R`.
    """
    *models, questions, size = shape = trials.counts.shape
    if prior_counts is not None:
        if R0 is not None:
            raise ValueError("R0 must be None when prior_counts is given: both are prior trials")
        table = _integral("prior_counts", as_array("prior_counts", prior_counts))
        if table.ndim == 1:
            table = table[None, :]
        if table.shape not in (shape, shape[-2:]):
            if models:
                allowed = f"{shape[-2:]} or {shape}"
            else:
                allowed = f"{shape}"
            raise ValueError(f"prior_counts must have shape {allowed}; got {table.shape}")
        _check_at_least_zero("prior_counts", table)
        return table.astype(np.int64)
    if R0 is None:
        return None
    marker = None
    if missing is not None and np.ndim(missing) == 0:
        marker = missing
    refuse_masked("R0", R0, marker)
    array = as_array("R0", R0)
    given = array.shape
    if array.ndim == 1 and not models and array.size % questions == 0:
        array = array.reshape(questions, -1)
    if array.shape[:-1] not in ((questions,), shape[:-1]):
        shared = ""
        if models:
            shared = f", shared by all models, or ({models[0]}, {questions}, D)"
        raise ValueError(f"R0 must have shape ({questions}, D){shared}; got {given}")
    if array.size == 0:
        return None
    return _count("R0", *_without_missing("R0", array, marker), size, _why(trials.w, trials.w))


def as_array(name: str, value: Any) -> NDArray[Any]:
    """Return any array-like of numbers as an array of integers or floats; booleans become 0 and 1."""
    if isinstance(value, (Mapping, Iterator, set, frozenset)):
        raise ValueError(
            f"{name} must be an array; got {type(value).__name__}: pass a list or an array of its values"
        )
    if hasattr(value, "toarray"):  # scipy.sparse
        value = value.toarray()
    elif hasattr(value, "detach"):  # torch, also on an accelerator
        value = value.detach().cpu()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array; mark missing trials ({error})") from error
    if array.dtype.kind == "O" and hasattr(value, "to_numpy"):  # nullable dtypes of pandas: <NA> is NaN
        try:
            array = value.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold integers; got dtype object ({error})") from error
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold integers; got dtype {array.dtype}")
    return array


def _draws(k: Any, n: Integers | int) -> int:
    number = resamples(k)
    most = int(np.max(n))
    if most > MOST_TRIALS:
        raise ValueError(
            f"a question must have at most {MOST_TRIALS} trials where k of them are drawn; got {most}; "
            "the function with _ci takes more"
        )
    if isinstance(n, int):
        if number > n:
            raise ValueError(f"k must satisfy 1 <= k <= N with N = {n} trials a question; got {number}")
    elif number > n.min():
        place = first(n < number)
        raise ValueError(
            f"k must not exceed any question's number of trials; got {number}, "
            f"but {_place(place)} has {n[place]}"
        )
    return number


def _why(w: Any, rewards: Floats) -> str:
    if w is None:
        return "without weights w the outcomes are 0 and 1 only"
    return f"w has rewards for the categories 0..{rewards.size - 1}"


def _read_outcomes(name: str, value: Given, missing: Missing, models: bool) -> tuple[Integers, Bools | None]:
    """Return integer outcomes of shape (M, N) or (L, M, N) and the mask of missing trials or None."""
    if value is None:
        shape = "matrix"
        if models:
            shape = "tensor"
        raise ValueError(f"{name} must be an outcome {shape}; got None")
    refuse_masked(name, value, missing)
    array = as_array(name, value)
    mask = None
    if missing is not None:
        mask = np.asarray(missing)
    # A matrix is one trial of each question to a ranking, a vector one question to a metric.
    axis = (..., None) if models else (None, ...)
    if array.ndim == (2 if models else 1):
        array = array[axis]
        if mask is not None and mask.ndim == array.ndim - 1 > 0:
            mask = mask[axis]
    if array.ndim != (3 if models else 2):
        form = "one or two dimensions"
        if models:
            form = "shape (L, M, N), or (L, M) for N = 1"
        raise ValueError(f"{name} must have {form}; got shape {array.shape}")
    if array.size == 0:
        least = "model, question" if models else "question"
        raise ValueError(f"{name} must have at least one {least} and trial; got shape {array.shape}")
    return _without_missing(name, array, mask)


def _without_missing(name: str, array: NDArray[Any], missing: Missing) -> tuple[Integers, Bools | None]:
    """Return `array` as integers, 0 if missing, and the mask."""
    if missing is None:
        return _integral(name, array), None
    absent = missing_mask(name, array, np.asarray(missing))
    return _integral(name, np.where(absent, np.zeros((), dtype=array.dtype), array)), absent


def missing_mask(name: str, array: NDArray[Any], marker: NDArray[Any]) -> Bools:
    """Return the mask of missing trials."""
    if marker.ndim > 0:
        if marker.dtype.kind != "b" or marker.shape != array.shape:
            raise ValueError(
                f"missing must be a value or a boolean mask of the shape of {name}, {array.shape}; "
                f"got an array of {marker.dtype}, shape {marker.shape}"
            )
        return marker
    if marker.dtype.kind not in "iuf":
        raise ValueError(f"missing must be a number or a boolean mask; got {marker.item()!r}")
    if marker.dtype.kind == "f" and np.isnan(marker):
        return np.asarray(np.isnan(array))
    return np.asarray(array == marker)


def refuse_masked(name: str, value: Given, missing: Missing) -> None:
    """Refuse a masked array whose mask nobody asked to be used: plain conversion would drop it."""
    if missing is None and isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(
            f"{name} is a masked array with {np.count_nonzero(value.mask)} masked trials; "
            f"pass missing={name}.mask, or mark them by a value"
        )


def _integral(name: str, array: NDArray[Any]) -> Integers:
    if array.dtype.kind != "f":
        return array
    whole = np.isfinite(array) & (array == np.rint(array))
    if not whole.all():
        place = first(~whole)
        hint = ""
        if np.isnan(array[place]):
            hint = "; missing trials are marked by missing=np.nan"
        raise ValueError(f"{name} must hold integers; got {name}{list(place)} = {array[place]}{hint}")
    return array.astype(np.int64)


def _check_categories(name: str, outcomes: Integers, largest: int, why: str) -> None:
    if outcomes.min() >= 0 and outcomes.max() <= largest:
        return
    place = first((outcomes < 0) | (outcomes > largest))
    hint = ""
    if outcomes[place] < 0:
        hint = "; a value that marks missing trials is passed as missing="
    raise ValueError(
        f"{name} must have categories in 0..{largest} ({why}); "
        f"got {name}{list(place)} = {outcomes[place]}{hint}"
    )


def _count(name: str, outcomes: Integers, absent: Bools | None, size: int, why: str) -> Ints:
    """Return the trials in each category after checking that all lie in 0..size − 1."""
    _check_categories(name, outcomes, size - 1, why)
    if size == 2:
        correct = row_sums(outcomes)
        n = outcomes.shape[-1] - (0 if absent is None else row_sums(absent))
        return np.stack([n - correct, correct], axis=-1)
    return category_counts(
        outcomes if absent is None else np.where(absent, -1, outcomes.astype(np.int64)), size
    )


def _read_counts(counts: ArrayLike, R: Given, missing: Missing, size: int, models: bool) -> Ints:
    if R is not None:
        raise ValueError("R must be None when counts is given: both say what the trials were")
    if missing is not None:
        raise ValueError(f"missing must be None when counts is given; got {missing!r}")
    table = as_array("counts", counts)
    if table.ndim == 1 and not models:
        table = table[None, :]
    form = "(questions, categories)"
    if models:
        form = "(models, questions, categories)"
    if table.ndim != (3 if models else 2) or table.size == 0 or table.shape[-1] != size:
        raise ValueError(f"counts must have shape {form} with {size} categories; got shape {table.shape}")
    if table.max() > MOST_COUNTED // size:
        raise ValueError(
            f"counts must be at most {MOST_COUNTED // size} each, so that their sums are exact; "
            f"got {table.max()}"
        )
    table = _integral("counts", table).astype(np.int64)
    _check_at_least_zero("counts", table)
    return table


def _check_at_least_zero(name: str, table: Integers) -> None:
    if table.size and table.min() < 0:
        place = first(table < 0)
        raise ValueError(f"{name} must be at least 0; got {name}{list(place)} = {table[place]}")


def read_question_weights(weights: ArrayLike | None, questions: int) -> Floats | None:
    """Read one weight a question, with sum 1; None for equal ones."""
    if weights is None:
        return None
    array = numbers("question_weights", weights, "one weight a question", questions, least=0.0)
    if abs(array.sum() - 1.0) > 1e-9:
        raise ValueError(f"question_weights must have sum 1; got {array.sum()}")
    return array


def _uniform(n: Integers) -> Ints | int:
    """Return the common number of trials if there is one: equal counts are a rectangular array."""
    common = n.flat[0]
    if (n == common).all():
        return int(common)
    return n.astype(np.int64)


def _place(place: tuple[int, ...]) -> str:
    if len(place) == 1:
        return f"question {place[0]}"
    return f"model {place[0]}, question {place[1]}"
