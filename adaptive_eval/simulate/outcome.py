"""What one simulated run comes to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from adaptive_eval.core.results import StopReason
from adaptive_eval.core.spec import SessionSpec

__all__ = ["RunOutcome", "scores_until"]


@dataclass(frozen=True, slots=True, eq=False)
class RunOutcome:
    """One simulated run.

    Parameters
    ----------
    verdict, decided_at : ndarray of int, shape (P,)
        Verdict of each contrast (0 open, 1 first is better, -1 worse, 2 tie) and its step (-1 while open).
    trials : ndarray of int64, shape (L,)
        Trials paid for per model, those in flight at the stop included.
    score : ndarray of float, shape (L,)
        Mean score over seen questions at the end, in unit scores; NaN without a trial.
    steps : int
        Steps folded when the run stopped.
    time : float
        Virtual seconds to the stop; without a latency, rounds of answers.
    reason : str
        Why it stopped.
    exhausted : ndarray of bool, shape (L,)
        Models whose recorded answers ran out while they were needed.
    """

    verdict: NDArray[np.int8]
    decided_at: NDArray[np.int64]
    trials: NDArray[np.int64]
    score: NDArray[np.float64]
    steps: int
    time: float
    reason: StopReason
    exhausted: NDArray[np.bool_]


def scores_until(spec: SessionSpec, board: Board, steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return each model's overall mean unit score over the first `steps` steps of its walk, shape (L,).

    Questions are weighted equally within a task, whatever their numbers of trials; NaN where a task has no
    trial yet. Within rounds of a model's own, it is their weighted mean.
    """
    overall = np.zeros(steps.size)
    for model, stop in enumerate(steps.tolist()):
        local = board.schedule.local(stop)
        for weight, cells, end in zip(spec.task_weights, board.cells, local, strict=True):
            if cells.rounds is not None and end > cells.rounds.first:
                overall[model] += weight * cells.rounds.score(model, end, cells.categories)
                continue
            categories = cells.categories[model, :end]
            there = categories >= 0
            questions = cells.sequence.question(0, end)[there]
            count = np.bincount(questions)
            total = np.bincount(questions, weights=cells.scores[categories[there]])
            seen = count > 0
            mean = (total[seen] / count[seen]).mean() if seen.any() else np.nan
            overall[model] += weight * mean
    return overall
