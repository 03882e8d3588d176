"""Pairs of models, read step by step along the trial sequence that they share.

Over the c questions both models have answered by step t, with d_q the difference of their running means on
question q, the estimate is D = Σ d_q / c.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.sequential.cells import KNOWN, MISSING, Cells, PathBlock
from scorio.sequential.contrasts import KAPPA, ContrastBlock, Target, contrast_variance
from scorio.sequential.trial_sequence import inverse_change

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

MOST_CELLS = 2**18
"""Trials that are looked at together where some are missing."""


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
        self.cells, self.equivalence = cells, equivalence
        self.first = np.asarray(first, dtype=np.int64)
        self.second = np.asarray(second, dtype=np.int64)
        self.target: Target = target
        pairs = self.first.size
        self.progress = np.zeros(pairs, dtype=np.int64)
        self._sum = np.zeros(pairs)
        self._square = np.zeros(pairs)
        self._count = np.zeros(pairs, dtype=np.int64)
        self._firsts = FirstDifferences(pairs, cells.binary)
        # Of each pair, of its first and of its second model: trials lost, and Σ 1/n less what it is without.
        self._lost, self._inverse = np.zeros((3, pairs)), np.zeros((3, pairs))
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
        if (self.progress[pairs] != start).any():
            raise ValueError("pairs read together must be at the same step")
        own = self.cells.sequence.shared
        blocks = [
            self._read_shared(pairs, begin, end)
            if own is None or end <= own
            else self._read_rounds(pairs, begin, end)
            for begin, end in self.cells.pieces(start, stop)
        ]
        self.progress[pairs] = stop
        return reduce(ContrastBlock.append, blocks)

    def _read_rounds(self, pairs: Ints, start: int, stop: int) -> ContrastBlock:
        """Read steps of one round, in which each model has its own questions and weights."""
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
            None,
            stretch[:, None],
        )
        return self._at_margin(block, pairs, a, b, np.zeros((pairs.size, 1)))

    def _at_margin(
        self,
        block: ContrastBlock,
        pairs: Ints,
        a: PathBlock,
        b: PathBlock,
        first: Floats,
        common: Floats | None = None,
    ) -> ContrastBlock:
        """Return the block with its variance at the margin; `first` are the differences of new questions.

        `common` are the trials that both models have answered, where some are missing.
        """
        if self.equivalence is None:
            return block
        step = self._firsts.add(pairs, first)
        trials = np.minimum(a.trials, b.trials)
        if common is not None:
            trials = np.where(np.isinf(trials), trials, np.minimum(trials, common))
        return block.for_ties(self.equivalence, self.target, trials, step)

    def _read_shared(self, pairs: Ints, start: int, stop: int) -> ContrastBlock:
        """Read steps at which both models are asked the same question."""
        a = self.cells.path(self.first[pairs], start, stop)
        b = self.cells.path(self.second[pairs], start, stop)
        fresh = a.fresh | b.fresh
        old = np.where(fresh, 0.0, a.before - b.before)
        new = a.after - b.after
        gained = fresh
        inverse = None
        if any(self.cells.missing):
            old, new, gained, inverse = self._correct_missing(pairs, start, stop, old, new, gained)
        difference_sum = running(self._sum[pairs], new - old)
        square_sum = running(self._square[pairs], new * new - old * old)
        count = self._count[pairs, None] + gained.cumsum(axis=1)
        self._sum[pairs], self._square[pairs] = difference_sum[:, -1], square_sum[:, -1]
        self._count[pairs] = count[:, -1]
        scale = common = None
        if inverse is not None:
            scale, common = self._share(pairs, start, stop, inverse, count, (a.seen, b.seen))
        square, stretch = np.maximum(square_sum, 0.0), np.ones(1)
        if self._clusters is not None:
            questions = self.cells.sequence.question(start, stop)
            square, stretch = self._clusters.add(pairs, questions, new - old, gained)
        block = self._block(difference_sum, square, count, a, b, scale, stretch)
        return self._at_margin(block, pairs, a, b, np.where(gained, new, 0.0), common)

    def _block(
        self,
        difference_sum: Floats,
        square: Floats,
        count: NDArray[np.int64],
        a: PathBlock,
        b: PathBlock,
        scale: Floats | None,
        stretch: Floats,
    ) -> ContrastBlock:
        questions = np.maximum(count, 1).astype(np.float64)
        w, u = a.w + b.w, a.u + b.u
        if scale is not None:
            w, u = a.w * scale[0] + b.w * scale[1], a.u * scale[0] + b.u * scale[1]
        noise = (w, u, np.minimum(a.g, b.g), self.cells.repeat_weight * np.minimum(a.r, b.r))
        total = self.cells.sequence.questions
        guarded = contrast_variance(square, KAPPA, questions, total, noise, self.target) * stretch
        variance = guarded
        if self.cells.binary:
            repeats = np.maximum(a.r, b.r)
            if self.cells.exact.any():
                repeats = np.maximum(*(np.where(np.isinf(side.r), 0.0, side.r) for side in (a, b)))
            single = repeats == 0.0  # iid binary outcomes, where κ = 0 is a theorem
            if single.any():
                exact = contrast_variance(square, 0.0, questions, total, noise, self.target) * stretch
                variance = np.where(single, exact, guarded)
        return ContrastBlock(
            difference_sum / questions, variance, guarded, guarded, noise[1] / questions, count
        )

    # ------------------------------------------------------------------ trials without an answer

    def _correct_missing(
        self, pairs: Ints, start: int, stop: int, old: Floats, new: Floats, gained: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, NDArray[np.bool_], Floats]:
        """Drop, for each pair, the trials in which either model has no answer.

        Also returned is by how much more 1/n changes at each step than if no trial were missing, with n the
        trials of its question that the pair shares, that the first has, and that the second has.
        """
        old, new, gained, inverse = old.copy(), new.copy(), gained.copy(), np.zeros((3, *old.shape))
        sequence = self.cells.sequence
        questions, turn = sequence.question(0, stop), sequence.repeats(0, stop)
        asked = np.zeros(sequence.questions, dtype=bool)
        asked[questions[start:]] = True
        steps = np.flatnonzero(asked[questions])
        place = (asked.cumsum() - 1)[questions]
        shape = int(place.max()) + 1, int(turn[steps].max()) + 1
        missing = np.array([bool(one) for one in self.cells.missing])
        with_holes = np.flatnonzero(missing[self.first[pairs]] | missing[self.second[pairs]])
        most = max(1, MOST_CELLS // (shape[0] * shape[1]))
        for rows in np.split(with_holes, range(most, with_holes.size, most)):
            models = np.stack([self.first[pairs[rows]], self.second[pairs[rows]]])
            said = np.full((2, rows.size, *shape), MISSING, dtype=np.int64)
            said[:, :, place[steps], turn[steps]] = self.cells.categories[models[:, :, None], steps]
            lost = np.zeros(said.shape[1:], dtype=bool)
            lost[:, place[steps], turn[steps]] = (said == MISSING).any(axis=0)[:, place[steps], turn[steps]]
            # Known without a trial: what the model has always said.
            said = np.where(said == KNOWN, np.maximum.accumulate(np.maximum(said, MISSING), axis=3), said)
            answered = said != MISSING
            both = answered.all(axis=0)
            number = np.stack([both, *answered]).cumsum(axis=3)
            scores = self.cells.scores[said]
            mean = np.where(both, scores[0] - scores[1], 0.0).cumsum(axis=2) / np.maximum(number[0], 1)
            # After and before each step; from the first hole of a question on, whatever is read together.
            here, first = (place[start:], turn[start:]), turn[start:] == 0
            before = place[start:], turn[start:] - 1
            since = np.logical_or.accumulate(lost, axis=2)[:, *here]
            now, earlier = number[:, :, *here], np.where(first, 0, number[:, :, *before])
            old[rows] = np.where(since, np.where(first, 0.0, mean[:, *before]), old[rows])
            new[rows] = np.where(since, mean[:, *here], new[rows])
            gained[rows] = np.where(since, (now[0] > 0) & (earlier[0] == 0), gained[rows])
            usual = inverse_change(turn[start:], turn[start:] + 1)
            inverse[:, rows] = np.where(since, inverse_change(earlier, now) - usual, 0.0)
        return old, new, gained, inverse

    def _share(
        self,
        pairs: Ints,
        start: int,
        stop: int,
        inverse: Floats,
        count: NDArray[np.int64],
        seen: tuple[Floats, Floats],
    ) -> tuple[Floats, Floats]:
        """Return, for each model of a pair, its noise in the trials that they share over that in its own.

        The noise of a question's mean is v/n, so that of a score goes with the mean of 1/n, which is more
        than 1 over the mean of n. The number of trials that they share comes second, shape (p, steps).
        """
        a, b = (
            self.cells.categories[side[pairs], start:stop] == MISSING for side in (self.first, self.second)
        )
        lost = running(self._lost[:, pairs], np.stack([a | b, a, b]))
        inverse = running(self._inverse[:, pairs], inverse)
        self._lost[:, pairs], self._inverse[:, pairs] = lost[:, :, -1], inverse[:, :, -1]
        trials = np.arange(start + 1, stop + 1) - lost
        common = trials[0]
        inverse += self.cells.sequence.inverse(start, stop)
        own = inverse[1:] / np.maximum(np.stack(seen), 1.0)
        share = inverse[0] / np.maximum(count, 1) / np.where(count > 0, own, 1.0)
        return np.where(count > 0, share, 1.0), common


class FirstDifferences:
    """Differences of single trials: the size of those that are not 0.

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
    centred : bool
        Whether the mean over all questions is taken from each value first: of scores, not of differences.

    Raises
    ------
    ValueError
        If `clusters` does not have one entry a question.
    """

    def __init__(
        self, clusters: NDArray[np.generic], questions: int, pairs: int, *, centred: bool = False
    ) -> None:
        if clusters.shape != (questions,):
            raise ValueError(f"clusters must have one entry a question ({questions}), got {clusters.shape}")
        names, self._cluster = np.unique(clusters, return_inverse=True)
        self._sums = np.zeros((pairs, names.size))
        self._sizes = np.zeros((pairs, names.size))
        self._centred = centred

    def add(
        self, pairs: Ints, questions: Ints, change: Floats, gained: NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        """Return Σ_g (Σ_{q∈g} d_q)² and G/(G − 1) after each step."""
        square, stretch = np.empty_like(change), np.empty_like(change)
        for column, question in enumerate(questions.tolist()):
            cluster = self._cluster[question]
            self._sums[pairs, cluster] += change[:, column]
            self._sizes[pairs, cluster] += gained[:, column]
            square[:, column], stretch[:, column] = self._spread(self._sums[pairs], self._sizes[pairs])
        return square, stretch

    def of(self, gap: Floats, known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return Σ_g (Σ_{q∈g} d_q)² and G/(G − 1) of differences and the questions that count, (pairs, M)."""
        inside = np.arange(self._sums.shape[1])[:, None] == self._cluster
        return self._spread(gap @ inside.T, known.astype(np.float64) @ inside.T)

    def _spread(self, sums: Floats, sizes: Floats) -> tuple[Floats, Floats]:
        if self._centred:
            mean = sums.sum(axis=1) / np.maximum(sizes.sum(axis=1), 1.0)
            sums = sums - mean[:, None] * sizes
        seen = (sizes > 0.0).sum(axis=1)
        return (sums**2).sum(axis=1), np.where(seen > 1, seen / np.maximum(seen - 1, 1), np.inf)


def cluster_spread(cells: Cells, clusters: ArrayLike | None) -> tuple[Floats, Floats] | None:
    """Return the spread of all models' present scores over clusters, for ``score_block``."""
    if clusters is None:
        return None
    number = cells.counts.sum(axis=2)
    means = cells.counts @ cells.scores / np.maximum(number, 1)
    sums = ClusterSums(np.asarray(clusters), number.shape[1], len(number), centred=True)
    square, stretch = sums.of(means, number > 0)
    return square[:, None], stretch[:, None]


def running(start: Floats, change: Floats) -> Floats:
    """Accumulate along steps from `start`, one by one, so that grouping changes no bit of the result."""
    return np.concatenate([start[..., None], change], axis=-1).cumsum(axis=-1)[..., 1:]
