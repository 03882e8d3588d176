"""The columns of a table that hold a trial's fields: given by the user, or known of a tool."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from adaptive_eval.errors import OutcomesError, UsageError

ROWS = "rows"
"""In place of a column: where the list of rows is, in a JSON file that holds an object."""

COLUMNS = (
    "model", "task", "question", "trial", "category", "correct", "score", "missing", "truncated", "text",
    "finish_reason", "extracted", "reason", "prompt", "target", "prompt_tokens", "completion_tokens",
    "latency", "finished_at", "cluster",
)  # fmt: skip
"""Fields of a trial, named as in our own tables."""

OBJECT_KEY = "object_key"
"""Column of the key under which an object has a list of rows, such as a model."""

_ALIASES = {"repeat": "trial"}

_KNOWN_ROWS = ("results", "eval")
"""Keys under which these tools put their rows in a file that holds an object."""

_SUMMARY = {"pretty_env_info", "lm_eval_version"}
"""Keys of the summary that lm-evaluation-harness writes next to its samples."""


def read_map(text: str | None) -> dict[str, str]:
    """Read ``question=task_id,score=result.passed`` into a mapping from our columns to the file's.

    Examples
    --------
    >>> read_map("question=task_id,repeat=attempt")
    {'question': 'task_id', 'trial': 'attempt'}
    """
    found: dict[str, str] = {}
    for part in [] if text is None else text.split(","):
        ours, equals, theirs = (word.strip() for word in part.partition("="))
        ours = _ALIASES.get(ours, ours)
        if not (equals and theirs):
            raise UsageError(f"--map {part!r} is not OURS=THEIRS, such as question=task_id")
        if ours not in (*COLUMNS, ROWS):
            raise UsageError(f"--map {part!r}: {ours!r} is none of {', '.join((*COLUMNS, 'repeat', ROWS))}")
        if ours in found:
            raise UsageError(f"--map gives {ours} twice; keep one of the two")
        found[ours] = theirs
    return found


def require_columns(path: Path, given: Mapping[str, str], row: Mapping[str, Any]) -> None:
    """Refuse a map that names a column which the first row of the file does not have."""
    for ours, theirs in given.items():
        if ours == ROWS or find(row, theirs)[0]:
            continue
        close = get_close_matches(theirs, row, 1)
        hint = ""
        if close:
            hint = f"; did you mean {close[0]!r}?"
        more = ""
        if len(row) > 20:
            more = ", …"
        listed = ", ".join(islice(row, 20)) + more
        words = f"there is no {theirs!r}; there are {listed}{hint}"
        raise OutcomesError(f"{path}: --map {ours}={theirs}: {words}")


def mapped(values: Mapping[str, Any], columns: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a row with the values of the mapped columns under our names.

    Examples
    --------
    >>> mapped({"id": 3, "result": {"passed": True}}, {"question": "id", "score": "result.passed"})
    {'id': 3, 'result': {'passed': True}, 'question': 3, 'score': True}
    """
    return {**values, **{ours: find(values, theirs)[1] for ours, theirs in columns.items() if ours != ROWS}}


VERDICTS = ("category", "correct", "score")


def single_trials(values: Mapping[str, Any], *verdicts: str) -> list[Mapping[str, Any]]:
    """Return a row for each trial of a row that has a list of verdicts; lists as long are taken apart too.

    Verdicts are in a column of `verdicts`, or of those that ours have.

    Examples
    --------
    >>> single_trials({"question": "q", "correct": [True, False], "text": ["4", "5"]})
    [{'question': 'q', 'correct': True, 'text': '4'}, {'question': 'q', 'correct': False, 'text': '5'}]
    """
    columns = (*verdicts, *VERDICTS)
    several = next((values[name] for name in columns if isinstance(values.get(name), list)), None)
    if several is None:
        return [values]
    apart = {name for name, value in values.items() if isinstance(value, list) and len(value) == len(several)}
    trials: list[Mapping[str, Any]] = []
    for number in range(len(several)):
        one = dict(values)
        one.update({name: values[name][number] for name in apart})
        trials.append(one)
    return trials


def rows_at(path: Path, data: Mapping[str, Any], columns: Mapping[str, str]) -> Sequence[Any]:
    """Return the list of rows within the object that a JSON file holds."""
    known = next((key for key in _KNOWN_ROWS if key in data), _KNOWN_ROWS[0])
    place = columns.get(ROWS, known)
    found = find(data, place)[1]
    if isinstance(found, Mapping) and all(isinstance(rows, list) for rows in found.values()):
        found = [_keyed(key, row) for key, rows in found.items() for row in rows]
    if not isinstance(found, list) and ROWS not in columns:
        found = _rows_of_columns(data)
    if not isinstance(found, list) and _SUMMARY & data.keys():
        raise OutcomesError(
            f"{path}: this is the summary of lm-evaluation-harness; give the samples_….jsonl next to it, "
            "which --log_samples writes"
        )
    if not isinstance(found, list):
        raise OutcomesError(
            f"{path}: there is no list of rows at {place!r}; say where it is with --map rows=…. "
            f"The file has {', '.join(islice(data, 20))}"
        )
    return found


def _keyed(key: str, row: Any) -> Any:
    if isinstance(row, Mapping):
        return {OBJECT_KEY: key, **row}
    return row


def _rows_of_columns(data: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the rows of an object whose values are columns: lists, or objects by question.

    Examples
    --------
    >>> _rows_of_columns({"new": {"q1": 1, "q2": 0}, "old": {"q1": 1}})
    [{'index': 'q1', 'new': 1, 'old': 1}, {'index': 'q2', 'new': 0}]
    """
    rows: dict[Any, dict[str, Any]] = {}
    for name, column in data.items():
        if not isinstance(column, list | Mapping):
            return None
        by_question = isinstance(column, Mapping)
        cells = column.items() if isinstance(column, Mapping) else enumerate(column)
        for key, value in cells:
            if isinstance(value, list | Mapping):
                return None
            if by_question:
                start = {"index": key}
            else:
                start = {}
            rows.setdefault(key, start)[name] = value
    return [*rows.values()]


def find(values: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """Return whether a row has this column, and its value.

    Points lead into a column that is an object; of alternatives the first with a value counts.

    Examples
    --------
    >>> find({"a": None, "b": {"c": 0}}, "a|b.c"), find({"a": None}, "a|b"), find({}, "a|b")
    ((True, 0), (True, None), (False, None))
    """
    alternatives = [_at(values, one) for one in name.split("|")]
    valued = (one for one in alternatives if one[1] not in (None, ""))
    return next(valued, max(alternatives, key=lambda one: one[0]))


def _at(values: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    if name in values:
        return True, values[name]
    head, point, rest = name.partition(".")
    inner = values.get(head)
    if point and isinstance(inner, Mapping):
        return _at(inner, rest)
    return (False, None)
