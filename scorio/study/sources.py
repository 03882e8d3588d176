"""Sources of a study's replicates: independent runs of biased coins, or a bootstrap of recorded trials.

A coin is a model whose success probabilities are known. A source hands out trials one after another for a
block of replicates. The sum of the first n is what a replicate knows after n trials per question.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._arguments import numbers, one_of, positive, unit, whole
from scorio.arrays import Floats, Integers, Ints, floats
from scorio.eval._inputs import read_trials
from scorio.study.metrics import Metric, competition_ranks, integer_grid
from scorio.study.replicates import ReplicateBlock, Seed, block_generator, block_length, seed_sequence

PAPER_MEANS = (0.2332, 0.2545, 0.3604, 0.3642, 0.3642, 0.4466, 0.5418, 0.5276, 0.608, 0.6213, 0.7327)
"""Mean success probabilities of the paper's eleven mimics, LLM 1 to 11 (section 2.7)."""


class Coins:
    """Models whose success probabilities are known.

    Parameters
    ----------
    p : float array, shape (L, M)
        Probability of a right answer per model and question.
    means : float array, shape (L,), optional
        The stated means of the rows of `p`. The true ranking is read from these, so that two models
        stated equal are tied whatever the rounding of their rows' means. Default: the rows' means.

    Raises
    ------
    ValueError
        When `p` is not a matrix of probabilities or a row's mean is not the stated one (within 1e-9).

    Examples
    --------
    >>> coins = Coins(np.array([[0.2, 0.6], [0.9, 0.5]]))
    >>> coins.sample(3, seed=1).shape
    (2, 2, 3)
    """

    def __init__(self, p: ArrayLike, means: ArrayLike | None = None) -> None:
        self.p = np.array(p, dtype=np.float64)
        inside = (self.p >= 0) & (self.p <= 1)
        if self.p.ndim != 2 or self.p.size == 0 or not inside.all():
            raise ValueError(f"p must be a matrix, models by questions, of numbers in [0, 1]; got {p!r}")
        rows = self.p.mean(axis=1)
        if means is None:
            self.means = rows
        else:
            self.means = np.array(means, dtype=np.float64)
        if self.means.shape != rows.shape or not np.all(np.abs(self.means - rows) <= 1e-9):
            raise ValueError(f"means must be the means of the rows of p {rows}, got {self.means}")
        self.models, self.questions = self.p.shape
        self.p.setflags(write=False)
        self.means.setflags(write=False)

    def subset(self, models: ArrayLike) -> Coins:
        """Return the coins of the given model numbers, in that order."""
        index = np.asarray(models, dtype=np.intp)
        return Coins(self.p[index], self.means[index])

    def sample(self, trials: int, *, seed: Seed) -> NDArray[np.uint8]:
        """Return one outcome tensor: shape (L, M, N), 1 if the answer is right."""
        rng = block_generator(seed_sequence(seed), 0)
        return (rng.random((*self.p.shape, whole("trials", trials))) < self.p[:, :, None]).astype(np.uint8)


def biased_coins(
    means: ArrayLike = PAPER_MEANS,
    questions: int = 30,
    *,
    seed: Seed,
    concentration: float = 8.0,
    correlation: float = 0.0,
) -> Coins:
    r"""Draw biased coins with given mean success probabilities.

    A model's question probabilities are drawn from
    :math:`\mathrm{Beta}(\kappa\bar p, \kappa(1-\bar p))` and moved to the stated mean by one shift,
    clipped to [0, 1]. The paper states the means but not the distribution of its coins (section 2.7);
    :math:`\kappa = 8` reproduces its figures, and a :math:`\kappa` below about 2 gives questions that are
    nearly always or nearly never solved.

    Parameters
    ----------
    means : array_like, shape (L,)
        Mean success probabilities in [0, 1].
    questions : int
        M.
    seed : int, SeedSequence or Generator
        Of the draw.
    concentration : float
        :math:`\kappa > 0`; larger means questions more alike.
    correlation : float
        Correlation in [0, 1] of the models' question difficulties on the normal scale (a Gaussian copula
        with one common factor): 0, every model has its own hard questions; 1, all models agree.

    Returns
    -------
    Coins

    Raises
    ------
    ValueError
        On an argument outside its range.

    Examples
    --------
    >>> coins = biased_coins([0.3, 0.6], questions=20, seed=1)
    >>> coins.p.mean(axis=1).round(12)
    array([0.3, 0.6])
    """
    stated = np.array(means, dtype=np.float64)
    if stated.ndim != 1 or stated.size == 0 or not np.all((stated >= 0) & (stated <= 1)):
        raise ValueError(f"means must be a list of numbers in [0, 1], got {means!r}")
    whole("questions", questions), positive("concentration", concentration), unit("correlation", correlation)
    rng = block_generator(seed_sequence(seed), 0)
    drawn = np.repeat(stated[:, None], questions, axis=1)
    inner = (stated > 0) & (stated < 1)
    a, b = concentration * drawn[inner], concentration * (1 - drawn[inner])
    drawn[inner] = _correlated_beta(a, b, correlation, rng) if correlation else rng.beta(a, b)
    return Coins(shift_to_means(drawn, stated), stated)


