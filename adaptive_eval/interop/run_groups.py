"""The groups of a run's questions: those that it stores, or a field of its datasets as they are today."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from adaptive_eval.config import RunConfig, parse_config
from adaptive_eval.core.stored_spec import SESSION
from adaptive_eval.errors import OutcomesError, UsageError
from adaptive_eval.interop.found import IMPORTED, Found, Piece, cluster_in
from adaptive_eval.interop.stored_config import session_of_file
from adaptive_eval.store.reader import RunReader
from adaptive_eval.tasks.load import load_task
from adaptive_eval.tasks.sources import EXECUTABLE
from adaptive_eval.tasks.task import Task

Groups = Mapping[str, Mapping[str, str]]
"""Group of each question, by task and question; empty of questions that are in none."""


def stored_groups(reader: RunReader) -> Groups:
    """Return the groups by which a run is decided."""
    if SESSION not in reader.meta():
        return {}
    tasks = [task for task in session_of_file(reader).tasks if task.clusters is not None]
    return {task.name: dict(zip(task.questions, task.clusters or (), strict=True)) for task in tasks}


def groups_by_field(reader: RunReader, field: str) -> Groups:
    """Return the groups that a field of the datasets names."""
    meta = reader.meta()
    if IMPORTED in meta:
        raise OutcomesError(
            f"{reader.directory} holds imported results, without a column {field!r}; give the files that it "
            "was made of"
        )
    tasks: list[Task] = []
    with suppress(KeyError, UsageError):
        config = parse_config(meta["config"], meta["source"], meta["base_dir"])
        tasks = unchanged_tasks(meta, config)
        if len(tasks) != len(config.tasks):
            tasks = []
    if not tasks:
        raise OutcomesError(
            f"{reader.directory}: --map cluster={field} is a field of the datasets, and one of them is not "
            "there as it was; put it back, or leave the groups out"
        )
    found = {}
    for task in tasks:
        try:
            found[task.name] = {one.id: cluster_in(field, one.fields) for one in task.questions}
        except ValueError as error:
            raise OutcomesError(f"{reader.directory}: task {task.name}: {error}") from None
    return found


def unchanged_tasks(meta: Mapping[str, str], config: RunConfig) -> list[Task]:
    """Return the tasks of a run whose datasets are still there and have not changed.

    The run may be a stranger's: no function that it names is imported, for a dataset or for anything else.
    """
    tasks = []
    for section in config.tasks:
        if section.dataset.startswith(EXECUTABLE):
            continue
        with suppress(KeyError, UsageError):
            source = config.dataset_source(section)
            task = load_task(section, source, config.base_dir, seed=config.seed)
            if json.loads(meta["identity"])["tasks"][task.name]["dataset"] == task.content_hash:
                tasks.append(task)
    return tasks


def in_groups(pieces: Iterator[Piece], groups: Groups) -> Iterator[Piece]:
    """Yield trials with the groups of their questions."""
    by_question = {question: group for of_task in groups.values() for question, group in of_task.items()}
    for piece in pieces:
        if isinstance(piece, Found) and groups:
            of_task = groups.get(piece.task, by_question)  # a task may be renamed
            piece = replace(piece, cluster=of_task.get(piece.question, ""))
        yield piece
