"""Rankings with credible intervals, and how often each comes up (paper, section 2.9, Table 1)."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.rank._ties import rank_groups
from scorio.study._comparable import posterior
from scorio.study._seeds import Seed, run_blocks
from scorio.study.coins import Coins


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

    ranks: NDArray[np.int64]
    frequency: NDArray[np.float64]
    replicates: int

    def frequency_of(self, ranks: ArrayLike) -> float:
        """Return the fraction of runs with exactly these dense ranks; 0 when they never came up."""
        same = np.all(self.ranks == np.asarray(ranks), axis=1)
        return float(self.frequency[same].sum())


def credible_ranks(mu: ArrayLike, sigma: ArrayLike, threshold: float = 1.645) -> NDArray[np.int64]:
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
    means, spreads = np.asarray(mu, dtype=np.float64), np.asarray(sigma, dtype=np.float64)
    order = np.argsort(-means, axis=-1, kind="stable")
    means, spreads = np.take_along_axis(means, order, -1), np.take_along_axis(spreads, order, -1)
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
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials!r}")
    if not threshold >= 0:
        raise ValueError(f"threshold must be at least 0, got {threshold!r}")
    counts: Counter[tuple[int, ...]] = Counter()
    for block in run_blocks(
        partial(_block_patterns, coins, trials, threshold), coins.p.size, replicates, seed, executor
    ):
        counts.update(block)
    by_frequency = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return RankPatterns(
        ranks=np.array([ranks for ranks, _ in by_frequency], dtype=np.int64),
        frequency=np.array([count for _, count in by_frequency]) / replicates,
        replicates=replicates,
    )


def _block_patterns(
    coins: Coins, trials: int, threshold: float, rng: np.random.Generator, length: int, keep: int
) -> Counter[tuple[int, ...]]:
    right = rng.binomial(trials, coins.p, size=(length, *coins.p.shape))[:keep]
    ranks = credible_ranks(*posterior(right, trials), threshold)
    return Counter(map(tuple, ranks.tolist()))
