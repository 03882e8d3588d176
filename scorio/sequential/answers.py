"""Answers: which trials are completed, the common prefix of each model, and its scores.

Answers arrive in any order; only the contiguous completed prefix of a model's trial sequence counts. Early
arrivals wait; prefixes are absorbed in rectangles (models x indices), so that every batch costs a few array
operations.
"""

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Floats, Integers, Ints
from scorio.sequential.cells import Cells
from scorio.sequential.clusters import cluster_spread
from scorio.sequential.contrasts import ContrastBlock, Target, combined, score_block
from scorio.sequential.control import stored_answers
from scorio.sequential.moments import Mark
from scorio.sequential.trial_sequence import RunSequence


class Answers:
    """Answers of all models along their trial sequence.

    Parameters
    ----------
    run_sequence : RunSequence
        The trial sequence of all tasks.
    cells : sequence of Cells
        The moments of the models, per task. Those of models with stored results are loaded.
    asked : int
        Models that are asked: the first ones. The others have stored results.
    weights : sequence of float
        Weight of each task in the overall score; they sum to 1.
    target : {'benchmark', 'population'}
        Target of the scores.
    clusters : sequence of (array_like or None), optional
        Per task the cluster of each question.
    guard : float
        κ of the scores, ln(1/level).
    """

    FINISHED = sys.maxsize // 2
    """Trials of a model with stored results: more than any model can have, and two of them can be added."""

    def __init__(
        self,
        run_sequence: RunSequence,
        cells: Sequence[Cells],
        asked: int,
        weights: Sequence[float],
        target: Target,
        clusters: Sequence[ArrayLike | None] | None,
        guard: float,
    ) -> None:
        self.run_sequence = run_sequence
        self.cells = tuple(cells)
        self.weights = tuple(weights)
        self.target = target
        self.guard = guard
        self.clusters = tuple(clusters or [None] * len(self.cells))
        models = cells[0].models
        self.complete = [0] * asked + [Answers.FINISHED] * (models - asked)
        """Completed trials of each model, absorbed or not."""
        self.progress: Ints = np.array(self.complete, dtype=np.int64)
        self._turns: list[list[int]] = [[] for _ in range(asked)]  # where a model becomes exact, or not
        small = np.result_type(*(one.categories.dtype for one in self.cells))
        self.answers: Integers = np.full((asked, 64), Mark.NOT_YET, dtype=small)
        """Category at each index of each model, also beyond its common prefix; NOT_YET if it is awaited."""
        self._told: Ints = np.zeros((models, 64), dtype=np.int64)
        """Log position, from 1, of each index; in a prefix, that by which all before was told too."""
        self.furthest = [0] * asked
        """Index after the last one that each model has completed."""
        self.answered = 0
        """Outcomes that have been told."""
        self.stored = stored_answers(self.cells, asked)
        """Those of the models with stored results, from which others are predicted; None without any."""
        self.costs: Floats | None = None
        """What each index of each model cost, if rounds are laid out by it; 0 where it is not known."""

    def category(self, model: int, index: int) -> int | None:
        """Return the category at an index, MISSING or DROPPED; None if it is not completed."""
        answer = Mark.NOT_YET
        if index < self.furthest[model]:
            answer = int(self.answers[model, index])
        if answer == Mark.NOT_YET:
            return None
        return answer

    def add(self, model: int, index: int, category: int, *, told: bool = True) -> None:
        """Add one trial's category, MISSING or DROPPED; unless it is `told`, it takes no place in the log."""
        if index >= self.furthest[model]:
            self.furthest[model] = index + 1
            if index >= self.answers.shape[1]:
                self._widen(index + index // 2)
        self.answers[model, index] = category
        if told:
            self.answered += 1
            self._told[model, index] = self.answered
        if index != self.complete[model]:
            return
        answers = self.answers[model]
        positions = self._told[model]
        latest = 0
        if index:
            latest = positions[index - 1]
        while index < self.furthest[model] and answers[index] != Mark.NOT_YET:
            positions[index] = latest = max(latest, positions[index])
            index += 1
        self.complete[model] = index

    def doubt(self, model: int, index: int, text: int) -> None:
        """Note, before an answer is added, that it may be a copy of an earlier one with this `text`."""
        task = int(self.run_sequence.task(index, index + 1)[0])
        self.cells[task].doubt(model, self.run_sequence.local(index)[task], text)

    def extend(self, block: Ints, rows: Ints | None = None) -> None:
        """Add the next trials of models at one step, shape (models, steps): a step has one log position."""
        if rows is None:
            rows = np.arange(len(self.furthest))
        start = self.complete[rows[0]]
        stop = start + block.shape[1]
        if stop > self.answers.shape[1]:
            self._widen(stop + stop // 2)
        self.answered += block.size
        self.answers[rows, start:stop] = block
        self._told[rows, start:stop] = np.arange(start + 1, stop + 1)
        for model in rows.tolist():
            self.furthest[model] = self.complete[model] = stop

    def _widen(self, width: int) -> None:
        more = ((0, 0), (0, width - self.answers.shape[1]))
        self.answers = np.pad(self.answers, more, constant_values=Mark.NOT_YET)
        self._told = np.pad(self._told, more)
        if self.costs is not None:
            self.costs = np.pad(self.costs, more)

    def turn(self, model: int, index: int) -> None:
        """Take a model's answers as having no noise from an index on; a second time, as having some again."""
        self._turns[model].append(index)

    # ------------------------------------------------------------------ absorbing

    def absorb(self, horizon: int | None = None) -> bool:
        """Move complete prefixes into the cells: all, or what was told up to a position of the log.

        Return whether there was anything to move.
        """
        asked = len(self.furthest)
        until = np.array(self.complete[:asked])
        if horizon is not None:
            for model in range(asked):
                told = self._told[model, : until[model]]
                until[model] = told.searchsorted(horizon, side="right")
        found = False
        while (waiting := np.flatnonzero(self.progress[:asked] < until)).size:
            found = True
            progress = self.progress[waiting]
            for start in np.unique(progress).tolist():
                members = waiting[progress == start]
                self._absorb_together(members, start, int(until[members].min()))
        return found

    def _absorb_together(self, members: Ints, start: int, stop: int) -> None:
        """Absorb the next steps of models that are at one step, until the noise of one of them changes."""
        for model in members.tolist():
            turns = self._turns[model]
            if turns[:1] == [start]:
                del turns[0]
                for cells in self.cells:
                    cells.exact[model] = not cells.exact[model]
            stop = min([stop, *turns[:1]])
        self.absorb_block(members, start, self.answers[members, start:stop].astype(np.int64))

    def absorb_block(self, rows: Ints, start: int, block: Ints) -> None:
        """Absorb the categories of models from step `start` on."""
        stop = start + block.shape[1]
        task = self.run_sequence.task(start, stop)
        for index, cells in enumerate(self.cells):
            here = task == index
            costs = None if self.costs is None else self.costs[rows, start:stop][:, here]
            cells.absorb(rows, block[:, here], costs)
        self.progress[rows] = stop

    def forget(self, before: int) -> None:
        """Let the cells drop per-trial quantities before index `before` of the run."""
        for cells, local in zip(self.cells, self.run_sequence.local(before), strict=True):
            # The score at an index is kept at each task's own last index, which may lie before this one.
            cells.forget(max(local - 1, 0))

    # ------------------------------------------------------------------ the log

    def positions(self, models: Ints, start: int, stop: int) -> Ints:
        """Return where in the log models had completed steps ``start .. stop-1``, of shape (models, steps).

        Models with stored results, whose trials are all in from the start, have no position: 0.
        """
        return self._told[models, start:stop]

    def position_from(self, model: int, index: int) -> int | None:
        """Return the position of a model's first trial from `index` on, of those absorbed; None without one.

        An index that needs no trial has the position of the trial before it, however much later it counts.
        """
        known = self.answers[model, index : self.progress[model]] == Mark.FILLED_IN
        index += int(np.append(known, False).argmin())
        if index < self.progress[model]:
            return int(self._told[model, index])
        return None

    def position_by(self, models: Sequence[int], step: int) -> int:
        """Return the position of the log by which all `models` had completed so many steps."""
        return int(self._told[models, step - 1].max())

    def steps_at(self, model: int, position: int) -> int:
        """Return how many steps a model had completed at a position of the log."""
        return int(self._told[model, : self.progress[model]].searchsorted(position, side="right"))

    # ------------------------------------------------------------------ scores

    def score_at(self, model: int, step: int) -> float:
        """Return a model's unit score after so many steps."""
        score = 0.0
        row = np.array([model])
        locals_ = self.run_sequence.local(step)
        for weight, cells, local in zip(self.weights, self.cells, locals_, strict=True):
            if local:
                path = cells.path(row, local - 1, local)
                score += weight * float(path.total[0, -1]) / max(float(path.seen[0, -1]), 1.0)
        return score

    def scores(self) -> ContrastBlock:
        """Return every model's overall mean score now, in unit scores; arrays of shape (L, 1).

        `questions` is the smallest number of seen questions over the tasks.
        """
        return self.combine(list(map(self.task_scores, range(len(self.cells)))))

    def task_scores(self, task: int) -> ContrastBlock:
        """Return every model's mean score on one task now, in unit scores; arrays of shape (L, 1)."""
        cells = self.cells[task]
        spread = cluster_spread(cells, self.clusters[task])
        questions = cells.sequence.questions
        rest = (self.target, spread, cells.repeat_weight, cells.asked, self.guard)
        block = score_block(cells.latest(), questions, *rest)
        if not cells.doubtful:
            return block
        return block.widened(score_block(cells.latest_without_copies(), questions, *rest))

    def combine(self, blocks: Sequence[ContrastBlock]) -> ContrastBlock:
        """Combine the tasks' estimates with the tasks' weights."""
        return combined(self.weights, blocks)
