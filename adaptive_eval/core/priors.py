"""Priors from trials of previous runs, for early views. They enter no decision.

Added to the new trials (R0), they make Bayes@N more precise while a model has few. Through a random effect
per model (:func:`scorio.rank.transfer_posterior`) they give an early ranking, in which they lose weight if
the new trials disagree.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.spec import SessionSpec, TaskSpec
from adaptive_eval.errors import SessionError
from scorio.sequential.parts import (
    Cells,
    ContrastBlock,
    TrialSequence,
    cluster_spread,
    score_block,
    unit_scores,
)

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

UNKNOWN = 1e6
"""Variance of the score of a model without trials: no information."""


class PreviousTrials:
    """The prior of a session, in the layout of its board."""

    def __init__(self, spec: SessionSpec) -> None:
        self.spec = spec
        self._r0: list[Counts] | None = None
        self._previous: tuple[Floats, Floats] | None = None
        if spec.prior is None:
            return
        self._r0 = [_table(spec, task, spec.prior.counts) for task in spec.tasks]
        if spec.prior.transfer is not None:
            self._previous = self._scores([_table(spec, task, spec.prior.transfer) for task in spec.tasks])

    def with_prior(self, counts: NDArray[np.int32], task: int) -> NDArray[np.integer]:
        """Return a task's category counts with R0 added."""
        return counts if self._r0 is None else counts + self._r0[task]

    def early(self, scores: ContrastBlock, known: NDArray[np.bool_]) -> tuple[Floats, Floats] | None:
        """Return the transferred mean and standard deviation of every model's score, in unit scores."""
        if self._previous is None:
            return None
        # The ranking metrics take longer to import than all else here.
        from scorio.rank import transfer_posterior

        before, variance = self._previous
        x = np.where(known, scores.difference[:, 0], np.where(np.isnan(before), 0.5, before))
        v = np.where(known, scores.variance[:, 0], UNKNOWN)
        found = transfer_posterior(x, v, before, variance)
        nothing = ~known & np.isnan(before)
        return np.where(nothing, np.nan, found.mu), np.where(nothing, np.nan, found.sigma)

    def _scores(self, tables: list[Counts]) -> tuple[Floats, Floats]:
        """Return mean and variance of the earlier scores, weighted as on the board."""
        spec = self.spec
        mean, variance = np.zeros((2, len(spec.names)))
        for weight, task, table in zip(spec.task_weights, spec.tasks, tables, strict=True):
            cells = Cells(
                TrialSequence(range(len(task.questions))), unit_scores(task.weights), len(spec.names)
            )
            for model in range(len(spec.models)):
                cells.load(model, table[model])
            spread = cluster_spread(cells, task.clusters)
            block = score_block(cells.latest(), len(task.questions), spec.stopping.target, spread)
            none = block.questions[:, 0] == 0
            mean += weight * np.where(none, np.nan, block.difference[:, 0])
            variance += weight**2 * np.where(none, np.nan, block.variance[:, 0])
        return mean, variance


def _table(spec: SessionSpec, task: TaskSpec, counts: Mapping[str, Mapping[str, Counts]]) -> Counts:
    """Return a task's counts of all models as one table, shape (L, M, C + 1); 0 where there are none."""
    expected = (len(task.questions), len(task.weights))
    asked = [model.name for model in spec.models]
    table = np.zeros((len(spec.names), *expected), dtype=np.int64)
    for name, tasks in counts.items():
        if name not in asked:
            raise SessionError(f"the prior names {name!r}, which is no model of this session")
        found = tasks.get(task.name)
        if found is None:
            continue
        if found.shape != expected or found.min() < 0:
            raise SessionError(
                f"the prior of model {name!r} needs counts of shape {expected} (questions x categories) for "
                f"task {task.name!r}, none of them negative; got shape {found.shape}"
            )
        table[asked.index(name)] = found
    return table
