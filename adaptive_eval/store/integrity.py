"""Damage to a run file: found by SQLite, by the checksum of each trial, by the shape of its description."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from adaptive_eval.errors import RunDamaged
from adaptive_eval.store.codec import Shape, misfit, parsed, unpack, unpacked
from adaptive_eval.store.file_errors import UNREADABLE
from adaptive_eval.store.queries import FILTERS, RESCORED, TRIALS, largest_id
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.store.run_files import CHECKSUM, OBJECTS, checksum_of, known_objects
from adaptive_eval.store.trial_rows import TrialDecoder, attempt_of, scoring_checksum
from adaptive_eval.trial import TrialKey, TrialRequest

Made = TypeVar("Made")

_PATIENCE = 2_000  # unreadable rows in succession, after which the rest of a table is given as lost
_NAMED = 5
_AT_ONCE = 64


@dataclass(slots=True)
class Damage:
    """The damage of a run file; false if there is none.

    `lost` trials of `trials` are unreadable or do not match their checksum, among them those with the
    numbers `first`; `structure` says what is wrong with the file apart from them.
    """

    trials: int = 0
    lost: int = 0
    first: list[int] = field(default_factory=list)
    structure: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.lost or self.structure)

    def in_words(self) -> str:
        """Return the damage as one line.

        Examples
        --------
        >>> Damage(trials=90, lost=2, first=[7, 8]).in_words()
        '2 of 90 stored trials are damaged (numbers 7, 8)'
        """
        parts = []
        if self.lost:
            more = ""
            if self.lost > len(self.first):
                more = ", …"
            numbers = f"numbers {', '.join(map(str, self.first))}{more}"
            parts.append(f"{self.lost:,} of {self.trials:,} stored trials are damaged ({numbers})")
        if self.structure:
            parts.append(self.structure[0])
        return "; ".join(parts)


class RunContents:
    """The readable rows of an open run file; damaged rows are left out and counted in `damage`."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._most = path.stat().st_size // 16 + 1  # more rows than any file of this size has
        self.damage = Damage()
        self._models, tasks = self._names("models"), self._names("tasks")
        self._questions = {}
        for number, task, name in self._rows(_QUESTIONS, "questions"):
            if task in tasks:
                self._questions[number] = tasks[task], unpack(name)
        self._decode = TrialDecoder(self._models, self._questions, self._names("signal_sets"))
        self._endpoints = self._names("endpoints")

    def trials(self) -> Iterator[TrialRecord]:
        """Yield the undamaged trials in commit order."""
        return self._undamaged(self._decode)

    def check(self, *, whole: bool) -> Damage:
        """Check every trial by its checksum, with `whole` also its contents; return the damage."""
        for _ in self._undamaged(self._decode if whole else self._decode.checked):
            pass
        return self.damage

    def _undamaged(self, make: Callable[..., Made]) -> Iterator[Made]:
        """Yield what is made of each undamaged row of a trial."""
        end = self._end("outcomes")
        self.damage.trials = end + 1
        expected = 0
        for row in self._rows(TRIALS, "outcomes", **_NO_FILTERS):
            self._lose(range(expected, row[0]))
            expected = max(expected, row[0] + 1)
            try:
                yield make(*row)
            except UNREADABLE:
                self._lose([row[0]])
        self._lose(range(expected, end + 1))

    def launches(self) -> Iterator[tuple[TrialRequest, float]]:
        """Yield the readable launches with their Unix time."""
        for _, model, step, question, repeat, seed, at in self._rows(_ALL.format("launches"), "launches"):
            with suppress(*UNREADABLE):
                task, name = self._questions[question]
                yield TrialRequest(TrialKey(self._models[model], step), task, name, repeat, seed), at

    def attempts(self) -> Iterator[AttemptRecord]:
        """Yield the readable attempts."""
        for row in self._rows(_ALL.format("attempts"), "attempts"):
            with suppress(*UNREADABLE):
                yield attempt_of(self._models, self._endpoints, *row)

    def _lose(self, numbers: Sequence[int]) -> None:
        self.damage.lost += len(numbers)
        self.damage.first += numbers[: _NAMED - len(self.damage.first)]

    def _names(self, table: str) -> dict[int, str]:
        names = {}
        for number, name in self._rows(_NAMES.format(table), table):
            with suppress(*UNREADABLE):
                names[number] = unpack(name)
        return names

    def _end(self, table: str) -> int:
        """Return the largest number of a table."""
        try:
            return min(largest_id(self._db, table), self._most)
        except (sqlite3.Error, TypeError, ValueError):
            return self._most

    def _rows(self, query: str, table: str, **filters: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of `query`, one by one if a batch of them cannot be read."""
        failures = 0
        for start in range(0, self._end(table) + 1, _AT_ONCE):
            numbers = range(start, start + _AT_ONCE)
            rows = self._between(query, filters, numbers)
            if rows is None and failures < _PATIENCE:
                singles = [self._between(query, filters, [number]) for number in numbers]
                rows = list(chain.from_iterable(filter(None, singles)))
                failures += _AT_ONCE
            if rows:
                failures = 0
                yield from rows

    def _between(
        self, query: str, filters: Mapping[str, Any], numbers: Sequence[int]
    ) -> list[tuple[Any, ...]] | None:
        """Return the rows of these numbers; None if one of them cannot be read."""
        span = {"last": numbers[0] - 1, "end": numbers[-1], "batch": len(numbers)}
        try:
            return self._db.execute(query, {**filters, **span}).fetchall()
        except sqlite3.Error:
            return None


_SPAN = "WHERE id > :last AND id <= :end ORDER BY id LIMIT :batch"
_NAMES = "SELECT id, name FROM {} " + _SPAN  # noqa: S608 - our own words
_QUESTIONS = "SELECT id, task, name FROM questions " + _SPAN  # noqa: S608
_ALL = "SELECT * FROM {} " + _SPAN  # noqa: S608
_NO_FILTERS = dict.fromkeys(FILTERS)


def find_damage(db: sqlite3.Connection, path: Path, *, whole: bool = True) -> Damage:
    """Check an open run file: its structure, every trial's checksum, and with `whole` its parts."""
    try:
        found = db.execute("PRAGMA integrity_check(20)").fetchall()
        damage = RunContents(db, path).check(whole=whole)
        damage.structure = [f"SQLite's check reports: {line}" for (line,) in found if line != "ok"]
        damage.structure += damage.structure or _faults(db)
    except UNREADABLE as error:
        raise RunDamaged(f"{path} is damaged and cannot be read ({error})") from error
    return damage


_TYPES = {"INTEGER": "'integer'", "REAL": "'real'", "TEXT": "'text', 'blob'", "BLOB": "'blob'"}
_WITH_GAPS = {"snapshots", "outcomes"}  # thinned; named trial by trial


def _faults(db: sqlite3.Connection) -> Iterator[str]:
    """Yield what differs from the schema, and from the checksum of the description."""
    objects = set(db.execute(OBJECTS))
    missing = sorted(known_objects() - objects)
    yield from (f"the {kind} {name} is missing" for kind, name, _ in missing)
    if missing:
        return
    for table in sorted(name for kind, name, _ in objects if kind == "table"):
        yield from _faults_of(db, table)
    for table, row, parent, _ in db.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} names a row of {parent} that is not there"
    yield from _changed_scorings(db)
    stored = [value for key, value in db.execute("SELECT key, value FROM meta") if unpack(key) == CHECKSUM]
    if [*map(unpack, stored)] != [checksum_of(db)]:
        yield "the description of the run (meta) does not match its checksum"


