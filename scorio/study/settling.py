"""convergence@n: the number of trials after which a ranking stays in agreement with the gold standard.

Paper, sections 3.3 and F.1; Figs. 5, 6 and 9.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.arrays import Bools, Floats, Integers, Ints
from scorio.study.metrics import Metric, competition_ranks
from scorio.study.replicates import ReplicateBlock, Seed, block_generator, run_blocks, seed_sequence
from scorio.study.sources import Bootstrap, Source, check_metrics, gold_ranks, keys_by_trial, replicate_trials

NEVER = -1
"""The convergence@n of a replicate whose ranking never settles on the gold standard."""

Subset = tuple[int, ...]


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
    ranks: Ints

    def convergence(self, gold: ArrayLike, *, confirm: int = 1) -> int | None:
        """Return convergence@n of this one run, or None when it never settles on the ranks `gold`.

        See :func:`scorio.study.convergence` for the definition and `confirm`.
        """
        differs = np.any(self.ranks != competition_ranks(-np.asarray(gold)), axis=1)
        if not differs.any():
            last = self.trials[0] - 1
        else:
            last = self.trials[differs][-1]
        settled = int(_settled(np.array([last]), int(self.trials[-1]), confirm)[0])
        if settled == NEVER:
            return None
        return settled


def rank_trajectory(
    outcomes: ArrayLike, metric: Metric, *, weights: ArrayLike | None = None
) -> RankTrajectory:
    """Return the ranks after the first n trials of a recorded tensor, for every n.

    The last ones are the ranking by all trials, a gold standard for :func:`scorio.study.convergence`.

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
        As :class:`Bootstrap`, and if the metric needs more trials than there are.

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
    return _trajectory(source.by_trial.transpose(1, 2, 0), metric, source.tolerance)


def _trajectory(scores: Integers, metric: Metric, tolerance: int) -> RankTrajectory:
    """Return the ranks along the trials' integer scores, shape (L, M, N), as a source holds them."""
    questions, trials = scores.shape[1:]
    sums = np.cumsum(scores, axis=2, dtype=np.int64)
    ranks = []
    for n in range(metric.first, trials + 1):
        margin = tolerance
        if not metric.linear:
            margin = metric.tolerance(n, questions)
        ranks.append(competition_ranks(metric.keys(sums[:, :, n - 1], n), margin))
    return RankTrajectory(metric, np.arange(metric.first, trials + 1), np.stack(ranks))


@dataclass(frozen=True, slots=True, eq=False)
class Convergence:
    """The distribution of convergence@n over replicates.

    Parameters
    ----------
    metric : Metric
        What ranked the models.
    gold : int array, shape (L,)
        The ranks to be reached. When they have ties, a replicate must show the same ties: rare, and the
        usual reason why Pass@k of strong models never converges.
    trials : int
        Trials N of a replicate.
    at : int array, shape (B,)
        convergence@n of each replicate; :data:`NEVER` if there is none.
    seed : SeedSequence
        Root of the replicates, for :func:`worst_trajectory`.
    """

    metric: Metric
    gold: Ints
    trials: int
    at: NDArray[np.int32]
    seed: np.random.SeedSequence

    @property
    def converged(self) -> Bools:
        """The replicates that converge, shape (B,)."""
        return np.asarray(self.at != NEVER)

    @property
    def never(self) -> float:
        """Fraction of replicates that never converge."""
        return float(np.mean(~self.converged))

    @property
    def mean(self) -> float:
        """Mean of convergence@n over the replicates that converge; NaN when none does."""
        if self.converged.any():
            return float(self.at[self.converged].mean())
        return float("nan")

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

    def pmf(self) -> Floats:
        """Return P(convergence@n = n) for n = 1..N, shape (N,); it sums to 1 minus :attr:`never`."""
        counts = np.bincount(self.at[self.converged], minlength=self.trials + 1)
        return counts[1:] / len(self.at)

    def cdf(self) -> Floats:
        """Return P(convergence@n <= n) for n = 1..N, shape (N,); it ends at 1 minus :attr:`never`."""
        return np.cumsum(self.pmf())

    def quantile(self, q: float) -> float:
        """Return the smallest n with P(convergence@n <= n) >= q; infinite when it is not reached."""
        if not 0 < q <= 1:
            raise ValueError(f"q must lie in (0, 1], got {q!r}")
        settled = np.sort(np.where(self.converged, self.at.astype(np.float64), np.inf))
        return float(settled[int(np.ceil(q * len(settled))) - 1])


