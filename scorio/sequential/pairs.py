"""Pairs of models, read step by step along the trial sequence that they share.

D is the difference of the two models' scores at equal progress, each the mean over the questions that it has
answered. Over the c questions that both have answered, d_q is the difference of their running means on
question q, and Σ d_q² says how far the models are apart on single questions.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from scorio._arrays import Floats, Integers, Ints
from scorio.sequential.cells import Cells
from scorio.sequential.clusters import ClusterSums, Spread
from scorio.sequential.contrasts import ContrastBlock, Target, contrast_variance
from scorio.sequential.evidence import GUARD
from scorio.sequential.path_block import PathBlock


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
    guard : float
        κ, ln(1/level) of the strictest level that the evidence is read at.

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
        guard: float = GUARD,
    ) -> None:
        self.cells, self.equivalence, self._guard = cells, equivalence, guard
        self.first = np.asarray(first, dtype=np.int64)
        self.second = np.asarray(second, dtype=np.int64)
        self.target: Target = target
        pairs = self.first.size
        self.progress = np.zeros(pairs, dtype=np.int64)
        self._square = np.zeros(pairs)
        self._count = np.zeros(pairs, dtype=np.int64)
        self._firsts = FirstDifferences(pairs, cells.binary, guard)
        self._clusters: ClusterSums | None = None
        if clusters is not None:
            if target != "population":
                raise ValueError(f"clusters need target 'population', got target {target!r}")
            self._clusters = ClusterSums(np.asarray(clusters), cells.sequence.questions, pairs)

    def read(self, pairs: Integers, stop: int) -> ContrastBlock:
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
        if (self.progress[pairs] != start).any():
            raise ValueError("pairs read together must be at the same step")
        blocks = []
        for begin, end in self.cells.pieces(start, stop):
            a = self.cells.path(self.first[pairs], begin, end)
            b = self.cells.path(self.second[pairs], begin, end)
            own = self.cells.sequence.shared
            if own is None or end <= own:
                blocks.append(self._read_shared(pairs, begin, end, a, b))
            else:
                blocks.append(self._read_rounds(pairs, begin, a, b))
        self.progress[pairs] = stop
        return reduce(ContrastBlock.append, blocks)

    def _read_shared(
        self, pairs: Integers, start: int, stop: int, a: PathBlock, b: PathBlock
    ) -> ContrastBlock:
        """Read steps at which both models are asked the same question."""
        before, after = a.before - b.before, a.after - b.after
        gained = np.isnan(before) & ~np.isnan(after)
        old, new = np.nan_to_num(before), np.nan_to_num(after)
        square = running(self._square[pairs], new * new - old * old)
        count = self._count[pairs, None] + gained.cumsum(axis=1)
        self._square[pairs], self._count[pairs] = square[:, -1], count[:, -1]
        spread = Spread(np.maximum(square, 0.0), np.ones(1))
        if self._clusters is not None:
            questions = self.cells.sequence.question(start, stop)
            spread = self._clusters.add(pairs, questions, new - old, gained)
        asked = self.cells.sequence.asked_by(start, stop)
        first = np.where(gained, new, 0.0)
        return self._block(pairs, a, b, spread, count, asked, first)

    def _read_rounds(self, pairs: Integers, start: int, a: PathBlock, b: PathBlock) -> ContrastBlock:
        """Read steps of one round, in which each model has its own questions and weights."""
        assert self.cells.rounds is not None
        first, second = self.first[pairs], self.second[pairs]
        begun = self.cells.rounds.begun(start)
        both = begun.known(first) & begun.known(second)
        gap = np.where(both, begun.estimate(first) - begun.estimate(second), 0.0)
        spread = Spread((gap**2).sum(axis=1, keepdims=True), np.ones(1))
        if self._clusters is not None:
            spread = self._clusters.of(gap, both)
        count = np.broadcast_to(both.sum(axis=1)[:, None], a.w.shape)
        asked = np.full(a.w.shape[1], self.cells.sequence.questions)
        return self._block(pairs, a, b, spread, count, asked, np.zeros((pairs.size, 1)))

    def _block(
        self,
        pairs: Integers,
        a: PathBlock,
        b: PathBlock,
        spread: Spread,
        count: Ints,
        asked: Ints,
        first: Floats,
    ) -> ContrastBlock:
        """Return the estimates; `first` are the differences of new questions."""
        questions = np.maximum(count, 1).astype(np.float64)
        total = self.cells.sequence.questions
        uniform = a.u + b.u
        noise = (a.w + b.w, uniform, np.minimum(a.g, b.g), self.cells.repeat_weight * np.minimum(a.r, b.r))
        square = np.broadcast_to(spread.square, count.shape)
        guarded = contrast_variance(square, self._guard * spread.size, questions, total, noise, self.target)
        variance = guarded
        # Without repeats, right-or-wrong outcomes are iid in a first pass, for which κ = 0 is a theorem.
        single = (a.repeats + b.repeats) == 0.0
        if self.cells.binary and self._clusters is None and single.any():
            plain = contrast_variance(square, 0.0, questions, total, noise, self.target)
            variance = np.where(single, plain, guarded)
        difference = a.mean - b.mean
        if a.whole(asked) and b.whole(asked):
            slack = np.zeros(difference.shape)
        else:
            (least_a, most_a), (least_b, most_b) = a.bounds(asked), b.bounds(asked)
            slack = np.maximum(difference - (least_a - most_b), most_a - least_b - difference)
        bets = None if spread.bets is None else np.broadcast_to(spread.bets, count.shape)
        block = ContrastBlock(difference, variance, guarded, guarded, uniform / questions, count, slack, bets)
        if self.equivalence is None:
            return block
        step = self._firsts.add(pairs, first)
        largest = a.mean * (1.0 - a.mean) + b.mean * (1.0 - b.mean)
        return block.for_ties(self.equivalence, self.target, np.minimum(a.trials, b.trials), largest, step)


class FirstDifferences:
    """Differences of single trials: the size of those that are not 0.

    Parameters
    ----------
    pairs : int
        Number of pairs.
    binary : bool
        Whether answers are right or wrong, so that the size is 1.
    guard : float
        κ.
    """

    def __init__(self, pairs: int, binary: bool, guard: float) -> None:
        self._binary = binary
        self._sums = np.full((2, pairs), guard)  # Σd² and Σd⁴, as if a few had differed fully

    def add(self, pairs: Integers, difference: Floats) -> Floats:
        """Return mean d⁴ over mean d² after each step, where `difference` is 0 unless the question is new."""
        if self._binary:
            return np.ones(1)
        square = running(self._sums[0, pairs], difference**2)
        fourth = running(self._sums[1, pairs], difference**4)
        self._sums[:, pairs] = square[:, -1], fourth[:, -1]
        return fourth / square


def running(start: Floats, change: Floats) -> Floats:
    """Accumulate along steps from `start`, one by one, so that grouping changes no bit of the result."""
    return np.concatenate([start[..., None], change], axis=-1).cumsum(axis=-1)[..., 1:]
