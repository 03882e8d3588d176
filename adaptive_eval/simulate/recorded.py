"""Recorded outcomes as a source of answers: each replicate replays them in its own order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.determinism import COPY_READERS
from adaptive_eval.core.spec import SessionSpec, TaskSpec
from adaptive_eval.errors import OutcomesError
from adaptive_eval.simulate.coins import ENDLESS, asked, to_score_units
from adaptive_eval.trial import RIGHT_OR_WRONG
from scorio.arrays import Bools, Floats, Ints
from scorio.sequential.parts import Mark, RunSequence, unit_scores

NO_TRIAL = -1
"""Category where there is no such trial."""
LOST = -2
"""Category of a trial without an answer: it may have been anything."""


@dataclass(frozen=True, eq=False)
class RecordedOutcomes:
    """Outcomes of trials that were run some time, some models and questions perhaps more often than others.

    Parameters
    ----------
    models : tuple of str
        Names, unique.
    questions : tuple of (str, str)
        Task name and question id, unique, the questions of a task side by side.
    categories : ndarray of int, shape (L, Q, N)
        Category of each trial, :data:`LOST` without an answer; :data:`NO_TRIAL` after the last trial of a
        model on a question.
    copies : int
        Trials that were left out because their answers are copies of earlier ones.
    warnings : tuple of str
        Which models' repeated answers are copies, or never vary.
    weights : frozenset of tuple of float
        What the categories of the tasks are worth, if the logs say it.
    clusters : tuple of str, optional
        Group of each question.
    rules : frozenset of str
        Stopping rules of the runs that the trials come from.
    texts : ndarray of int, shape (L, Q, N), optional
        A number above 0 for a trial whose answer may be a copy of others of its model to its question: they
        have the same number. 0 for all other trials.

    Attributes
    ----------
    counts : ndarray of int64, shape (L, Q)
        Trials of each model on each question.

    Raises
    ------
    UsageError
        If names repeat, shapes disagree, or a missing trial is followed by another.

    Examples
    --------
    >>> import numpy as np
    >>> categories = np.array([[[1, 1, 0], [0, 1, -1]]])
    >>> recorded = RecordedOutcomes(("a",), (("t", "q1"), ("t", "q2")), categories)
    >>> recorded.counts.tolist(), recorded.trials
    ([[3, 2]], 5)
    """

    models: tuple[str, ...]
    questions: tuple[tuple[str, str], ...]
    categories: NDArray[np.int16]
    copies: int = 0
    warnings: tuple[str, ...] = ()
    weights: frozenset[tuple[float, ...]] = frozenset()
    clusters: tuple[str, ...] | None = None
    rules: frozenset[str] = frozenset()
    texts: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        categories = np.asarray(self.categories)
        if categories.ndim != 3 or categories.shape[:2] != (len(self.models), len(self.questions)):
            raise OutcomesError(
                f"categories must have shape ({len(self.models)}, {len(self.questions)}, N) for these models "
                f"and questions, got {categories.shape}"
            )
        if categories.size == 0:
            raise OutcomesError("there are no recorded outcomes")
        if not np.issubdtype(categories.dtype, np.integer) or categories.min() < LOST:
            raise OutcomesError("categories must be whole numbers from 0, or -1 if there is no trial")
        for kind, names in (("model", self.models), ("question", self.questions)):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise OutcomesError(f"{kind} {twice!r} appears twice")
        there = categories != NO_TRIAL
        if (there[:, :, 1:] & ~there[:, :, :-1]).any():
            raise OutcomesError(
                "a missing trial (-1) is followed by another; move the missing ones to the end"
            )
        object.__setattr__(self, "categories", categories.astype(np.int16))
        self.categories.setflags(write=False)

    @cached_property
    def counts(self) -> Ints:
        """Trials of each model on each question, shape (L, Q)."""
        return np.asarray((self.categories != NO_TRIAL).sum(axis=2), dtype=np.int64)

    @cached_property
    def answered(self) -> Ints:
        """Trials of each model on each question that have an answer, shape (L, Q)."""
        return np.asarray((self.categories >= 0).sum(axis=2), dtype=np.int64)

    @cached_property
    def equal(self) -> Ints:
        """Ordered pairs of answers that may be copies of one another, shape (L, Q)."""
        shape = self.categories.shape
        if self.texts is None:
            return np.zeros(shape[:2], dtype=np.int64)
        cells = np.repeat(np.arange(shape[0] * shape[1]), shape[2])
        return equal_pairs(cells, self.texts.ravel(), shape[0] * shape[1]).reshape(shape[:2])

    @property
    def trials(self) -> int:
        """Trials in all that have an answer."""
        return int(self.answered.sum())

    @property
    def lost(self) -> int:
        """Trials in all that have none."""
        return int(self.counts.sum()) - self.trials

    @property
    def repeated(self) -> bool:
        """Whether every model has a second trial of every question."""
        return bool(self.counts.min() > 1)

    @property
    def alike(self) -> bool:
        """Whether every model has as many trials of each question as the others."""
        return bool((self.counts == self.counts[0]).all())

    @property
    def tasks(self) -> dict[str, tuple[str, ...]]:
        """Question ids by task, in order."""
        tasks: dict[str, list[str]] = {}
        for task, id_ in self.questions:
            tasks.setdefault(task, []).append(id_)
        return {name: tuple(ids) for name, ids in tasks.items()}

    def task_specs(self, weights: tuple[float, ...] = RIGHT_OR_WRONG) -> tuple[TaskSpec, ...]:
        """Return the tasks as a session sees them, all with one rubric.

        Raises
        ------
        UsageError
            If a category has no weight.
        """
        highest = int(self.categories.max())
        groups: dict[str, list[str]] = {}
        for (task, _), group in zip(self.questions, self.clusters or (), strict=False):
            groups.setdefault(task, []).append(group)
        made = []
        for name, ids in self.tasks.items():
            clusters = None
            if groups:
                clusters = tuple(groups[name])
            made.append(TaskSpec(name, ids, weights, clusters))
        tasks = tuple(made)
        if highest >= len(tasks[0].unit_scores):
            raise OutcomesError(
                f"outcomes have category {highest}, but only {len(weights)} weights are given; "
                "give every category a weight"
            )
        return tasks

    def only(self, models: Sequence[str]) -> RecordedOutcomes:
        """Return the outcomes of some models, in the given order.

        Raises
        ------
        UsageError
            If there is no such model.
        """
        unknown = [name for name in models if name not in self.models]
        if unknown:
            raise OutcomesError(f"no outcomes of model {unknown[0]!r}; there are {', '.join(self.models)}")
        rows = [self.models.index(name) for name in models]
        texts = None
        if self.texts is not None:
            texts = self.texts[rows]
        return replace(self, models=tuple(models), categories=self.categories[rows], texts=texts)

    def asked_of_all(self) -> RecordedOutcomes:
        """Return the outcomes with lost trials if a model has none of a question that others have.

        They may be absent because they were wrong. Tasks without a question that all models have answered
        are left out.

        Raises
        ------
        UsageError
            If there is no such question at all.
        """
        there = self.counts > 0
        shared = {self.questions[column][0] for column in np.flatnonzero(there.all(axis=0)).tolist()}
        if not shared:
            raise OutcomesError("there is no question that all models have answered; leave models out")
        kept = there.any(axis=0) & np.array([task in shared for task, _ in self.questions])
        categories = self.categories[:, kept]
        there = there[:, kept]
        fewest = np.where(there, self.counts[:, kept], categories.shape[2]).min(axis=1, keepdims=True)
        absent = ~there[:, :, None] & (np.arange(categories.shape[2]) < fewest[:, :, None])
        columns = np.flatnonzero(kept).tolist()
        clusters = self.clusters and tuple(self.clusters[column] for column in columns)
        questions = tuple(self.questions[column] for column in columns)
        texts = None
        if self.texts is not None:
            texts = self.texts[:, kept]
        categories = np.where(absent, LOST, categories)
        return replace(self, questions=questions, categories=categories, clusters=clusters, texts=texts)

    def scores(self, weights: Sequence[float] = RIGHT_OR_WRONG) -> Floats:
        """Return the mean unit score per model and question over all trials, shape (L, Q); NaN for none."""
        total = np.where(self.categories < 0, 0.0, unit_scores(weights)[self.categories]).sum(axis=2)
        return np.asarray(total / np.where(self.answered > 0, self.answered, np.nan))


def equal_pairs(cells: Ints, texts: Ints, size: int) -> Ints:
    """Return in how many ordered pairs trials of each of `size` cells have the same text, which is not 0.

    >>> equal_pairs(np.array([0, 0, 0, 1, 1]), np.array([7, 7, 7, 7, 0]), 2).tolist()
    [6, 0]
    """
    there = texts > 0
    (cell, _), number = np.unique(np.stack([cells[there], texts[there]]), axis=1, return_counts=True)
    return np.bincount(cell, weights=number * (number - 1), minlength=size).astype(np.int64)


@dataclass(frozen=True, eq=False)
class RecordedAnswers:
    """Replays recorded outcomes without replacement, the trials of each cell in a random order.

    A model whose trials of a question run out ends its sequence there: its open pairs stay undecided. One
    that is said to be deterministic, and has answered so, gives its answer again. The truth is the mean over
    questions, of those with an answer, of the mean of all answers.

    Parameters
    ----------
    recorded : RecordedOutcomes
        The outcomes; models and questions in the order of the session's.
    shuffled : bool
        Shuffle each cell's trials per replicate; False replays them as they were recorded.
    """

    recorded: RecordedOutcomes
    shuffled: bool = True

    def truth(self, spec: SessionSpec) -> Floats:
        """Return the all-trial means in score units."""
        self._check(spec)
        overall = np.zeros(len(spec.models))
        for task, weight, here in zip(spec.tasks, spec.task_weights, spec.columns, strict=True):
            part = self.recorded.categories[:, here]
            answered = self.recorded.answered[:, here]
            total = np.where(part < 0, 0.0, task.unit_scores[part]).sum(axis=2)
            means = total / np.maximum(answered, 1)
            overall += weight * means.sum(axis=1) / np.maximum((answered > 0).sum(axis=1), 1)
        return to_score_units(spec, overall)

    def begin(self, spec: SessionSpec, run_sequence: RunSequence, seed: np.random.SeedSequence) -> _Replay:
        """Shuffle the trials for one replicate."""
        self._check(spec)
        categories = self.recorded.categories
        texts = self.recorded.texts
        places = np.arange(categories.shape[2])[None, None]
        if self.shuffled:
            places = _shuffled(categories.shape[2], self.recorded.counts, np.random.default_rng(seed))
            categories = np.take_along_axis(categories, places, axis=2)
        copied = None
        if texts is not None and not spec.independent_copies:
            copied = _again(np.take_along_axis(texts, places, axis=2))
            if spec.stopping.rule not in COPY_READERS:
                categories = np.where(copied > 0, LOST, categories)
        claimed = np.array([model.deterministic for model in spec.models])
        return _Replay(categories, self.recorded.counts, run_sequence, claimed & _alike(categories), copied)

    def _check(self, spec: SessionSpec) -> None:
        questions = tuple((task.name, id_) for task in spec.tasks for id_ in task.questions)
        if spec.names != self.recorded.models or questions != self.recorded.questions:
            raise OutcomesError(
                "recorded outcomes must have the models and questions of the run, in their order"
            )
        empty = np.argwhere(self.recorded.counts == 0)
        if empty.size:
            model, question = empty[0].tolist()
            raise OutcomesError(
                f"model {spec.names[model]!r} has no recorded trial of question {questions[question][1]!r} "
                f"({len(empty)} such cells): its true score is unknown; leave the model or the question out"
            )


class _Replay:
    """The recorded trials along each model's sequence; trial r of a cell is asked as its repeat r.

    Models that are `steady` give their answer again once its trials run out.
    """

    def __init__(
        self,
        categories: NDArray[np.int16],
        counts: Ints,
        run_sequence: RunSequence,
        steady: Bools,
        copied: Ints | None,
    ) -> None:
        answer = categories.max(axis=2, keepdims=True)
        further = steady[:, None, None] & (categories == NO_TRIAL)
        self._categories = np.concatenate([np.where(further, answer, categories), answer], axis=2)
        self._counts = counts
        self._run_sequence = run_sequence
        self._steady = steady
        self._copied = copied
        self._limit = np.full(len(counts), ENDLESS, dtype=np.int64)
        self._looked = np.zeros(len(counts), dtype=np.int64)

    @property
    def limit(self) -> Ints:
        """Per model the first index, of those laid out, whose question has no trial left."""
        for model, seen in enumerate(self._looked.tolist()):
            if self._steady[model]:
                continue
            end = self._run_sequence.laid_out(model)
            piece = 4 * self._run_sequence.questions
            while seen < min(end, self._limit[model]):
                stop = int(min(seen + piece, end))
                (questions,), (repeats,) = asked(self._run_sequence, np.array([model]), seen, stop)
                over = np.flatnonzero(repeats >= self._counts[model, questions])
                if over.size:
                    self._limit[model] = seen + over[0]
                self._looked[model] = seen = stop
        return self._limit

    def draw(self, models: Ints, start: int, stop: int) -> Ints:
        """See :class:`~adaptive_eval.simulate.coins.Stream`."""
        questions, repeats = asked(self._run_sequence, models, start, stop)
        repeats = np.minimum(repeats, self._categories.shape[2] - 1)
        found = self._categories[models[:, None], questions, repeats]
        return np.where(found == LOST, Mark.MISSING, found).astype(np.int64)

    def copied(self, models: Ints, start: int, stop: int) -> Ints | None:
        """Return what tells the texts of possible copies apart, 0 for other answers; None without any."""
        if self._copied is None:
            return None
        questions, repeats = asked(self._run_sequence, models, start, stop)
        there = repeats < self._copied.shape[2]
        repeats = np.where(there, repeats, 0)
        return np.asarray(np.where(there, self._copied[models[:, None], questions, repeats], 0))


def _alike(categories: NDArray[np.int16]) -> Bools:
    """Return which models have answered each question the same every time."""
    answered = categories >= 0
    most = categories.max(axis=2)
    least = np.where(answered, categories, most[:, :, None]).min(axis=2)
    return np.asarray((most == least).all(axis=1))


def _again(texts: Ints) -> Ints:
    """Return the texts without the first of each in its cell."""
    order = texts.argsort(axis=2, kind="stable")
    found = np.take_along_axis(texts, order, axis=2)
    found[:, :, 1:] *= found[:, :, 1:] == found[:, :, :-1]
    found[:, :, 0] = 0
    again = np.empty_like(found)
    np.put_along_axis(again, order, found, axis=2)
    return again


def _shuffled(depth: int, counts: Ints, rng: np.random.Generator) -> Ints:
    """Return the places of every cell's trials in random order, the missing ones still last."""
    result = np.tile(np.arange(depth), (*counts.shape, 1))
    full = counts == depth
    result[full] = rng.permuted(result[full], axis=1)
    for model, question in np.argwhere(~full).tolist():
        count = counts[model, question]
        result[model, question, :count] = rng.permutation(count)
    return result
