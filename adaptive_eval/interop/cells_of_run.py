"""What formats of other tools need of a run: facts about it, and its trials by model, task and question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from adaptive_eval.interop.found import Choices, Found
from adaptive_eval.interop.imported_runs import run_columns, trials_of_run
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup


@dataclass(frozen=True)
class RunDescription:
    """Models, categories and targets of a run, made by :mod:`adaptive_eval.build.describe`."""

    models: tuple[str, ...]
    categories: Mapping[str, Sequence[str]]  # the names of each task's categories
    weights: Mapping[str, tuple[float, ...]]  # what they are worth
    target: TargetLookup


@dataclass(frozen=True)
class Cell:
    """All trials of one model on one question."""

    question: str  # its id
    place: int  # its place among the task's questions
    trials: list[Found]


def tasks_of_run(reader: RunReader) -> tuple[Sequence[str], dict[str, list[str]]]:
    """Return the models of a run, and the questions of each task."""
    columns = run_columns(reader.directory)
    tasks: dict[str, list[str]] = {}
    for task, question in columns.questions:
        tasks.setdefault(task, []).append(question)
    return columns.models, tasks


def cells_of_run(reader: RunReader, model: str, task: str, questions: Sequence[str]) -> Iterator[Cell]:
    """Yield the questions of a task that a model was asked, with its trials."""
    trials: dict[str, list[Found]] = {}
    for found in trials_of_run(reader, Choices(), model=model, task=task):
        trials.setdefault(found.question, []).append(found)
    for place, question in enumerate(questions):
        if question in trials:
            yield Cell(question, place, sorted(trials[question], key=lambda found: found.number or 0))
