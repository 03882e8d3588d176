"""Models' own scores, read step by step and held against a number."""

import numpy as np
from numpy.typing import ArrayLike

from scorio._arrays import Floats, Ints
from scorio.sequential.cells import Cells
from scorio.sequential.clusters import ClusterSums, Spread
from scorio.sequential.contrasts import ContrastBlock, Target, score_block
from scorio.sequential.moments import PathBlock


class ScoreReader:
    """Reads models' own scores minus the number that each is compared with.

    Parameters
    ----------
    cells : Cells
        The moments of the models.
    models, values : ndarray, shape (P,)
        The model of each contrast, and the number.
    target, clusters, equivalence, guard
        As in :class:`scorio.sequential.pairs.PairReader`.
    """

    def __init__(
        self,
        cells: Cells,
        models: Ints,
        values: Floats,
        target: Target,
        clusters: ArrayLike | None,
        equivalence: float | None,
        guard: float,
    ) -> None:
        self._cells = cells
        self._models = models
        self._values = values
        self._target: Target = target
        self._margin, self._guard = equivalence, guard
        self._clusters: ClusterSums | None = None
        if clusters is not None:
            names = np.asarray(clusters)
            self._clusters = ClusterSums(names, cells.sequence.questions, models.size, centred=True)
        self._progress = np.zeros(models.size, dtype=np.int64)

    def read(self, rows: Ints, stop: int) -> ContrastBlock:
        """Read scores at equal progress, up to index `stop` of the task's trial sequence."""
        start = int(self._progress[rows[0]])
        path = self._cells.path(self._models[rows], start, stop)
        self._progress[rows] = stop
        spread = None if self._clusters is None else self._spread(self._clusters, rows, start, path)
        sequence = self._cells.sequence
        own = stop > sequence.shared
        asked = sequence.questions if own else sequence.asked_by(start, stop)
        weight = self._cells.repeat_weight
        block = score_block(path, sequence.questions, self._target, spread, weight, asked, self._guard)
        return block.less(self._values[rows, None], self._margin)

    def _spread(self, clusters: ClusterSums, rows: Ints, start: int, path: PathBlock) -> Spread:
        """Return the spread over clusters after each step; within a round as the round began."""
        sequence = self._cells.sequence
        squares = []
        sizes = []
        for begin, end in self._cells.pieces(start, start + path.fresh.shape[1]):
            here = slice(begin - start, end - start)
            if end <= sequence.shared:
                fresh = path.fresh[:, here]
                change = path.after[:, here] - np.where(fresh, 0.0, path.before[:, here])
                spread = clusters.add(rows, sequence.question(begin, end), change, fresh)
            else:
                assert self._cells.rounds is not None
                begun, models = self._cells.rounds.begun(begin), self._models[rows]
                spread = clusters.of(begun.estimate(models), begun.known(models))
            shape = (rows.size, end - begin)
            squares.append(np.broadcast_to(spread.square, shape))
            sizes.append(np.broadcast_to(spread.size, shape))
        return Spread(np.concatenate(squares, axis=1), np.concatenate(sizes, axis=1))
