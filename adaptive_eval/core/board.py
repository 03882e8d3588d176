"""The board: which trials are completed, the common prefix of each model, and its estimates.

Answers arrive in any order; only the contiguous completed prefix of a model's trial sequence counts. The
board buffers early arrivals and absorbs prefixes in rectangles (models x indices), so that every
batch costs a few array operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.determinism import Determinism
from adaptive_eval.core.priors import PreviousTrials
from adaptive_eval.core.references import FINISHED, check_references, load_references
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.core.spec_checks import check_spec
from scorio.sequential.cells import KNOWN, Cells, unit_scores
from scorio.sequential.contrasts import ContrastBlock, score_block
from scorio.sequential.pairs import cluster_spread
from scorio.sequential.trial_sequence import RunSequence

Ints = NDArray[np.int64]

NOT_YET = -3
"""Category of a trial that is not completed."""


class Board:
    """Answers of all models along the trial sequence."""

    def __init__(self, spec: SessionSpec) -> None:
        check_spec(spec)
        check_references(spec)
        self.spec = spec
        sizes = [len(task.questions) for task in spec.tasks]
        allocation = spec.allocation
        self.run_sequence = RunSequence(
            sizes,
            spec.seed,
            allocation.samples_per_prompt,
            spec.own_rounds,
            early_repeats=allocation.early_repeats and not spec.greedy,
        )
        weight = 1.0 / allocation.samples_per_prompt
        self.cells = tuple(
            Cells(
                sequence,
                unit_scores(task.weights),
                len(spec.names),
                repeat_weight=weight,
                greedy=spec.greedy,
                level=spec.flip_level,
            )
            for sequence, task in zip(self.run_sequence.sequences, spec.tasks, strict=True)
        )
        load_references(spec, self.cells)
        self.previous = PreviousTrials(spec)
        self.complete = [0] * len(spec.models) + [FINISHED] * len(spec.references)
        """Completed trials of each model, absorbed or not."""
        self.progress: Ints = np.array(self.complete, dtype=np.int64)
        self.determinism = Determinism(spec, self.run_sequence)
        self.filled = [0] * len(spec.names)
        """Steps of each model that needed no trial, because it repeats its answers."""
        self._turns: list[list[int]] = [
            [] for _ in spec.models
        ]  # indices at which a model becomes exact, or not
        small = np.result_type(*(cells.categories.dtype for cells in self.cells))
        self.answers: NDArray[np.integer] = np.full((len(spec.models), 64), NOT_YET, dtype=small)
        """Category at each index of each model, also beyond its common prefix; NOT_YET if it is awaited."""
        self._told: Ints = np.zeros((len(spec.names), 64), dtype=np.int64)
        """Log position, from 1, of each index; in a prefix, that by which all before was told too."""
        self.furthest = [0] * len(spec.models)
        """Index after the last one that each model has completed."""
        self.answered = 0
        """Completed trials of all models."""
        self._ready: list[list[int]] = [[] for _ in spec.models]

    def category(self, model: int, index: int) -> int | None:
        """Return the category at an index, MISSING or DROPPED; None if it is not completed."""
        answer = int(self.answers[model, index]) if index < self.furthest[model] else NOT_YET
        return None if answer == NOT_YET else answer

    def add(self, model: int, index: int, category: int) -> None:
        """Add one trial's category, MISSING or DROPPED."""
        if index >= self.furthest[model]:
            self.furthest[model] = index + 1
            if index >= self.answers.shape[1]:
                wider = np.full((len(self.answers), index + index // 2), NOT_YET, dtype=self.answers.dtype)
                wider[:, : self.answers.shape[1]] = self.answers
                self.answers = wider
                self._told = np.pad(self._told, ((0, 0), (0, wider.shape[1] - self._told.shape[1])))
        self.answers[model, index] = category
        if category != KNOWN:
            self.answered += 1
            self._told[model, index] = self.answered
        if index != self.complete[model]:
            return
        ready, answers, told = self._ready[model], self.answers[model], self._told[model]
        latest = told[index - 1] if index else 0
        while index < self.furthest[model] and (answer := int(answers[index])) != NOT_YET:
            ready.append(answer)
            told[index] = latest = max(latest, told[index])
            index += 1
        self.complete[model] = index

    def fill(self) -> None:
        """Complete what needs no trial: indices that ask again a model that repeats its answers."""
        for model in self.determinism.claimed:
            furthest = max(*self.complete[: len(self.spec.models)], self.furthest[model] - 1)
            while True:
                turn = self.determinism.review(model, self.complete[model])
                if turn is not None:
                    self._turns[model].append(turn)
                    furthest = max(furthest, turn + 1)  # it is read as exact from one index on
                    continue
                index = self.complete[model]
                if index >= min(furthest, self.run_sequence.laid_out(model)):
                    break
                if self.determinism.paused or not self.fill_next(model):
                    break

    def fill_next(self, model: int) -> bool:
        """Complete a model's next index, also while a log is replayed; return False if it needs a trial."""
        index, determinism = self.complete[model], self.determinism
        if index >= self.run_sequence.laid_out(model) or not determinism.needs_no_trial(model, index):
            return False
        self.filled[model] += 1
        self.add(model, index, KNOWN)
        return True

    def absorb(self, horizon: int | None = None) -> None:
        """Move complete prefixes into the cells: all, or what was told up to a position of the log."""
        while True:
            self.fill()
            until = list(self.complete)
            if horizon is not None:
                until = [
                    int(self._told[model, : self.complete[model]].searchsorted(horizon, side="right"))
                    for model in range(len(self._ready))
                ]
            progress = self.progress.tolist()
            waiting = [model for model in range(len(self._ready)) if progress[model] < until[model]]
            if not waiting:
                return
            self._absorb_ready(waiting, until)

    def _absorb_ready(self, waiting: list[int], until: Sequence[int]) -> None:
        while waiting:
            groups: dict[int, list[int]] = defaultdict(list)
            for model in waiting:
                groups[int(self.progress[model])].append(model)
            for start, members in groups.items():
                turning = [model for model in members if self._turns[model][:1] == [start]]
                for model in turning:
                    del self._turns[model][0]
                    for cells in self.cells:
                        cells.exact[model] = not cells.exact[model]
                ends = [min([until[model], *self._turns[model][:1]]) for model in members]
                length = min(ends) - start
                rows = np.array(members, dtype=np.int64)
                block = np.array([self._ready[model][:length] for model in members], dtype=np.int64)
                self._absorb_block(rows, start, block)
                for model in members:
                    del self._ready[model][:length]
            waiting = [model for model in waiting if self.progress[model] < until[model]]

    def _absorb_block(self, rows: Ints, start: int, block: Ints) -> None:
        stop = start + block.shape[1]
        if len(self.cells) == 1:
            self.cells[0].absorb(rows, block)
        else:
            task = self.run_sequence.task(start, stop)
            for index, cells in enumerate(self.cells):
                cells.absorb(rows, block[:, task == index])
        self.progress[rows] = stop

    def positions(self, models: Ints, start: int, stop: int) -> Ints:
        """Return where in the log models had completed steps ``start .. stop-1``, of shape (models, steps).

        References, whose trials are all in from the start, have no position: 0.
        """
        return self._told[models, start:stop]

    def told_by(self, models: Sequence[int], step: int) -> int:
        """Return the position of the log by which all `models` had completed so many steps."""
        return int(self._told[models, step - 1].max())

    def steps_at(self, model: int, position: int) -> int:
        """Return how many steps a model had completed at a position of the log."""
        return int(self._told[model, : self.progress[model]].searchsorted(position, side="right"))

    def score_at(self, model: int, step: int) -> float:
        """Return a model's unit score after so many steps."""
        score, row = 0.0, np.array([model])
        locals_ = self.run_sequence.local(step)
        for weight, cells, local in zip(self.spec.task_weights, self.cells, locals_, strict=True):
            if local:
                path = cells.path(row, local - 1, local)
                score += weight * float(path.total[0, -1]) / max(float(path.seen[0, -1]), 1.0)
        return score

    def forget(self, before: int) -> None:
        """Let the cells drop per-trial quantities before index `before` of the run."""
        for cells, local in zip(self.cells, self.run_sequence.local(before), strict=True):
            # The score at an index is kept at each task's own last index, which may lie before this one.
            cells.forget(max(local - 1, 0))

    # ------------------------------------------------------------------ current scores

    def scores(self) -> ContrastBlock:
        """Return every model's overall mean score now, in unit scores; arrays of shape (L, 1).

        `questions` is the smallest number of seen questions over the tasks.
        """
        return self.combine([self.task_scores(task) for task in range(len(self.cells))])

    def task_scores(self, task: int) -> ContrastBlock:
        """Return every model's mean score on one task now, in unit scores; arrays of shape (L, 1)."""
        cells = self.cells[task]
        spread = cluster_spread(cells, self.spec.tasks[task].clusters)
        target, weight = self.spec.stopping.target, cells.repeat_weight
        guard = -log(1.0 - self.spec.stopping.confidence)
        questions = cells.sequence.questions
        return score_block(cells.latest(), questions, target, spread, weight, cells.asked, guard)

    def combine(self, blocks: list[ContrastBlock]) -> ContrastBlock:
        """Combine the tasks' estimates with the tasks' weights."""
        if len(blocks) == 1:
            return blocks[0]
        weights = self.spec.task_weights
        pairs = list(zip(weights, blocks, strict=True))
        return ContrastBlock(
            np.asarray(sum(w * block.difference for w, block in pairs)),
            np.asarray(sum(w * w * block.variance for w, block in pairs)),
            np.asarray(sum(w * w * block.guarded for w, block in pairs)),
            np.asarray(sum(w * w * block.margin for w, block in pairs)),
            np.asarray(sum(w * w * block.avg_variance for w, block in pairs)),
            np.minimum.reduce([block.questions for block in blocks]),
            np.asarray(sum(w * block.slack for w, block in pairs)),
        )

    def posterior(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return Bayes@N μ and σ of every model (uniform prior and R0, all questions), in unit scores.

        Questions not asked yet keep their prior; see section 2 of the statistics for the ragged form.
        """
        mu, variance = np.zeros((2, len(self.spec.names)))
        for task, (weight, cells) in enumerate(zip(self.spec.task_weights, self.cells, strict=True)):
            nu = self.previous.with_prior(cells.counts, task) + 1.0
            total = nu.sum(axis=2)
            a = nu @ cells.scores / total
            b = nu @ cells.scores**2 / total
            questions = cells.sequence.questions
            mu += weight * a.mean(axis=1)
            variance += weight**2 * ((b - a * a) / (total + 1.0)).sum(axis=1) / questions**2
        return mu, np.sqrt(variance)

    def seen(self) -> Ints:
        """Return the number of questions each model has answered at least once."""
        return np.asarray(sum(cells.latest().seen[:, 0] for cells in self.cells), dtype=np.int64)

    def missing(self, model: int) -> int:
        """Return the missing trials within a model's absorbed prefix."""
        return sum(len(cells.missing[model]) for cells in self.cells)

    def trial_counts(self) -> Ints:
        """Return the counted trials per model; of a reference, all its trials."""
        missing = np.array(
            [self.missing(model) + self.filled[model] for model in range(len(self.spec.names))]
        )
        trials = self.progress - missing
        for row in range(len(self.spec.models), len(self.spec.names)):
            trials[row] = sum(int(cells.counts[row].sum()) for cells in self.cells)
        return np.asarray(trials)
