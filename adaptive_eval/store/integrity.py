"""Damage to a run file: found by SQLite's own check, and by the checksums of trials and of other rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adaptive_eval.errors import RunDamaged
from adaptive_eval.store.cells import COUNTED, TALLIED
from adaptive_eval.store.codec import unpack
from adaptive_eval.store.file_errors import UNREADABLE
from adaptive_eval.store.pending_rows import intact
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.store.scorings import damaged_scorings
from adaptive_eval.store.trial_rows import TrialDecoder, attempt_of, trials_query
from adaptive_eval.store.zstd import Dictionaries
from adaptive_eval.trial import TrialKey, TrialRequest

_PATIENCE = 2_000  # unreadable rows in succession, after which the rest of a table is given as lost
_NAMED = 5


@dataclass(slots=True)
class Damage:
    """The damage of a run file; false where there is none.

    `lost` trials of `trials` are unreadable or do not match their checksum, among them those with the
    numbers `first`; `unprotected` ones were written before file version 5 and have no checksum. `rows` are
    damaged or missing rows of other tables, by table; `structure` is what SQLite's own check reports.
    """

    trials: int = 0
    lost: int = 0
    first: list[int] = field(default_factory=list)
    unprotected: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    structure: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.lost or self.rows or self.structure)

    def in_words(self) -> str:
        """Return the damage as one line.

        Examples
        --------
        >>> Damage(trials=90, lost=2, first=[7, 8]).in_words()
        '2 of 90 stored trials are damaged (numbers 7, 8)'
        """
        parts = []
        if self.lost:
            more = ", …" if self.lost > len(self.first) else ""
            numbers = f"numbers {', '.join(map(str, self.first))}{more}"
            parts.append(f"{self.lost:,} of {self.trials:,} stored trials are damaged ({numbers})")
        parts += [f"{_ROWS[table]} damaged or lost: {number:,}" for table, number in self.rows.items()]
        if self.structure:
            parts.append(f"SQLite's check reports: {self.structure[0]}")
        return "; ".join(parts)


class RunContents:
    """The readable rows of an open run file; damaged rows are left out and counted in `damage`."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._most = path.stat().st_size // 16 + 1  # more rows than any file of this size has
        self.damage = Damage()
        models, tasks = self._names("models"), self._names("tasks")
        self._models = models
        self._questions = {
            number: (tasks[task], unpack(name))
            for number, task, name in self._rows(_QUESTIONS, "questions")
            if task in tasks
        }
        sets = self._names("signal_sets")
        self._decode = TrialDecoder(models, self._questions, sets, Dictionaries(db))
        self._endpoints = self._names("endpoints")

    def trials(self) -> Iterator[TrialRecord]:
        """Yield the undamaged trials in commit order."""
        last = -1
        for row in self._rows(trials_query(self._db), "outcomes", **_NO_FILTERS):
            for number in range(last + 1, min(row[0], last + 1 + self._most)):
                self._lose(number)
            last = max(last, row[0])
            try:
                record = self._decode(row)
            except UNREADABLE:
                self._lose(row[0])
                continue
            self.damage.unprotected += row[-1] is None
            yield record
        for number in range(last + 1, self._end("outcomes") + 1):
            self._lose(number)
        self.damage.trials = self._end("outcomes") + 1

    def launches(self) -> Iterator[tuple[TrialRequest, float]]:
        """Yield the launches with their Unix time."""
        for row in self._rows(_ALL.format(table="launches"), "launches"):
            if not intact(row, 7):
                continue
            _, model, step, question, repeat, seed, at = row[:7]
            try:
                task, name = self._questions[question]
                yield TrialRequest(TrialKey(self._models[model], step), task, name, repeat, seed), at
            except UNREADABLE:
                continue

    def attempts(self) -> Iterator[AttemptRecord]:
        """Yield the attempts."""
        for row in self._rows(_ALL.format(table="attempts"), "attempts"):
            if not intact(row, 10):
                continue
            try:
                yield attempt_of(self._models, self._endpoints, row[:10])
            except UNREADABLE:
                continue

    def meta(self) -> dict[str, str]:
        """Return the undamaged parts of the run's description."""
        rows = self._db.execute("SELECT * FROM meta").fetchall()
        return {unpack(row[0]): unpack(row[1]) for row in rows if intact(row, 2)}

    def check_rows(self) -> None:
        """Count in `damage` the rows of all tables but those of trials that are damaged or missing."""
        rows = self._db.execute("SELECT * FROM meta").fetchall()
        found = {"meta": sum(not intact(row, 2) for row in rows)}
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master")}
        for table, columns in _COLUMNS.items():
            if table == "dictionaries" and table not in tables:  # a file of version 1 or 2
                continue
            read = lost = 0
            for row in self._rows(_ALL.format(table=table), table):
                read += 1
                lost += not intact(row, columns)
            thinned = table == "snapshots"
            found[table] = lost + (0 if thinned else self._end(table) + 1 - read)
        if "tallies" in tables:
            found["tallies"] = len(self._db.execute(_WRONG_TALLIES).fetchall())
        if "checksum" in {row[1] for row in self._db.execute("PRAGMA table_info(scorings)")}:
            found["scorings"] = damaged_scorings(self._db)
        self.damage.rows = {table: number for table, number in found.items() if number}

    def _lose(self, number: int) -> None:
        self.damage.lost += 1
        if len(self.damage.first) < _NAMED:
            self.damage.first.append(number)

    def _names(self, table: str) -> dict[int, str]:
        names = {}
        for number, name in self._rows(_NAMES.format(table=table), table):
            try:
                names[number] = unpack(name)
            except UNREADABLE:
                continue
        return names

    def _end(self, table: str) -> int:
        """Return the largest number of a table."""
        try:
            (largest,) = self._db.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608 - our names
        except sqlite3.Error:
            return self._most
        return -1 if largest is None else min(int(largest), self._most)

    def _rows(self, query: str, table: str, **parameters: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of `query`, one by one where a batch of them cannot be read."""
        last, end, failures = -1, self._end(table), 0
        while last < end and failures < _PATIENCE:
            try:
                span = {**parameters, "last": last, "end": end, "batch": 64}
                rows = self._db.execute(query, span).fetchall()
            except sqlite3.Error:
                stop = min(last + 64, end)
                for number in range(last + 1, stop + 1):
                    try:
                        span = {**parameters, "last": number - 1, "end": number, "batch": 1}
                        rows = self._db.execute(query, span).fetchall()
                    except sqlite3.Error:
                        failures += 1
                        continue
                    failures = 0
                    yield from rows
                last = stop
                continue
            if not rows or rows[-1][0] <= last:
                return
            yield from rows
            last = rows[-1][0]


_NAMES = "SELECT id, name FROM {table} WHERE id > :last AND id <= :end ORDER BY id LIMIT :batch"
_QUESTIONS = "SELECT id, task, name FROM questions WHERE id > :last AND id <= :end ORDER BY id LIMIT :batch"
_ALL = "SELECT * FROM {table} WHERE id > :last AND id <= :end ORDER BY id LIMIT :batch"
_COLUMNS = {
    "models": 2,
    "tasks": 2,
    "questions": 3,
    "endpoints": 2,
    "signal_sets": 2,
    "bodies": 3,
    "launches": 7,
    "attempts": 10,
    "decisions": 4,
    "snapshots": 5,
    "dictionaries": 2,
}
"""The columns of each table before the checksum."""
_ROWS = {
    "meta": "entries of the run's description",
    "tallies": "counts of trials",
    **{table: f"rows of {table}" for table in (*_COLUMNS, "scorings")},
}
_COUNTS = COUNTED.format(which="id < (SELECT upto FROM tallied)")
_WRONG_TALLIES = (
    f"SELECT * FROM ({_COUNTS} EXCEPT {TALLIED}) UNION SELECT * FROM ({TALLIED} EXCEPT {_COUNTS})"  # noqa: S608
)
_NO_FILTERS = dict.fromkeys(("models", "questions", "step", "category", "missing", "after_stop"))


def find_damage(db: sqlite3.Connection, path: Path) -> Damage:
    """Check an open run file: its structure by SQLite, and the checksum of every trial."""
    try:
        found = db.execute("PRAGMA integrity_check(20)").fetchall()
        contents = RunContents(db, path)
        for _ in contents.trials():
            pass
        damage = contents.damage
        damage.structure = [str(line) for (line,) in found if line != "ok"]
        contents.check_rows()
    except UNREADABLE as error:
        raise RunDamaged(f"{path} is damaged and cannot be read ({error})") from error
    return damage


def require_undamaged(db: sqlite3.Connection, path: Path) -> None:
    """Raise RunDamaged where the run file is damaged."""
    damage = find_damage(db, path)
    if damage:
        raise RunDamaged(
            f"{path} is damaged: {damage.in_words()}. Keep a copy of the file; "
            f"`adaptive-eval validate {path.parent} --salvage NEW` copies the undamaged trials to a new run"
        )
