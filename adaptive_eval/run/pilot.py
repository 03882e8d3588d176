"""The pilot of a run: a few passes asked first, from which a rubric's thresholds are found and frozen.

The pilot asks the very trials that the run begins with (same indices, same seeds), in its own run file.
The run then adopts them: they are counted, charged and decided on as its own.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from adaptive_eval.build.assembly import Built
from adaptive_eval.build.grading import StoredAnswers
from adaptive_eval.build.rubrics import (
    observed_thresholds,
    rubrics_of,
    stored_signals,
    with_stored_thresholds,
)
from adaptive_eval.core.results import StopVerdict
from adaptive_eval.errors import EndpointError, EndpointsUnusable, Interrupted, UsageError
from adaptive_eval.options.decisions import GoalSpec
from adaptive_eval.options.task_options import RubricConfig
from adaptive_eval.scoring.rubric import TaskScoring
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.run_files import RUN_FILE
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.sentences import describe

PILOT = "pilot"
"""Folder of the pilot's run file, inside that of the run."""


def pilot_passes(built: Built) -> int:
    """Return how many trials of every question and model the pilot asks; 0 where none is needed."""
    rubrics = (built.config.task(task.name).rubric for task in built.tasks)
    return max((rubric.pilot or 0 for rubric in rubrics), default=0)


def pilot_of(built: Built, directory: Path) -> tuple[Built, Path, int] | None:
    """Return the pilot that a run needs, its directory and its passes; None where it needs none.

    The pilot is the same run with uniform allocation, the default rubric and no goal but its passes.
    """
    wanted = pilot_passes(built)
    if not wanted:
        return None
    config = built.config
    # Where a question is asked several times in a row, only whole blocks ask all questions equally often.
    passes = 1 + -(-(wanted - 1) // built.samples_per_prompt) * built.samples_per_prompt
    config = config.model_copy(
        update={
            "name": f"{config.name} (pilot)",
            "goal": GoalSpec("budget"),
            "stopping": replace(config.stopping, max_passes=passes),
            "allocation": replace(config.allocation, models="uniform", questions="schedule"),
            "references": (),
            "prior": None,
            "tasks": tuple(task.model_copy(update={"rubric": RubricConfig()}) for task in config.tasks),
        }
    )
    pilot = replace(built, config=config, rubrics=rubrics_of(config), stored=None, continued=None)
    return pilot, directory / PILOT, wanted


def require_complete(verdict: StopVerdict) -> None:
    """Raise unless the pilot has asked all its passes."""
    if verdict.reason == "interrupted":
        raise Interrupted("interrupted in the pilot; the next run continues it")
    if verdict.reason in ("endpoints", "partial"):
        raise EndpointsUnusable(f"the pilot could not be finished: {describe(verdict)}")
    if verdict.reason != "max_passes":
        raise UsageError(
            f"the budget ended before the pilot ({describe(verdict)}): raise it, lower rubric.pilot, or give "
            "the thresholds"
        )


def freeze_thresholds(built: Built, folder: Path, say: Callable[[str], None]) -> Built:
    """Return the run with the thresholds that the answers of the pilot in `folder` give."""
    frozen = {}
    with RunReader(folder) as reader:
        for task, rubric in built.rubrics.items():
            if rubric.open_thresholds:
                rubric = observed_thresholds(rubric, stored_signals(reader, task), task, "the pilot")
                values = ", ".join(f"{name} {value:.4g}" for name, value in rubric.thresholds.items())
                say(f"Thresholds of {task}: {values}")
            frozen[task] = rubric
    return replace(built, rubrics=frozen, stored=StoredAnswers.read(folder))


def resumed(built: Built, directory: Path) -> Built:
    """Return a stored run with the thresholds that it has frozen and the answers of its pilot."""
    with RunReader(directory) as reader:
        rubrics = with_stored_thresholds(built.rubrics, reader.meta())
    folder = directory / PILOT
    stored = StoredAnswers.read(folder) if pilot_passes(built) and folder.exists() else None
    return replace(built, rubrics=rubrics, stored=stored)


def is_adopted(built: Built) -> bool:
    """Return whether the pilot's trials are those that the run begins with.

    They are where the questions are laid out beforehand. With rounds they need not be: the run then asks for
    its own, and takes from the pilot what it happens to ask again.
    """
    return bool(pilot_passes(built)) and _laid_out_beforehand(built)


def _laid_out_beforehand(built: Built) -> bool:
    spec = built.spec
    if any(spec.own_rounds):
        return (
            pilot_passes(built) <= 1 + spec.samples_per_prompt
        )  # up to this point all models are asked the same
    return True


def adopt_pilot(built: Built, directory: Path, writer: RunWriter) -> None:
    """Add the pilot's trials to a run file that has none, in one commit, under the frozen rubric."""
    folder = directory / PILOT
    if not is_adopted(built) or not (folder / RUN_FILE).exists():
        return
    with writer.reader() as reader:
        if reader.count():
            return
    scoring = built.scoring
    with RunReader(folder) as pilot:
        for attempt in pilot.attempts():
            writer.attempt(attempt)
        for record in pilot.trials():
            writer.launch([record.request], record.finished_at)
            writer.outcome(_categorised(record, scoring[record.request.task]))
    writer.commit()


def pilot_elapsed(built: Built, directory: Path) -> float:
    """Return the running time of an adopted pilot, in seconds: it is part of the run's."""
    folder = directory / PILOT
    if not is_adopted(built) or not (folder / RUN_FILE).exists():
        return 0.0
    with RunReader(folder) as pilot:
        latest = pilot.latest_snapshot()
    return 0.0 if latest is None else latest.elapsed


def past_runs(built: Built, directory: Path) -> list[Path]:
    """Return the run files in which the costs of scoring are stored, each answer's once."""
    found = [folder for folder in (directory, directory / PILOT) if (folder / RUN_FILE).exists()]
    return found[:1] if is_adopted(built) else found


def _categorised(record: TrialRecord, scoring: TaskScoring) -> TrialRecord:
    """Return a trial of the pilot with the category that the run's rubric gives its answer."""
    if record.score is None or record.completion is None or record.score.category is None:
        return replace(record, after_stop=False)
    try:
        score = scoring.categorised(record.score, record.completion)
    except EndpointError as error:
        lacking = replace(record.score, category=None, reason=str(error))
        return replace(record, score=lacking, missing=f"unscored: {error}", after_stop=False)
    return replace(record, score=score, after_stop=False)
