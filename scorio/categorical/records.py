"""Recorded completions in JSON lines, as the paper's released outcomes hold them."""

import gzip
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scorio._arguments import most_unpacked
from scorio.arrays import Floats

Columns: TypeAlias = dict[str, NDArray[Any]]

_TABLES = json.loads(files("scorio.categorical").joinpath("records.json").read_text(encoding="utf-8"))
_FIELDS: dict[str, list[str]] = _TABLES["fields"]
"""Column -> path of its value in a record; none for columns that a record never has."""

_OF_LOGPROBS: dict[str, Callable[[Floats], Any]] = {
    "logprob_min": np.min,
    "logprob_iqr": lambda values: np.subtract(*np.percentile(values, [75, 25])),
    "tail64_avg_logprob": lambda values: values[-64:].mean(),
}
"""Column -> summary of the completion's log-probabilities."""

SIGNAL_TO_COLUMN: dict[str, str] = _TABLES["columns"]
"""Signal -> column of :func:`scorio.categorical.load_records`."""

BINARY_SIGNALS: frozenset[str] = frozenset({"R1", "R2", "R3"})
"""Signals that are 0 or 1: high from 0.5 on."""

_LABELS = ("model", "problem", "source_file")


@dataclass
class FileResult:
    """The completions of one file, and how reading it went; `elapsed_secs` stays 0 here."""

    file_path: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    n_records_parsed: int = 0
    n_lines_total: int = 0
    n_lines_skipped: int = 0
    n_lines_malformed: int = 0
    file_size_bytes: int = 0
    elapsed_secs: float = 0.0
    error: str | None = None


def load_records(path: str | PathLike[str], workers: int | None = None) -> Columns:
    """Load a file, or all files of a folder, of JSON lines with one completion each.

    Parameters
    ----------
    path : path-like
        A ``.jsonl`` or ``.jsonl.gz`` file, or a folder that is searched for such files, also below.
    workers : int, optional
        Accepted for compatibility; files are read one after another.

    Returns
    -------
    dict of str to numpy.ndarray
        One entry a completion: float64, NaN if a value is missing, and object arrays ``model``,
        ``problem`` and ``source_file``. Empty without a completion.

    Raises
    ------
    FileNotFoundError
        If there is no such path.
    ValueError
        If there is no such file, or one unpacks to more than 1 GiB and 200 times its size, naming the path.

    Warns
    -----
    UserWarning
        If lines are no JSON objects, with their number; they are left out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> line = '{"model": "m", "data_id": 3, "seed": 1, "processed_results": {"is_correct": 1}}'
    >>> _ = (folder / "run.jsonl").write_text(line)
    >>> columns = load_records(folder)
    >>> columns["problem"].tolist(), columns["is_correct"].tolist()
    ([3], [1.0])
    """
    root = Path(path)
    if not root.exists():
        raise FileNotFoundError(f"path must exist; got {root}")
    if not root.is_file():
        found = sorted(root.rglob("*.jsonl")) + sorted(root.rglob("*.jsonl.gz"))
    else:
        found = [root]
    if not found or not all(file.name.endswith((".jsonl", ".jsonl.gz")) for file in found):
        raise ValueError(f"path must be or hold .jsonl or .jsonl.gz files; got {root}")
    rows: list[dict[str, Any]] = []
    for file in found:
        read = _read(file)
        rows += read.rows
        if read.n_lines_malformed:
            lost = f"{file}: {read.n_lines_malformed} lines are no JSON objects and are left out"
            warnings.warn(lost, stacklevel=2)
    columns: Columns = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        dtype = object
        if name not in _LABELS:
            dtype = np.float64
        columns[name] = np.array(values, dtype=dtype)
    return columns


def _read(file: Path) -> FileResult:
    result = FileResult(str(file), file_size_bytes=file.stat().st_size)
    opening: Any = open
    if file.suffix == ".gz":
        opening = gzip.open
    left = most = most_unpacked(result.file_size_bytes)
    with opening(file, "rt", encoding="utf-8", errors="replace") as lines:
        while line := lines.readline(left + 1):
            left -= len(line)
            if left < 0:
                raise ValueError(f"{file} unpacks to more than {most:,} characters; unpack it beforehand")
            result.n_lines_total += 1
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                record = None
            if isinstance(record, dict):
                result.rows.append(_row(record, file.name))
            elif line.strip():
                result.n_lines_malformed += 1
            else:
                result.n_lines_skipped += 1
    result.n_records_parsed = len(result.rows)
    return result


def _row(record: Mapping[str, Any], source: str) -> dict[str, Any]:
    row: dict[str, Any] = {"source_file": source}
    for name, keys in _FIELDS.items():
        value = _find(record, keys)
        row[name] = value if name in _LABELS else _number(value)
    row["hit_max_len"] = float(_find(record, ("output", "finish_reason")) == "length")
    given = _find(record, ("tokens", "completion_logprob_list")) or ()
    values = np.array([value for value in given if value is not None], dtype=np.float64)
    for name, summary in _OF_LOGPROBS.items():
        row[name] = summary(values) if values.size else np.nan
    return row


def _find(record: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if isinstance(record, Mapping):
            record = record.get(key)
        else:
            record = None
    if keys:
        return record
    return None


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan
