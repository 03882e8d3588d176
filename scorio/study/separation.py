"""Probability of separating two models after N trials (paper, section 2.9, Fig. 3)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scorio.study._comparable import posterior
from scorio.study._seeds import Seed, run_blocks
from scorio.study.coins import Coins


@dataclass(frozen=True, slots=True, eq=False)
class Separation:
    r"""Order and :math:`z` of two models against the number of trials.

    Parameters
    ----------
    trials : int array, shape (G,)
        Trials per question.
    correct : float array, shape (G,)
        Fraction of replicates in which the better model has the higher :math:`\mu`.
    tied : float array, shape (G,)
        Fraction in which both have the same :math:`\mu`; counted neither as right nor as wrong.
    z : float array, shape (G,)
        Mean of :math:`|z| = |\mu - \mu'| / \sqrt{\sigma^2 + \sigma'^2}`.
    replicates : int
        Number of replicates.
    """

    trials: NDArray[np.intp]
    correct: NDArray[np.float64]
    tied: NDArray[np.float64]
    z: NDArray[np.float64]
    replicates: int


def pair_separation(
    coins: Coins,
    trials: Sequence[int],
    *,
    replicates: int = 10_000,
    seed: Seed,
    executor: Executor | None = None,
) -> Separation:
    r"""Return P(correct order) and the mean :math:`|z|` of two models against N, ranked by Bayes@N.

    Parameters
    ----------
    coins : Coins
        Two models with different stated means.
    trials : sequence of int
        Numbers of trials per question, ascending.
    replicates : int
        Independent runs; one run is read at every number of trials.
    seed : int, SeedSequence or Generator
        Of the runs.
    executor : Executor, optional
        Spreads blocks of replicates; the result does not depend on it.

    Returns
    -------
    Separation

    Raises
    ------
    ValueError
        When there are not two models, their means are equal, or `trials` does not ascend from 1 or more.

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski, Chaudhary, "Don't Pass@k", arXiv:2510.04265, section 2.9.

    Examples
    --------
    >>> from scorio.study import biased_coins
    >>> result = pair_separation(biased_coins([0.4, 0.6], seed=1), [1, 40], replicates=200, seed=2)
    >>> bool(result.correct[0] < result.correct[1]), bool(result.z[0] < result.z[1])
    (True, True)
    """
    grid = np.asarray(trials, dtype=np.intp)
    if coins.models != 2 or coins.means[0] == coins.means[1]:
        raise ValueError(f"coins must be two models with different means, got means {coins.means}")
    if grid.ndim != 1 or grid.size == 0 or np.any(np.diff(grid, prepend=0) <= 0):
        raise ValueError(f"trials must be ascending positive numbers, got {trials!r}")
    sums = np.zeros((3, len(grid)))
    for block in run_blocks(partial(_block_sums, coins, grid), coins.p.size, replicates, seed, executor):
        sums += block
    correct, tied, z = sums / replicates
    return Separation(grid, correct, tied, z, replicates)


def _block_sums(
    coins: Coins, grid: NDArray[np.intp], rng: np.random.Generator, length: int, keep: int
) -> NDArray[np.float64]:
    """Return the number of correct orders, of ties, and the sum of |z| at each N, shape (3, G)."""
    sums = np.zeros((3, len(grid)))
    sign = 1 if coins.means[0] > coins.means[1] else -1
    right = np.zeros((length, *coins.p.shape), dtype=np.int64)
    for step, (n, more) in enumerate(zip(grid, np.diff(grid, prepend=0), strict=True)):
        right += rng.binomial(more, coins.p, size=right.shape)
        total = right[:keep].sum(axis=2)
        mu, sigma = posterior(right[:keep], int(n))
        fall = sign * (total[:, 0] - total[:, 1])
        z = np.abs(mu[:, 0] - mu[:, 1]) / np.hypot(sigma[:, 0], sigma[:, 1])
        sums[:, step] = np.sum(fall > 0), np.sum(fall == 0), z.sum()
    return sums