def _changed_scorings(db: sqlite3.Connection) -> Iterator[str]:
    """Yield the scorings that differ from their checksums."""
    for number, name, at, body, checksum in db.execute("SELECT id, name, at, body, checksum FROM scorings"):
        rows = db.execute(RESCORED, {"scoring": number})
        made = map(unpacked, rows)
        if scoring_checksum((unpack(name), at, unpack(body)), made) != checksum:
            yield f"scoring {number} does not match its checksum"


def _faults_of(db: sqlite3.Connection, table: str) -> Iterator[str]:
    columns = db.execute(f"PRAGMA table_info({table})").fetchall()
    wrong = []
    for _, name, kind, not_null, _, key in columns:
        others = "" if not_null or key else ", 'null'"
        wrong.append(f"sum(typeof({name}) NOT IN ({_TYPES[kind]}{others}))")
    has_numbers = columns[0][1] == "id" and table not in _WITH_GAPS
    numbers = "0, 0, 0"
    if has_numbers:
        numbers = "count(*), max(id) + 1, min(id)"
    *counts, rows, end, first = db.execute(f"SELECT {', '.join(wrong)}, {numbers} FROM {table}").fetchone()  # noqa: S608
    for column, count in zip(columns, counts, strict=True):
        if count:
            yield f"{count:,} rows of {table} hold no {column[2].lower()} in {column[1]}"
    if rows != (end or 0):
        yield f"{table} has {rows:,} rows, whose numbers lead to {end:,}"
    if first:
        yield f"{table} begins with row {first:,}"


