"""Trials of previous runs on the questions of this run, in the order in which they were made."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.build.rubrics import stored_thresholds
from adaptive_eval.config.run_config import difference
from adaptive_eval.core.spec import TaskSpec
from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.found import DEFAULT_TASK, IMPORTED, ReadingOptions
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.interop.run_groups import stored_groups
from adaptive_eval.interop.stored_config import equal_texts, with_lost_draws
from adaptive_eval.options.task_options import TaskConfig
from adaptive_eval.scoring.rubric import Rubric
from adaptive_eval.simulate.recorded import LOST, NO_TRIAL, RecordedOutcomes, equal_pairs
from adaptive_eval.store.cells import OutcomeColumns
from adaptive_eval.store.reader import RunReader
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import COPY_REASON, ScoreRange, TrialKey

_FOUND_IN_A_RUN = ("thresholds", "thresholds_from")
"""Settings of a rubric that say where its thresholds come from; their values are compared instead."""

Trials = NDArray[np.int16]
_OfQuestions: TypeAlias = dict[tuple[str, str], NDArray[np.int64]]


@dataclass(frozen=True)
class WantedTask:
    """A task of this run, as previous trials have to fit it."""

    task: Task
    config: TaskConfig
    rubric: Rubric
    scoring: Mapping[str, Any]  # what decides an answer's category

    @property
    def shares(self) -> NDArray[Any]:
        """What one answer of each category adds to the counts of a question."""
        return TaskSpec(self.task.name, (), self.config.rubric.category_weights).shares


@dataclass(frozen=True, eq=False)
class StoredTrials:
    """Previous trials."""

    shown: str
    tables: Mapping[tuple[str, str], Trials]  # by model and task: categories, (M, N), NO_TRIAL after the last
    lost: Mapping[tuple[str, str], NDArray[np.int64]]  # trials without an answer of each question, (M,)
    # ordered pairs of answers to each question that may be copies of one another, (M,)
    alike: Mapping[tuple[str, str], NDArray[np.int64]]
    is_grouped: bool = False  # whether its questions are in groups

    @property
    def models(self) -> list[str]:
        """Names of the models that have a trial."""
        return list(dict.fromkeys(model for model, _ in self.tables))

    def counts(self, model: str, wanted: WantedTask, depth: int | None = None) -> NDArray[np.int64] | None:
        """Return how often each category came up on each question, shape (M, C + 1)."""
        table = self.tables.get((model, wanted.task.name))
        if table is None:
            return None
        highest = int(table.max())
        shares = wanted.shares
        categories = len(shares) - 4
        if highest >= categories:
            raise OutcomesError(
                f"{self.shown}: model {model!r} has category {highest} on task {wanted.task.name!r}, whose "
                f"rubric has categories 0..{categories - 1}; give the rubric it was scored by"
            )
        return np.asarray(shares[table[:, :depth]].sum(axis=1))


# ---------------------------------------------------------------------- run files


def trials_of_run(
    directory: Path, shown: str, wanted: Sequence[WantedTask], *, all_tasks: bool
) -> StoredTrials:
    """Read the trials of a previous run: of each model, those before the first gap in its trial sequence.

    An imported run does not say what exactly was asked: like those of a file, its questions are known by
    their ids.
    """
    with RunReader(directory) as reader:
        meta = reader.meta()
        columns = with_lost_draws(reader.outcomes(), reader)
        copies = {one.request.key for one in reader.trials(missing=True) if one.missing == COPY_REASON}
        texts = equal_texts(reader)
        is_grouped = bool(stored_groups(reader))
    if IMPORTED in meta:
        recorded = read_recorded([directory], _choices(wanted, shown))
        return _of_recorded(recorded, shown, wanted, all_tasks=all_tasks)
    if "identity" not in meta:
        raise OutcomesError(f"{shown} does not say what it asked; its results cannot be compared")
    identity = json.loads(meta["identity"])["tasks"]
    scoring = json.loads(meta.get("scoring", "{}"))
    shared = [one for one in wanted if one.task.name in identity]
    _require_tasks(wanted, shared, list(identity), shown, all_tasks=all_tasks)
    for one in shared:
        _require_same_questions(one, identity[one.task.name], shown)
        _require_same_scoring(one, scoring.get(one.task.name), stored_thresholds(meta), shown)
    return StoredTrials(shown, *_tables(columns, shared, copies, texts), is_grouped)


def _require_tasks(
    wanted: Sequence[WantedTask],
    shared: Sequence[WantedTask],
    there: Sequence[str],
    shown: str,
    *,
    all_tasks: bool,
) -> None:
    if not shared or (all_tasks and len(shared) < len(wanted)):
        missing = next(one.task.name for one in wanted if one not in shared)
        raise OutcomesError(f"{shown} has no task {missing!r}; its tasks are {', '.join(there)}")


def _require_same_questions(one: WantedTask, stored: Mapping[str, Any], shown: str) -> None:
    if stored["dataset"] == one.task.content_hash:
        return
    theirs = {key: stored[key] for key in stored if key != "dataset"}
    raise OutcomesError(
        f"{shown} asked other questions as task {one.task.name!r}: their ids, prompts, options, targets or "
        "order are not those of this run. Use the same dataset, prompt, system message, limit and shuffle "
        f"(there: {json.dumps(theirs)})"
    )


def _require_same_scoring(
    one: WantedTask, stored: Mapping[str, Any] | None, thresholds: Mapping[str, Mapping[str, Any]], shown: str
) -> None:
    """Refuse categories that another scorer or rubric has made; a file that does not say is believed."""
    name = one.task.name
    if stored is not None:
        before = _judging(stored, one.scoring)
        now = _judging(one.scoring, stored)
        found = difference({"tasks": {name: before}}, {"tasks": {name: now}})
        if found:
            listed = "\n".join(f"  {line}" for line in found)
            raise OutcomesError(f"{shown} scored its answers otherwise than this run does:\n{listed}")
    theirs = {key: entry["value"] for key, entry in thresholds.get(name, {}).items()}
    if theirs != dict(one.rubric.thresholds):
        raise OutcomesError(
            f"{shown} has other thresholds for task {name!r} ({theirs}) than this run "
            f"({dict(one.rubric.thresholds)}); write thresholds_from: {shown} in its rubric"
        )


def _judging(identity: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes categories; of files and stored answers, what `other` says something of as well."""
    rubric = {key: value for key, value in identity["rubric"].items() if key not in _FOUND_IN_A_RUN}
    said = {key: identity[key] for key in identity if key in other and key != "missing"}
    return {**said, "scorer": identity["scorer"], "rubric": rubric, "answers": identity.get("answers")}


