"""The trials of a run as a tidy table: a row a trial, as CSV or JSON Lines, never all in memory."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TextIO

from adaptive_eval.interop.cells_of_run import RunDescription
from adaptive_eval.interop.imported_runs import shown_prompt
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.views.inert import without_formula

COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "model": "string",
        "task": "string",
        "question": "string",
        "trial": "int64",
        "step": "int64",
        "category": "int64",
        "score": "float64",
        "missing": "string",
        "truncated": "bool_",
        "extracted": "string",
        "reason": "string",
        "target": "string",
        "prompt_tokens": "int64",
        "completion_tokens": "int64",
        "reasoning_tokens": "int64",
        "latency": "float64",
        "finished_at": "float64",
        "after_stop": "bool_",
        "seed": "int64",
        "prompt": "string",
        "text": "string",
        "reasoning": "string",
        "tool_calls": "string",
    }
)
"""The columns and their types, as Arrow calls them. `category` and `score` are empty for a missing trial."""

TEXTS = ("prompt", "text", "reasoning", "tool_calls")
"""Columns that can be left out: they are nearly all of the size."""


def trial_rows(reader: RunReader, about: RunDescription, *, texts: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the trials of a run as rows, in commit order."""
    for record in reader.trials():
        weights = about.weights.get(record.request.task)
        row = _row(record, weights, about.target(record))
        yield row if texts else {name: value for name, value in row.items() if name not in TEXTS}


def _row(record: TrialRecord, weights: tuple[float, ...] | None, target: str | None) -> dict[str, Any]:
    request, answer, score = record.request, record.completion, record.score
    category = None if score is None else score.category
    return {
        "model": request.key.model,
        "task": request.task,
        "question": request.question,
        "trial": request.repeat,
        "step": request.key.index,
        "category": category,
        "score": None if category is None or weights is None else float(weights[category]),
        "missing": record.missing,
        "truncated": answer is not None and answer.finish_reason == "length",
        "extracted": None if score is None else score.extracted,
        "reason": None if score is None else score.reason,
        "target": target,
        "prompt_tokens": record.usage.prompt_tokens,
        "completion_tokens": record.usage.completion_tokens,
        "reasoning_tokens": 0 if answer is None else answer.reasoning_tokens,
        "latency": None if answer is None else answer.latency,
        "finished_at": record.finished_at,
        "after_stop": record.after_stop,
        "seed": request.seed,
        "prompt": shown_prompt(record.sent),
        "text": None if answer is None else answer.text,
        "reasoning": None if answer is None else answer.reasoning,
        "tool_calls": json.dumps(answer.tool_calls) if answer is not None and answer.tool_calls else None,
    }


def write_csv(rows: Iterable[Mapping[str, Any]], file: TextIO) -> None:
    """Write rows as CSV with a header; nothing for a value that is not there, and no text is a formula.

    Examples
    --------
    >>> import sys
    >>> write_csv([{"model": "=a", "missing": None, "truncated": False, "step": -1}], sys.stdout)
    model,missing,truncated,step
    '=a,,false,-1
    """
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(_Lines(file), list(row), lineterminator="\r\n")
            writer.writeheader()
        writer.writerow({name: _cell(value) for name, value in encodable(row).items()})


class _Lines:
    """Ends rows with a line feed; the csv module, told so, would not quote a carriage return in a cell."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> int:
        return self._file.write(row.removesuffix("\r\n") + "\n")


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return without_formula(value) if isinstance(value, str) else value


def write_jsonl(rows: Iterable[Mapping[str, Any]], file: TextIO) -> None:
    """Write rows as JSON Lines."""
    file.writelines(json.dumps(row) + "\n" for row in rows)


def encodable(row: Mapping[str, Any]) -> dict[str, Any]:
    r"""Return a row whose texts can be written as UTF-8: half a surrogate pair, as answers have it, cannot.

    Examples
    --------
    >>> encodable({"text": "half \ud83d", "step": 1})
    {'text': 'half ?', 'step': 1}
    """
    return {
        name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }
