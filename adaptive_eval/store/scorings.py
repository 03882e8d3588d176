"""Further scorings of stored answers, which decided nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adaptive_eval.store.codec import dump_json, load_json, pack, pack_optional, unpack, unpack_optional
from adaptive_eval.store.tables import largest_id, real, whole


@dataclass(frozen=True, slots=True)
class ScoringRecord:
    """One scoring of all stored answers."""

    name: str  # what it is called in reports
    at: float  # unix time at which it was made
    body: Mapping[str, Any]  # JSON-able: how each task was scored, and the results under it


@dataclass(frozen=True, slots=True)
class Rescored:
    """The score of one answer."""

    outcome: int  # number of the trial in commit order, from 0
    category: int | None  # its category; None where it cannot be scored so
    extracted: str | None  # the answer as extracted
    reason: str  # why it got this category


_INSERT_RESCORED = (
    "INSERT INTO rescored (scoring, outcome, category, extracted, reason) VALUES (?, ?, ?, ?, ?)"
)


def add_scoring(db: sqlite3.Connection, record: ScoringRecord, rows: Iterable[Rescored]) -> int:
    """Add a scoring with its rows, in one transaction; return its id."""
    db.execute("BEGIN IMMEDIATE")
    try:
        number = largest_id(db, "scorings") + 1
        head = (number, pack(record.name), real("at", record.at), pack(dump_json(record.body)))
        db.execute("INSERT INTO scorings (id, name, at, body) VALUES (?, ?, ?, ?)", head)
        db.executemany(_INSERT_RESCORED, (_row(number, row) for row in rows))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return number


def read_scorings(db: sqlite3.Connection) -> list[ScoringRecord]:
    """Return every scoring, oldest first; its place in the list is its id."""
    rows = db.execute("SELECT name, at, body FROM scorings ORDER BY id").fetchall()
    return [ScoringRecord(unpack(name), at, load_json(body)) for name, at, body in rows]


def read_rescored(db: sqlite3.Connection, scoring: int) -> Iterator[Rescored]:
    """Yield the scores of a scoring, in commit order."""
    query = "SELECT outcome, category, extracted, reason FROM rescored WHERE scoring = ? ORDER BY outcome"
    for outcome, category, extracted, reason in db.execute(query, (scoring,)).fetchall():
        yield Rescored(outcome, category, unpack_optional(extracted), unpack(reason))


def _row(scoring: int, row: Rescored) -> tuple[Any, ...]:
    return (
        scoring,
        whole("outcome", row.outcome),
        None if row.category is None else whole("category", row.category),
        pack_optional(row.extracted),
        pack(row.reason),
    )
