"""What is known of a run besides its trials, whether it asked them itself or has imported them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adaptive_eval.errors import UsageError
from adaptive_eval.interop.imported_runs import IMPORTED, run_weights
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord

if TYPE_CHECKING:
    from adaptive_eval.config import RunConfig

__all__ = ["About", "about_run"]


@dataclass(frozen=True)
class About:
    """What is known of a run.

    Parameters
    ----------
    models : tuple of str
        Its models.
    categories : mapping of str to sequence of str
        The names of each task's categories.
    weights : mapping of str to tuple of float
        What they are worth.
    target : callable
        Returns the reference answer of a trial, None where it is not known.
    """

    models: tuple[str, ...]
    categories: Mapping[str, Sequence[str]]
    weights: Mapping[str, tuple[float, ...]]
    target: Callable[[TrialRecord], str | None]


def about_run(reader: RunReader) -> About:
    """Return what is known of a run: from its config, or for imported results from the trials themselves."""
    from adaptive_eval.build.assembly import config_of_run
    from adaptive_eval.build.rubrics import rubric_of

    if IMPORTED in reader.meta():
        weights = run_weights(reader)
        categories = {task: [f"worth {value:g}" for value in values] for task, values in weights.items()}
        return About(reader.cells().models, categories, weights, _stored_target)
    config = config_of_run(reader)
    return About(
        tuple(one.name for one in config.models),
        {one.name: rubric_of(one.rubric).categories for one in config.tasks},
        {one.name: one.rubric.category_weights for one in config.tasks},
        _targets(config),
    )


def _stored_target(record: TrialRecord) -> str | None:
    found = record.sent.get("target")
    return None if found is None else str(found)


def _targets(config: RunConfig) -> Callable[[TrialRecord], str | None]:
    """Return what looks up the reference answer of a trial: None where the dataset is no longer there."""
    from adaptive_eval.build.assembly import build

    try:
        tasks = {task.name: task for task in build(config).tasks}
    except UsageError:
        tasks = {}

    def target(record: TrialRecord) -> str | None:
        request = record.request
        task = tasks.get(request.task)
        question = None if task is None else task.by_id.get(request.question)
        return None if task is None or question is None else task.asked(question, request.seed).target

    return target
