"""Contrasts: the difference of two models at equal progress, and a model's own score, with their variances.

A pair is read step by step along the shared walk. Over the c questions both models have answered by step t,
with d_q the difference of their running means on question q, the estimate is D = Σ d_q / c. Its variance
goes over, as trials repeat, from the spread of the d_q between questions to the noise within questions,
because the target is the mean over these very questions (``target="benchmark"``); with
``target="population"`` the questions are a sample themselves and only the spread between them counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.sequential.cells import KNOWN, MISSING, Cells, PathBlock
from scorio.sequential.evidence import margin_variance

__all__ = [
    "ClusterSums",
    "ContrastBlock",
    "FirstDifferences",
    "PairReader",
    "Target",
    "contrast_variance",
    "running",
    "score_block",
    "tie_block",
]

Target = Literal["benchmark", "population"]
Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

KAPPA = 2.0
"""Continuity term: as if two more questions had differed fully."""
SCORE_KAPPA = 4.0
"""The same for a single model's score, whose centred squares follow its mean: with 2, intervals of means near
0.05 to 0.1 and 0.9 missed the truth at some time in up to 6.7 %; with 4, in 3 to 5 %."""
ENOUGH_NOISE = 4.0
"""Σ n v at which the empirical-Bayes noise of a model is trusted."""
TRUST = 8.0
"""Repeated trials at which within- and between-question variance weigh about evenly."""
FLOOR = 1e-15
"""Smallest variance, so that no division by zero can follow from identical answers."""


@dataclass(frozen=True, slots=True)
class ContrastBlock:
    """Estimates along a piece of the walk; every array has shape (contrasts, steps).

    Parameters
    ----------
    difference : ndarray of float
        D, in unit scores.
    variance : ndarray of float
        V, for calling a winner.
    guarded : ndarray of float
        V₂, the same with κ = 2, for intervals.
    margin : ndarray of float
        The variance that D would have at the equivalence margin, for calling a tie; V₂ where there is none.
    avg_variance : ndarray of float
        Variance of D from the paper's avg@N variances alone; at complete passes D² over it is the paper's z².
    questions : ndarray of int
        c, the questions both have answered.
    """

    difference: Floats
    variance: Floats
    guarded: Floats
    margin: Floats
    avg_variance: Floats
    questions: NDArray[np.int64]

    def _map(self, *others: ContrastBlock, to: Callable[..., NDArray[Any]]) -> ContrastBlock:
        return ContrastBlock(
            *(to(*(getattr(block, name) for block in (self, *others))) for name in self.__slots__)
        )

    def less(self, value: Floats, equivalence: float | None = None) -> ContrastBlock:
        """Return scores held against `value`, of shape (contrasts, 1).

        The variance at the margin grows as that of right-or-wrong answers: p(1 − p) there over p(1 − p) here.
        """
        if equivalence is None:
            return replace(self, difference=self.difference - value)
        here = self.difference * (1.0 - self.difference)
        ends = (np.clip(value - equivalence, 0.0, 1.0), np.clip(value + equivalence, 0.0, 1.0))
        there = np.maximum(*(end * (1.0 - end) for end in ends))
        grown = np.maximum(there / np.maximum(here, self.guarded), 1.0)
        return replace(self, difference=self.difference - value, margin=self.guarded * grown)

    def take(self, rows: Ints) -> ContrastBlock:
        """Return some contrasts."""
        return self._map(to=lambda array: array[rows])

    def columns(self, columns: Ints) -> ContrastBlock:
        """Return some steps."""
        return self._map(to=lambda array: array[:, columns])

    def append(self, later: ContrastBlock) -> ContrastBlock:
        """Return this block followed by later steps."""
        return self._map(later, to=lambda a, b: np.concatenate([a, b], axis=1))

    def beside(self, others: ContrastBlock) -> ContrastBlock:
        """Return this block with further contrasts at the same steps."""
        return self._map(others, to=lambda a, b: np.concatenate([a, b], axis=0))

    def put(self, rows: Ints, block: ContrastBlock) -> ContrastBlock:
        """Return one-step blocks with the last step of `block` in `rows`."""

        def replaced(array: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
            out = array.copy()
            out[rows, 0] = new[:, -1]
            return out

        return self._map(block, to=replaced)


def contrast_variance(
    square: Floats,
    kappa: float,
    questions: Floats,
    total: int,
    noise: tuple[Floats, Floats, Floats, Floats],
    target: Target,
) -> Floats:
    """Variance of the mean of per-question values.

    Parameters
    ----------
    square : ndarray of float
        Q, the sum of squared values over seen questions.
    kappa : float
        Continuity term added to Q.
    questions : ndarray of float
        c, the number of seen questions, at least 1.
    total : int
        M, the number of questions.
    noise : tuple of ndarray
        w (summed over the models), u (summed), G (the smaller), R (the smaller).
    target : {'benchmark', 'population'}
        Whether the questions are the target or a sample.

    Returns
    -------
    ndarray of float
        V of ``STATISTICS.md`` section 5.

    Examples
    --------
    >>> one = np.ones(1)
    >>> noise = (0.5 * one, one, 5 * one, 0 * one)
    >>> contrast_variance(6 * one, 0.0, 15 * one, 30, noise, "benchmark").round(6)
    array([0.026667])
    """
    w, u, g, r = noise
    between = (square + kappa) / (questions * questions)
    if target == "population":
        return np.asarray(np.maximum(between, FLOOR))
    trust = 1.0 - (TRUST / (TRUST + r)) ** 2
    within = np.where(
        g >= ENOUGH_NOISE,
        (1.0 - trust) * between + trust * w / questions,
        np.minimum(between, np.maximum(w, u) / questions),
    )
    # Single answers without noise: while questions are left, they are a sample; then they are known.
    fraction = np.where(np.isinf(r) & (questions < total), 0.0, questions / total)
    return np.asarray(np.maximum((1.0 - fraction) * between + fraction * within, FLOOR))


def score_block(path: PathBlock, questions: int, target: Target = "benchmark") -> ContrastBlock:
    """Each model's own mean score with its variance, along a piece of its walk.

    The square sum is centred, with a continuity term always: an estimate at 0 or 1 has a variance too.

    Parameters
    ----------
    path : PathBlock
        From :meth:`scorio.sequential.cells.Cells.path` or ``latest``.
    questions : int
        M, the number of questions.
    target : {'benchmark', 'population'}
        Target of the estimate.

    Returns
    -------
    ContrastBlock
        `difference` is the mean score.
    """
    seen = np.maximum(path.seen, 1.0)
    centred = np.maximum(path.square - path.total**2 / seen, 0.0)
    variance = contrast_variance(
        centred, SCORE_KAPPA, seen, questions, (path.w, path.u, path.g, path.r), target
    )
    count = path.seen.astype(np.int64)
    return ContrastBlock(path.total / seen, variance, variance, variance, path.u / seen, count)


def tie_block(
    block: ContrastBlock,
    equivalence: float,
    target: Target,
    trials: Floats,
    means: tuple[Floats, Floats],
    step: Floats,
) -> ContrastBlock:
    """Return pairs with the variance that they would have at the margin.

    Parameters
    ----------
    block : ContrastBlock
        The pairs.
    equivalence : float
        Equivalence margin ε in unit scores.
    target : {'benchmark', 'population'}
        Target of the estimate.
    trials : ndarray of float
        Trials of each model of a pair.
    means : tuple of ndarray
        Their scores.
    step : ndarray of float
        Of differences of single trials, see :func:`scorio.sequential.evidence.margin_variance`.
    """
    if target == "population":
        n, variance = np.maximum(block.questions, 1).astype(np.float64), np.minimum(block.variance, 1e6)
    else:
        n = np.maximum(np.where(np.isinf(trials), block.questions, trials), 1.0)
        # A score between 0 and 1 with mean p has a variance of p(1 − p) at most.
        most = sum((mean * (1.0 - mean) for mean in means), start=block.difference**2)
        variance = np.minimum(block.variance, most / n)
    margin = np.maximum(margin_variance(block.difference, variance, n, equivalence, step), block.guarded)
    # While nothing differs, κ in V₂ stands for what may.
    return replace(block, margin=np.where(variance > FLOOR, margin, block.guarded))


class PairReader:
    """Running sums of pairs of models on one task.

    Parameters
    ----------
    cells : Cells
        The moments of the models.
    first, second : array_like of int, shape (P,)
        The models of each pair.
    target : {'benchmark', 'population'}
        Target of the estimate.
    clusters : array_like of int, shape (M,), optional
        Cluster of each question; only with ``target="population"``.
    equivalence : float, optional
        Equivalence margin ε in unit scores, where ties are to be called.

    Attributes
    ----------
    progress : ndarray of int64, shape (P,)
        Steps read per pair.

    Raises
    ------
    ValueError
        If clusters are given for the benchmark target or do not have one entry a question.
    """

    def __init__(
        self,
        cells: Cells,
        first: ArrayLike,
        second: ArrayLike,
        target: Target = "benchmark",
        clusters: ArrayLike | None = None,
        equivalence: float | None = None,
    ) -> None:
        self.cells = cells
        self.equivalence = equivalence
        self.first = np.asarray(first, dtype=np.int64)
        self.second = np.asarray(second, dtype=np.int64)
        self.target: Target = target
        pairs = self.first.size
        self.progress = np.zeros(pairs, dtype=np.int64)
        self._sum = np.zeros(pairs)
        self._square = np.zeros(pairs)
        self._count = np.zeros(pairs, dtype=np.int64)
        self._firsts = FirstDifferences(pairs, cells.binary)
        self._clusters: ClusterSums | None = None
        if clusters is not None:
            if target != "population":
                raise ValueError(f"clusters need target 'population', got target {target!r}")
            self._clusters = ClusterSums(np.asarray(clusters), cells.sequence.questions, pairs)

    def read(self, pairs: Ints, stop: int) -> ContrastBlock:
        """Read some pairs on, from their common progress up to step `stop`.

        Parameters
        ----------
        pairs : ndarray of int, shape (p,)
            Pairs with equal :attr:`progress`; both models must have absorbed `stop` steps.
        stop : int
            Step to read up to (exclusive), more than the progress.

        Returns
        -------
        ContrastBlock
            Estimates after each of the steps.
        """
        start = int(self.progress[pairs[0]])
        if np.any(self.progress[pairs] != start):
            raise ValueError("pairs read together must stand at the same step")
        own = self.cells.sequence.shared
        blocks = [
            self._read_shared(pairs, begin, end)
            if own is None or end <= own
            else self._read_own(pairs, begin, end)
            for begin, end in self.cells.pieces(start, stop)
        ]
        self.progress[pairs] = stop
        return reduce(ContrastBlock.append, blocks)

    def _read_own(self, pairs: Ints, start: int, stop: int) -> ContrastBlock:
        """Read steps of one round, in which each model has questions and weights of its own."""
        assert self.cells.rounds is not None
        first, second = self.first[pairs], self.second[pairs]
        begun = self.cells.rounds.begun(start)
        both = begun.known(first) & begun.known(second)
        a, b = (self.cells.path(models, start, stop, only=both) for models in (first, second))
        gap = np.where(both, begun.estimate(first) - begun.estimate(second), 0.0)
        square, stretch = (gap**2).sum(axis=1), np.ones(pairs.size)
        if self._clusters is not None:
            square, stretch = self._clusters.of(gap, both)
        steps = np.ones(stop - start)
        block = self._block(
            a.total - b.total,
            square[:, None] * steps,
            (both.sum(axis=1)[:, None] * steps).astype(np.int64),
            a,
            b,
            np.ones((2, pairs.size, 1)),
            stretch[:, None],
        )
        return self._at_margin(block, pairs, a, b, np.zeros((pairs.size, 1)))

    def _at_margin(
        self, block: ContrastBlock, pairs: Ints, a: PathBlock, b: PathBlock, first: Floats
    ) -> ContrastBlock:
        """Return the block with its variance at the margin; `first` are the differences of new questions."""
        if self.equivalence is None:
            return block
        step, trials = self._firsts.add(pairs, first), np.minimum(a.trials, b.trials)
        return tie_block(block, self.equivalence, self.target, trials, (a.mean, b.mean), step)

    def _read_shared(self, pairs: Ints, start: int, stop: int) -> ContrastBlock:
        """Read steps at which both models are asked the same question."""
        a = self.cells.path(self.first[pairs], start, stop)
        b = self.cells.path(self.second[pairs], start, stop)
        fresh = a.fresh | b.fresh
        old = np.where(fresh, 0.0, a.before - b.before)
        new = a.after - b.after
        gained = fresh
        scale = np.ones((2, pairs.size, 1))
        if any(self.cells.missing):
            old, new, gained = self._mend_holes(pairs, start, stop, old, new, gained)
            scale = self._common_share(pairs, start, stop)
        difference_sum = running(self._sum[pairs], new - old)
        square_sum = running(self._square[pairs], new * new - old * old)
        count = self._count[pairs, None] + np.cumsum(gained, axis=1)
        self._sum[pairs], self._square[pairs] = difference_sum[:, -1], square_sum[:, -1]
        self._count[pairs] = count[:, -1]
        square, stretch = np.maximum(square_sum, 0.0), np.ones(1)
        if self._clusters is not None:
            questions = self.cells.sequence.question(start, stop)
            square, stretch = self._clusters.add(pairs, questions, new - old, gained)
        block = self._block(difference_sum, square, count, a, b, scale, stretch)
        return self._at_margin(block, pairs, a, b, np.where(gained, new, 0.0))

    def _block(
        self,
        difference_sum: Floats,
        square: Floats,
        count: NDArray[np.int64],
        a: PathBlock,
        b: PathBlock,
        scale: Floats,
        stretch: Floats,
    ) -> ContrastBlock:
        questions = np.maximum(count, 1).astype(np.float64)
        noise = (
            a.w * scale[0] + b.w * scale[1],
            a.u * scale[0] + b.u * scale[1],
            np.minimum(a.g, b.g),
            np.minimum(a.r, b.r),
        )
        total = self.cells.sequence.questions
        guarded = contrast_variance(square, KAPPA, questions, total, noise, self.target) * stretch
        variance = guarded
        if self.cells.binary:
            repeats = np.maximum(*(np.where(np.isinf(side.r), 0.0, side.r) for side in (a, b)))
            single = repeats == 0.0  # iid binary outcomes, where κ = 0 is a theorem
            if single.any():
                exact = contrast_variance(square, 0.0, questions, total, noise, self.target) * stretch
                variance = np.where(single, exact, guarded)
        return ContrastBlock(
            difference_sum / questions, variance, guarded, guarded, noise[1] / questions, count
        )

    # ------------------------------------------------------------------ trials without an answer

    def _mend_holes(
        self, pairs: Ints, start: int, stop: int, old: Floats, new: Floats, gained: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Drop, for each pair, the trials in which either model has no answer."""
        old, new, gained = old.copy(), new.copy(), gained.copy()
        questions = self.cells.sequence.question(start, stop)
        for row, pair in enumerate(pairs.tolist()):
            first, second = int(self.first[pair]), int(self.second[pair])
            missing = [*self.cells.missing[first], *self.cells.missing[second]]
            affected = self.cells.sequence.question(0, stop)[[one for one in missing if one < stop]]
            for column in np.flatnonzero(np.isin(questions, affected)).tolist():
                steps = self.cells.sequence.steps_of(int(questions[column]), start + column + 1)
                before, earlier = self._common_difference(first, second, steps[:-1])
                after, now = self._common_difference(first, second, steps)
                old[row, column], new[row, column] = before, after
                gained[row, column] = now > 0 and earlier == 0
        return old, new, gained

    def _common_difference(self, first: int, second: int, steps: Ints) -> tuple[float, int]:
        """Return the mean difference over the `steps` that both answered, and their number."""
        a, b = self._said(first, steps), self._said(second, steps)
        both = (a != MISSING) & (b != MISSING)
        number = int(both.sum())
        if number == 0:
            return 0.0, 0
        scores = self.cells.scores
        return float((scores[a[both]] - scores[b[both]]).mean()), number

    def _said(self, model: int, steps: Ints) -> Ints:
        """Return a model's categories at all steps of a question, with those known without a trial."""
        said = self.cells.categories[model, steps]
        return np.asarray(np.where(said == KNOWN, said.max(initial=MISSING), said))

    def _common_share(self, pairs: Ints, start: int, stop: int) -> Floats:
        """Return, per model of each pair, its trials over those the pair shares; shape (2, p, steps)."""
        steps = np.arange(start + 1, stop + 1)
        share = np.ones((2, pairs.size, steps.size))
        for row, pair in enumerate(pairs.tolist()):
            sides = [self.cells.missing[int(model)] for model in (self.first[pair], self.second[pair])]
            if not any(sides):
                continue
            common = np.maximum(steps - np.searchsorted(np.union1d(*sides), steps), 1)
            for side, missing in enumerate(sides):
                share[side, row] = (steps - np.searchsorted(missing, steps)) / common
        return share


