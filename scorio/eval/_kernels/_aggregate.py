"""From values of questions to a value of the matrix, and from counts to values of questions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scorio.arrays import Floats, Integers, Ints


class Counted(NamedTuple):
    """Correct trials and trials of each question; an int `n` if all questions have as many."""

    correct: Integers
    n: Integers | int
    question_weights: Floats | None = None

    def mean(self, values: Floats) -> Floats:
        """Weighted mean of the questions' values."""
        return mean(values, self.question_weights)


_TALL = 1 << 9
"""From this size on einsum adds short rows several times faster than sum."""


def row_sums(values: NDArray[Any]) -> Ints:
    """Sum integers or booleans over the last axis."""
    if values.size < _TALL:
        return np.asarray(values.sum(axis=-1, dtype=np.int64))
    return np.asarray(np.einsum("...n->...", values, dtype=np.int64, casting="unsafe"))


def mean(values: Floats, question_weights: Floats | None) -> Floats:
    """Weighted mean over the last axis, independent of the questions' order if weights are equal."""
    if question_weights is None:
        return np.asarray(np.sort(values, axis=-1).sum(-1) / values.shape[-1])
    return np.asarray((values * question_weights).sum(-1))


def standard_deviation(variances: Floats, question_weights: Floats | None) -> Floats:
    """Return the standard deviation of the mean of independent values with the given variances."""
    if question_weights is None:
        return np.asarray(np.sqrt(np.sort(variances, axis=-1).sum(-1)) / variances.shape[-1])
    return np.asarray(np.sqrt((variances * question_weights**2).sum(-1)))


def per_count(value: Callable[[Ints, int], Floats], correct: Integers, n: Integers | int) -> Floats:
    """Evaluate ``value(c, n)``, which takes one ``n`` at a time, at every question.

    If there are more questions than possible counts, values are looked up in a table.
    """
    correct = np.asarray(correct)
    n = np.asarray(n)
    if n.ndim == 0 or n.size == 1:
        return _one_size(value, correct, int(n.flat[0]))
    sizes = np.unique(n)
    if sizes.size == 1:
        return _one_size(value, correct, int(sizes[0]))
    n = np.broadcast_to(n, correct.shape)
    out = np.empty(correct.shape)
    for size in sizes:
        at = n == size
        out[at] = _one_size(value, correct[at], int(size))
    return out


def _one_size(value: Callable[[Ints, int], Floats], correct: Integers, n: int) -> Floats:
    if correct.size <= n:
        return value(correct.ravel().astype(np.int64), n).reshape(correct.shape)
    return np.asarray(value(np.arange(n + 1), n)[correct])


def per_pair(
    moments: Callable[[Ints, Ints], tuple[Floats, ...]],
    first: Integers,
    second: Integers | int,
) -> tuple[Floats, ...]:
    """Evaluate ``moments`` once for every distinct pair of non-negative integers.

    Parameters
    ----------
    moments : callable
        Takes two integer arrays of shape (pairs,), returns arrays of that shape.
    first, second : int array
        `second` broadcasts to the shape of `first`.

    Returns
    -------
    tuple of ndarray
        Each of the shape of `first`.
    """
    first = np.asarray(first, dtype=np.int64)
    second = np.broadcast_to(np.asarray(second, dtype=np.int64), first.shape)
    base = int(first.max(initial=0)) + 1
    codes, inverse = _distinct((second * base + first).ravel())
    results = moments(codes % base, codes // base)
    return tuple(result[inverse].reshape(first.shape) for result in results)


def _distinct(codes: Ints) -> tuple[Ints, Ints]:
    """Return the distinct non-negative codes in order, and the place of each code among them."""
    span = int(codes.max(initial=0)) + 1
    if span > max(1024, 4 * codes.size):
        distinct, inverse = np.unique(codes, return_inverse=True)
        return distinct, inverse
    present = np.bincount(codes, minlength=span) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[codes]
