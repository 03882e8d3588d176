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


class Pilot:
    """The pilot of the run in `directory`; `passes` is 0 where none is needed."""

    def __init__(self, built: Built, directory: Path) -> None:
        self.built, self.directory, self.folder = built, directory, directory / PILOT
        rubrics = (built.config.task(task.name).rubric for task in built.tasks)
        self.passes = max((rubric.pilot or 0 for rubric in rubrics), default=0)

    @property
    def exists(self) -> bool:
        """Whether it has a run file."""
        return (self.folder / RUN_FILE).exists()

    @property
    def is_adopted(self) -> bool:
        """Whether its trials are those that the run begins with.

        They are if the questions are laid out beforehand. With rounds they need not be: the run then asks for
        its own, and takes from the pilot what it happens to ask again.
        """
        spec = self.built.spec
        asked_alike = 1 + spec.samples_per_prompt  # passes up to which all models are asked the same
        return self.passes > 0 and (self.passes <= asked_alike or not any(spec.own_rounds))

    def run(self) -> Built:
        """Return the same run with uniform allocation, the default rubric and no goal but its passes."""
        built, config = self.built, self.built.config
        # Where a question is asked several times in a row, only whole blocks ask all questions equally often.
        block = built.samples_per_prompt
        passes = 1 + -(-(self.passes - 1) // block) * block
        changes = {
            "name": f"{config.name} (pilot)",
            "goal": GoalSpec("budget"),
            "stopping": replace(config.stopping, max_passes=passes),
            "allocation": replace(config.allocation, models="uniform", questions="schedule"),
            "references": (),
            "prior": None,
            "tasks": tuple(task.model_copy(update={"rubric": RubricConfig()}) for task in config.tasks),
        }
        config = config.model_copy(update=changes)
        return replace(built, config=config, rubrics=rubrics_of(config), stored=None, continued=None)

    def frozen(self, verdict: StopVerdict, say: Callable[[str], None]) -> Built:
        """Return the run with the thresholds that the answers give; refuse a pilot that is not complete."""
        if verdict.reason == "interrupted":
            raise Interrupted("interrupted in the pilot; the next run continues it")
        if verdict.reason in ("endpoints", "partial"):
            raise EndpointsUnusable(f"the pilot could not be finished: {describe(verdict)}")
        if verdict.reason != "max_passes":
            raise UsageError(
                f"the budget ended before the pilot ({describe(verdict)}): raise it, lower rubric.pilot, or "
                "give the thresholds"
            )
        frozen = {}
        with RunReader(self.folder) as reader:
            for task, rubric in self.built.rubrics.items():
                if rubric.open_thresholds:
                    rubric = observed_thresholds(rubric, stored_signals(reader, task), task, "the pilot")
                    values = ", ".join(f"{name} {value:.4g}" for name, value in rubric.thresholds.items())
                    say(f"Thresholds of {task}: {values}")
                frozen[task] = rubric
        return replace(self.built, rubrics=frozen, stored=StoredAnswers.read(self.folder))

    def resumed(self) -> Built:
        """Return a stored run with the thresholds that it has frozen and the answers of its pilot."""
        with RunReader(self.directory) as reader:
            rubrics = with_stored_thresholds(self.built.rubrics, reader.meta())
        stored = StoredAnswers.read(self.folder) if self.passes and self.folder.exists() else None
        return replace(self.built, rubrics=rubrics, stored=stored)

    def adopt(self, writer: RunWriter) -> None:
        """Add its trials to a run file that has none, in one commit, under the frozen rubric."""
        if not (self.is_adopted and self.exists):
            return
        with writer.reader() as reader:
            if reader.count():
                return
        scoring = self.built.scoring
        with RunReader(self.folder) as pilot:
            for request, at in pilot.contents().launches():  # also those that a killed process has lost
                writer.launch([request], at)
            for attempt in pilot.attempts():
                writer.attempt(attempt)
            for record in pilot.trials():
                writer.outcome(_categorised(record, scoring[record.request.task]))
        writer.commit()

    @property
    def elapsed(self) -> float:
        """Its running time in seconds, if it is adopted: it is part of the run's."""
        if not (self.is_adopted and self.exists):
            return 0.0
        with RunReader(self.folder) as pilot:
            latest = pilot.latest_snapshot()
        return 0.0 if latest is None else latest.elapsed

    @property
    def run_files(self) -> list[Path]:
        """The directories in which the costs of scoring are stored, each answer's once."""
        found = [folder for folder in (self.directory, self.folder) if (folder / RUN_FILE).exists()]
        return found[:1] if self.is_adopted else found


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
