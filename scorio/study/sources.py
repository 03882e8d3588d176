"""Sources of a study's replicates: independent runs of coins, or a bootstrap of recorded trials.

A source hands out trials one after another for a block of replicates. The sum of the
first n is what a replicate knows after n trials per question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.study._comparable import integer_grid
from scorio.study._seeds import Seed, block_generator, block_length, seed_sequence
from scorio.study.coins import Coins
from scorio.study.gold import GoldStandard

Resampling = Literal["columns", "permuted-columns", "columns-per-model", "rows"]


class Source(Protocol):
    """The interface of a source of replicates."""

    @property
    def models(self) -> int:
        """Number of models L."""

    @property
    def questions(self) -> int:
        """Number of questions M."""

    @property
    def trials(self) -> int:
        """Trials per question of a replicate."""

    @property
    def binary(self) -> bool:
        """Whether every outcome is 0 or 1."""

    @property
    def tolerance(self) -> int:
        """The difference up to which two totals mean the same score."""

    def gold(self) -> GoldStandard:
        """Return the ranking that replicates are compared with unless another is given."""

    def cells(self, rng: np.random.Generator, replicates: int) -> Iterator[NDArray[np.integer]]:
        """Yield each trial's scores, shape (replicates, L, M)."""

    def totals(self, rng: np.random.Generator, replicates: int) -> Iterator[NDArray[np.integer]]:
        """Yield each trial's scores summed over questions, shape (replicates, L): the same draws."""


