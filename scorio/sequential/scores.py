"""Models' own scores, read step by step and held against a number."""

from typing import Unpack

import numpy as np

from scorio._arrays import Floats, Integers, Ints
from scorio.sequential.cells import Cells
from scorio.sequential.clusters import Spread
from scorio.sequential.contrasts import ContrastBlock, score_block
from scorio.sequential.moments import PathBlock
from scorio.sequential.pairs import Reader, ReaderOptions


class ScoreReader(Reader):
    """Reads models' own scores minus the number that each is compared with.

    Parameters
    ----------
    cells : Cells
        The moments of the models.
    models, values : ndarray, shape (P,)
        The model of each contrast, and the number.
    **options
        As in :class:`scorio.sequential.pairs.Reader`.
    """

    def __init__(self, cells: Cells, models: Ints, values: Floats, **options: Unpack[ReaderOptions]) -> None:
        self._models, self._values = models, values
        super().__init__(cells, models.size, **options, centred=True)

    def _read_shared(self, contrasts: Integers, start: int, stop: int) -> ContrastBlock:
        path = self.cells.path(self._models[contrasts], start, stop)
        sequence, spread = self.cells.sequence, None
        if self._clusters is not None:
            known = ~np.isnan(path.after)
            change = np.where(known, path.after - np.where(path.fresh, 0.0, path.before), 0.0)
            questions = sequence.question(start, stop)
            spread = self._clusters.add(contrasts, questions, change, path.fresh & known)
        block = self._held(contrasts, path, spread, sequence.asked_by(start, stop))
        return self._widened(block, contrasts, path, spread, start, stop)

    def _read_rounds(self, contrasts: Integers, start: int, stop: int) -> ContrastBlock:
        assert self.cells.rounds is not None
        models, begun, spread = self._models[contrasts], self.cells.rounds.begun(start), None
        if self._clusters is not None:
            spread = self._clusters.of(begun.estimate(models), begun.known(models))
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
        margins = None if self.margins is None else self.margins[contrasts, None]
        return block.less(self._values[contrasts, None], margins)
