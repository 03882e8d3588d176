"""Outcomes as arrays: one entry a trial, or counted by model and question.

A view of a long run need not hold every trial: the writer keeps the counts of all but the latest outcomes in
the run file, and a reader adds the latest to them.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from adaptive_eval.store.codec import unpack
from adaptive_eval.trial import CUT_OFF

Integers = npt.NDArray[np.int64]
Names: TypeAlias = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeCells:
    """Counts of each model's answers to each question over a range of the log.

    One entry per (model, question) that occurs; every array has shape (n,) and dtype int64.
    """

    end: int  # number of outcomes in the log when they were counted: where the next stretch begins
    # which cell it is
    model: Integers
    question: Integers
    # trials, missing and after-stop ones included; those of them with an answer that has a category
    stored: Integers
    scored: Integers
    # sum and largest of the answers' categories; 0 and -1 without an answer
    category_sum: Integers
    category_max: Integers
    truncated: Integers  # answers cut off at the token limit
    missing: Mapping[tuple[int, str], int]  # trials without a category, by model and reason
    categories: Mapping[tuple[int, int], int]  # trials with one, by model and category
    models: tuple[str, ...]  # names; `model` indexes it
    questions: tuple[tuple[str, str], ...]  # task name and question id; `question` indexes it


TALLIED = "SELECT model, question, category, missing, stored, truncated FROM tallies"
COUNTED = f"""
SELECT model, question, coalesce(category, -1), coalesce(missing, ''), count(*),
       coalesce(sum(finish_reason IN {CUT_OFF}), 0)
FROM outcomes WHERE {{which}} GROUP BY model, question, category, missing
"""  # noqa: S608 - reasons of our own
# one statement, so that what it counts and what it takes from the tallies are of one moment
_ALL = " UNION ALL ".join((TALLIED, COUNTED.format(which="id >= (SELECT upto FROM tallied)")))
_SINCE = COUNTED.format(which="id >= :since")


def read_cells(db: sqlite3.Connection, since: int, names: Callable[[], Names]) -> OutcomeCells:
    """Count the outcomes of an open run file from number `since` on.

    `names` returns the models and questions. They are read after the rows: a name is committed with its first
    trial or before.
    """
    query = _ALL
    if since:
        query = _SINCE
    rows = db.execute(query, {"since": since}).fetchall()
    missing: Counter[tuple[int, str]] = Counter()
    categories: Counter[tuple[int, int]] = Counter()
    numbers = []
    for model, question, category, reason, stored, truncated in rows:
        numbers.append((model, question, category, stored, truncated))
        if category < 0:
            missing[model, unpack(reason)] += stored
        else:
            categories[model, category] += stored
    model, question, category, stored, truncated = np.array(numbers, dtype=np.int64).reshape(-1, 5).T
    cells, place = np.unique(model << 32 | question, return_inverse=True)
    largest = np.full(len(cells), -1, dtype=np.int64)
    np.maximum.at(largest, place, category)

    def total(values: Integers) -> Integers:
        sums = np.zeros(len(cells), dtype=np.int64)
        np.add.at(sums, place, values)
        return sums

    models, questions = names()
    return OutcomeCells(
        end=since + int(stored.sum()),
        model=cells >> 32,
        question=cells & 0xFFFFFFFF,
        stored=total(stored),
        scored=total(np.where(category >= 0, stored, 0)),
        category_sum=total(stored * np.maximum(category, 0)),
        category_max=largest,
        truncated=total(truncated),
        missing=missing,
        categories=categories,
        models=models,
        questions=questions,
    )


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


def read_columns(db: sqlite3.Connection, names: Callable[[], Names]) -> OutcomeColumns:
    """Read the outcomes of an open run file; `names` as for :func:`read_cells`."""
    rows = np.fromiter(db.execute(_QUERY), dtype=_ROW)  # NULL becomes NaN
    columns = {name: np.ascontiguousarray(rows[name]) for name in _ROW.names or ()}
    models, questions = names()
    return OutcomeColumns(models, questions, **columns)


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


def mean_and_spread(
    trials: npt.NDArray[Any], sums: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return for each question mean and spread of the asked models' means, from counts (models, questions).

    The spread is the standard deviation of (sum + 1)/(n + 2): means shrunk towards ½, so that a question
    asked once does not look like one on which models differ.

    Examples
    --------
    >>> mean, spread = mean_and_spread(np.array([[2, 0], [2, 0]]), np.array([[2, 0], [0, 0]]))
    >>> mean.tolist(), spread.tolist()
    ([0.5, 0.0], [0.25, 0.0])
    """
    asked = trials > 0
    models = np.maximum(asked.sum(axis=0), 1)
    means = np.divide(sums, trials, out=np.zeros(trials.shape), where=asked)
    shrunk = np.where(asked, (sums + 1) / (trials + 2), 0.0)
    centre = shrunk.sum(axis=0) / models
    spread = np.sqrt((np.where(asked, shrunk - centre, 0.0) ** 2).sum(axis=0) / models)
    return means.sum(axis=0) / models, spread
