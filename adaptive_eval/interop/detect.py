"""Chooses the reader of a file by its name and its first bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from adaptive_eval.errors import DatasetError, OutcomesError
from adaptive_eval.interop.found import Choices, Log, first_row
from adaptive_eval.interop.imported_runs import RUN_FILE, run_log
from adaptive_eval.interop.inspect_logs import inspect_log
from adaptive_eval.interop.lm_eval import is_samples_row, samples_log
from adaptive_eval.interop.parquet_parts import parts_of
from adaptive_eval.interop.tabular import archive_log, begin_of, files_in, table_log

Reader: TypeAlias = Callable[[Path, Choices], Log]


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
    if not found:
        raise OutcomesError(
            f"{path}: there is neither a run in this folder ({RUN_FILE} is missing) nor a log of Inspect, "
            "lm-evaluation-harness, lighteval, evalscope, promptfoo, Terminal-Bench, HELM, OpenCompass or "
            "MCPMark"
        )
    return sorted(found)


def open_logs(paths: Iterable[Path], choices: Choices, *, texts: bool = True) -> list[Log]:
    """Return the logs of files, runs and folders, in the order given."""
    logs = [open_log(file, choices, texts=texts) for path in paths for file in sources(path)]
    _require_different(logs)
    return logs


def open_log(path: Path, choices: Choices, *, texts: bool = True) -> Log:
    """Return the log in one file, run, or folder of the parts of a table."""
    if path.is_dir():
        in_parts = not (path / RUN_FILE).exists() and parts_of(path)
        return table_log(path, choices) if in_parts else run_log(path, choices, texts=texts)
    ending = path.suffix.lower()
    reader = _BY_ENDING.get(ending)
    if reader is not None:
        return reader(path, choices)
    if not path.is_file():
        raise OutcomesError(f"{path}: there is no such file", code="outcomes/not-found")
    if ending == ".json" and not choices.columns and _begins_as_inspect(path):
        return inspect_log(path, choices)
    if ending in (".jsonl", ".ndjson") and not choices.columns and is_samples_row(first_row(path)):
        return samples_log(path, choices)
    if ending in _TABLES:
        return table_log(path, choices)
    raise DatasetError(
        f"{path}: cannot tell the format from the ending {ending!r}; a log of another tool keeps the name it "
        "was written under, a table ends in .csv, .tsv, .jsonl, .json, .parquet or .npz"
    )


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
        earlier = by_identity.setdefault(log.identity, log.path) if log.identity else log.path
        if earlier != log.path:
            raise OutcomesError(f"{log.path} is the same evaluation as {earlier}; give it once")