def shift_to_means(p: Floats, means: Floats) -> Floats:
    """Return each row of `p` moved by one number and clipped to [0, 1], so that its mean is as stated.

    The clipped mean grows with the shift, so bisection finds it; 60 halvings of [-1, 1] reach rounding.
    """
    low, high = np.full(len(p), -1.0), np.full(len(p), 1.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = np.clip(p + middle[:, None], 0.0, 1.0).mean(axis=1) < means
        low[below], high[~below] = middle[below], middle[~below]
    return np.asarray(np.clip(p + high[:, None], 0, 1))


def _correlated_beta(a: Floats, b: Floats, correlation: float, rng: np.random.Generator) -> Floats:
    from scipy.special import betaincinv, ndtr

    common = rng.standard_normal((1, a.shape[1]))
    own = rng.standard_normal(a.shape)
    normal = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    return floats(betaincinv(a, b, ndtr(normal)))


Resampling = Literal["columns", "permuted-columns", "columns-per-model", "rows"]
Keys = tuple[Ints, int]
"""Comparable scores (replicates, L) and the difference up to which two of them tie."""


class Source(ABC):
    """A source of replicates.

    Attributes
    ----------
    models, questions, trials : int
        L, M, and the trials per question of a replicate.
    binary : bool
        Whether every outcome is 0 or 1.
    tolerance : int
        The difference up to which two totals mean the same score.
    """

    models: int
    questions: int
    trials: int
    binary: bool = True
    tolerance: int = 0

    @abstractmethod
    def gold(self) -> Ints:
        """Return the competition ranks that replicates are compared with unless others are given."""

    @abstractmethod
    def cells(self, rng: np.random.Generator, replicates: int) -> Iterator[Integers]:
        """Yield each trial's scores, shape (replicates, L, M)."""

    def totals(self, rng: np.random.Generator, replicates: int) -> Iterator[Integers]:
        """Yield each trial's scores summed over questions, shape (replicates, L): the same draws."""
        for scores in self.cells(rng, replicates):
            yield scores.sum(axis=2, dtype=np.int64)


class IndependentRuns(Source):
    """Every replicate is a fresh run of the coins (the paper's "without bootstrapping").

    Parameters
    ----------
    coins : Coins
        The models.
    trials : int
        Trials per question of a replicate.
    """

    def __init__(self, coins: Coins, trials: int) -> None:
        self.coins, self.trials = coins, whole("trials", trials)
        self.models, self.questions = coins.p.shape

    def gold(self) -> Ints:
        """Return the ranks by the coins' stated means."""
        return competition_ranks(self.coins.means)

    def cells(self, rng: np.random.Generator, replicates: int) -> Iterator[Integers]:
        """Yield each trial's outcomes, shape (replicates, L, M)."""
        for _ in range(self.trials):
            yield (rng.random((replicates, *self.coins.p.shape)) < self.coins.p).view(np.uint8)


class Bootstrap(Source):
    """Every replicate resamples the N recorded trials, with replacement or in another order.

    The trials' integer scores are kept trial by trial (`by_trial`, shape (N, L, M)) and added up over
    questions (`totals_by_trial`, shape (N, L)).

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
    >>> source.gold()
    array([1, 2])
    """

    def __init__(
        self,
        outcomes: ArrayLike,
        resampling: Resampling = "columns",
        *,
        trials: int | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        if weights is None:
            values = np.array([0.0, 1.0])
        else:
            values = numbers("weights", weights, "one a category")
        tensor = read_trials("outcomes", outcomes, values.size, None, models=True)
        one_of("resampling", resampling, get_args(Resampling))
        self.models, self.questions, self.recorded = tensor.shape
        if trials is None:
            self.trials = self.recorded
        else:
            self.trials = whole("trials", trials)
        if resampling == "permuted-columns" and self.trials > self.recorded:
            raise ValueError(f"trials must be at most the {self.recorded} recorded ones, got {trials!r}")
        self.resampling = resampling
        self.binary = weights is None
        scores: Integers = tensor.astype(np.uint8)
        if weights is not None:
            # A weight means the decimal number it is written as: 0.1 + 0.2 ties with 0.3.
            exact = [Fraction(repr(value)) for value in values.tolist()]
            terms = self.questions * max(self.trials, self.recorded)
            grid, self.tolerance = integer_grid([value - min(exact) for value in exact], terms)
            scores = grid[tensor]
        # Trial-major, so that a drawn trial is one contiguous copy.
        self.by_trial = np.ascontiguousarray(scores.transpose(2, 0, 1))
        self.totals_by_trial = self.by_trial.sum(axis=2, dtype=np.int64)

    def gold(self) -> Ints:
        """Return the ranks by avg@N over all recorded trials (paper, section 2.7)."""
        return competition_ranks(self.totals_by_trial.sum(axis=0), self.tolerance)

    def cells(self, rng: np.random.Generator, replicates: int) -> Iterator[Integers]:
        """Yield each trial's scores, shape (replicates, L, M)."""
        if self.resampling == "rows":
            return self._rows(rng, replicates)
        return self._columns(self.by_trial, rng, replicates)

    def totals(self, rng: np.random.Generator, replicates: int) -> Iterator[Integers]:
        """Yield each trial's scores summed over questions, shape (replicates, L)."""
        if self.resampling == "rows":
            return super().totals(rng, replicates)
        return self._columns(self.totals_by_trial, rng, replicates)

    def _columns(self, by_trial: Integers, rng: np.random.Generator, replicates: int) -> Iterator[Integers]:
        if self.resampling == "columns-per-model":
            each = rng.integers(0, self.recorded, (replicates, self.trials, self.models))
            for step in range(self.trials):
                yield by_trial[each[:, step], np.arange(self.models)]
            return
        if self.resampling == "columns":
            drawn = rng.integers(0, self.recorded, (replicates, self.trials))
        else:
            recorded = np.broadcast_to(np.arange(self.recorded), (replicates, self.recorded))
            drawn = rng.permuted(recorded, axis=1)
        for step in range(self.trials):
            yield by_trial[drawn[:, step]]

    def _rows(self, rng: np.random.Generator, replicates: int) -> Iterator[Integers]:
        kind = np.min_scalar_type(self.recorded - 1)
        shape = (replicates, self.models, self.questions)
        right = self.by_trial.sum(axis=0, dtype=np.int64).astype(np.min_scalar_type(self.recorded))
        models, questions = np.ogrid[: self.models, : self.questions]
        for _ in range(self.trials):
            drawn = rng.integers(0, self.recorded, shape, dtype=kind)
            if self.binary:
                # The right answers may as well be the first ones: only how many there are matters.
                yield (drawn < right).view(np.uint8)
            else:
                yield self.by_trial[drawn, models, questions]


def replicate_trials(source: Source, index: int, *, seed: Seed) -> Integers:
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


def keys_by_trial(
    source: Source, metrics: Sequence[Metric], block: ReplicateBlock
) -> Iterator[tuple[int, list[Keys | None]]]:
    """Yield n and the keys of every metric after n trials, None below the metric's first number of trials.

    Later arrays do not overwrite earlier ones.
    """
    if all(metric.linear for metric in metrics):
        total = np.zeros((block.length, source.models), dtype=np.int64)
        for n, scores in enumerate(source.totals(block.rng, block.length), start=1):
            total = total + scores
            yield n, [(total, source.tolerance)] * len(metrics)
        return
    shape = (block.length, source.models, source.questions)
    correct = np.zeros(shape, dtype=np.min_scalar_type(source.trials))
    for n, outcomes in enumerate(source.cells(block.rng, block.length), start=1):
        correct += outcomes
        keys: list[Keys | None] = []
        for metric in metrics:
            known = n >= metric.first
            if known:
                keys.append((metric.keys(correct, n), metric.tolerance(n, source.questions)))
            else:
                keys.append(None)
        yield n, keys


def check_metrics(source: Source, metrics: Sequence[Metric]) -> None:
    """Raise ValueError if a metric cannot be read from the source."""
    for metric in metrics:
        if not source.binary and not metric.linear:
            raise ValueError(f"metric must be avg or bayes for weighted outcomes, got {metric.label}")
        if metric.first > source.trials:
            raise ValueError(
                f"k must be at most the {source.trials} trials of a replicate, got {metric.label}"
            )


def gold_ranks(source: Source, gold: ArrayLike | None) -> Ints:
    """Return `gold` as competition ranks; the source's own if it is None."""
    if gold is None:
        return source.gold()
    return competition_ranks(-numbers("gold", gold, "one rank a model", source.models))
