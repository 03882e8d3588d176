"""Pairs of models, and models' own scores, read step by step along the trial sequence that all share.

D is the difference of the two models' scores at equal progress, each the mean over the questions that it has
answered. Over the c questions that both have answered, d_q is the difference of their running means on
question q, and Σ d_q² says how far the models are apart on single questions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Bools, Floats, Integers, Ints, floats
from scorio.sequential.cells import Cells
from scorio.sequential.clusters import ON_CLUSTERS, ClusterSums, Spread
from scorio.sequential.contrasts import (
    ContrastBlock,
    Noise,
    Target,
    contrast_variance,
    joined,
    no_bets,
    score_block,
)
from scorio.sequential.evidence import GUARD
from scorio.sequential.moments import PathBlock

Sums = TypeVar("Sums", Floats, Ints)


class ReaderOptions(TypedDict, total=False):
    """The options of every :class:`Reader`."""

    target: Target
    clusters: ArrayLike | None
    equivalence: ArrayLike | None
    guard: float


class Reader(ABC):
    """What all readers share: what has been read, step by step, and how variances are found.

    Parameters
    ----------
    cells : Cells
        The moments of the models.
    contrasts : int
        Number of contrasts P.
    target : {'benchmark', 'population'}
        Target of the estimate.
    clusters : array_like of int, shape (M,), optional
        Cluster of each question; only with ``target="population"``.
    equivalence : array_like of float, optional
        Equivalence margin ε in unit scores, if ties are to be called; one, or one a contrast.
    guard : float
        κ, ln(1/level) of the strictest level that the evidence is read at.
    centred : bool
        Whether the contrasts are scores, which have a mean over the questions.

    Attributes
    ----------
    progress : ndarray of int64, shape (P,)
        Steps read per contrast.

    Raises
    ------
    ValueError
        If clusters are given for the benchmark target or do not have one entry a question.
    """

    def __init__(
        self,
        cells: Cells,
        contrasts: int,
        target: Target = "benchmark",
        clusters: ArrayLike | None = None,
        equivalence: ArrayLike | None = None,
        guard: float = GUARD,
        *,
        centred: bool = False,
    ) -> None:
        self.cells = cells
        if equivalence is None:
            self.margins = None
        else:
            self.margins = np.broadcast_to(floats(equivalence), contrasts)
        self._guard = guard
        self.target: Target = target
        self.progress = np.zeros(contrasts, dtype=np.int64)
        self._count = np.zeros(contrasts, dtype=np.int64)
        self._firsts = np.full((2, contrasts), guard)  # Σd² and Σd⁴, as if a few had differed fully
        self._clusters: ClusterSums | None = None
        if clusters is not None:
            if target != "population":
                raise ValueError(f"clusters need target 'population', got target {target!r}")
            names = np.asarray(clusters)
            questions = cells.sequence.questions
            self._clusters = ClusterSums(names, questions, contrasts, centred=centred)

    def read(self, contrasts: Integers, stop: int) -> ContrastBlock:
        """Read some contrasts on, from their common progress up to step `stop`.

        Parameters
        ----------
        contrasts : ndarray of int, shape (p,)
            Contrasts with equal :attr:`progress`; their models must have absorbed `stop` steps.
        stop : int
            Step to read up to (exclusive), more than the progress.

        Returns
        -------
        ContrastBlock
            Estimates after each of the steps.
        """
        start = int(self.progress[contrasts[0]])
        if (self.progress[contrasts] != start).any():
            raise ValueError("contrasts read together must be at the same step")
        self.progress[contrasts] = stop
        blocks = []
        for begin, end in self.cells.pieces(start, stop):
            shared = end <= self.cells.sequence.shared
            if shared:
                read = self._read_shared
            else:
                read = self._read_rounds
            blocks.append(read(contrasts, begin, end))
        if len(blocks) == 1:
            return blocks[0]
        return joined(blocks, axis=1)

    @abstractmethod
    def _read_shared(self, contrasts: Integers, start: int, stop: int) -> ContrastBlock:
        """Read steps at which all models are asked the same question."""

    @abstractmethod
    def _read_rounds(self, contrasts: Integers, start: int, stop: int) -> ContrastBlock:
        """Read steps of one round, in which each model has its own questions and weights."""

    def _block(
        self,
        difference: Floats,
        noise: Noise,
        spread: Spread,
        count: Ints,
        single: Bools,
        slack: Floats,
        trials: Floats,
    ) -> ContrastBlock:
        """Return the estimates after each step, before ties; `single` says where no trial is repeated."""
        questions = np.maximum(count, 1).astype(np.float64)
        total = self.cells.sequence.questions
        square = np.broadcast_to(spread.square, count.shape)
        guarded = contrast_variance(square, self._guard * spread.size, questions, total, noise, self.target)
        variance = guarded
        # Without repeats, right-or-wrong outcomes of a sample are iid, for which κ = 0 is a theorem. The
        # questions of a benchmark come without replacement, for which it was simulated.
        if self.cells.scale.binary and self._clusters is None and single.any():
            plain = contrast_variance(square, 0.0, questions, total, noise, self.target)
            variance = np.where(single, plain, guarded)
        avg_variance = noise[1] / questions
        bets, staked = no_bets(count.shape)
        if spread.bets is not None:  # given up while an answer is lost
            bets = np.where(slack > 0.0, bets, spread.bets)
            staked = staked + ON_CLUSTERS
        estimate = difference, variance, guarded, guarded, avg_variance
        return ContrastBlock(*estimate, count, trials, slack, bets, staked)

    def _typical_step(self, contrasts: Integers, first: Floats) -> Floats:
        """Return mean d⁴ over mean d² of single trials by each step; `first` is 0 unless the question is new.

        It is the squared size of a difference that is not 0: 1 if answers are right or wrong.
        """
        if self.cells.scale.binary:
            return np.ones(1)
        sums = running(self._firsts[:, contrasts], np.stack([first**2, first**4]))
        self._firsts[:, contrasts] = sums[:, :, -1]
        return np.asarray(sums[1] / sums[0])


class PairReader(Reader):
    """Running sums of pairs of models on one task.

    Parameters
    ----------
    cells : Cells
        The moments of the models.
    first, second : array_like of int, shape (P,)
        The models of each pair.
    **options
        As in :class:`Reader`.
    """

    def __init__(
        self, cells: Cells, first: ArrayLike, second: ArrayLike, **options: Unpack[ReaderOptions]
    ) -> None:
        self.first = np.asarray(first, dtype=np.int64)
        self.second = np.asarray(second, dtype=np.int64)
        super().__init__(cells, self.first.size, **options)
        self._square = np.zeros(self.first.size)

    def _read_shared(self, contrasts: Integers, start: int, stop: int) -> ContrastBlock:
        both = self._paths(contrasts, start, stop)
        before, after = both.difference(both.path.before), both.difference(both.path.after)
        unknown = np.isnan(before)
        still_unknown = np.isnan(after)
        gained = unknown & ~still_unknown
        old, new = np.where(unknown, 0.0, before), np.where(still_unknown, 0.0, after)
        square = running(self._square[contrasts], new * new - old * old)
        count = self._count[contrasts, None] + gained.cumsum(axis=1)
        self._square[contrasts], self._count[contrasts] = square[:, -1], count[:, -1]
        if self._clusters is None:
            spread = Spread(np.maximum(square, 0.0), np.ones(1))
        else:
            questions = self.cells.sequence.question(start, stop)
            spread = self._clusters.add(contrasts, questions, new - old, gained)
        asked = self.cells.sequence.asked_by(start, stop)
        first = np.where(gained, new, 0.0)
        return self._of_paths(contrasts, both, spread, count, asked, first)

    def _read_rounds(self, contrasts: Integers, start: int, stop: int) -> ContrastBlock:
        assert self.cells.rounds is not None
        both = self._paths(contrasts, start, stop)
        first, second = self.first[contrasts], self.second[contrasts]
        begun = self.cells.rounds.begun(start)
        known = begun.answered(first) & begun.answered(second)
        gap = np.where(known, begun.estimate(first) - begun.estimate(second), 0.0)
        if self._clusters is None:
            spread = Spread((gap**2).sum(axis=1, keepdims=True), np.ones(1))
        else:
            spread = self._clusters.spread_of(gap, known)
        asked = np.full(stop - start, self.cells.sequence.questions)
        count = np.broadcast_to(known.sum(axis=1)[:, None], (contrasts.size, stop - start))
        return self._of_paths(contrasts, both, spread, count, asked, np.zeros((contrasts.size, 1)))

    def _paths(self, pairs: Integers, start: int, stop: int) -> _Both:
        first, second = self.first[pairs], self.second[pairs]
        used = np.zeros(self.cells.models, dtype=bool)
        used[first] = used[second] = True
        place = np.cumsum(used) - 1
        models = np.flatnonzero(used)
        path = self.cells.path(models, start, stop)
        both = _Both(path, place[first], place[second])
        if self.cells.copied is None:
            return both
        return replace(both, without_copies=self.cells.without_copies(path, models, start, stop))

    def _of_paths(
        self, pairs: Integers, both: _Both, spread: Spread, count: Ints, asked: Ints, first: Floats
    ) -> ContrastBlock:
        """Return the estimates; `first` are the differences of new questions."""
        path = both.path
        mean = both.path.mean
        difference = both.difference(mean)
        slack = np.zeros(difference.shape)
        if not path.whole(asked):
            (least_a, least_b), (most_a, most_b) = map(both.sides, path.bounds(asked))
            slack = np.maximum(difference - (least_a - most_b), most_a - least_b - difference)
        if self.margins is None:
            step = np.ones(1)
        else:
            step = self._typical_step(pairs, first)
        single = both.sum(path.repeats) == 0.0

        def as_read(path: PathBlock) -> ContrastBlock:
            repeats = self.cells.repeat_weight * both.least(path.r)
            noise = (both.sum(path.w), both.sum(path.u), both.least(path.g), repeats)
            trials = both.least(path.trials)
            largest = both.sum(mean * (1.0 - mean))
            block = self._block(difference, noise, spread, count, single, slack, trials)
            if self.margins is None:
                return block
            return block.for_ties(self.margins[pairs, None], self.target, trials, largest, step)

        block = as_read(path)
        if both.without_copies is None:
            return block
        return block.widened(as_read(both.without_copies))


@dataclass(frozen=True, slots=True)
class _Both:
    """The two models of pairs: their paths, a line a model, and the lines of the first and the second."""

    path: PathBlock
    first: Ints
    second: Ints
    without_copies: PathBlock | None = None  # the path as if what may be a copy were one

    def sides(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the values of the first models and of the second, from those of each line."""
        return values.take(self.first, axis=0), values.take(self.second, axis=0)

    def sum(self, values: Floats) -> Floats:
        first, second = self.sides(values)
        return first + second

    def difference(self, values: Floats) -> Floats:
        first, second = self.sides(values)
        return first - second

    def least(self, values: Floats) -> Floats:
        return np.minimum(*self.sides(values))


