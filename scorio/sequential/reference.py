"""A model against stored results: contrasts of a model being asked with one whose trials are all in.

The model being asked gets further trials; the *reference* has finished. Over the c questions that
both have answered, D and V are those of any pair (:mod:`scorio.sequential.contrasts`), with the reference's
final mean on each question. During the first pass the reference knows e questions more than the other, and
whether those were easier or harder for it than the common ones says how the common ones misrepresent the
benchmark: D is corrected by regression, as in double sampling ([1]_).

References
----------
.. [1] Cochran, "Sampling Techniques", 3rd edition (1977), section 12.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Bools, Floats, Integers, Ints, floats
from scorio.sequential.cells import Cells
from scorio.sequential.clusters import Spread
from scorio.sequential.contrasts import ContrastBlock
from scorio.sequential.evidence import FLOOR
from scorio.sequential.moments import Mark, PathBlock
from scorio.sequential.pairs import Reader, ReaderOptions, running

ENOUGH_QUESTIONS = 30
"""Common questions from which on the regression is trusted."""
ENOUGH_SQUARES = 10.0
"""Σ d² from which on the regression is trusted."""
SHRINKAGE = 20.0
"""Common questions at which half of the fitted regression is used."""
LEAST_VARIANCE = 0.3
"""The correction never takes more than 70 % of the variance away."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """The questions that two models share, and the reference's others; arrays that broadcast.

    Parameters
    ----------
    questions, extra : ndarray of float
        c, the questions both have answered, and e, those that only the reference has.
    square : ndarray of float
        Q, the sum of squared differences over the common questions.
    covariance : ndarray of float
        Sample covariance of difference and reference score over the common questions.
    spread : ndarray of float
        Sample variance of the reference's scores over its c + e questions.
    lead : ndarray of float
        Mean score of the reference on the extra questions less that on the common ones.
    """

    questions: Floats
    extra: Floats
    square: Floats
    covariance: Floats
    spread: Floats
    lead: Floats


def with_extra_questions(
    difference: ArrayLike, variance: ArrayLike, overlap: Overlap
) -> tuple[Floats, Floats]:
    """Correct a contrast with a reference for what the reference scored on further questions.

    Parameters
    ----------
    difference, variance : array_like of float
        D and V over the common questions.
    overlap : Overlap
        What the two models have in common.

    Returns
    -------
    difference, variance : ndarray of float
        ``D + g·lead`` and ``max(V + g²B − 2gG + 4(e/(c + e))/c², 0.3 V)`` with G = cov/c,
        B = spread·(1/c + 1/e) and g = (G/B)·c/(c + 20); unchanged if c < 30, Q < 10, e = 0 or the
        reference scored the same everywhere.

    Examples
    --------
    >>> overlap = Overlap(*map(np.float64, (100, 400, 30.0, -0.12, 0.16, 0.05)))
    >>> difference, variance = with_extra_questions(0.02, 0.003, overlap)
    >>> print(difference.round(6), variance.round(6))
    -0.005 0.00262
    """
    d = floats(difference)
    v = floats(variance)
    c = np.maximum(overlap.questions, 1.0)
    e = np.maximum(overlap.extra, 1.0)
    usable = (overlap.questions >= ENOUGH_QUESTIONS) & (overlap.square >= ENOUGH_SQUARES)
    usable = usable & (overlap.extra > 0) & (overlap.spread > FLOOR)
    covariance = overlap.covariance / c
    lead_variance = np.maximum(overlap.spread, FLOOR) * (1.0 / c + 1.0 / e)
    slope = np.where(usable, covariance / lead_variance * c / (c + SHRINKAGE), 0.0)
    caution = 4.0 * (e / (c + e)) / c**2
    corrected = v + slope * (slope * lead_variance - 2.0 * covariance) + caution
    return d + slope * overlap.lead, np.where(usable, np.maximum(corrected, LEAST_VARIANCE * v), v)


class ReferenceReader(Reader):
    """Running sums of contrasts between models being asked and references, on one task.

    Parameters
    ----------
    cells : Cells
        The moments of all models; references were taken in by :meth:`scorio.sequential.cells.Cells.load`.
    live, reference : array_like of int, shape (P,)
        The model being asked and the reference of each contrast.
    sign : array_like of int, shape (P,)
        +1 for live less reference, −1 for reference less live.
    **options
        As in :class:`scorio.sequential.pairs.Reader`. With clusters, the correction for further
        questions is left out, since it takes questions as independent.
    """

    def __init__(
        self,
        cells: Cells,
        live: ArrayLike,
        reference: ArrayLike,
        sign: ArrayLike,
        **options: Unpack[ReaderOptions],
    ) -> None:
        self.live = np.asarray(live, dtype=np.int64)
        self.sign = floats(sign)
        super().__init__(cells, self.live.size, **options)
        # Σd, Σd², Σdy; of the reference Σy, Σv/n, Σu, how far lost answers could lower and raise Σy, and the
        # questions of which it has lost all
        self._sums = np.zeros((9, self.live.size))
        references, self._row = np.unique(np.asarray(reference, dtype=np.int64), return_inverse=True)
        self._results = _Results.from_cells(cells, references)

    def read(self, contrasts: Integers, stop: int) -> ContrastBlock:
        """Read some contrasts on, see :meth:`scorio.sequential.pairs.Reader.read`."""
        block = super().read(contrasts, stop)
        return block._replace(difference=self.sign[contrasts, None] * block.difference)

    def _read_shared(self, contrasts: Integers, start: int, stop: int) -> ContrastBlock:
        live = self.cells.path(self.live[contrasts], start, stop)
        question = self.cells.sequence.question(start, stop)
        results = self._results
        rows = self._row[contrasts, None]
        y = results.score[rows, question]
        categories = self.cells.categories[self.live[contrasts], start:stop]
        answered = (categories != Mark.MISSING) & (categories != Mark.DROPPED)
        counted = answered & results.known[rows, question]
        gained = counted & live.fresh
        old = np.where(counted & ~live.fresh, live.before - y, 0.0)
        new = np.where(counted, live.after - y, 0.0)
        change = [new - old, new * new - old * old, y * (new - old), y * gained]
        change += [part[rows, question] * gained for part in results.of_common]
        change.append(results.gone[rows, question] & answered & live.fresh)
        sums = running(self._sums[:, contrasts], np.stack(change))
        count = self._count[contrasts, None] + np.cumsum(gained, axis=1)
        self._sums[:, contrasts], self._count[contrasts] = sums[:, :, -1], count[:, -1]
        spread = None
        if self._clusters is not None:
            spread = self._clusters.add(contrasts, question, new - old, gained)
        asked = self.cells.sequence.asked_by(start, stop)
        return self._of_sums(contrasts, live, sums, count, spread, asked, np.where(gained, new, 0.0), stop)

    def _read_rounds(self, contrasts: Integers, start: int, stop: int) -> ContrastBlock:
        assert self.cells.rounds is not None
        models = self.live[contrasts]
        rows = self._row[contrasts]
        results = self._results
        begun = self.cells.rounds.begun(start)
        shape = (contrasts.size, stop - start)
        both = begun.answered(models) & results.known[rows]
        live = self.cells.path_of_some(models, start, stop, both)
        y = np.where(both, results.score[rows], 0.0)
        gap = np.where(both, begun.estimate(models) - y, 0.0)
        fixed = [y, gap**2, gap * y, y, *(part[rows] * both for part in results.of_common)]
        fixed.append(begun.answered(models) & results.gone[rows])
        sums = np.stack([np.broadcast_to(part.sum(axis=1)[:, None], shape) for part in fixed])
        sums[0] = live.total - sums[0]
        count = np.broadcast_to(both.sum(axis=1)[:, None], shape)
        spread = None
        if self._clusters is not None:
            spread = self._clusters.spread_of(gap, both)
        # What the reference was not asked is no answer that the other lacks.
        asked = count + np.logical_not(begun.answered(models)).sum(axis=1)[:, None]
        return self._of_sums(contrasts, live, sums, count, spread, asked, np.zeros((contrasts.size, 1)), stop)

    def _of_sums(
        self,
        contrasts: Integers,
        live: PathBlock,
        sums: Floats,
        count: Ints,
        spread: Spread | None,
        asked: Ints,
        first: Floats,
        stop: int,
    ) -> ContrastBlock:
        """Return the estimates; `spread` is that over clusters, `first` the differences of new questions."""
        rows = self._row[contrasts, None]
        c = np.maximum(count, 1)
        fall, rise, gone = sums[6:]
        most = np.maximum(live.lost_score + rise, live.lost - live.lost_score + fall)
        slack = (most + asked - live.seen + gone) / c
        single = np.maximum(live.r, self._results.drawn[3, rows]) == 0.0
        of_questions = Spread(np.maximum(sums[1], 0.0), np.ones(1))
        if self.margins is None:
            step = np.ones(1)
        else:
            step = self._typical_step(contrasts, first)

        def as_read(live: PathBlock, held: Floats) -> ContrastBlock:
            wider, avg_wider, trust, repeats = held[:, rows]
            noise = (
                live.w + wider * sums[4] / c,
                live.u + avg_wider * sums[5] / c,
                np.minimum(live.g, trust),
                np.minimum(live.r, repeats),
            )
            block = self._block(sums[0] / c, noise, spread or of_questions, count, single, slack, live.trials)
            if spread is None:
                block = self._with_extra_questions(contrasts, block, sums)
            if self.margins is None:
                return block
            other = live.mean - block.difference
            largest = live.mean * (1.0 - live.mean) + np.maximum(other * (1.0 - other), 0.0)
            margins = self.margins[contrasts, None]
            return block.for_ties(margins, self.target, live.trials, largest, step)

        block = as_read(live, self._results.drawn)
        if not self.cells.doubtful:
            return block
        start = stop - live.w.shape[1]
        live = self.cells.without_copies(live, self.live[contrasts], start, stop)
        return block.widened(as_read(live, self._results.copied))

    def _with_extra_questions(self, contrasts: Integers, block: ContrastBlock, sums: Floats) -> ContrastBlock:
        """Correct the estimates for what the references scored on further questions."""
        rows = self._row[contrasts, None]
        c = np.maximum(block.questions, 1)
        extra = np.where(self._results.whole[rows], self._results.asked[rows] - block.questions, 0.0)
        beyond = (self._results.total[rows] - sums[3]) / np.maximum(extra, 1)
        overlap = Overlap(
            questions=block.questions.astype(np.float64),
            extra=extra,
            square=sums[1],
            covariance=(sums[2] - sums[0] * sums[3] / c) / np.maximum(c - 1, 1),
            spread=self._results.spread[rows],
            lead=beyond - sums[3] / c,
        )
        difference, variance = with_extra_questions(block.difference, block.variance, overlap)
        guarded = with_extra_questions(block.difference, block.guarded, overlap)[1]
        return block._replace(difference=difference, variance=variance, guarded=guarded)


@dataclass(frozen=True, slots=True)
class _Results:
    """Scores of the references: per question, shape (references, M), and in all, shape (references,)."""

    score: Floats
    of_common: tuple[Floats, ...]  # v/n, u, and how far lost answers could lower and raise the score
    gone: Bools  # whether all its trials have lost their answers
    whole: Bools  # whether no answer is lost
    known: Bools
    asked: Floats
    total: Floats
    spread: Floats
    # factors of the sums of v/n and u, G and R, shape (4, references): if all answers are draws, and if those
    # that may be copies are
    drawn: Floats
    copied: Floats

    @classmethod
    def from_cells(cls, cells: Cells, references: Ints) -> _Results:
        """Gather the results of some references."""
        moments = list(map(cells.noise, references.tolist()))
        score, noise, avg_noise = (np.stack(part) for part in zip(*moments, strict=True))
        latest = cells.latest()
        asked = latest.seen[references, 0]
        total = latest.total[references, 0]
        centred = np.maximum(latest.square[references, 0] - total**2 / np.maximum(asked, 1.0), 0.0)
        share = np.stack(list(map(cells.lost_share, references.tolist())))
        gone = np.stack(list(map(cells.only_lost, references.tolist())))
        trust = latest.g[references, 0]
        repeats = latest.r[references, 0]
        wider, avg_wider, left, share_left = cells.left_of(references)
        return cls(
            score,
            (noise, avg_noise, share * score, share * (1.0 - score)),
            gone,
            np.logical_not((share + gone).any(axis=1)),
            cells.counts[references].sum(axis=2) > 0,
            asked,
            total,
            centred / np.maximum(asked - 1.0, 1.0),
            np.stack([np.ones(trust.size), np.ones(trust.size), trust, repeats]),
            np.stack([wider, avg_wider, trust * share_left, np.minimum(repeats, left)]),
        )
