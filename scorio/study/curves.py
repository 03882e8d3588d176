"""Kendall's tau against the number of trials: of metrics, and of earlier trials of related models as a prior.

Paper, sections 2.7, 2.8 and 3.1; Figs. 1, 2 and 4.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._arguments import whole
from scorio.arrays import Floats, Ints
from scorio.rank._kendall import tau_b_of_signs
from scorio.study.metrics import Metric, pair_signs
from scorio.study.replicates import ReplicateBlock, Seed, block_generator, run_blocks, seed_sequence
from scorio.study.sources import Coins, Source, check_metrics, gold_ranks, keys_by_trial, shift_to_means


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
    tau: Floats
    standard_error: Floats
    constant: Floats
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
    trials = np.arange(1, source.trials + 1)
    return TauCurves(tuple(metrics), trials, mean, error, sums[2] / replicates, replicates)


def _block_sums(
    source: Source, metrics: tuple[Metric, ...], gold: NDArray[np.int8], block: ReplicateBlock
) -> Floats:
    """Return the sum and sum of squares of tau and the number of constant rankings, shape (3, K, N)."""
    sums = np.zeros((3, len(metrics), source.trials))
    for n, keys in keys_by_trial(source, metrics, block):
        for row, entry in enumerate(keys):
            if entry is not None:
                signs = pair_signs(entry[0][: block.keep], entry[1])
                tau = tau_b_of_signs(signs, gold)
                sums[:, row, n - 1] = tau.sum(), (tau**2).sum(), np.sum(~signs.any(axis=1))
    return sums


def mean_and_error(sums: Floats, number: int) -> tuple[Floats, Floats]:
    """Return means and standard errors from the sum, ``sums[0]``, and that of squares of `number` values."""
    mean = sums[0] / number
    variance = np.maximum(sums[1] / number - mean**2, 0) * number / (number - 1)
    return mean, np.sqrt(variance / number)


PAPER_ORIGINAL_MEANS = (0.3021, 0.3166, 0.4144, 0.4985, 0.5351, 0.5759, 0.6679, 0.7487)
"""Mean success probabilities of the paper's eight original models (section 2.8)."""


class BetaUpdate:
    r"""Draw updated models: question probabilities from a Beta distribution with perturbed parameters.

    For every updated model :math:`\pi_\alpha \sim \mathrm{Beta}(a \pm s, b \pm s)`, both signs fair coins.

    Parameters
    ----------
    a, b : array_like, shape (L,), optional
        Beta parameters per model; default the paper's :math:`i + 3` and :math:`12 - i`, i = 1..8.
    shift : float
        s; the paper's is 1.
    """

    def __init__(self, a: ArrayLike | None = None, b: ArrayLike | None = None, shift: float = 1.0) -> None:
        if a is None:
            self.a = np.arange(4.0, 12.0)
        else:
            self.a = np.array(a, dtype=np.float64)
        if b is None:
            self.b = np.arange(11.0, 3.0, -1.0)
        else:
            self.b = np.array(b, dtype=np.float64)
        self.shift = shift
        if self.a.ndim != 1 or self.a.shape != self.b.shape:
            raise ValueError(f"a and b must be lists of one length, got {self.a} and {self.b}")
        if not shift >= 0 or not np.all(np.minimum(self.a, self.b) > shift):
            raise ValueError(f"a and b must be greater than shift {shift!r}, got {self.a} and {self.b}")

    def draw(self, rng: np.random.Generator, replicates: int, questions: int) -> Floats:
        """Return success probabilities of updated models, shape (replicates, L, M)."""
        signs = rng.choice([-self.shift, self.shift], size=(2, replicates, len(self.a), 1))
        shape = (replicates, len(self.a), questions)
        return rng.beta(self.a[:, None] + signs[0], self.b[:, None] + signs[1], size=shape)


@dataclass(frozen=True, slots=True, eq=False)
class PriorStudy:
    """The effect of D earlier trials per question on the ranking of updated models.

    Parameters
    ----------
    original_tau : float array, shape (B,)
        Kendall's tau between the true rankings of the original and the updated models (Fig. 2 a).
    depths : int array, shape (K,)
        D of each row below; the first is 0, the uniform prior.
    trials : int array, shape (N,)
        1..N trials of the updated models.
    tau : float array, shape (K, N)
        Mean tau between estimated and true ranking of the updated models (Fig. 2 b).
    standard_error : float array, shape (K, N)
        Monte-Carlo standard error of `tau`.
    """

    original_tau: Floats
    depths: NDArray[np.intp]
    trials: NDArray[np.intp]
    tau: Floats
    standard_error: Floats

    @property
    def changed(self) -> float:
        """Fraction of the updates that change the true ranking."""
        return float(np.mean(self.original_tau < 1))

    @property
    def gain(self) -> Floats:
        """Tau minus tau under the uniform prior, shape (K, N) (Fig. 2 c)."""
        return np.asarray(self.tau - self.tau[0])


