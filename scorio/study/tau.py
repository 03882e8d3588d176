"""The speed at which a metric's ranking approaches the gold standard: Kendall's tau against N.

Paper, sections 2.7 and 3.1; Figs. 1 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.rank._kendall import tau_b_of_signs
from scorio.study.keys import pair_signs
from scorio.study.metrics import Metric
from scorio.study.replicates import Seed, run_blocks
from scorio.study.sources import Source, check_metrics, gold_ranks, keys_by_trial


@dataclass(frozen=True, slots=True, eq=False)
class TauCurves:
    """Mean Kendall's tau against the gold standard after n = 1..N trials.

    Parameters
    ----------
    metrics : tuple of Metric
        The K metrics, in the order of the rows below.
    trials : int array, shape (N,)
        1..N.
    tau : float array, shape (K, N)
        NaN below the metric's first number of trials. A ranking that ties all models counts as 0.
    standard_error : float array, shape (K, N)
        Monte-Carlo standard error of `tau`.
    constant : float array, shape (K, N)
        Fraction of replicates whose ranking ties all models; NaN below the first number of trials.
    replicates : int
        Number of replicates.
    """

    metrics: tuple[Metric, ...]
    trials: NDArray[np.intp]
    tau: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    constant: NDArray[np.float64]
    replicates: int


def tau_curves(
    source: Source,
    metrics: Sequence[Metric],
    *,
    replicates: int,
    seed: Seed,
    gold: ArrayLike | None = None,
    executor: Executor | None = None,
) -> TauCurves:
    r"""Return the mean Kendall's :math:`\tau_b` of every metric's ranking against the gold standard.

    Each replicate adds trial after trial, so the curve at n averages rankings of n trials; a curve
    point has the same distribution as with fresh replicates at every n, and the curves are smoother.

    Parameters
    ----------
    source : IndependentRuns or Bootstrap
        Fig. 1 a takes independent runs of the coins, b and c the column-wise and row-wise bootstrap of
        one outcome tensor.
    metrics : sequence of Metric
        What to rank by.
    replicates : int
        Number of replicates (the paper: 1,000 independent runs, 10,000 bootstrap replicates).
    seed : int, SeedSequence or Generator
        The replicates depend on this and the source alone.
    gold : array_like of int, shape (L,), optional
        Ranks to compare with. Default: the source's own (the coins' true means; avg@N of the recorded
        trials).
    executor : Executor, optional
        Spreads blocks of replicates; the result does not depend on it.

    Returns
    -------
    TauCurves

    Raises
    ------
    ValueError
        When a metric needs more trials than a replicate has, or `gold` ranks other models.

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski, Chaudhary, "Don't Pass@k", arXiv:2510.04265, sections 2.7, 3.1.

    Examples
    --------
    >>> from scorio.study import IndependentRuns, Metric, biased_coins
    >>> coins = biased_coins([0.2, 0.5, 0.8], questions=10, seed=1)
    >>> curves = tau_curves(IndependentRuns(coins, 8), [Metric("avg")], replicates=50, seed=2)
    >>> bool(curves.tau[0, 7] > 0.95)
    True
    """
    check_metrics(source, metrics)
    work = partial(_block_sums, source, tuple(metrics), pair_signs(-gold_ranks(source, gold)))
    sums = np.zeros((3, len(metrics), source.trials))
    for block in run_blocks(work, source.models * source.questions, replicates, seed, executor, least=2):
        sums += block
    for row, metric in enumerate(metrics):
        sums[:, row, : metric.first - 1] = np.nan
    mean, error = mean_and_error(sums, replicates)
    return TauCurves(
        metrics=tuple(metrics),
        trials=np.arange(1, source.trials + 1),
        tau=mean,
        standard_error=error,
        constant=sums[2] / replicates,
        replicates=replicates,
    )


def _block_sums(
    source: Source,
    metrics: tuple[Metric, ...],
    gold: NDArray[np.int8],
    rng: np.random.Generator,
    length: int,
    keep: int,
) -> NDArray[np.float64]:
    """Return the sum and sum of squares of tau and the number of constant rankings, shape (3, K, N)."""
    sums = np.zeros((3, len(metrics), source.trials))
    for n, keys in keys_by_trial(source, metrics, rng, length):
        for row, entry in enumerate(keys):
            if entry is not None:
                signs = pair_signs(entry[0][:keep], entry[1])
                tau = tau_b_of_signs(signs, gold)
                sums[:, row, n - 1] = tau.sum(), (tau**2).sum(), np.sum(~signs.any(axis=1))
    return sums


def mean_and_error(sums: NDArray[np.float64], number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return means and standard errors from the sum, ``sums[0]``, and that of squares of `number` values."""
    mean = sums[0] / number
    variance = np.maximum(sums[1] / number - mean**2, 0) * number / (number - 1)
    return mean, np.sqrt(variance / number)
