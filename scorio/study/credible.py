"""Runs of coins ranked by Bayes@N: the order of two models, and rankings with credible intervals.

Paper, section 2.9; Fig. 3 and Table 1.
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._arguments import whole
from scorio.arrays import Floats, Integers, Ints, floats
from scorio.rank._ties import rank_groups
from scorio.study.replicates import ReplicateBlock, Seed, run_blocks
from scorio.study.sources import Coins


def posterior(correct: Integers, n: int) -> tuple[Floats, Floats]:
    r"""Return :math:`\mu` and :math:`\sigma` of Bayes@N with the uniform prior.

    For 0/1 outcomes the paper's Eq. 15 is a mean of Beta(1 + c, 1 + n - c) posteriors.

    Parameters
    ----------
    correct : int array, shape (..., M)
        Right answers of each question among `n` trials.
    n : int
        Trials per question.

    Returns
    -------
    mu, sigma : float arrays, shape (...)
    """
    total = n + 2
    questions = correct.shape[-1]
    mu = (correct.sum(axis=-1, dtype=np.int64) + questions) / (questions * total)
    products = ((correct + 1) * (n + 1 - correct)).sum(axis=-1, dtype=np.int64)
    return mu, np.sqrt(products / (total + 1)) / (questions * total)


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
    correct: Floats
    tied: Floats
    z: Floats
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
    for block in run_blocks(partial(_block_orders, coins, grid), coins.p.size, replicates, seed, executor):
        sums += block
    correct, tied, z = sums / replicates
    return Separation(grid, correct, tied, z, replicates)


def _block_orders(coins: Coins, grid: NDArray[np.intp], block: ReplicateBlock) -> Floats:
    """Return the number of correct orders, of ties, and the sum of |z| at each N, shape (3, G)."""
    sums = np.zeros((3, len(grid)))
    if coins.means[0] > coins.means[1]:
        sign = 1
    else:
        sign = -1
    right = np.zeros((block.length, *coins.p.shape), dtype=np.int64)
    for step, (n, more) in enumerate(zip(grid, np.diff(grid, prepend=0), strict=True)):
        right += block.rng.binomial(more, coins.p, size=right.shape)
        kept = right[: block.keep]
        total = kept.sum(axis=2)
        mu, sigma = posterior(kept, int(n))
        fall = sign * (total[:, 0] - total[:, 1])
        z = np.abs(mu[:, 0] - mu[:, 1]) / np.hypot(sigma[:, 0], sigma[:, 1])
        sums[:, step] = np.sum(fall > 0), np.sum(fall == 0), z.sum()
    return sums


@dataclass(frozen=True, slots=True, eq=False)
class RankPatterns:
    """The rankings that came up in repeated runs, the most frequent first.

    Parameters
    ----------
    ranks : int array, shape (K, L)
        One ranking a row, as dense ranks of model 1..L.
    frequency : float array, shape (K,)
        Fraction of the runs with that ranking; sums to 1.
    replicates : int
        Number of runs.
    """

    ranks: Ints
    frequency: Floats
    replicates: int

    def frequency_of(self, ranks: ArrayLike) -> float:
        """Return the fraction of runs with exactly these dense ranks; 0 when they never came up."""
        same = np.all(self.ranks == np.asarray(ranks), axis=1)
        return float(self.frequency[same].sum())


def credible_ranks(mu: ArrayLike, sigma: ArrayLike, threshold: float = 1.645) -> Ints:
    r"""Return the paper's ranking with credible intervals, along the last axis.

    Models are sorted by :math:`\mu`; consecutive ones share a rank while
    :math:`z = |\mu - \mu'|/\sqrt{\sigma^2 + \sigma'^2}` is below `threshold`, and ranks are dense. The
    rule chains: the ends of a group may be far apart.

    Parameters
    ----------
    mu, sigma : array_like, shape (..., L)
        Posterior means and standard deviations.
    threshold : float
        Of z. With 0, only equal means share a rank: the ranking without credible intervals.

    Returns
    -------
    int array, shape (..., L)

    Examples
    --------
    >>> credible_ranks([0.9, 0.5, 0.52], [0.05, 0.02, 0.02])
    array([1, 2, 2])
    """
    means = floats(mu)
    spreads = floats(sigma)
    order = np.argsort(-means, axis=-1, kind="stable")
    means = np.take_along_axis(means, order, -1)
    spreads = np.take_along_axis(spreads, order, -1)
    fall = means[..., :-1] - means[..., 1:]
    # fall >= threshold * spread rather than a quotient: two certain models have spread 0.
    apart = (fall >= threshold * np.hypot(spreads[..., :-1], spreads[..., 1:])) & (fall > 0)
    return rank_groups(order, apart, "dense").astype(np.int64, copy=False)


def credible_patterns(
    coins: Coins,
    trials: int = 80,
    *,
    threshold: float = 1.645,
    replicates: int = 10_000,
    seed: Seed,
    executor: Executor | None = None,
) -> RankPatterns:
    """Return how often each ranking with credible intervals comes up in runs of `trials` trials.

    Table 1 of the paper shows one such run; this says how typical it is.

    Parameters
    ----------
    coins : Coins
        The models.
    trials : int
        Trials per question.
    threshold : float
        Of z; 0 gives rankings without credible intervals.
    replicates : int
        Number of runs.
    seed : int, SeedSequence or Generator
        Of the runs.
    executor : Executor, optional
        Spreads blocks of replicates; the result does not depend on it.

    Returns
    -------
    RankPatterns

    Raises
    ------
    ValueError
        On an argument out of range.

    Examples
    --------
    >>> from scorio.study import biased_coins
    >>> patterns = credible_patterns(biased_coins([0.2, 0.8], seed=1), 20, replicates=100, seed=2)
    >>> patterns.ranks, patterns.frequency
    (array([[2, 1]]), array([1.]))
    """
    whole("trials", trials)
    if not threshold >= 0:
        raise ValueError(f"threshold must be at least 0, got {threshold!r}")
    counts: Counter[tuple[int, ...]] = Counter()
    work = partial(_block_patterns, coins, trials, threshold)
    for found in run_blocks(work, coins.p.size, replicates, seed, executor):
        counts.update(found)
    patterns = sorted(counts, key=lambda ranks: (-counts[ranks], ranks))
    frequency = np.array([counts[ranks] for ranks in patterns]) / replicates
    return RankPatterns(np.array(patterns, dtype=np.int64), frequency, replicates)


def _block_patterns(
    coins: Coins, trials: int, threshold: float, block: ReplicateBlock
) -> Counter[tuple[int, ...]]:
    right = block.rng.binomial(trials, coins.p, size=(block.length, *coins.p.shape))
    ranks = credible_ranks(*posterior(right[: block.keep], trials), threshold)
    return Counter(map(tuple, ranks.tolist()))