def convergence(
    source: Source,
    metric: Metric,
    *,
    replicates: int = 100_000,
    seed: Seed,
    gold: ArrayLike | None = None,
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
    gold : array_like of int, shape (L,), optional
        Ranks to be reached. Default: the source's own: avg@N over all recorded trials, not resampled (or
        the coins' means).
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
    everyone = tuple(range(source.models))
    grow = partial(convergence_growth, source, [everyone], metric, gold=gold, confirm=confirm)
    return grow(replicates=replicates, seed=seed, executor=executor)[everyone]


def convergence_growth(
    source: Source,
    subsets: Sequence[Sequence[int]],
    metric: Metric,
    *,
    replicates: int = 100_000,
    seed: Seed,
    gold: ArrayLike | None = None,
    confirm: int = 1,
    executor: Executor | None = None,
) -> dict[Subset, Convergence]:
    """Return the distribution of convergence@n for every subset of the models (paper, section 3.3, Fig. 6).

    The ranking of a subset settles when the last of its neighbouring pairs in the gold standard does, so
    one pass records when each of these pairs settles, and a subset costs a maximum over its pairs.
    All subsets see the same replicates.

    Parameters
    ----------
    source : Source
        Replicates of the whole pool.
    subsets : sequence of sequences of int
        Model numbers; each subset has at least two.
    metric, replicates, seed, gold, confirm, executor
        As for :func:`scorio.study.convergence`; `gold` ranks the whole pool.

    Returns
    -------
    dict of tuple of int to Convergence
        By subset.

    Raises
    ------
    ValueError
        On a subset that repeats a model, names one that does not exist, or is too small.

    Examples
    --------
    >>> from scorio.study import Bootstrap, biased_coins
    >>> source = Bootstrap(biased_coins([0.2, 0.4, 0.5, 0.8], seed=1).sample(40, seed=2))
    >>> growth = convergence_growth(source, [(0, 3), (0, 1, 2, 3)], Metric("avg"), replicates=200, seed=3)
    >>> two, four = growth.values()
    >>> two.mean_at_least < four.mean_at_least
    True
    """
    check_metrics(source, [metric])
    if not 0 <= confirm < source.trials:
        raise ValueError(f"confirm must lie in [0, {source.trials - 1}], got {confirm!r}")
    ranks = gold_ranks(source, gold)
    root = seed_sequence(seed)
    pairs: dict[tuple[int, int], int] = {}
    places: dict[Subset, list[int]] = {}
    for subset in subsets:
        chosen = _checked(subset, source.models)
        neighbours = pairwise(sorted(chosen, key=lambda model: ranks[model]))
        places[chosen] = [pairs.setdefault(pair, len(pairs)) for pair in neighbours]
    work = partial(_last_mismatches, source, metric, ranks, np.array(list(pairs)).T, list(places.values()))
    blocks = list(run_blocks(work, source.models * source.questions, replicates, root, executor))
    found = {}
    for subset, last in zip(places, np.concatenate(blocks, axis=1), strict=True):
        own = competition_ranks(-ranks[list(subset)])
        found[subset] = Convergence(metric, own, source.trials, _settled(last, source.trials, confirm), root)
    return found


def _checked(subset: Sequence[int], models: int) -> Subset:
    chosen = tuple(map(int, subset))
    inside = all(0 <= model < models for model in chosen)
    if len(chosen) < 2 or len(set(chosen)) < len(chosen) or not inside:
        raise ValueError(
            f"subsets must hold at least two different models from 0 to {models - 1}, got {chosen}"
        )
    return chosen


def _last_mismatches(
    source: Source,
    metric: Metric,
    gold: Ints,
    pairs: NDArray[np.intp],
    places: list[list[int]],
    block: ReplicateBlock,
) -> NDArray[np.int32]:
    """Return the last n at which a subset's ranking is not the gold standard, shape (S, keep)."""
    better, worse = pairs
    tied = gold[better] == gold[worse]
    last = np.full((block.length, len(better)), metric.first - 1, dtype=np.int32)
    for n, (keys,) in keys_by_trial(source, [metric], block):
        if keys is not None:
            values, tolerance = keys
            fall = values[:, better] - values[:, worse]
            wrong = (fall > tolerance) == tied
            if tied.any():
                wrong |= tied & (fall < -tolerance)
            np.copyto(last, n, where=wrong)
    return np.stack([last[: block.keep, own].max(axis=1) for own in places])


def _settled(last_mismatch: Integers, trials: int, confirm: int) -> NDArray[np.int32]:
    """Return convergence@n from the last n at which the ranking differed (``first - 1`` when none did)."""
    settled = last_mismatch.astype(np.int32) + 1
    return np.where(settled > trials - confirm, np.int32(NEVER), settled)


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
    return _trajectory(scores, result.metric, source.tolerance)


def model_subsets(models: int, size: int, number: int, *, seed: Seed) -> list[Subset]:
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
    drawn: dict[Subset, None] = {}
    while len(drawn) < number:
        drawn[tuple(sorted(rng.choice(models, size, replace=False).tolist()))] = None
    return list(drawn)