def _tables(
    columns: OutcomeColumns,
    wanted: Sequence[WantedTask],
    copies: Collection[TrialKey],
    texts: Mapping[TrialKey, int],
) -> tuple[dict[tuple[str, str], Trials], _OfQuestions, _OfQuestions]:
    """Return the answers by model and task; of each question trials without one, and pairs of equal texts."""
    places = {
        (one.task.name, question.id): (task, place)
        for task, one in enumerate(wanted)
        for place, question in enumerate(one.task.questions)
    }
    where = np.array([places.get(question, (-1, -1)) for question in columns.questions]).reshape(-1, 2)
    tables, lost, alike = {}, {}, {}
    for number, model in enumerate(columns.models):
        rows = np.flatnonzero(columns.model == number)
        rows = rows[np.argsort(columns.step[rows], kind="stable")]
        # What follows a gap may be there because it was fast: it would bias the mean.
        rows = rows[columns.step[rows] == np.arange(rows.size)]
        copied = [key.index for key in copies if key.model == model]
        rows = rows[~np.isin(columns.step[rows], copied)]
        for task, one in enumerate(wanted):
            size = len(one.task.questions)
            mine = rows[where[columns.question[rows], 0] == task]
            gone = mine[columns.category[mine] < 0]
            lost[model, one.task.name] = np.bincount(where[columns.question[gone], 1], minlength=size)
            mine = mine[columns.category[mine] >= 0]
            if mine.size:
                question = where[columns.question[mine], 1]
                tables[model, one.task.name] = _table(question, columns.category[mine], size)
                steps = columns.step[mine].tolist()
                text = np.array([texts.get(TrialKey(model, step), 0) for step in steps])
                alike[model, one.task.name] = equal_pairs(question, text, size)
    return tables, lost, alike


