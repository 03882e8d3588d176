"""Recorded outcomes from files, folders and runs; name and first bytes of a file choose its reader."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np

from adaptive_eval.errors import Coded, DatasetError, OutcomesError, UsageError
from adaptive_eval.interop.archives import archive_log, archive_outcomes
from adaptive_eval.interop.found import DEFAULT_TASK, Log, ReadingOptions, first_row
from adaptive_eval.interop.gather import Gatherer
from adaptive_eval.interop.inspect_logs import inspect_log
from adaptive_eval.interop.lm_eval import is_samples_row, samples_log
from adaptive_eval.interop.run_tables import parts_of, run_log
from adaptive_eval.interop.sequences import random_order
from adaptive_eval.interop.tabular import begin_of, files_in, table_log
from adaptive_eval.simulate.recorded import LOST, NO_TRIAL, RecordedOutcomes
from adaptive_eval.store.run_files import RUN_FILE
from adaptive_eval.tasks.rows import ending_of, uncompressed
from adaptive_eval.trial import ScoreRange

Reader: TypeAlias = Callable[[Path, ReadingOptions], Log]


def sources(path: Path) -> list[Path]:
    """Return the files and runs that a path names: itself, or the logs in a folder.

    A folder of the parts of one table is a log itself.
    """
    if not path.is_dir():
        return [path]
    if (path / RUN_FILE).exists() or parts_of(path):
        return [path]
    named = [*path.rglob("samples_*.jsonl"), *path.rglob("*.eval")]
    found = {file for file in named if file.is_file()} | set(files_in(path))
    found |= {file for file in path.rglob("*.json") if _begins_as_inspect(file)}
    for deeper in (path.glob("*"), path.rglob("*")):
        found = found or {file for file in deeper if file.is_file() and ending_of(file) in _TABLES}
    if not found:
        raise OutcomesError(
            f"{path}: there is neither a run in this folder ({RUN_FILE} is missing) nor a table nor a log of "
            "Inspect, lm-evaluation-harness or another tool of docs/interop.md"
        )
    return sorted(found)


def open_logs(paths: Iterable[Path], choices: ReadingOptions, *, texts: bool = True) -> list[Log]:
    """Return the logs of files, runs and folders, in the order given."""
    files = [(path, file) for path in paths for file in sources(path)]
    folders = _folders({file for _, file in files})
    logs = []
    for path, file in files:
        own = replace(choices, folder=folders.get(file))
        if path in choices.models:
            own = replace(own, model=choices.models[path], given=path)
        logs.append(open_log(file, own, texts=texts))
    _require_different(logs)
    return logs


def _folders(files: Iterable[Path]) -> dict[Path, str]:
    """Return the folder by which each file is told from others of the same name.

    Examples
    --------
    >>> sorted(_folders([Path("/old/run/results.csv"), Path("/new/run/results.csv")]).values())
    ['new', 'old']
    """
    alike: dict[str, set[Path]] = {}
    for file in files:
        alike.setdefault(uncompressed(file).stem, set()).add(file)
    found: dict[Path, str] = {}
    for same in alike.values():
        if len(same) == 1:
            continue
        above = [file.resolve().parents for file in same]
        for folders in zip(*above, strict=False):  # the nearest first
            names = [folder.name for folder in folders]
            if len(set(names)) == len(same):
                found.update(zip(same, names, strict=True))
                break
    return found


def open_log(path: Path, choices: ReadingOptions, *, texts: bool = True) -> Log:
    """Return the log in one file, run, or folder of the parts of a table."""
    if path.is_dir():
        in_parts = not (path / RUN_FILE).exists() and parts_of(path)
        if in_parts:
            return table_log(path, choices)
        _refuse_scorer(path, choices, f"rescore {path} scores a run again")
        return run_log(path, choices, texts=texts)
    ending = ending_of(path)
    reader = _BY_ENDING.get(ending)
    if reader is not None:
        _refuse_scorer(path, choices, "score the answers again with the tool that has them")
        return reader(path, choices)
    if not path.is_file():
        raise OutcomesError(f"{path}: there is no such file", code="outcomes/not-found")
    if ending == ".json" and not choices.columns and _begins_as_inspect(path):
        _refuse_scorer(path, choices, "score the answers again with inspect score")
        return inspect_log(path, choices)
    if ending in (".jsonl", ".ndjson") and not choices.columns and is_samples_row(first_row(path)):
        return samples_log(path, choices)
    if ending in _TABLES:
        return table_log(path, choices)
    raise DatasetError(
        f"{path}: cannot tell the format from the ending {ending!r}; a log of another tool keeps the name it "
        "was written under, a table ends in .csv, .tsv, .jsonl, .json, .parquet or .npz"
    )


def _refuse_scorer(path: Path, choices: ReadingOptions, instead: str) -> None:
    """Refuse to score answers again that are not read."""
    if choices.scorer is not None:
        raise UsageError(f"--scorer {choices.scorer}: the answers in {path} are not read; {instead}")


_BY_ENDING: dict[str, Reader] = {".npz": archive_log, ".eval": inspect_log}
_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")


def _begins_as_inspect(path: Path) -> bool:
    begin = begin_of(path)
    return all(word in begin for word in (b'"version"', b'"status"', b'"eval"'))


def _require_different(logs: Sequence[Log]) -> None:
    """Refuse a log that is given twice."""
    by_path: set[Path] = set()
    by_identity: dict[str, Path] = {}
    for log in logs:
        place = log.path.resolve()
        if place in by_path:
            raise OutcomesError(f"{log.path} is given twice")
        by_path.add(place)
        if log.identity:
            earlier = by_identity.setdefault(log.identity, log.path)
        else:
            earlier = log.path
        if earlier != log.path:
            raise OutcomesError(f"{log.path} is the same evaluation as {earlier}; give it once")


def read_recorded(
    paths: Sequence[Path], choices: ReadingOptions | None = None, *, any_order: bool = False
) -> RecordedOutcomes:
    r"""Read the outcomes of one or several files or runs as one table.

    With `any_order` the trials of a model on a question are in random order, unless all are of runs.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "outcomes.csv")
    ...     _ = path.write_text("model,question,category\na,q1,1\na,q1,0\nb,q1,1\n")
    ...     recorded = read_recorded([path])
    >>> recorded.models, recorded.counts.tolist()
    (('a', 'b'), [[2], [1]])
    """
    if not paths:
        raise OutcomesError("no file of recorded outcomes is given")
    choices = choices or ReadingOptions()
    if choices == ReadingOptions() and len(paths) == 1 and paths[0].suffix.lower() == ".npz":
        arrays = archive_outcomes(paths[0])
        if "R" in arrays:
            outcomes, models, questions = arrays["R"]
            if any_order:
                there = outcomes != NO_TRIAL
                outcomes[there] = outcomes[there][random_order(*np.nonzero(there)[:2])]
            names = tuple((DEFAULT_TASK, name) for name in questions)
            return RecordedOutcomes(tuple(models), names, outcomes)
    recorded = _read(paths, choices, any_order=any_order)
    if recorded is None:  # scores between 0 and 1
        numbers = ScoreRange((0.0, 1.0))
        recorded = _read(paths, replace(choices, range=numbers), any_order=any_order)
        assert recorded is not None
        recorded = replace(recorded, weights=frozenset({numbers}))
    choices.require_renamed(recorded.models)
    return recorded


def _read(paths: Sequence[Path], choices: ReadingOptions, *, any_order: bool) -> RecordedOutcomes | None:
    """Return the outcomes of files as one table; None if scores are numbers and no range is given."""
    with TemporaryDirectory(prefix="adaptive-eval-") as folder:
        gatherer = Gatherer(Path(folder), choices.range, independent=choices.independent)
        try:
            for log in open_logs(paths, choices, texts=False):
                gatherer.add(log)
            return _tabulated(gatherer, any_order=any_order)
        finally:
            gatherer.close()


def logs_of_runs(paths: Sequence[Path], cluster: str | None) -> list[Log]:
    """Return the logs of the runs among `paths`, which say what categories and tasks are worth."""
    runs = [path for path in paths if (path / RUN_FILE).exists()]
    return open_logs(runs, ReadingOptions(cluster=cluster), texts=False)


def recorded_weights(recorded: RecordedOutcomes) -> tuple[float, ...] | None:
    """Return the category weights of the logs if all record the same; None if none does."""
    if len(recorded.weights) > 1:
        raise OutcomesError(
            "the tasks have different rubrics or ranges of scores, and analyze compares one kind; report "
            "ranks a run by all its tasks"
        )
    return next(iter(recorded.weights), None)


def _tabulated(gatherer: Gatherer, *, any_order: bool) -> RecordedOutcomes | None:
    """Return the answers of logs as a table, copies left out; None if scores are numbers."""
    gathered = gatherer.gathered()
    (cells, categories, answers) = gatherer.answers(any_order=any_order)
    if any(score not in (0.0, 1.0) for scores in gathered.scores.values() for score in scores):
        return None
    questions = [(task, question) for task, ids in gathered.tasks.items() for question in ids]
    depth = int(cells.repeat.max(initial=-1)) + 1
    table = np.full((len(gathered.models), len(questions), depth), NO_TRIAL, dtype=np.int16)
    table[cells.model, cells.question, cells.repeat] = np.where(categories < 0, LOST, categories)
    texts = None
    if answers is not None:
        texts = np.zeros(table.shape, dtype=np.int64)
        texts[cells.model, cells.question, cells.repeat] = answers
    models = np.flatnonzero((table >= 0).any(axis=(1, 2)))
    asked = np.flatnonzero((table[models] != NO_TRIAL).any(axis=(0, 2)))  # or lost by all
    names = tuple(gathered.models[row] for row in models.tolist())
    known = tuple(questions[column] for column in asked.tolist())
    warnings = [str(note) for note in gathered.notes if isinstance(note, Coded)]
    silent = [name for name in gathered.models if name not in names]
    warnings += [f"{name} is left out: none of its trials has an answer" for name in silent]
    told = gathered.copies, tuple(warnings), frozenset(gathered.weights.values())
    groups = [group for task in gathered.tasks for group in gathered.clusters.get(task, ())]
    clusters = None
    if groups:
        clusters = tuple(groups[column] for column in asked.tolist())
    here = np.ix_(models, asked)
    kept = None
    if texts is not None:
        kept = texts[here]
    return RecordedOutcomes(names, known, table[here], *told, clusters, gathered.rules, kept)


def copies_words(copies: int) -> str:
    """Say that answers were left out as copies."""
    return f"left out as copies of earlier answers to the same question: {copies:,}"