class FirstDifferences:
    """What differences of single trials look like: the size of those that are not 0.

    Parameters
    ----------
    pairs : int
        Number of pairs.
    binary : bool
        Whether answers are right or wrong, so that the size is 1.
    """

    def __init__(self, pairs: int, binary: bool) -> None:
        self._binary = binary
        self._sums = np.full((2, pairs), KAPPA)  # Σd² and Σd⁴, as if a few had differed fully

    def add(self, pairs: Ints, difference: Floats) -> Floats:
        """Return mean d⁴ over mean d² after each step, where `difference` is 0 unless the question is new."""
        if self._binary:
            return np.ones(1)
        square = running(self._sums[0, pairs], difference**2)
        fourth = running(self._sums[1, pairs], difference**4)
        self._sums[:, pairs] = square[:, -1], fourth[:, -1]
        return np.asarray(fourth / square)


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

    Raises
    ------
    ValueError
        If `clusters` does not have one entry a question.
    """

    def __init__(self, clusters: NDArray[np.generic], questions: int, pairs: int) -> None:
        if clusters.shape != (questions,):
            raise ValueError(f"clusters must have one entry a question ({questions}), got {clusters.shape}")
        names, self._cluster = np.unique(clusters, return_inverse=True)
        self._sums = np.zeros((pairs, names.size))
        self._seen = np.zeros((pairs, names.size), dtype=bool)

    def add(
        self, pairs: Ints, questions: Ints, change: Floats, gained: NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        """Return Σ_g (Σ_{q∈g} d_q)² and G/(G − 1) after each step."""
        square, stretch = np.empty_like(change), np.empty_like(change)
        for column, question in enumerate(questions.tolist()):
            cluster = self._cluster[question]
            self._sums[pairs, cluster] += change[:, column]
            self._seen[pairs, cluster] |= gained[:, column]
            square[:, column] = (self._sums[pairs] ** 2).sum(axis=1)
            seen = self._seen[pairs].sum(axis=1)
            stretch[:, column] = np.where(seen > 1, seen / np.maximum(seen - 1, 1), np.inf)
        return square, stretch

    def of(self, gap: Floats, known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return Σ_g (Σ_{q∈g} d_q)² and G/(G − 1) of differences and the questions that count, (pairs, M)."""
        inside = np.arange(self._sums.shape[1])[:, None] == self._cluster
        seen = (known @ inside.T > 0).sum(axis=1)
        square = ((gap @ inside.T) ** 2).sum(axis=1)
        return square, np.where(seen > 1, seen / np.maximum(seen - 1, 1), np.inf)


def running(start: Floats, change: Floats) -> Floats:
    """Accumulate along steps from `start`, one by one, so that grouping changes no bit of the result."""
    return np.cumsum(np.concatenate([start[:, None], change], axis=1), axis=1)[:, 1:]
