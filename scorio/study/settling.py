"""convergence@n: the number of trials after which a ranking stays in agreement with the gold standard.

Paper, sections 3.3 and F.1; Figs. 5 and 9.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.study._keys import Keys, check_confirm, check_metrics, keys_by_trial, standard_of
from scorio.study._seeds import Seed, run_blocks, seed_sequence
from scorio.study.gold import GoldStandard, competition_ranks
from scorio.study.metrics import Metric
from scorio.study.sources import Bootstrap, Source, replicate_trials


@dataclass(frozen=True, slots=True, eq=False)
class RankTrajectory:
    """Competition ranks of L models after each number of trials.

    Parameters
    ----------
    metric : Metric
        What ranked them.
    trials : int array, shape (S,)
        Numbers of trials, from the metric's first to N.
    ranks : int array, shape (S, L)
        1 is best; tied models share the best rank of their group.
    """

    metric: Metric
    trials: NDArray[np.intp]
    ranks: NDArray[np.int64]

    def convergence(self, gold: GoldStandard, *, confirm: int = 1) -> int | None:
        """Return convergence@n of this one run, or None when it never settles on `gold`.

        See :func:`scorio.study.convergence` for the definition and `confirm`.
        """
        differs = np.any(self.ranks != gold.competition_ranks(), axis=1)
        if differs[-1]:
            return None
        settled = int(self.trials[np.flatnonzero(differs)[-1] + 1] if differs.any() else self.trials[0])
        return settled if settled <= self.trials[-1] - confirm else None


def rank_trajectory(
    outcomes: ArrayLike, metric: Metric, *, weights: ArrayLike | None = None
) -> RankTrajectory:
    """Return the ranks after the first n trials of a recorded tensor, for every n.

    Parameters
    ----------
    outcomes : array_like of int, shape (L, M, N)
        Categories of the trials in the order they were made.
    metric : Metric
        What to rank by.
    weights : array_like, optional
        Score of each category, for ``avg``.

    Returns
    -------
    RankTrajectory

    Raises
    ------
    ValueError
        As :class:`Bootstrap` and where the metric needs more trials than there are.

    Examples
    --------
    >>> outcomes = np.array([[[1, 0, 1, 1]], [[1, 1, 0, 0]]])
    >>> rank_trajectory(outcomes, Metric("avg")).ranks
    array([[1, 1],
           [2, 1],
           [1, 1],
           [1, 2]])
    """
    source = Bootstrap(outcomes, weights=weights)
    check_metrics(source, [metric])
    return trajectory_of_scores(source.scores, metric, source.tolerance)


def trajectory_of_scores(scores: NDArray[np.integer], metric: Metric, tolerance: int) -> RankTrajectory:
    """Return the ranks along the trials' integer scores, shape (L, M, N), as a source holds them."""
    questions, trials = scores.shape[1:]
    sums = np.cumsum(scores, axis=2, dtype=np.int64)
    if metric.linear:
        ranks = competition_ranks(sums.sum(axis=1).T, tolerance)
    else:
        ranks = np.stack(
            [
                competition_ranks(metric.keys(sums[:, :, n - 1], n), metric.tolerance(n, questions))
                for n in range(metric.first, trials + 1)
            ]
        )
    return RankTrajectory(metric, np.arange(metric.first, trials + 1), ranks)


def recorded_gold(
    outcomes: ArrayLike, metric: Metric | None = None, *, weights: ArrayLike | None = None
) -> GoldStandard:
    """Return the ranking of all N recorded trials by `metric`.

    The paper takes avg@N (the default here) as the gold standard of every metric; with the metric itself
    one asks when that metric agrees with its own final word.

    Examples
    --------
    >>> recorded_gold([[[1, 0, 1, 1]], [[1, 1, 0, 0]]]).order
    array([0, 1])
    """
    trajectory = rank_trajectory(outcomes, metric or Metric("avg"), weights=weights)
    return GoldStandard.from_scores(-trajectory.ranks[-1])


NEVER = -1
"""The convergence@n of a replicate whose ranking never settles on the gold standard."""


@dataclass(frozen=True, slots=True, eq=False)
class Convergence:
    """The distribution of convergence@n over replicates.

    Parameters
    ----------
    metric : Metric
        What ranked the models.
    gold : GoldStandard
        The ranking to be reached. When it has ties, a replicate must show the same ties: rare, and the
        usual reason why Pass@k of strong models never converges.
    trials : int
        Trials N of a replicate.
    at : int array, shape (B,)
        convergence@n of each replicate; :data:`NEVER` where there is none.
    seed : SeedSequence
        Root of the replicates, for :func:`worst_trajectory`.
    """

    metric: Metric
    gold: GoldStandard
    trials: int
    at: NDArray[np.int32]
    seed: np.random.SeedSequence

    @property
    def converged(self) -> NDArray[np.bool_]:
        """The replicates that converge, shape (B,)."""
        converged: NDArray[np.bool_] = self.at != NEVER
        return converged

    @property
    def never(self) -> float:
        """Fraction of replicates that never converge."""
        return float(np.mean(~self.converged))

    @property
    def mean(self) -> float:
        """Mean of convergence@n over the replicates that converge; NaN when none does."""
        return float(self.at[self.converged].mean()) if self.converged.any() else float("nan")

    @property
    def mean_at_least(self) -> float:
        """Mean with every replicate that never converges counted as N: a lower bound of the true mean.

        The paper's Tables 8 to 10 hold means up to 79.9 of N = 80, which this way of counting explains.
        """
        return float(np.where(self.converged, self.at, self.trials).mean())

    @property
    def worst(self) -> int:
        """Number of the worst replicate: the first that never converges, else the first of the latest."""
        return int(np.argmax(np.where(self.converged, self.at, self.trials + 1)))

    def pmf(self) -> NDArray[np.float64]:
        """Return P(convergence@n = n) for n = 1..N, shape (N,); it sums to 1 minus :attr:`never`."""
        counts = np.bincount(self.at[self.converged], minlength=self.trials + 1)
        return counts[1:] / len(self.at)

    def cdf(self) -> NDArray[np.float64]:
        """Return P(convergence@n <= n) for n = 1..N, shape (N,); it ends at 1 minus :attr:`never`."""
        return np.cumsum(self.pmf())

    def quantile(self, q: float) -> float:
        """Return the smallest n with P(convergence@n <= n) >= q; infinite when it is not reached."""
        if not 0 < q <= 1:
            raise ValueError(f"q must lie in (0, 1], got {q!r}")
        settled = np.sort(np.where(self.converged, self.at, self.trials + 1))
        value = settled[int(np.ceil(q * len(settled))) - 1]
        return float(value) if value <= self.trials else float("inf")


