"""What a pilot was answered becomes the beginning of its run: counted, charged and decided upon alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from adaptive_eval.build.assembly import Built
from adaptive_eval.errors import EndpointError
from adaptive_eval.run.pilot import PILOT, RUN_FILE, pilot_passes
from adaptive_eval.scoring import TaskScoring
from adaptive_eval.store import RunReader, RunWriter, TrialRecord

__all__ = ["adopt_pilot", "is_adopted", "past_runs", "pilot_elapsed"]


def is_adopted(built: Built) -> bool:
    """Return whether the pilot's trials are those that the run begins with.

    They are where the questions are laid out beforehand. With rounds they need not be: the run then asks for
    its own, and takes from the pilot what it happens to ask again.
    """
    return bool(pilot_passes(built)) and _laid_out_beforehand(built)


def _laid_out_beforehand(built: Built) -> bool:
    spec = built.spec
    return spec.allocation.questions != "shared-rounds" and not any(spec.own_rounds)


def adopt_pilot(built: Built, directory: Path, writer: RunWriter) -> None:
    """Add the pilot's trials to a run file that has none, in one commit, under the frozen rubric.

    Parameters
    ----------
    built : Built
        The run, its thresholds frozen.
    directory : Path
        Its directory.
    writer : RunWriter
        Its run file.
    """
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