def _table(question: NDArray[np.int64], category: NDArray[np.int64], questions: int) -> Trials:
    """Put trials, in order, into a row a question."""
    order = np.argsort(question, kind="stable")
    counts = np.bincount(question, minlength=questions)
    number = np.arange(question.size) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((questions, int(counts.max())), NO_TRIAL, dtype=np.int16)
    table[question[order], number] = category[order]
    return table


# ---------------------------------------------------------------------- files


def trials_of_file(path: Path, shown: str, wanted: Sequence[WantedTask], *, all_tasks: bool) -> StoredTrials:
    """Read previous trials from a file.

    It may be any file of recorded outcomes (:func:`adaptive_eval.interop.recorded_files.read_recorded`),
    or a NumPy archive with an array ``counts`` (models x questions x categories) in place of single trials.
    Rows without a task belong to the only task of the run; an archive without names of questions has them
    in the dataset's order. A file does not record prompts or scorers; they are assumed to agree.
    """
    recorded = read_recorded([path], _choices(wanted, shown))
    return _of_recorded(recorded, shown, wanted, all_tasks=all_tasks)


def _choices(wanted: Sequence[WantedTask], shown: str) -> ReadingOptions:
    """Return how outcomes without a config are read: as numbers if the tasks have such scores."""
    kinds = {one.config.rubric.category_weights for one in wanted}
    ranges = [kind for kind in kinds if isinstance(kind, ScoreRange)]
    if not ranges:
        return ReadingOptions()
    if len(kinds) > 1:
        raise OutcomesError(f"{shown}: the tasks have scores of different ranges; give a run for each range")
    return ReadingOptions(range=ranges[0])


def _of_recorded(
    recorded: RecordedOutcomes, shown: str, wanted: Sequence[WantedTask], *, all_tasks: bool
) -> StoredTrials:
    """Match recorded outcomes with the tasks of this run, by the ids of their questions."""
    numbers: dict[str, list[int]] = {}
    for number, (task, _) in enumerate(recorded.questions):
        numbers.setdefault(task, []).append(number)
    if list(numbers) == [DEFAULT_TASK] and len(wanted) == 1:
        numbers = {wanted[0].task.name: numbers[DEFAULT_TASK]}
    shared = [one for one in wanted if one.task.name in numbers]
    _require_tasks(wanted, shared, list(numbers), shown, all_tasks=all_tasks)
    tables, lost, alike = {}, {}, {}
    for one in shared:
        here = numbers[one.task.name]
        ids = [recorded.questions[number][1] for number in here]
        columns = [here[place] for place in _places(ids, one.task, shown)]
        for row, model in enumerate(recorded.models):
            table = recorded.categories[row, columns]
            if (table >= 0).any():
                tables[model, one.task.name] = table
                lost[model, one.task.name] = (table == LOST).sum(axis=1)
                alike[model, one.task.name] = recorded.equal[row, columns]
    return StoredTrials(shown, tables, lost, alike, recorded.clusters is not None)


def _places(ids: Sequence[str], task: Task, shown: str) -> list[int]:
    """Return where each question of the task is among the file's."""
    ours = [question.id for question in task.questions]
    if ids == [f"q{number + 1}" for number in range(len(ours))] and ids != ours:
        return list(range(len(ours)))  # an archive without names
    place = {name: number for number, name in enumerate(ids)}
    missing = [name for name in ours if name not in place]
    if missing:
        more = ""
        if len(missing) > 1:
            more = f" and {len(missing) - 1:,} more"
        raise OutcomesError(f"{shown} has no question {missing[0]!r}{more} of task {task.name!r}")
    return [place[name] for name in ours]
