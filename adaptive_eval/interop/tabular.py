"""Plain tables: a row a trial, as CSV, JSON Lines or Parquet, or an array in a NumPy archive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.column_maps import (
    column_map,
    mapped,
    require_columns,
    rows_at,
    single_trials,
)
from adaptive_eval.interop.found import (
    DEFAULT_TASK,
    Choices,
    Flaw,
    Found,
    Log,
    Piece,
    content_of,
    in_range,
    json_object,
    reading,
)
from adaptive_eval.interop.parquet_parts import parts_of
from adaptive_eval.interop.result_files import terminal_bench_agent
from adaptive_eval.library import library
from adaptive_eval.tasks.rows import Row, stream_rows

NO_TRIAL = -1
"""Category where there is no such trial."""

LARGEST_CATEGORY = int(np.iinfo(np.int16).max)

_WORDS = {"true": 1, "false": 0, "pass": 1, "fail": 0, "timeout": 0}
_COLUMNS = "model, question and category (or correct, or score)"


def table_log(path: Path, choices: Choices) -> Log:
    """Return the log in a table with a row a trial.

    Its columns: ``model``, ``question``, and ``category``, ``correct`` or ``score``; optionally ``task``,
    ``trial``, ``missing`` (why there is no answer), ``truncated``, ``text``, ``extracted``, ``reason``,
    ``prompt``, ``target``, ``prompt_tokens``, ``completion_tokens``, ``latency``, ``finished_at``. Others are
    ignored. `choices.columns` maps these names to those that the file has.
    """
    if choices.model is None:
        choices = replace(choices, model=terminal_bench_agent(path))
    return Log(path, "table", lambda: _pieces(path, choices), numbered=True)


def _pieces(path: Path, choices: Choices) -> Iterator[Piece]:
    if not path.exists():
        raise OutcomesError(f"{path}: there is no such file", code="outcomes/not-found")
    is_parquet = path.is_dir() or path.suffix.lower() == ".parquet"
    rows = _parquet(path) if is_parquet else _listed(path, choices)
    first = next(rows, None)
    if first is None:
        yield Flaw("", "the file has no rows")
        return
    columns = choices.columns
    if isinstance(first, Row):
        require_columns(path, columns, first.values)
        columns = column_map(columns, first.values)
    for row in chain([first], rows):
        if isinstance(row, Row):
            values = mapped(row.values, columns) if columns else row.values
            for trial in single_trials(values):
                yield _piece(Row(row.line, trial), choices)
        else:
            yield Flaw(f"line {row[0]}" if row[0] else "", row[1])


def _listed(path: Path, choices: Choices) -> Iterator[Row | tuple[int, str]]:
    """Yield the rows of a text file; in a JSON file they may be a list within an object."""
    if path.suffix.lower() == ".json" and path.is_file() and _begins_object(path):
        for number, values in enumerate(rows_at(path, json_object(path), choices.columns), start=1):
            yield Row(number, values) if isinstance(values, dict) else (number, "the row is no object")
        return
    yield from stream_rows(path)


def _begins_object(path: Path) -> bool:
    """Tell whether a JSON file begins with an object."""
    with path.open("rb") as file:
        return file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _parquet(path: Path) -> Iterator[Row]:
    for number, values in enumerate(parquet_rows(path), start=1):
        yield Row(number, values)


def _piece(row: Row, choices: Choices) -> Piece:
    """Return a row's trial, or its flaw."""
    values, place = row.values, f"line {row.line}"
    model = _text(values.get("model")) or choices.model
    question = _text(values.get(choices.question_id or "question"))
    for column, given in (("model", model), (choices.question_id or "question", question)):
        if not given:
            return Flaw(place, f"there is no {column}; the columns needed are {_COLUMNS}")
    assert model is not None
    assert question is not None
    try:
        result = _result(values, choices)
        number = _counting(values.get("trial"), "trial")
        tokens = (
            _counting(values.get("prompt_tokens"), "prompt_tokens") or 0,
            _counting(values.get("completion_tokens"), "completion_tokens") or 0,
        )
        times = [_seconds(values.get(column), column) for column in ("latency", "finished_at")]
    except ValueError as error:
        return Flaw(place, str(error))
    prompt, target = _text(values.get("prompt")) or "", _text(values.get("target")) or ""
    truncated = _text(values.get("truncated")) in ("1", "true", "True")
    return Found(
        choices.rename.get(model, model),
        choices.task or _text(values.get("task")) or DEFAULT_TASK,
        question,
        place,
        number,
        content=content_of(prompt, target) if prompt or target else "",
        text=_text(values.get("text")) or "",
        finish_reason="length" if truncated else _text(values.get("finish_reason")) or "",
        extracted=_text(values.get("extracted")),
        reason=_text(values.get("reason")) or "",
        prompt=prompt,
        target=target,
        tokens=tokens,
        latency=times[0],
        finished_at=times[1],
        **result,
    )


def _result(values: Mapping[str, Any], choices: Choices) -> dict[str, Any]:
    """Return category, score or reason for neither."""
    key = next((name for name in ("category", "correct", "score") if name in values), None)
    if choices.metric is not None:
        key = choices.metric
    missing = _text(values.get("missing"))
    if key is None or key not in values:
        if missing:
            return {"missing": missing}
        raise ValueError(
            f"there is neither category nor correct nor score; the columns needed are {_COLUMNS}"
        )
    value = values[key]
    if missing or value is None or value == "":
        return {"missing": missing or "no answer in the file"}
    if key == "score" or choices.metric is not None:
        return {"score": _score(value, key)}
    category = _category(value, key)
    return {"missing": "no answer in the file"} if category is None else {"category": category}


