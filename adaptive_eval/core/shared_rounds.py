"""Shared rounds: after two passes, questions that vary more are asked more often, the same for all models.

Kept for runs that began with them: where counts follow from the outcomes that are averaged, two equal models
are called different in up to a tenth of runs (:mod:`scorio.sequential.rounds` mends that).

The next round is laid out in the middle of the present one, from what the needed models had answered by then:
always at a fixed index, so that the trial sequence depends on the outcomes alone. Each round has as many
trials as the task has questions, in proportion to the square root of a question's one-trial variance
(Neyman's allocation). Question means are averaged as ever, so the estimate stays that of the benchmark.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scorio.sequential.cells import Cells, fit_prior

FIRST_PASSES = 2


class SharedRounds:
    """Extends the trial sequence of the only task, round by round."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        sequence = cells.sequence
        sequence.ensure(FIRST_PASSES * sequence.questions)
        sequence.end_passes()
        self.due = self._middle()

    @property
    def laid_out(self) -> int:
        """Steps that can be asked."""
        return len(self._cells.sequence)

    def extend(self, models: NDArray[np.int64]) -> None:
        """Lay out the next round from what `models` had answered before step :attr:`due`."""
        sequence = self._cells.sequence
        variance = np.mean([self._variances(model) for model in models.tolist()], axis=0)
        sequence.extend(_round_positions(np.sqrt(variance)[sequence.order]))
        self.due = self._middle()

    def _middle(self) -> int:
        sequence = self._cells.sequence
        return len(sequence) - sequence.questions // 2

    def _variances(self, model: int) -> NDArray[np.float64]:
        """Return the one-trial variance of every question for one model at step :attr:`due`."""
        cells = self._cells
        categories = cells.categories[model, : self.due].astype(np.int64)
        answered = categories >= 0
        asked = cells.sequence.question(0, self.due)[answered]
        size = cells.scores.size
        flat = np.bincount(asked * size + categories[answered], minlength=cells.sequence.questions * size)
        counts = flat.reshape(-1, size)
        n, sx, sxx = counts.sum(axis=1), counts @ cells.scores, counts @ cells.scores**2
        p1, p2 = float(cells.scores.mean()), float((cells.scores**2).mean())
        seen = n > 0
        if not seen.any():
            return np.ones(cells.sequence.questions)
        return fit_prior(n[seen], sx[seen], sxx[seen], p1, p2).variance(n, sx, sxx)


def _round_positions(weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """Spread as many trials as there are questions in proportion to `weight`.

    Examples
    --------
    >>> _round_positions(np.array([3.0, 1.0, 0.0, 0.0])).tolist()
    [0, 1, 0, 0]
    """
    size = weight.size
    total = weight.sum()
    share = np.full(size, 1.0) if total <= 0.0 else size * weight / total
    times = np.floor(share).astype(np.int64)
    largest = np.argsort(-(share - times), kind="stable")[: size - int(times.sum())]
    times[largest] += 1
    layers = [np.flatnonzero(times > layer) for layer in range(int(times.max()))]
    return np.concatenate(layers).astype(np.int64)
