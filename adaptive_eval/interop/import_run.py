"""Writing logs of other tools as a run file: whole, or not at all."""

import json
import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from adaptive_eval import __version__
from adaptive_eval.core.results import Results, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.core.stored_spec import SESSION, spec_to_json
from adaptive_eval.errors import OutcomesError, RunExists, RunFileError, UsageError
from adaptive_eval.interop.found import IMPORTED, Log, require_independent, weighted
from adaptive_eval.interop.gather import GATHERED, NOT_THERE, CombinedLogs, Gatherer
from adaptive_eval.interop.sequences import TrialCells, TrialSequences, sequences_of
from adaptive_eval.store.records import SnapshotRecord, TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import (
    RIGHT_OR_WRONG,
    SAME_TEXT,
    Completion,
    Missing,
    Score,
    ScoreRange,
    TrialKey,
    TrialOutcome,
    TrialRequest,
    Usage,
)
from scorio.sequential.parts import unit_scores

MOST_LEVELS = 16
"""Different scores that can each be a category of their own; more are kept as numbers from 0 to 1."""


@dataclass(frozen=True)
class TaskCategories:
    """Turns the trials of one task into categories."""

    weights: tuple[float, ...]  # what each category is worth
    # the category of each score; None where the logs have categories
    by_score: Mapping[float, int] | None = None

    def category(self, trial: Mapping[str, Any]) -> int | None:
        """Return a trial's category, None for a missing one.

        Examples
        --------
        >>> categories = TaskCategories((0.0, 0.5, 1.0), {0.0: 0, 0.5: 1, 1.0: 2})
        >>> categories.category({"category": None, "score": 0.5})
        1
        """
        if trial["score"] is not None:
            assert self.by_score is not None
            return self.by_score[trial["score"]]
        category: int | None = trial["category"]
        if category is None or self.by_score is None:
            return category
        return self.by_score[float(category)]


def _levels(
    task: str, gathered: CombinedLogs, right_from: float | None, weights: Sequence[float] | None
) -> TaskCategories:
    """Return how the trials of a task become categories.

    Scores are kept exactly if there are few of them: each is a category that is worth the score.
    """
    categories = gathered.categories[task]
    scores = gathered.scores[task]
    if not scores:
        return TaskCategories(_weights(task, categories, weights or gathered.weights.get(task)))
    if categories > 2:
        raise OutcomesError(
            f"task {task!r} has scores in some logs and {categories} categories in others; import them apart"
        )
    if right_from is not None:
        places = {value: int(value >= right_from) for value in (*scores, *RIGHT_OR_WRONG)}
        return TaskCategories(RIGHT_OR_WRONG, places)
    values = sorted({0.0, 1.0, *scores})
    return TaskCategories(tuple(values), {value: place for place, value in enumerate(values)})


def _weights(task: str, categories: int, given: Sequence[float] | None) -> tuple[float, ...]:
    if isinstance(given, ScoreRange):
        return given
    if given is None:
        if categories > 2:
            raise OutcomesError(
                f"task {task!r} has {categories} categories; say what each is worth, such as "
                "--weights 0,0.5,1"
            )
        return RIGHT_OR_WRONG
    if len(given) < categories:
        raise OutcomesError(f"task {task!r} has {categories} categories and there are {len(given)} weights")
    try:
        unit_scores(given)
    except ValueError as error:
        raise UsageError(f"--weights: {error}") from None
    return tuple(given)


BATCH = 64
"""Trials of a batch: those after the stop are marked so, as in a live run. Larger ones are slower."""

COMMIT_EVERY = 64 * BATCH
"""Trials of a commit: nobody sees the run before it is whole."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Completed what is being done, how much of it, of how much."""


@dataclass(frozen=True)
class Imported:
    """The imported run."""

    directory: Path  # the run
    # trials of the logs with an answer, and without one
    trials: int
    missing: int
    copies: int  # those of the missing that are copies of earlier answers
    # indices of the trial sequences that no log has a trial for, such as the early repeats of a first pass
    absent: int
    results: Results  # the ranking
    notes: tuple[str, ...]  # what a person should know


def default_spec(gathered: CombinedLogs, tasks: tuple[TaskSpec, ...]) -> SessionSpec:
    """Return a session that ranks the models, or only estimates if there is one."""
    models = gathered.models
    goal = GoalSpec("ranking" if len(models) > 1 else "budget")
    grouped = any(task.clusters is not None for task in tasks)
    stopping = StoppingSpec(target="population" if grouped else "benchmark")
    return SessionSpec(tuple(map(ModelSpec, models)), tasks, goal, stopping)


