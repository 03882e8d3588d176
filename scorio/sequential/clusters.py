"""Clusters of questions: their spread, and bets on them.

Questions of a cluster, such as those about one text, depend on each other; clusters are a sample. Let s_g be
the sum of a cluster's differences over the size of the largest cluster. If the models are equally good, s_g
in [-1, 1] has mean 0, and the product of 1 + λ s_g over clusters has expectation 1 for every λ in (-1, 1),
whatever the sizes and however rare large differences are. So an average over λ is an e-value at every step,
with no variance to be estimated ([1]_). That it holds at all steps together was checked by simulation: the
questions of all clusters come mixed.

References
----------
.. [1] Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 86 (2024).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.arrays import Bools, Floats, Integers
from scorio.sequential.cells import Cells
from scorio.sequential.evidence import log_mean
from scorio.sequential.trial_bets import MOST

ON_CLUSTERS = 0.9
"""Share of the stake of a pair that is bet on clusters of questions."""
_RATES = MOST * np.sin(np.pi * (np.arange(16) + 0.5) / 32.0) ** 2
RATES = np.concatenate([_RATES, -_RATES])
"""λ of the bets, in equal parts: dense near 0 for many clusters, and near 1 for few."""


class Spread(NamedTuple):
    """Of values in clusters, after each step: Σ_g (Σ_{q∈g} d_q)², the squared size of a cluster, bets."""

    square: Floats
    size: Floats
    bets: Floats | None = None  # log winnings


class ClusterSums:
    """Sums of differences within clusters of questions, per pair.

    Parameters
    ----------
    clusters : ndarray, shape (M,)
        Cluster of each question.
    questions : int
        M.
    pairs : int
        Number of pairs.
    centred : bool
        Whether the mean over all questions is taken from each value first: of scores, not of differences. No
        bets are placed on scores.

    Raises
    ------
    ValueError
        If `clusters` does not have one entry a question.
    """

    def __init__(self, clusters: NDArray[np.generic], questions: int, pairs: int, *, centred: bool) -> None:
        if clusters.shape != (questions,):
            raise ValueError(f"clusters must have one entry a question ({questions}), got {clusters.shape}")
        _, self._cluster, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
        self._largest = sizes.max()
        self._sums = np.zeros((pairs, sizes.size))
        self._sizes = np.zeros((pairs, sizes.size))
        self._won = np.zeros((pairs, RATES.size))
        self._centred = centred

    def add(self, pairs: Integers, questions: Integers, change: Floats, gained: Bools) -> Spread:
        """Add changes of values at steps that ask these questions; `gained` marks the first of a question."""
        square = np.empty_like(change)
        size = np.empty_like(change)
        bets = np.zeros_like(change)
        for column, question in enumerate(questions.tolist()):
            cluster = self._cluster[question]
            before = self._sums[pairs, cluster]
            self._sums[pairs, cluster] = after = before + change[:, column]
            self._sizes[pairs, cluster] += gained[:, column]
            square[:, column], size[:, column] = self._spread(self._sums[pairs], self._sizes[pairs])
            if not self._centred:
                old, new = (RATES * (value / self._largest)[:, None] for value in (before, after))
                self._won[pairs] += np.log1p(new) - np.log1p(old)
                bets[:, column] = log_mean(self._won[pairs])
        if self._centred:
            return Spread(square, size)
        return Spread(square, size, bets)

    def spread_of(self, values: Floats, known: Bools) -> Spread:
        """Return the spread of the values of all questions, (pairs, M), of which the `known` count."""
        inside = (np.arange(self._sums.shape[1])[:, None] == self._cluster).T
        sums = values @ inside
        square, size = self._spread(sums, known.astype(np.float64) @ inside)
        if self._centred:
            return Spread(square[:, None], size[:, None])
        won = np.log1p(RATES * (sums / self._largest)[:, :, None]).sum(axis=1)
        return Spread(square[:, None], size[:, None], log_mean(won)[:, None])

    def _spread(self, sums: Floats, sizes: Floats) -> tuple[Floats, Floats]:
        if self._centred:
            mean = sums.sum(axis=1) / np.maximum(sizes.sum(axis=1), 1.0)
            sums = sums - mean[:, None] * sizes
        # Σn²/Σn is what a cluster counts for: with κ of them, κ/G² is added to V, G = (Σn)²/Σn² clusters.
        # Without any question it counts for one, or nothing would be known surely.
        size = np.maximum((sizes**2).sum(axis=1) / np.maximum(sizes.sum(axis=1), 1.0), 1.0)
        return (sums**2).sum(axis=1), size**2


def cluster_spread(cells: Cells, clusters: ArrayLike | None) -> Spread | None:
    """Return the spread of all models' present scores over clusters, for ``score_block``."""
    if clusters is None:
        return None
    number, total, _ = cells.scale.sums(cells.counts)
    means = total / np.maximum(number, 1)
    sums = ClusterSums(np.asarray(clusters), number.shape[1], len(number), centred=True)
    return sums.spread_of(means, number > 0)
