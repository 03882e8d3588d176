"""Growth of convergence@n with the number of models (paper, section 3.3, Fig. 6, Tables 8 to 10)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from math import comb

import numpy as np
from numpy.typing import NDArray

from scorio.study._comparable import pair_signs
from scorio.study._keys import check_confirm, check_metrics, keys_by_trial, standard_of
from scorio.study._seeds import Seed, block_generator, run_blocks, seed_sequence
from scorio.study.gold import GoldStandard
from scorio.study.metrics import Metric
from scorio.study.settling import NEVER, settled_at
from scorio.study.sources import Source


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """Distributions of convergence@n for subsets of one pool of models.

    Parameters
    ----------
    metric : Metric
        What ranked the models.
    subsets : tuple of tuple of int
        The S subsets.
    trials : int
        Trials N of a replicate.
    pmf : float array, shape (S, N)
        P(convergence@n = n), n = 1..N; a row sums to 1 minus `never`.
    never : float array, shape (S,)
        Fraction of replicates that never converge.
    """

    metric: Metric
    subsets: tuple[tuple[int, ...], ...]
    trials: int
    pmf: NDArray[np.float64]
    never: NDArray[np.float64]

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of models of each subset, shape (S,)."""
        return np.array([len(subset) for subset in self.subsets], dtype=np.intp)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean convergence@n over the replicates that converge, shape (S,); NaN where none does."""
        mean = np.full(len(self.subsets), np.nan)
        converged = 1 - self.never
        np.divide(self.pmf @ np.arange(1, self.trials + 1), converged, out=mean, where=converged > 0)
        return mean

    @property
    def mean_at_least(self) -> NDArray[np.float64]:
        """Mean with every replicate that never converges counted as N: a lower bound, shape (S,)."""
        bound: NDArray[np.float64] = self.pmf @ np.arange(1, self.trials + 1) + self.never * self.trials
        return bound


def model_subsets(models: int, size: int, number: int, *, seed: Seed) -> list[tuple[int, ...]]:
    """Draw `number` different subsets of `size` out of `models` models, each in ascending order.

    Raises
    ------
    ValueError
        When there are not that many.

    Examples
    --------
    >>> model_subsets(4, 4, 1, seed=1)
    [(0, 1, 2, 3)]
    >>> len(set(model_subsets(20, 5, 50, seed=1)))
    50
    """
    if not 2 <= size <= models:
        raise ValueError(f"size must lie in [2, {models}], got {size!r}")
    if not 1 <= number <= comb(models, size):
        raise ValueError(f"number must lie in [1, {comb(models, size)}], got {number!r}")
    rng = block_generator(seed_sequence(seed), 0)
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < number:
        subset = np.sort(rng.choice(models, size, replace=False))
        drawn[tuple(int(model) for model in subset)] = None
    return list(drawn)


def convergence_growth(
    source: Source,
    subsets: Sequence[Sequence[int]],
    metric: Metric,
    *,
    replicates: int = 100_000,
    seed: Seed,
    gold: GoldStandard | None = None,
    confirm: int = 1,
    executor: Executor | None = None,
) -> Growth:
    """Return the distribution of convergence@n for every subset of the models.

    The ranking of a subset settles when the last of its neighbouring pairs in the gold standard does, so
    one pass records when every pair of the pool settles, and a subset costs a maximum over its pairs.
    All subsets see the same replicates.

    Parameters
    ----------
    source : Source
        Replicates of the whole pool.
    subsets : sequence of sequences of int
        Model numbers; each subset has at least two.
    metric, replicates, seed, gold, confirm, executor
        As for :func:`scorio.study.convergence`, whose result this reproduces for each subset with
        ``gold.subset(...)`` and the same replicates.

    Returns
    -------
    Growth

    Raises
    ------
    ValueError
        On a subset that repeats a model, names one that does not exist, or is too small.

    Examples
    --------
    >>> from scorio.study import Bootstrap, biased_coins
    >>> source = Bootstrap(biased_coins([0.2, 0.4, 0.5, 0.8], seed=1).sample(40, seed=2))
    >>> growth = convergence_growth(source, [(0, 3), (0, 1, 2, 3)], Metric("avg"), replicates=200, seed=3)
    >>> growth.sizes, bool(growth.mean_at_least[0] < growth.mean_at_least[1])
    (array([2, 4]), True)
    """
    check_metrics(source, [metric])
    check_confirm(source, confirm)
    chosen = tuple(_checked_subset(subset, source.models) for subset in subsets)
    standard = standard_of(source, gold)
    counts = np.zeros((len(chosen), source.trials + 1), dtype=np.int64)
    work = partial(
        _block_counts, source, metric, standard, [_neighbours(s, standard) for s in chosen], confirm
    )
    for block in run_blocks(work, source.models * source.questions, replicates, seed, executor):
        counts += block
    return Growth(metric, chosen, source.trials, counts[:, 1:] / replicates, counts[:, 0] / replicates)


def _checked_subset(subset: Sequence[int], models: int) -> tuple[int, ...]:
    chosen = tuple(int(model) for model in subset)
    if len(chosen) < 2 or len(set(chosen)) < len(chosen) or not all(0 <= m < models for m in chosen):
        raise ValueError(
            f"subsets must hold at least two different models from 0 to {models - 1}, got {chosen}"
        )
    return chosen


def _neighbours(subset: tuple[int, ...], gold: GoldStandard) -> NDArray[np.intp]:
    """Return the pair numbers (of the models in gold order) of the subset's neighbours in `gold`."""
    place = np.empty(len(gold.order), dtype=np.intp)
    place[gold.order] = np.arange(len(gold.order))
    places = np.sort(place[list(subset)])
    number = np.zeros((len(place), len(place)), dtype=np.intp)
    first, second = np.triu_indices(len(place), 1)
    number[first, second] = np.arange(len(first))
    return number[places[:-1], places[1:]]


def _block_counts(
    source: Source,
    metric: Metric,
    gold: GoldStandard,
    neighbours: list[NDArray[np.intp]],
    confirm: int,
    rng: np.random.Generator,
    length: int,
    keep: int,
) -> NDArray[np.int64]:
    """Count convergence@n per subset, shape (S, N + 1); column 0 counts the replicates that never do."""
    expected = pair_signs(-gold.dense_ranks()[gold.order])
    last = np.full(
        (length, len(expected)), metric.first - 1, dtype=np.int16 if source.trials < 2**15 else int
    )
    for n, keys in keys_by_trial(source, [metric], rng, length):
        if keys[0] is not None:
            values, tolerance = keys[0]
            last[pair_signs(values[:, gold.order], tolerance) != expected] = n
    counts = np.zeros((len(neighbours), source.trials + 1), dtype=np.int64)
    for row, pairs in zip(counts, neighbours, strict=True):
        settled = settled_at(last[:keep, pairs].max(axis=1), source.trials, confirm)
        row += np.bincount(np.where(settled == NEVER, 0, settled), minlength=len(row))
    return counts
