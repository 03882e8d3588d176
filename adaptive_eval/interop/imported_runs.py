"""Runs of this package as logs, and their trials by model, task and question for other formats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adaptive_eval.config import parse_config
from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.found import RUN, Choices, Found, Log, Piece, content_of
from adaptive_eval.store.cells import OutcomeColumns
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup
from adaptive_eval.trial import sent_messages, shown_message

RUN_FILE = "run.db"

IMPORTED = "imported"
"""Key of a run file's description that says where its trials come from, if it did not ask them itself."""


def run_columns(directory: Path) -> OutcomeColumns:
    """Return the outcomes of the run in `directory`."""
    if not (directory / RUN_FILE).exists():
        raise OutcomesError(f"{directory}: there is no run in this directory ({RUN_FILE} is missing)")
    with RunReader(directory) as reader:
        columns = reader.outcomes()
    if not len(columns):
        raise OutcomesError(f"{directory}: this run has no outcomes yet")
    return columns


def run_log(directory: Path, choices: Choices, *, texts: bool) -> Log:
    """Return a run as a log."""
    read = _with_texts if texts else _outcomes
    run_columns(directory)  # says what is wrong where there is no run
    with RunReader(directory) as reader:
        weights = run_weights(reader)
    if choices.task is not None and len(weights) == 1:
        weights = {choices.task: next(iter(weights.values()))}
    return Log(directory, RUN, lambda: read(directory, choices), weights=weights)


def run_weights(reader: RunReader) -> dict[str, tuple[float, ...]]:
    """Return the category weights of a run by task; empty where it records none."""
    meta = reader.meta()
    if IMPORTED in meta:
        stored = json.loads(meta[IMPORTED])["weights"]
        return {task: tuple(values) for task, values in stored.items()}
    if "config" not in meta:
        return {}
    config = parse_config(meta["config"], meta.get("source", "config"))
    return {task.name: task.rubric.category_weights for task in config.tasks}


def _outcomes(directory: Path, choices: Choices) -> Iterator[Piece]:
    columns = run_columns(directory)
    models = [choices.rename.get(name, name) for name in columns.models]
    cells = zip(columns.model.tolist(), columns.question.tolist(), columns.repeat.tolist(), strict=True)
    for (model, question, repeat), category in zip(cells, columns.category.tolist(), strict=True):
        task, name = columns.questions[question]
        place = f"question {name!r}, repeat {repeat}"
        known = (models[model], choices.task or task, name, place, repeat)
        yield Found(*known, missing="no answer") if category < 0 else Found(*known, category=category)


def _with_texts(directory: Path, choices: Choices) -> Iterator[Piece]:
    with RunReader(directory) as reader:
        yield from trials_of_run(reader, choices)


def trials_of_run(
    reader: RunReader, choices: Choices, model: str | None = None, task: str | None = None
) -> Iterator[Found]:
    """Yield the trials of a run with their texts: all, or those of one model and task."""
    for record in reader.trials(model=model, task=task):
        request, answer, score = record.request, record.completion, record.score
        prompt = shown_prompt(record.sent)
        yield Found(
            choices.rename.get(request.key.model, request.key.model),
            choices.task or request.task,
            request.question,
            f"question {request.question!r}, repeat {request.repeat}",
            request.repeat,
            category=None if score is None else score.category,
            missing=record.missing,
            content=content_of(prompt) if prompt else "",
            text="" if answer is None else answer.text,
            finish_reason="" if answer is None else answer.finish_reason,
            extracted=None if score is None else score.extracted,
            reason="" if score is None else score.reason,
            prompt=prompt,
            target=str(record.sent.get("target", "")),
            tokens=(record.usage.prompt_tokens, record.usage.completion_tokens),
            latency=0.0 if answer is None else answer.latency,
            finished_at=record.finished_at,
        )


def shown_prompt(sent: object) -> str:
    """Return the prompt of a stored request: its last message, or that of an imported trial.

    Examples
    --------
    >>> shown_prompt({"messages": [{"role": "user", "content": "2 + 2?"}]})
    '2 + 2?'
    """
    if not isinstance(sent, dict):
        return ""
    messages = sent_messages(sent)
    return shown_message(messages[-1]) if messages else ""


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

    @property
    def answered(self) -> list[Found]:
        """Its trials with a category."""
        return [trial for trial in self.trials if trial.category is not None]

    def scores(self, weights: Sequence[float]) -> list[float]:
        """Return what its answers are worth."""
        return [weights[trial.category or 0] for trial in self.answered]


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
