"""Estimates of pairs of models from all answers, also those beyond the common prefix.

Decisions read trials in the order of the trial sequence, and wait for the slowest answer. Whether more trials
are needed can be judged sooner, from the answers that are there. They decide nothing here, so it does no
harm that they may be the quick ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from scorio.sequential.parts import FLOOR, GUARD, Cells

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POINTS = 16
"""Indices beyond the common prefix at which pairs are estimated: a winner is called at the peak of the
evidence."""
AFFORDABLE = 2**22
"""Models squared times questions, up to which all answers are looked at: some milliseconds."""


class Foresight:
    """Estimates of pairs of models when the trials issued so far are complete."""

    def __init__(self, board: Board, guard: float = GUARD) -> None:
        self._board, self._guard = board, guard
        self._weights = board.spec.task_weights
        self._same_order = len(board.cells) == 1 and board.run_sequence.endless
        models, questions = len(board.spec.names), board.run_sequence.questions
        self.available = board.spec.stopping.target == "benchmark" and models**2 * questions <= AFFORDABLE
        """Whether it knows this kind of estimate, and is quick enough."""

    def read(
        self, first: Ints, second: Ints, reach: Ints, start: int, difference: Floats
    ) -> tuple[Floats, Floats, Ints]:
        """Return difference and variance at the end and at indices on the way to it.

        The variance is that between questions in a first pass, and that of the noise after it.

        Parameters
        ----------
        first, second : ndarray of int, shape (p,)
            The models of each pair.
        reach : ndarray of int, shape (p,)
            Trials issued of both.
        start : int
            Common prefix.
        difference : ndarray of float, shape (p,)
            Difference at the common prefix.

        Returns
        -------
        difference, variance : ndarray of float, shape (p, k)
            In unit scores, and its square; the end comes first.
        questions : ndarray of int, shape (p,)
            Questions that both have answered, the fewest over the tasks.
        """
        tasks = [self._task(task, first, second, reach) for task in range(len(self._weights))]
        mean = np.asarray(sum(w * one[0] for w, one in zip(self._weights, tasks, strict=True)))
        variance = np.asarray(sum(w * w * one[1] for w, one in zip(self._weights, tasks, strict=True)))
        mean, variance = mean[:, None], np.maximum(variance, FLOOR)[:, None]
        questions = np.minimum.reduce([one[2] for one in tasks])
        if self._same_order:
            steps, on_the_way = self._along(first, second, reach, start, difference, mean)
            mean = np.concatenate([mean, on_the_way], axis=1)
            variance = np.concatenate([variance, variance * reach[:, None] / steps], axis=1)
        return mean, variance, questions

    def _task(self, task: int, first: Ints, second: Ints, reach: Ints) -> tuple[Floats, Floats, Ints]:
        """Return difference, variance and questions of both on one task."""
        board, cells = self._board, self._board.cells[task]
        total = cells.sequence.questions
        trials, score, square = self._by_question(task, cells)
        seen, many = (trials > 0).astype(np.float64), np.maximum(trials, 1.0)
        answered = np.maximum(trials.sum(axis=1), 1.0)
        mean = score / many
        spread = square.sum(axis=1) / answered - (score.sum(axis=1) / answered) ** 2
        repeats = np.maximum(answered - seen.sum(axis=1), 0.0)
        # The variance between answers to one question; without repeats, that between all answers.
        within = ((square - score * mean).sum(axis=1) + 2.0 * spread) / (repeats + 2.0)
        of_mean, of_square, of_noise = (
            value @ seen.T for value in (mean, mean**2, seen * within[:, None] / many)
        )
        both = np.maximum((seen @ seen.T)[first, second], 1.0)
        gap = of_square[first, second] + of_square[second, first] - 2.0 * (mean @ mean.T)[first, second]
        noise = of_noise[first, second] + of_noise[second, first]
        answered[len(board.spec.models) :] = np.inf  # of references nothing is awaited
        issued = np.maximum(reach * (total / board.run_sequence.questions), 1.0)
        share = np.minimum(np.minimum(answered[first], answered[second]) / issued, 1.0)
        early = (gap + self._guard) / (both * np.maximum(issued, both))
        return (
            (of_mean[first, second] - of_mean[second, first]) / both,
            np.where(issued < total, early, noise / both**2 * share),
            both.astype(np.int64),
        )

    def _by_question(self, task: int, cells: Cells) -> tuple[Floats, Floats, Floats]:
        """Return the answers of each model to each question: their number, Σx and Σx²; shape (L, M) each."""
        board, counts = self._board, cells.counts.astype(np.float64)
        for model in range(len(board.spec.models)):
            start = int(board.progress[model])
            ahead = board.answers[model, start : board.furthest[model]]
            here = ahead[board.run_sequence.task(start, start + ahead.size) == task]
            known = here >= 0
            if known.any():
                local = board.run_sequence.local(start)[task]
                asked = cells.sequence.of(np.array([model]), local, local + here.size)[0]
                np.add.at(counts[model], (asked[known], here[known]), 1.0)
        return counts.sum(axis=2), counts @ cells.scores, counts @ cells.scores**2

    def _along(
        self, first: Ints, second: Ints, reach: Ints, start: int, difference: Floats, end: Floats
    ) -> tuple[Ints, Floats]:
        """Return indices beyond the common prefix, and the mean difference up to each; shape (p, k) both.

        Those of a reference, or of which less than half is answered by both models, are the end.
        """
        board = self._board
        models = len(board.spec.models)
        width = max(-(-(max(board.furthest) - start) // POINTS), 1)
        ahead = np.full((models, POINTS * width), -1, dtype=board.answers.dtype)
        have = board.answers[:, start : start + POINTS * width]
        ahead[:, : have.shape[1]] = have
        parts = ahead.reshape(models, POINTS, width).transpose(1, 0, 2)
        known = (parts >= 0).astype(np.float64)
        score = known * board.cells[0].scores[np.maximum(parts, 0)]
        of_score, of_both = (np.cumsum(value @ known.transpose(0, 2, 1), axis=0) for value in (score, known))
        other = np.minimum(second, models - 1)
        both = of_both[:, first, other].T
        gained = (of_score[:, first, other] - of_score[:, other, first]).T
        steps = width * np.arange(1, POINTS + 1)
        good = (second < models)[:, None] & (start + steps < reach[:, None]) & (both >= 0.5 * steps)
        mean = (start * difference[:, None] + gained) / np.maximum(start + both, 1.0)
        return np.where(good, start + steps, reach[:, None]), np.where(good, mean, end)
