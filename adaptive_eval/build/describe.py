"""The models, categories and targets of a stored run, for exports and samples."""

from collections.abc import Sequence

from adaptive_eval.build.assembly import config_of_run
from adaptive_eval.build.rubrics import rubric_of
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.found import IMPORTED
from adaptive_eval.interop.run_groups import stored_groups, unchanged_tasks
from adaptive_eval.interop.run_tables import RunDescription, run_rule, run_weights
from adaptive_eval.interop.stored_config import config_of_file
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup, TrialRecord
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import ScoreRange
from adaptive_eval.views.trials import no_target


def describe_run(reader: RunReader) -> RunDescription:
    """Return the description of a run: from its config, or for imported results from the trials."""
    if IMPORTED in reader.meta():
        weights = run_weights(reader)
        categories: dict[str, list[str]] = {}
        for task, values in weights.items():
            worth = () if isinstance(values, ScoreRange) else values
            categories[task] = [f"worth {value:g}" for value in worth]
        told = run_rule(reader), stored_groups(reader)
        return RunDescription(reader.cells().models, categories, weights, _stored_target, *told)
    config = config_of_file(reader)  # without its files: an export needs none
    assert config is not None
    of_tasks: dict[str, Sequence[str]] = {}
    worths = {}
    for one in config.tasks:
        of_tasks[one.name] = rubric_of(one.rubric).categories
        worths[one.name] = one.rubric.category_weights
    return RunDescription(
        tuple(model.name for model in config.models),
        of_tasks,
        worths,
        report_targets(reader),
        config.stopping.rule,
        stored_groups(reader),
        frozenset(config.on.discarded),
    )


def report_targets(reader: RunReader) -> TargetLookup:
    """Return what looks up the expected answers of a run; none if there is no config to be read."""
    meta = reader.meta()
    if IMPORTED in meta:
        return _stored_target
    try:
        config = config_of_run(reader)
    except (KeyError, UsageError):
        return no_target
    return targets_of(unchanged_tasks(meta, config))


def targets_of(tasks: Sequence[Task]) -> TargetLookup:
    """Return what looks up the expected answer of a trial among these tasks."""
    by_name = {task.name: task for task in tasks}

    def target(record: TrialRecord) -> str | None:
        request = record.request
        task = by_name.get(request.task)
        question = None if task is None else task.by_id.get(request.question)
        return None if task is None or question is None else task.asked(question, request.seed).target

    return target


def _stored_target(record: TrialRecord) -> str | None:
    found = record.sent.get("target")
    return None if found is None else str(found)