def require_undamaged(db: sqlite3.Connection, path: Path, *, whole: bool) -> None:
    """Raise RunDamaged if the run file is damaged; `whole` as in :func:`find_damage`."""
    damage = find_damage(db, path, whole=whole)
    if damage:
        raise RunDamaged(
            f"{path} is damaged: {damage.in_words()}. Keep a copy of the file; "
            f"`adaptive-eval validate {path.parent} --salvage NEW` copies the undamaged trials to a new run"
        )


class Description(dict[str, str]):
    """The description of a run; absent keys are reported by name."""

    def __init__(self, directory: Path, entries: Mapping[str, str]) -> None:
        super().__init__(entries)
        self._directory = directory

    def __missing__(self, key: str) -> str:
        raise RunDamaged(
            f"{self._directory}: the run's description lacks {key!r}, so it can be read but not continued. "
            "Start a new run from its config: adaptive-eval run CONFIG"
        )


_COUNTS = {...: [[float]]}  # trials of each question in each category, by task; of numbers their sums
_OF_QUESTIONS = {...: [int]}
_TASK = {"scorer?": dict, "rubric?": {"truncated": str}, "answers?": {"k": int, "by": str}, "missing?": [str]}
_REFERENCE = {"name": str, "counts": _COUNTS, "source": str, "lost": _OF_QUESTIONS, "alike": _OF_QUESTIONS}

DESCRIPTION: Mapping[str, Shape] = {
    "seed": int,
    "started_at": float,
    "versions": {...: str},
    "identity": {
        "tasks": {...: {"dataset?": str}},
        "models?": {...: dict},
        "rounds?": [str],
        "samples_per_request?": int,
    },
    "scoring": {...: _TASK},
    "thresholds": {...: {...: {"value": float, "source": str}}},
    "worth": {...: {"share": float, "worths": [float]}},
    "changes": [{"at": float, "trials": int, "setting": str, "before": object, "now": object}],
    "session": {"spec": dict, "ranges": [str]},
    "labels": {
        "file": str,
        "rows": int,
        "filled": int,
        "with_chances": bool,
        "spans": [[int]],
        "progress": {...: int},
        "chance": float,
        "chosen": [[float]],
        "labels": [[(str, float)]],
    },
    "previous": {
        "settings": {"references": [dict], "prior": (dict, None)},
        "references": [_REFERENCE],
        "prior": ({"counts": {...: _COUNTS}, "source": str}, None),
    },
    "imported": {
        "sources": [{"file": str, "format": str, "trials": int, "versions": dict}],
        "notes": [str],
        "weights": {...: [float]},
        "rule": str,
        "ranges": [str],
    },
    "against": {...: {...: {...: [str]}}},
}
"""Entries of a run's description that hold JSON; the others are texts."""


def wrong_entry(key: str, text: str) -> str | None:
    """Return what is wrong with an entry of the description, in words; None if nothing is."""
    shape = DESCRIPTION.get(key)
    if shape is None or (key == "labels" and not text):  # no labels
        return None
    try:
        return misfit(parsed(text), shape)
    except (ValueError, RecursionError) as error:
        return f"it holds {text!r:.40}, which is no JSON ({error})"
