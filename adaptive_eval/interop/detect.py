"""Chooses the reader of a file by its name and its first bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from adaptive_eval.errors import DatasetError, OutcomesError
from adaptive_eval.interop.evalscope import is_review_row, reviews_log
from adaptive_eval.interop.found import Choices, Log, first_row, json_object
from adaptive_eval.interop.imported_runs import RUN_FILE, run_log
from adaptive_eval.interop.inspect_logs import inspect_log
from adaptive_eval.interop.lighteval import details_log, has_details
from adaptive_eval.interop.lm_eval import is_samples_row, samples_log
from adaptive_eval.interop.parquet_parts import parts_of
from adaptive_eval.interop.promptfoo import is_promptfoo, promptfoo_log
from adaptive_eval.interop.result_files import (
    HELM_FILE,
    helm_log,
    is_mcpmark,
    is_mcpmark_runs,
    is_opencompass,
    is_terminal_bench,
    mcpmark_log,
    mcpmark_runs_log,
    opencompass_log,
)
from adaptive_eval.interop.tabular import archive_log, parquet_columns, table_log

Reader: TypeAlias = Callable[[Path, Choices], Log]

_PATTERNS = ("samples_*.jsonl", "*.eval", "details_*.parquet", "reviews/**/*.jsonl", HELM_FILE)
"""Files of a folder that are logs; JSON files are looked into."""

_PEEK = 4096


def sources(path: Path) -> list[Path]:
    """Return the files and runs that a path names: itself, or the logs in a folder.

    A folder of the parts of one table is a log itself.
    """
    if not path.is_dir():
        return [path]
    if (path / RUN_FILE).exists() or parts_of(path):
        return [path]
    found = {file for pattern in _PATTERNS for file in path.rglob(pattern) if file.is_file()}
    found |= {file for file in path.rglob("*.json") if _is_log(file)}
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
    if ending == ".parquet":
        return (details_log if has_details(parquet_columns(path)) else table_log)(path, choices)
    if ending == ".json":
        return (table_log if choices.columns else _reader_of_json(path))(path, choices)
    if ending in (".jsonl", ".ndjson"):
        row = {} if choices.columns else first_row(path)  # a map says that it is a table
        for known, opened in ((is_samples_row, samples_log), (is_review_row, reviews_log)):
            if known(row):
                return opened(path, choices)
        return table_log(path, choices)
    raise DatasetError(
        f"{path}: cannot tell the format from the ending {ending!r}; a log of another tool keeps the name it "
        "was written under, a table ends in .csv, .tsv, .jsonl, .json, .parquet or .npz"
    )


_BY_ENDING: dict[str, Reader] = {
    ".npz": archive_log,
    ".csv": table_log,
    ".tsv": table_log,
    ".eval": inspect_log,
}


_OBJECTS: tuple[tuple[Callable[[Mapping[str, Any]], bool], Reader], ...] = (
    (is_promptfoo, promptfoo_log),
    (is_opencompass, opencompass_log),
    (is_mcpmark, mcpmark_log),
    (is_mcpmark_runs, mcpmark_runs_log),
)


def _reader_of_json(path: Path) -> Reader:
    if _begins_as_inspect(path):
        return inspect_log
    if path.name == HELM_FILE:
        return helm_log
    if _begins(path).lstrip().startswith(b"["):
        return table_log
    data = json_object(path)
    for known, reader in _OBJECTS:
        if known(data):
            return reader
    if "pretty_env_info" in data or "lm_eval_version" in data:
        raise OutcomesError(
            f"{path}: this is the summary of lm-evaluation-harness; give the samples_….jsonl next to it, "
            "which --log_samples writes"
        )
    return table_log


def _is_log(path: Path) -> bool:
    """Tell whether a JSON file in a folder is a log; other files there are passed over."""
    begin = _begins(path)
    if _begins_as_inspect(path):
        return True
    if path.name == "meta.json":
        return b'"execution_result"' in begin and is_mcpmark(json_object(path))
    if "model_results" in path.parts[-3:-2]:
        return is_mcpmark_runs(json_object(path))
    if (
        path.name.endswith("results.json")
        and b'"trial_name"' in begin
        and is_terminal_bench(json_object(path))
    ):
        return True
    if "results" in path.parts[-3:-2]:
        return begin.lstrip().startswith(b"{") and is_opencompass(json_object(path))
    return b'"evalId"' in begin and is_promptfoo(json_object(path))


def _begins_as_inspect(path: Path) -> bool:
    begin = _begins(path)
    return all(word in begin for word in (b'"version"', b'"status"', b'"eval"'))


def _begins(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_PEEK)
    except OSError as error:
        raise OutcomesError(f"{path}: cannot be read: {error.strerror}") from None


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