def running(start: Sums, change: Sums) -> Sums:
    """Accumulate along steps from `start`, one by one, so that grouping changes no bit of the result."""
    if change.shape[-1] == 1:
        return start[..., None] + change
    return np.concatenate([start[..., None], change], axis=-1).cumsum(axis=-1)[..., 1:]


class ScoreReader(Reader):
    """Reads models' own scores minus the number that each is compared with.

    Parameters
    ----------
    cells : Cells
        The moments of the models.
    models, values : ndarray, shape (P,)
        The model of each contrast, and the number.
    lead : ndarray of float, shape (P, M), optional
        By how much each question is predicted to exceed the mean of all, 0 on average. A score is then the
        mean of what is beyond this, which varies less between questions.
    **options
        As in :class:`scorio.sequential.pairs.Reader`.
    """

    def __init__(
        self,
        cells: Cells,
        models: Ints,
        values: Floats,
        lead: Floats | None,
        **options: Unpack[ReaderOptions],
    ) -> None:
        self._models = models
        self._values = values
        self._lead = lead
        self._predicted = np.zeros((3, models.size))  # Σ of the leads, of their squares, and leads × means
        super().__init__(cells, models.size, **options, centred=True)

    def _read_shared(self, contrasts: Integers, start: int, stop: int) -> ContrastBlock:
        path = self.cells.path(self._models[contrasts], start, stop)
        sequence, spread = self.cells.sequence, None
        if self._clusters is not None:
            known = ~np.isnan(path.after)
            change = np.where(known, path.after - np.where(path.fresh, 0.0, path.before), 0.0)
            questions = sequence.question(start, stop)
            spread = self._clusters.add(contrasts, questions, change, path.fresh & known)
        asked = sequence.asked_by(start, stop)
        if self._lead is not None:
            path = self._beyond(
                path, contrasts, self._lead[contrasts][:, sequence.question(start, stop)], asked
            )
        block = self._held(contrasts, path, spread, asked)
        return self._widened(block, contrasts, path, spread, start, stop)

    def _beyond(self, path: PathBlock, contrasts: Integers, lead: Floats, asked: Ints) -> PathBlock:
        """Return the path of what is beyond the `lead` of each step's question, where this varies less.

        While a question that was asked has no answer, the path stays as it is: the leads do not cancel out.
        """
        known = ~np.isnan(path.after)
        gained = lead * (path.fresh & known)
        moved = lead * np.where(known, path.after - np.where(path.fresh, 0.0, path.before), 0.0)
        sums = running(self._predicted[:, contrasts], np.stack([gained, gained * lead, moved]))
        self._predicted[:, contrasts] = sums[:, :, -1]
        total = path.total - sums[0]
        square = path.square + sums[1] - 2.0 * sums[2]
        seen = np.maximum(path.seen, 1.0)
        quieter = square - total**2 / seen < path.square - path.total**2 / seen
        serves = quieter & (path.seen >= asked)
        return replace(
            path, total=np.where(serves, total, path.total), square=np.where(serves, square, path.square)
        )

    def _read_rounds(self, contrasts: Integers, start: int, stop: int) -> ContrastBlock:
        assert self.cells.rounds is not None
        models = self._models[contrasts]
        begun = self.cells.rounds.begun(start)
        spread = None
        if self._clusters is not None:
            spread = self._clusters.spread_of(begun.estimate(models), begun.answered(models))
        path = self.cells.path(models, start, stop)
        block = self._held(contrasts, path, spread, self.cells.sequence.questions)
        return self._widened(block, contrasts, path, spread, start, stop)

    def _widened(
        self,
        block: ContrastBlock,
        contrasts: Integers,
        path: PathBlock,
        spread: Spread | None,
        start: int,
        stop: int,
    ) -> ContrastBlock:
        """Return a block with the larger variance if answers may be copies."""
        if self.cells.copied is None:
            return block
        path = self.cells.without_copies(path, self._models[contrasts], start, stop)
        return block.widened(self._held(contrasts, path, spread, self.cells.sequence.questions))

    def _held(
        self, contrasts: Integers, path: PathBlock, spread: Spread | None, asked: Ints | int
    ) -> ContrastBlock:
        """Return scores minus the numbers; `spread` is that over clusters."""
        weight, questions = self.cells.repeat_weight, self.cells.sequence.questions
        block = score_block(path, questions, self.target, spread, weight, asked, self._guard)
        margins = None
        if self.margins is not None:
            margins = self.margins[contrasts, None]
        return block.less(self._values[contrasts, None], margins)
