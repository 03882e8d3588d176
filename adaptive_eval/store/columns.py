"""Outcomes of a run as NumPy columns."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeColumns:
    """The outcomes of a run, one entry a trial in commit order; every array has shape (n,)."""

    models: tuple[str, ...]  # names; `model` indexes it
    questions: tuple[tuple[str, str], ...]  # task name and question id; `question` indexes it
    # which trial it is
    model: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]
    question: npt.NDArray[np.int64]
    repeat: npt.NDArray[np.int64]
    category: npt.NDArray[np.int64]  # category in 0..C; -1 for a missing trial
    # tokens charged
    prompt_tokens: npt.NDArray[np.int64]
    completion_tokens: npt.NDArray[np.int64]
    cached_tokens: npt.NDArray[np.int64]
    latency: npt.NDArray[np.float64]  # seconds; NaN for a missing trial
    finished_at: npt.NDArray[np.float64]  # unix time
    after_stop: npt.NDArray[np.bool_]  # true where the trial finished after the session had stopped

    def __len__(self) -> int:
        return len(self.step)


_QUERY = """
SELECT model, step, question, repeat, coalesce(category, -1), prompt_tokens, completion_tokens, cached_tokens,
       latency, finished_at, after_stop
FROM outcomes ORDER BY id
"""

_INTEGERS = "model step question repeat category prompt_tokens completion_tokens cached_tokens"
_ROW = np.dtype(
    [
        *((name, np.int64) for name in _INTEGERS.split()),
        ("latency", np.float64),
        ("finished_at", np.float64),
        ("after_stop", np.bool_),
    ]
)


def read_columns(db: sqlite3.Connection) -> dict[str, npt.NDArray[Any]]:
    """Read the columns of :class:`OutcomeColumns` from an open run file, without the names."""
    rows = np.fromiter(db.execute(_QUERY), dtype=_ROW)  # NULL becomes NaN
    return {name: np.ascontiguousarray(rows[name]) for name in _ROW.names or ()}


_IN_SEQUENCE = """
SELECT step, question, coalesce(category, -1) FROM outcomes
WHERE model = ? AND step >= ? AND id < ? ORDER BY step
"""


def read_in_sequence(
    db: sqlite3.Connection, model: int | None, since: int, end: int
) -> npt.NDArray[np.int64]:
    """Read step, question and category (-1: none) from step `since` on, of outcomes before number `end`."""
    return np.array(db.execute(_IN_SEQUENCE, (model, since, end)).fetchall(), dtype=np.int64).reshape(-1, 3)


_LATENCIES = "SELECT model, latency FROM outcomes WHERE id % ? = 0 AND category IS NOT NULL"


def read_latencies(db: sqlite3.Connection, every: int) -> dict[int, npt.NDArray[np.float64]]:
    """Read the seconds that scored answers took, of every so many-th trial, by model."""
    rows = np.fromiter(db.execute(_LATENCIES, (every,)), dtype=[("model", np.int64), ("seconds", np.float64)])
    return {model: rows["seconds"][rows["model"] == model] for model in np.unique(rows["model"]).tolist()}