def import_logs(
    logs: Sequence[Log],
    out: Path,
    *,
    right_from: float | None = None,
    weights: Sequence[float] | None = None,
    independent: bool = False,
    decide: Callable[[CombinedLogs, tuple[TaskSpec, ...]], SessionSpec] = default_spec,
    progress: Progress = lambda _what, _done, _total: None,
) -> Imported:
    """Write logs as a run."""
    with _staged(out) as stage:
        known = None
        if isinstance(weights, ScoreRange):
            known = weights
        gatherer = Gatherer(stage, known, independent=independent)
        try:
            counts = _add_all(gatherer, logs, progress)
            gathered = gatherer.gathered()
            if known is None and right_from is None and gathered.most_scores > MOST_LEVELS:
                gatherer.close()
                (stage / GATHERED).unlink()
                weights = ScoreRange((0.0, 1.0))
                gatherer = Gatherer(stage, weights, independent=independent)
                counts = _add_all(gatherer, logs, progress)
                gathered = gatherer.gathered()
            levels = {task: _levels(task, gathered, right_from, weights) for task in gathered.tasks}
            tasks = []
            for name, ids in gathered.tasks.items():
                tasks.append(TaskSpec(name, ids, levels[name].weights, gathered.clusters.get(name)))
            cells = gatherer.cells()
            spec = replace(decide(gathered, weighted(tasks, logs)), redrawn=gathered.redrawn)
            require_independent(spec, logs)
            session = Session(_without_early_repeats(spec, cells))
            sequences = sequences_of(cells, len(gathered.models), session.board.run_sequence)
            meta = _meta(out, logs, counts, gathered, levels, session.spec)
            with RunWriter.create(stage, meta=meta, durability="normal") as writer:
                copy = _Copy(gatherer, gathered, levels, sequences, session, writer, progress)
                return copy.run(out)
        finally:
            gatherer.close()
            (stage / GATHERED).unlink(missing_ok=True)


def _add_all(gatherer: Gatherer, logs: Sequence[Log], progress: Progress) -> list[int]:
    """Gather the trials of all logs; return how many each has."""
    counts = []
    for number, log in enumerate(logs):
        progress(f"reading {log.path.name}", number, len(logs))
        counts.append(gatherer.add(log))
    return counts


@contextmanager
def _staged(out: Path) -> Iterator[Path]:
    """Yield a folder next to `out`, which takes its place at the end, or goes."""
    is_empty = out.is_dir() and not any(out.iterdir())
    if out.exists() and not is_empty:
        raise RunExists(f"{out} is there already; choose another name with --write")
    stage = out.with_name(f".{out.name}.importing-{os.getpid()}")
    try:
        stage.mkdir(parents=True)
        try:
            yield stage
            if out.exists():
                out.rmdir()
            stage.rename(out)
        finally:
            if stage.exists():
                shutil.rmtree(stage)
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, OSError):
            words = error.strerror
        else:
            words = str(error)
        raise RunFileError(f"{out}: the run cannot be written: {words}") from None


def _without_early_repeats(spec: SessionSpec, cells: TrialCells) -> SessionSpec:
    """Return the session that expects no second trial of a question if not all have one."""
    trials = np.zeros((len(spec.models), spec.questions), dtype=np.int64)
    np.add.at(trials, (cells.model, cells.question), 1)
    return replace(spec, early_repeats=bool(trials.min() > 1))


def _meta(
    out: Path,
    logs: Sequence[Log],
    counts: Sequence[int],
    gathered: CombinedLogs,
    levels: Mapping[str, TaskCategories],
    spec: SessionSpec,
) -> dict[str, str]:
    sources = [
        {"file": log.path.name, "format": log.format, "trials": count, "versions": dict(log.versions)}
        for log, count in zip(logs, counts, strict=True)
    ]
    worth = {name: found.weights for name, found in levels.items()}
    described = {
        "sources": sources,
        "notes": list(gathered.notes),
        "weights": worth,
        "rule": spec.stopping.rule,
        "ranges": [name for name, weights in worth.items() if isinstance(weights, ScoreRange)],
    }
    return {
        "name": out.name,
        IMPORTED: json.dumps(described),
        "seed": str(spec.seed),
        SESSION: spec_to_json(spec),
        "started_at": str(time.time()),
        "versions": json.dumps({"adaptive-eval": __version__}),
    }


def _of_logs(results: Results, trials: int, absent_after_stop: Mapping[str, int]) -> Results:
    """Count the trials of the logs alone; leave out the warning of no bounds: they bound the session."""
    kept = [text for text in results.warnings if getattr(text, "code", "") != "warning/unbounded"]
    models = [
        replace(line, after_stop=line.after_stop - absent_after_stop.get(line.model, 0))
        for line in results.models
    ]
    return replace(results, trials=trials, models=tuple(models), warnings=tuple(kept))