def convergence(
    source: Source,
    metric: Metric,
    *,
    replicates: int = 100_000,
    seed: Seed,
    gold: GoldStandard | None = None,
    confirm: int = 1,
    executor: Executor | None = None,
) -> Convergence:
    r"""Return the distribution of convergence@n of a metric's ranking.

    .. math:: s^\star = \min\{s \le N - 1 : \text{the ranking after } s, s + 1, \ldots, N
        \text{ trials is the gold standard}\}

    The ranking must match exactly, ties included. A replicate without such an s never converges.

    Parameters
    ----------
    source : Bootstrap or IndependentRuns
        The paper's figures take ``Bootstrap(outcomes)``: N columns drawn with replacement.
    metric : Metric
        What to rank by.
    replicates : int
        Number of replicates B.
    seed : int, SeedSequence or Generator
        The replicates depend on this and the source alone, so metrics run with one int see the same ones.
    gold : GoldStandard, optional
        Default: the source's own: avg@N over all recorded trials, not resampled (or the coins' means).
        :func:`scorio.study.recorded_gold` makes others.
    confirm : int
        Trials that must follow with the same ranking. 1 is the paper's ``s <= N - 1``; 0 also counts a
        ranking that matches at the last trial only, which nothing has confirmed.
    executor : Executor, optional
        Spreads blocks of replicates; the result does not depend on it.

    Returns
    -------
    Convergence

    Raises
    ------
    ValueError
        When the metric needs more trials than a replicate has, or an argument is out of range.

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski, Chaudhary, "Don't Pass@k", arXiv:2510.04265, sections 3.3, F.1.

    Examples
    --------
    >>> from scorio.study import Bootstrap, biased_coins
    >>> outcomes = biased_coins([0.3, 0.5, 0.8], seed=1).sample(40, seed=2)
    >>> result = convergence(Bootstrap(outcomes), Metric("avg"), replicates=500, seed=3)
    >>> result.never, result.quantile(0.5) < 10
    (0.0, True)
    """
    check_metrics(source, [metric])
    check_confirm(source, confirm)
    standard = standard_of(source, gold)
    root = seed_sequence(seed)
    work = partial(_last_mismatch, source, metric, standard)
    blocks = run_blocks(work, source.models * source.questions, replicates, root, executor)
    last = np.concatenate(list(blocks))
    return Convergence(metric, standard, source.trials, settled_at(last, source.trials, confirm), root)


def worst_trajectory(source: Source, result: Convergence) -> RankTrajectory:
    """Return the ranks along the worst replicate of a convergence study (paper, Fig. 5).

    Parameters
    ----------
    source : Source
        What `result` was computed from.
    result : Convergence
        See :attr:`Convergence.worst`.

    Examples
    --------
    >>> from scorio.study import Bootstrap, biased_coins
    >>> source = Bootstrap(biased_coins([0.3, 0.5, 0.8], seed=1).sample(40, seed=2))
    >>> result = convergence(source, Metric("avg"), replicates=500, seed=3)
    >>> worst_trajectory(source, result).convergence(result.gold) == result.at.max()
    np.True_
    """
    scores = replicate_trials(source, result.worst, seed=result.seed)
    return trajectory_of_scores(scores, result.metric, source.tolerance)


def settled_at(last_mismatch: NDArray[np.integer], trials: int, confirm: int) -> NDArray[np.int32]:
    """Return convergence@n from the last n at which the ranking differed (``first - 1`` when none did)."""
    settled = last_mismatch.astype(np.int32) + 1
    settled[settled > trials - confirm] = NEVER
    return settled


def _last_mismatch(
    source: Source, metric: Metric, gold: GoldStandard, rng: np.random.Generator, length: int, keep: int
) -> NDArray[np.int32]:
    """Return the last n at which a replicate's ranking is not the gold standard, shape (keep,)."""
    last = np.full(length, metric.first - 1, dtype=np.int32)
    for n, keys in keys_by_trial(source, [metric], rng, length):
        if keys[0] is not None:
            last[_differs(*keys[0], gold)] = n
    return last[:keep]


def _differs(keys: Keys, tolerance: int, gold: GoldStandard) -> NDArray[np.bool_]:
    """Return which rankings are not `gold`: L - 1 comparisons of neighbours, without sorting."""
    ordered = keys[:, gold.order]
    fall = ordered[:, :-1] - ordered[:, 1:]
    wrong = (fall > tolerance) == gold.tied
    if gold.has_ties:
        wrong |= gold.tied & (fall < -tolerance)
    differs: NDArray[np.bool_] = wrong.any(axis=1)
    return differs