def _score(value: Any, key: str) -> float:
    known = _WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value
    return in_range(known, key)


def _category(value: Any, key: str) -> int | None:
    """Return a category, None for a trial without an answer."""
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    number = _whole(value)
    if number == NO_TRIAL:
        return None
    if number is None or not 0 <= number <= LARGEST_CATEGORY:
        raise ValueError(
            f"{key}: {value!r} is not a category (0, 1, 2, …; -1 or empty for a trial without an answer)"
        )
    return number


def _counting(value: Any, column: str) -> int | None:
    """Return a number from 0, None where there is none."""
    if value is None or value == "":
        return None
    number = _whole(value)
    if number is None or number < 0:
        raise ValueError(f"{column}: {value!r} is not a whole number from 0")
    return number


def _seconds(value: Any, column: str) -> float:
    if value is None or value == "":
        return 0.0
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 <= number < float("inf"):
        raise ValueError(f"{column}: {value!r} is not a number of seconds")
    return number


def _whole(value: Any) -> int | None:
    """Return a whole number given as a number or as text, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() else None


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


# ---------------------------------------------------------------------- Parquet


def parquet_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a Parquet file, or of the parts in a folder, some at a time."""
    for part in parts_of(path) if path.is_dir() else [path]:
        file = _parquet_file(part)
        with reading(part, "Parquet"):
            for batch in file.iter_batches(batch_size=4096):
                yield from batch.to_pylist()


def parquet_columns(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a Parquet file."""
    return tuple(_parquet_file(path).schema_arrow.names)


def _parquet_file(path: Path) -> Any:
    parquet = library("pyarrow.parquet", f"{path}: reading Parquet (unlike CSV)", "pyarrow")
    with reading(path, "Parquet"):
        return parquet.ParquetFile(path)


# ---------------------------------------------------------------------- NumPy archives


def archive_log(path: Path, choices: Choices) -> Log:
    """Return the log in a NumPy archive: ``R``, models x questions x trials, or such an array a task."""
    return Log(path, "NumPy archive", lambda: _archive_pieces(path, choices), numbered=True)


def _archive_pieces(path: Path, choices: Choices) -> Iterator[Piece]:
    for task, (outcomes, models, questions) in archive_outcomes(path).items():
        for row, name in enumerate(models):
            model = choices.rename.get(name, name)
            for column, question in enumerate(questions):
                for number, category in enumerate(outcomes[row, column].tolist()):
                    if category != NO_TRIAL:
                        named = choices.task or (DEFAULT_TASK if task == "R" else task)
                        yield Found(
                            model, named, question, f"{task}[{row}, {column}, {number}]", number, category
                        )


Outcomes: TypeAlias = tuple[np.ndarray[Any, np.dtype[np.int16]], list[str], list[str]]
"""Categories (models, questions, trials), the missing ones of a cell at its end, and the names."""


def archive_outcomes(path: Path) -> dict[str, Outcomes]:
    """Return the outcomes in a NumPy archive by the names of the arrays: ``R``, or one for each task."""
    with reading(path, "a NumPy archive"), np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    models, questions = arrays.pop("models", None), arrays.pop("questions", None)
    tasks = {"R": arrays["R"]} if "R" in arrays else {k: one for k, one in arrays.items() if one.ndim == 3}
    if not tasks:
        raise OutcomesError(
            f"{path}: there is no array R (models x questions x trials) in it, nor one for each task"
        )
    return {key: _outcomes(path, key, one, models, questions) for key, one in tasks.items()}


def _outcomes(path: Path, key: str, outcomes: Any, models: Any, questions: Any) -> Outcomes:
    if outcomes.ndim != 3 or not (np.issubdtype(outcomes.dtype, np.integer) or outcomes.dtype == bool):
        raise OutcomesError(
            f"{path}: {key} must hold whole numbers in shape (models, questions, trials), got "
            f"{outcomes.dtype} in shape {outcomes.shape}"
        )
    if outcomes.size and not (int(outcomes.min()) >= NO_TRIAL and int(outcomes.max()) <= LARGEST_CATEGORY):
        raise OutcomesError(
            f"{path}: {key} must hold categories from 0, or -1 where there is no trial; it has values from "
            f"{outcomes.min()} to {outcomes.max()}"
        )
    outcomes = outcomes.astype(np.int16)
    last = np.argsort(outcomes == NO_TRIAL, axis=2, kind="stable")
    return (
        np.take_along_axis(outcomes, last, axis=2),
        _names(path, "models", models, outcomes.shape[0], "model"),
        _names(path, "questions", questions if key == "R" else None, outcomes.shape[1], "q"),
    )


def _names(path: Path, key: str, given: Any, number: int, prefix: str) -> list[str]:
    if given is None:
        return [f"{prefix}{index + 1}" for index in range(number)]
    names = [str(name) for name in np.asarray(given).ravel()]
    if len(names) != number:
        raise OutcomesError(f"{path}: {key} has {len(names)} names, R has {number} {key}")
    for name in names:
        if names.count(name) > 1:
            raise OutcomesError(f"{path}: {key}: {name!r} appears twice")
    return names
