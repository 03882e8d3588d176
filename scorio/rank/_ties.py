"""From scores to ranks: who ties, and which rank tied models get."""

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._arguments import one_of
from scorio.arrays import Bools, Floats, Ints

TieMethod: TypeAlias = Literal["competition", "competition_max", "dense", "avg", "ordinal"]
Ranks: TypeAlias = Ints | Floats

TIE_TOLERANCE = 1e-12
"""Neighbouring scores tie when they differ by at most this times the size of what they were computed from."""


def rank_scores(
    scores: ArrayLike,
    method: TieMethod = "competition",
    tol: float = TIE_TOLERANCE,
    *,
    scale: float | None = None,
) -> Ranks:
    """Rank models by their scores: 1 is the highest score.

    Parameters
    ----------
    scores : array_like, shape (..., L)
        Scores of L models; every leading index is a separate ranking.
    method : {'competition', 'competition_max', 'dense', 'avg', 'ordinal'}
        Ranks of tied models, for scores 9, 7, 7, 5:

        ========================  ====================================================
        ``competition``           1, 2, 2, 4: the best position of the group
        ``competition_max``       1, 3, 3, 4: its worst position
        ``dense``                 1, 2, 2, 3: the number of distinct better scores + 1
        ``avg``                   1, 2.5, 2.5, 4: the mean position
        ``ordinal``               1, 2, 3, 4: ties broken by the order of the input
        ========================  ====================================================
    tol : float
        Neighbours in the sorted order tie when their difference is at most `tol` times `scale`. The default,
        1e-12, is far above the rounding of a sum of thousands of terms and far below what one trial changes.
        Ties chain: a group may span more than the tolerance. ``0`` ties equal numbers only.
    scale : float, optional
        Size of the numbers that the scores were computed from, whose rounding they carry: scores near 0 may
        be differences of much larger ones. Default: the largest absolute score, so that scores far below 1,
        such as Pass^k at large k, are told apart.

    Returns
    -------
    numpy.ndarray, shape (..., L)
        Ranks in the order of the input; int64, for ``avg`` float64.

    Raises
    ------
    ValueError
        If there is no score, a score is NaN or infinite, `method` is unknown or `tol` is negative.

    Examples
    --------
    >>> rank_scores([0.5, 0.9, 0.9, 0.1])
    array([3, 1, 1, 4])
    >>> rank_scores([0.5, 0.9, 0.9, 0.1], method="avg")
    array([3. , 1.5, 1.5, 4. ])
    """
    check_method(method)
    values = np.asarray(scores)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"scores must be numbers, got an array of dtype {values.dtype}")
    values = values.astype(np.float64, copy=False)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"scores must hold one score per model on the last axis, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"scores must be finite, got {values[~np.isfinite(values)].flat[0]}")
    if not 0 <= tol < np.inf:
        raise ValueError(f"tol must be a finite number of at least 0, got {tol}")
    order = np.argsort(-values, axis=-1, kind="stable")
    descending = np.take_along_axis(values, order, axis=-1)
    if scale is None:
        size = np.abs(values).max(axis=-1, keepdims=True)
    else:
        size = scale
    margin = tol * size
    apart = descending[..., :-1] - descending[..., 1:] > margin
    return rank_groups(order, apart, method)


def rank_groups(order: NDArray[np.intp], apart: Bools, method: TieMethod) -> Ranks:
    """Return ranks from an order of models and where in it one group ends and the next begins.

    Parameters
    ----------
    order : int array, shape (..., L)
        Indices of models, best first.
    apart : bool array, shape (..., L − 1)
        Whether the model at position i + 1 is in another group than the one at position i.
    method : str
        Tie method, checked by the caller.

    Returns
    -------
    numpy.ndarray, shape (..., L)
        Ranks by model.
    """
    size = order.shape[-1]
    position = np.arange(1, size + 1, dtype=np.int64)
    starts = np.ones(order.shape, dtype=np.bool_)
    starts[..., 1:] = apart
    if method == "ordinal":
        by_position = np.broadcast_to(position, order.shape)
    elif method == "dense":
        by_position = np.cumsum(starts, axis=-1, dtype=np.int64)
    else:
        first = np.maximum.accumulate(np.where(starts, position, 0), axis=-1)
        if method == "competition":
            by_position = first
        else:
            ends = np.ones(order.shape, dtype=np.bool_)
            ends[..., :-1] = apart
            last = np.where(ends, position, size + 1)[..., ::-1]
            last = np.minimum.accumulate(last, axis=-1)[..., ::-1]
            by_position = last
            if method != "competition_max":
                by_position = (first + last) / 2.0
    ranks = np.empty_like(by_position)
    np.put_along_axis(ranks, order, by_position, axis=-1)
    return ranks


def check_method(method: str) -> None:
    """Raise ValueError unless `method` is the name of a tie method."""
    one_of("method", method, get_args(TieMethod))