@dataclass(frozen=True, slots=True, eq=False)
class IndependentRuns:
    """Every replicate is a fresh run of the coins (the paper's "without bootstrapping").

    Parameters
    ----------
    coins : Coins
        The models.
    trials : int
        Trials per question of a replicate.
    """

    coins: Coins
    trials: int

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ValueError(f"trials must be at least 1, got {self.trials!r}")

    @property
    def models(self) -> int:
        """Number of models L."""
        return self.coins.models

    @property
    def questions(self) -> int:
        """Number of questions M."""
        return self.coins.questions

    @property
    def binary(self) -> bool:
        """Always true."""
        return True

    @property
    def tolerance(self) -> int:
        """Always 0: totals count right answers."""
        return 0

    def gold(self) -> GoldStandard:
        """Return the ranking by the stated means."""
        return GoldStandard.from_scores(self.coins.means)

    def cells(self, rng: np.random.Generator, replicates: int) -> Iterator[NDArray[np.integer]]:
        """Yield each trial's outcomes, shape (replicates, L, M)."""
        for _ in range(self.trials):
            yield (rng.random((replicates, *self.coins.p.shape)) < self.coins.p).view(np.uint8)

    def totals(self, rng: np.random.Generator, replicates: int) -> Iterator[NDArray[np.integer]]:
        """Yield each trial's number of right answers, shape (replicates, L)."""
        for outcomes in self.cells(rng, replicates):
            yield outcomes.sum(axis=2, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Bootstrap:
    """Every replicate resamples the N recorded trials, with replacement or in another order.

    The object keeps the trials' integer scores, trial by trial (:attr:`by_trial`, shape (N, L, M)) and added
    up over questions (:attr:`totals_by_trial`, shape (N, L)).

    Parameters
    ----------
    outcomes : array_like of int, shape (L, M, N)
        Categories 0..C of every trial.
    resampling : {'columns', 'permuted-columns', 'columns-per-model', 'rows'}
        ``columns`` resamples trial numbers, the same ones for all questions and all models: the paper's
        column-wise scheme, which keeps what trials of one seed have in common. ``permuted-columns`` draws
        them without replacement, so that after N trials every replicate agrees with the recorded outcomes.
        ``columns-per-model`` draws them for each model by itself. ``rows`` resamples the answers of every
        question (of every model) independently.
    trials : int, optional
        Trials of a replicate; default N, which ``permuted-columns`` cannot exceed.
    weights : array_like, shape (C + 1,), optional
        Score of each category; default: outcomes are 0 or 1 and count as such. Weighted outcomes can be
        ranked by ``avg`` only.

    Raises
    ------
    ValueError
        When `outcomes` is not a tensor of categories, or does not fit `weights`.

    Examples
    --------
    >>> outcomes = np.array([[[0, 1, 1], [1, 1, 1]], [[0, 0, 1], [1, 0, 0]]])
    >>> source = Bootstrap(outcomes)
    >>> source.gold().order
    array([0, 1])
    """

    by_trial: NDArray[np.integer]
    totals_by_trial: NDArray[np.int64]
    resampling: Resampling
    trials: int
    binary: bool
    tolerance: int

    def __init__(
        self,
        outcomes: ArrayLike,
        resampling: Resampling = "columns",
        *,
        trials: int | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        tensor = _outcome_tensor(outcomes)
        if resampling not in get_args(Resampling):
            raise ValueError(
                f"resampling must be one of {', '.join(get_args(Resampling))}, got {resampling!r}"
            )
        length = tensor.shape[2] if trials is None else trials
        if length < 1:
            raise ValueError(f"trials must be at least 1, got {trials!r}")
        if resampling == "permuted-columns" and length > tensor.shape[2]:
            raise ValueError(f"trials must be at most the {tensor.shape[2]} recorded ones, got {trials!r}")
        scores, tolerance = _trial_scores(tensor, weights, length)
        # Trial-major, so that a drawn trial is one contiguous copy.
        by_trial = np.ascontiguousarray(scores.transpose(2, 0, 1))
        for name, value in (
            ("by_trial", by_trial),
            ("totals_by_trial", by_trial.sum(axis=2, dtype=np.int64)),
            ("resampling", resampling),
            ("trials", length),
            ("binary", weights is None),
            ("tolerance", tolerance),
        ):
            object.__setattr__(self, name, value)

    @property
    def scores(self) -> NDArray[np.integer]:
        """Integer score of every recorded trial, shape (L, M, N)."""
        return self.by_trial.transpose(1, 2, 0)

    @property
    def models(self) -> int:
        """Number of models L."""
        return int(self.by_trial.shape[1])

    @property
    def questions(self) -> int:
        """Number of questions M."""
        return int(self.by_trial.shape[2])

    @property
    def recorded(self) -> int:
        """Number of recorded trials N."""
        return len(self.by_trial)

    def gold(self) -> GoldStandard:
        """Return the ranking by avg@N over all recorded trials (paper, section 2.7)."""
        return GoldStandard.from_scores(self.totals_by_trial.sum(axis=0), self.tolerance)

    def cells(self, rng: np.random.Generator, replicates: int) -> Iterator[NDArray[np.integer]]:
        """Yield each trial's scores, shape (replicates, L, M)."""
        if self.resampling == "rows":
            yield from self._rows(rng, replicates)
        else:
            yield from self._columns(self.by_trial, rng, replicates)

    def totals(self, rng: np.random.Generator, replicates: int) -> Iterator[NDArray[np.integer]]:
        """Yield each trial's scores summed over questions, shape (replicates, L)."""
        if self.resampling == "rows":
            for scores in self._rows(rng, replicates):
                yield scores.sum(axis=2, dtype=np.int64)
        else:
            yield from self._columns(self.totals_by_trial, rng, replicates)

    def _columns(
        self, by_trial: NDArray[np.integer], rng: np.random.Generator, replicates: int
    ) -> Iterator[NDArray[np.integer]]:
        if self.resampling != "columns-per-model":
            drawn = self._trial_numbers(rng, replicates)
            for step in range(self.trials):
                yield by_trial[drawn[:, step]]
            return
        drawn = rng.integers(0, self.recorded, (replicates, self.trials, self.models))
        for step in range(self.trials):
            yield by_trial[drawn[:, step], np.arange(self.models)]

    def _trial_numbers(self, rng: np.random.Generator, replicates: int) -> NDArray[np.integer]:
        """Return the recorded trial that each trial of a replicate is, shape (replicates, trials)."""
        if self.resampling == "columns":
            return rng.integers(0, self.recorded, (replicates, self.trials))
        recorded = np.broadcast_to(np.arange(self.recorded), (replicates, self.recorded))
        return rng.permuted(recorded, axis=1)[:, : self.trials]

    def _rows(self, rng: np.random.Generator, replicates: int) -> Iterator[NDArray[np.integer]]:
        kind = np.min_scalar_type(self.recorded - 1)
        shape = (replicates, self.models, self.questions)
        if self.binary:
            # The right answers may as well be the first ones: only how many there are matters.
            right = self.by_trial.sum(axis=0, dtype=np.int64).astype(np.min_scalar_type(self.recorded))
            for _ in range(self.trials):
                yield (rng.integers(0, self.recorded, shape, dtype=kind) < right).view(np.uint8)
            return
        flat, cells = self.by_trial.ravel(), np.arange(self.models * self.questions).reshape(shape[1:])
        place = np.empty(shape, dtype=np.intp)
        for _ in range(self.trials):
            np.multiply(
                rng.integers(0, self.recorded, shape, dtype=kind), cells.size, out=place, dtype=np.intp
            )
            place += cells
            yield flat[place]


def replicate_trials(source: Source, index: int, *, seed: Seed) -> NDArray[np.integer]:
    """Return replicate number `index` of a study as a tensor of trial scores, shape (L, M, trials).

    For 0/1 outcomes the scores are the outcomes; weighted ones are on the source's integer grid.

    Any study with the same source data and seed saw this replicate as its `index`-th, whatever its
    metrics, its number of replicates and its executor.

    Raises
    ------
    ValueError
        When `index` is negative.

    Examples
    --------
    >>> source = Bootstrap(np.array([[[0, 1, 1]], [[0, 0, 1]]]))
    >>> replicate_trials(source, 0, seed=3).shape
    (2, 1, 3)
    """
    if index < 0:
        raise ValueError(f"index must not be negative, got {index!r}")
    length = block_length(source.models * source.questions)
    block, row = divmod(index, length)
    rng = block_generator(seed_sequence(seed), block)
    return np.stack([scores[row] for scores in source.cells(rng, length)], axis=2)


def _outcome_tensor(outcomes: ArrayLike) -> NDArray[np.integer]:
    tensor = np.asarray(outcomes)
    if tensor.ndim != 3 or tensor.size == 0:
        raise ValueError(f"outcomes must have shape (models, questions, trials), got {tensor.shape}")
    if tensor.dtype.kind == "b":
        tensor = tensor.astype(np.uint8)
    if tensor.dtype.kind not in "iu":
        whole = np.isfinite(tensor) & (tensor == np.floor(tensor)) if tensor.dtype.kind == "f" else False
        if not np.all(whole):
            raise ValueError(f"outcomes must be whole numbers (categories), got dtype {tensor.dtype}")
        tensor = tensor.astype(np.int64)
    if tensor.min() < 0:
        raise ValueError(
            f"outcomes must not be negative, got {tensor.min()}; a study needs N trials everywhere"
        )
    return tensor


def _trial_scores(
    tensor: NDArray[np.integer], weights: ArrayLike | None, trials: int
) -> tuple[NDArray[np.integer], int]:
    """Return integer scores of every trial, and the tolerance of a model's total."""
    highest = int(tensor.max())
    if weights is None:
        if highest > 1:
            raise ValueError(f"outcomes must be 0 or 1 without weights, got {highest}")
        return tensor.astype(np.uint8), 0
    values = np.array(weights, dtype=np.float64)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise ValueError(f"weights must be a list of finite numbers, got {weights!r}")
    if highest >= len(values):
        raise ValueError(f"outcomes must be below the {len(values)} categories of weights, got {highest}")
    # A weight means the decimal number it is written as: 0.1 + 0.2 ties with 0.3.
    exact = [Fraction(repr(float(value))) for value in values]
    terms = tensor.shape[1] * max(trials, tensor.shape[2])
    grid, tolerance = integer_grid([value - min(exact) for value in exact], terms)
    return grid[tensor], tolerance