def paper_originals(questions: int = 30, *, seed: Seed) -> Coins:
    """Draw the paper's eight original models, moved to the stated means.

    Model i has question probabilities from Beta(i + 3, 12 - i); the paper fixes one draw and states its
    means, :data:`PAPER_ORIGINAL_MEANS`, not the draw itself.

    Examples
    --------
    >>> paper_originals(seed=1).p.mean(axis=1).round(4)
    array([0.3021, 0.3166, 0.4144, 0.4985, 0.5351, 0.5759, 0.6679, 0.7487])
    """
    means = np.array(PAPER_ORIGINAL_MEANS)
    rng = block_generator(seed_sequence(seed), 0)
    drawn = BetaUpdate(shift=0.0).draw(rng, 1, whole("questions", questions))[0]
    return Coins(shift_to_means(drawn, means), means)


def prior_study(
    originals: Coins,
    update: BetaUpdate | None = None,
    *,
    depths: Sequence[int] = (0, 1, 2, 4, 8, 16),
    trials: int = 20,
    replicates: int = 50_000,
    seed: Seed,
    executor: Executor | None = None,
) -> PriorStudy:
    r"""Return how a prior of D trials of the original models changes the ranking of their updates.

    In each replicate the models are updated, the originals run D trials a question (the prior matrix
    :math:`R^0`) and the updates N. With equal D and N for all models and 0/1 outcomes :math:`\mu` orders
    the models by the right answers of both together (paper, Eq. 15), which is how they are ranked here:
    in whole numbers.

    Parameters
    ----------
    originals : Coins
        The original models, the same in all replicates.
    update : BetaUpdate, optional
        How updates are drawn; default the paper's. It must draw as many models.
    depths : sequence of int
        Values of D; 0 is added in front.
    trials : int
        Largest N.
    replicates : int
        Number of sets of updated models.
    seed : int, SeedSequence or Generator
        Of updates and runs.
    executor : Executor, optional
        Spreads blocks of replicates; the result does not depend on it.

    Returns
    -------
    PriorStudy

    Raises
    ------
    ValueError
        On an argument out of range.

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski, Chaudhary, "Don't Pass@k", arXiv:2510.04265, section 2.8.

    Examples
    --------
    >>> study = prior_study(paper_originals(seed=1), trials=3, replicates=200, seed=2)
    >>> bool(study.gain[1, 0] > 0)  # one earlier trial helps after one trial
    True
    """
    drawn = BetaUpdate() if update is None else update
    if len(drawn.a) != originals.models:
        raise ValueError(f"update must draw {originals.models} models like originals, got {len(drawn.a)}")
    whole("trials", trials)
    if any(depth < 0 for depth in depths):
        raise ValueError(f"depths must not be negative, got {depths!r}")
    rows = np.array(sorted({0, *depths}), dtype=np.intp)
    sums = np.zeros((2, len(rows), trials))
    original_tau = []
    work = partial(_block, originals, drawn, rows, trials)
    for taus, block in run_blocks(work, originals.p.size, replicates, seed, executor, least=2):
        sums += block
        original_tau.append(taus)
    mean, error = mean_and_error(sums, replicates)
    return PriorStudy(np.concatenate(original_tau), rows, np.arange(1, trials + 1), mean, error)


def _block(
    originals: Coins, update: BetaUpdate, depths: NDArray[np.intp], trials: int, block: ReplicateBlock
) -> tuple[Floats, Floats]:
    p = update.draw(block.rng, block.length, originals.questions)
    truth = pair_signs(p.mean(axis=2))[: block.keep]
    prior = _running_totals(block.rng, np.broadcast_to(originals.p, p.shape), int(depths[-1]))
    right = _running_totals(block.rng, p, trials)
    sums = np.empty((2, len(depths), trials))
    for row, depth in enumerate(depths):
        for n in range(1, trials + 1):
            tau = tau_b_of_signs(pair_signs((right[n] + prior[depth])[: block.keep]), truth)
            sums[:, row, n - 1] = tau.sum(), (tau**2).sum()
    return tau_b_of_signs(pair_signs(originals.means), truth), sums


def _running_totals(rng: np.random.Generator, p: Floats, trials: int) -> Ints:
    """Return the right answers of each model after 0..trials trials, shape (trials + 1, B, L)."""
    totals = np.zeros((trials + 1, *p.shape[:2]), dtype=np.int64)
    for n in range(1, trials + 1):
        totals[n] = totals[n - 1] + np.count_nonzero(rng.random(p.shape) < p, axis=2)
    return totals