@dataclass
class _Copy:
    """Writes the gathered trials in the order of the trial sequences, and has the session decide on them."""

    gatherer: Gatherer
    gathered: CombinedLogs
    levels: Mapping[str, TaskCategories]
    sequences: TrialSequences
    session: Session
    writer: RunWriter
    progress: Progress
    counts: Counter[str] = field(default_factory=Counter)
    absent_after_stop: Counter[str] = field(default_factory=Counter)  # by model

    def run(self, out: Path) -> Imported:
        """Write everything; return a summary."""
        self.session.replay(self._batches())
        trials = self.counts["trials"]
        missing = self.counts["missing"]
        self.session.end("budget", f"all {trials + missing:,} imported trials are counted")
        now = time.time()
        for decision in self.session.decisions:
            self.writer.decision(now, decision.trials, asdict(decision))
        results = _of_logs(self.session.results(), trials + missing, self.absent_after_stop)
        self.writer.snapshot(SnapshotRecord(now, 0.0, results.trials, to_json(results)))
        self.writer.commit()
        absent = self.counts["absent"]
        gathered = self.gathered
        return Imported(out, trials, missing, gathered.copies, absent, results, gathered.notes)

    def _batches(self) -> Iterator[list[TrialOutcome | Missing]]:
        total = self.sequences.row.size
        index = self.sequences.index
        ended: set[int] = set()
        for start in range(0, total, BATCH):
            self.progress("writing", start, total)
            records = self._records(slice(start, start + BATCH))
            for record in records:
                self.writer.outcome(record)
            if start % COMMIT_EVERY == 0:
                self.writer.commit()
            yield [record.outcome for record in records]
            if start + BATCH < total:
                self._end_sequences(int(index[start + BATCH]), ended)

    def _end_sequences(self, index: int, ended: set[int]) -> None:
        """Drop the models whose trials end long before those of the others."""
        ends = self.sequences.ends
        if (ends > index + self.session.spec.questions).sum() < 2:
            return
        for model in np.flatnonzero(ends <= index).tolist():
            if model not in ended:
                ended.add(model)
                self.session.stop_model(self.gathered.models[model], "its imported trials end here")

    def _records(self, part: slice) -> list[TrialRecord]:
        rows = self.sequences.row[part].tolist()
        found = self.gatherer.trials(rows)
        models = self.sequences.model[part].tolist()
        indices = self.sequences.index[part].tolist()
        after_stop = self.session.stopped is not None
        return [
            self._record(self._request(model, index), found.get(row), after_stop)
            for row, model, index in zip(rows, models, indices, strict=True)
        ]

    def _request(self, model: int, index: int) -> TrialRequest:
        spec = self.session.spec
        run_sequence = self.session.board.run_sequence
        key = TrialKey(spec.models[model].name, index)
        task, question = run_sequence.at(index)
        asked = spec.tasks[task]
        # whatever the seed was, the logs do not say
        return TrialRequest(key, asked.name, asked.questions[question], run_sequence.repeat(index), seed=0)

    def _record(
        self, request: TrialRequest, trial: Mapping[str, Any] | None, after_stop: bool
    ) -> TrialRecord:
        if trial is None:
            self.counts["absent"] += 1
            self.absent_after_stop[request.key.model] += after_stop
            return TrialRecord(request, time.time(), None, None, NOT_THERE, after_stop)
        levels = self.levels[request.task]
        category = levels.category(trial)
        sent = {name: trial[name] for name in ("prompt", "target") if trial[name]}
        at = trial.get("finished_at") or time.time()
        counts_by_itself = trial.get("redrawn") and not self.gathered.redrawn
        discarded = () if counts_by_itself else tuple(trial.get("discarded", ()))
        if category is None:
            self.counts["missing"] += 1
            why = trial["missing"] or "no answer"
            return TrialRecord(request, at, None, None, why, after_stop, sent, discarded=discarded)
        self.counts["trials"] += 1
        usage = Usage(*trial.get("tokens", (0, 0)))
        completion = Completion(
            trial.get("text", ""), trial.get("finish_reason", "").lower(), usage, trial.get("latency", 0.0)
        )
        known = levels.weights
        signals: dict[str, Any] = {}
        if isinstance(known, ScoreRange):
            signals["score"] = known.score(category)
        if trial.get("repeats"):
            signals[SAME_TEXT] = True
        score = Score(category, trial.get("extracted"), signals, trial.get("reason", ""))
        return TrialRecord(request, at, completion, score, None, after_stop, sent, discarded=discarded)
