"""The models, categories and targets of a stored run, for exports and samples."""

from collections.abc import Sequence
from string import ascii_uppercase

from adaptive_eval.build.assembly import config_of_run
from adaptive_eval.build.rubrics import rubric_of
from adaptive_eval.config import RunConfig
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.found import IMPORTED
from adaptive_eval.interop.run_groups import stored_groups, unchanged_tasks
from adaptive_eval.interop.run_tables import RunDescription, run_weights, stored_target
from adaptive_eval.interop.stored_config import run_rule, written_config
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup, TrialRecord
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import Question, ScoreRange
from adaptive_eval.views.trials import no_target


def describe_run(reader: RunReader, *, for_people: bool = False) -> RunDescription:
    """Return the description of a run: from its config, or for imported results from the trials.

    `for_people` gives targets as :func:`report_targets` does.
    """
    meta = reader.meta()
    if IMPORTED in meta:
        weights = run_weights(reader)
        categories: dict[str, list[str]] = {}
        for task, values in weights.items():
            worth = values
            if isinstance(values, ScoreRange):
                worth = ()
            categories[task] = [f"worth {value:g}" for value in worth]
        told = run_rule(reader), stored_groups(reader)
        return RunDescription(reader.cells().models, categories, weights, stored_target, *told)
    config = written_config(meta)
    of_tasks: dict[str, Sequence[str]] = {}
    worths = {}
    for one in config.tasks:
        of_tasks[one.name] = rubric_of(one.rubric).categories
        worths[one.name] = one.rubric.category_weights
    return RunDescription(
        tuple(model.name for model in config.models),
        of_tasks,
        worths,
        _targets(reader, letters=for_people),
        config.stopping.rule,
        stored_groups(reader),
        frozenset(config.on.discarded),
    )


def report_targets(reader: RunReader) -> TargetLookup:
    """Return what looks up the expected answers of a run for a reader; none if there is no config to be read.

    If a dataset has the number of the right option, the answer is its letter, as prompts show it.
    """
    return _targets(reader, letters=True)


def _targets(reader: RunReader, *, letters: bool) -> TargetLookup:
    meta = reader.meta()
    if IMPORTED in meta:
        return stored_target
    try:
        config = config_of_run(reader)
    except (KeyError, UsageError):
        return no_target
    return targets_of(unchanged_tasks(meta, config), config if letters else None)


def targets_of(tasks: Sequence[Task], lettered: RunConfig | None) -> TargetLookup:
    """Return what looks up the expected answer of a trial among these tasks.

    `lettered` is their config if the number of an option is to be given as its letter.
    """
    by_name = {task.name: task for task in tasks}
    first: dict[str, int | None] = {}
    for section in () if lettered is None else lettered.tasks:
        first[section.name] = getattr(section.scorer, "index_from", None)

    def target(record: TrialRecord) -> str | None:
        request = record.request
        task = by_name.get(request.task)
        question = None
        if task is not None:
            question = task.by_id.get(request.question)
        if task is None or question is None:
            return None
        return _lettered(task.asked(question, request.seed), first.get(task.name))

    return target


def _lettered(question: Question, first: int | None) -> str:
    """Return the target; the letter of an option if it is the option's number, counted from `first`."""
    number = question.target.strip()
    if first is None or not number.isdecimal():
        return question.target
    place = int(number) - first
    letters = ascii_uppercase[: len(question.choices)]
    if 0 <= place < len(letters):
        return letters[place]
    return question.target
