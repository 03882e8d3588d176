"""Results as columns and data frames: plain Python values by name, for pandas, polars or a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from adaptive_eval.library import library

Columns = dict[str, list[Any]]


def columns_of(rows: Iterable[Any]) -> Columns:
    """Return dataclass objects of one kind as columns, one field a column.

    A field that holds a mapping becomes one column for each of its keys, ``field.key``, None where an object
    lacks it.

    Examples
    --------
    >>> from adaptive_eval.core.results import StopVerdict
    >>> columns_of([StopVerdict("resolved", "goal reached")])
    {'reason': ['resolved'], 'text': ['goal reached']}
    """
    flat = [_flat(row) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    return {name: [row.get(name) for row in flat] for name in names}


def frame_of(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return columns as a ``pandas.DataFrame``."""
    return library("pandas", "to_frame (unlike to_columns)", "pandas").DataFrame(dict(columns))


def _flat(row: Any) -> dict[str, Any]:
    if not is_dataclass(row):
        raise TypeError(f"rows must be dataclass objects, got {row!r}")
    found: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if isinstance(value, Mapping):
            found |= {f"{field.name}.{key}": one for key, one in value.items()}
        elif is_dataclass(value):
            found |= {f"{field.name}.{key}": one for key, one in _flat(value).items()}
        else:
            found[field.name] = value
    return found
