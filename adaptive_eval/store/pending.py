"""The rows of the run file since the last commit, its tables, and which snapshots they keep."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from operator import attrgetter
from typing import Any

from adaptive_eval.errors import RunMismatch
from adaptive_eval.store.cells import COUNTED
from adaptive_eval.store.codec import dump_json, pack, packed, real, unpack, whole
from adaptive_eval.store.queries import OUTCOME, TEXTS, largest_id
from adaptive_eval.store.records import AttemptRecord, Rescored, ScoringRecord, SnapshotRecord, TrialRecord
from adaptive_eval.store.run_files import seal
from adaptive_eval.store.trial_rows import answer_row, checksum_of, outcome_row, scoring_checksum, sent_parts
from adaptive_eval.trial import TrialRequest


class AppendedTable:
    """One append-only table: rows added since the last commit.

    The writer gives every id itself, from the largest stored one on, so that writing the same rows twice
    changes nothing: a commit whose result is not known can be repeated.
    """

    def __init__(self, db: sqlite3.Connection, name: str, columns: str, key: str = "id") -> None:
        self._db = db
        marks = ", ".join("?" * (2 + columns.count(",")))
        into = f"INSERT INTO {name} ({key}, {columns})"
        self._insert = f"{into} VALUES ({marks}) ON CONFLICT ({key}) DO NOTHING"
        self.next_id = largest_id(db, name) + 1
        self.rows: list[tuple[Any, ...]] = []

    def add(self, *values: Any) -> int:
        """Add a row and return its id."""
        row_id = self.next_id
        self.rows.append((row_id, *values))
        self.next_id += 1
        return row_id

    def write(self) -> None:
        """Insert the waiting rows, inside the caller's transaction."""
        if self.rows:
            self._db.executemany(self._insert, self.rows)

    def written(self) -> None:
        """Forget the waiting rows: they are committed."""
        self.rows.clear()


class Names(AppendedTable):
    """A table of names, each with a small integer id; all are kept in memory."""

    def __init__(self, db: sqlite3.Connection, name: str, parent: str = "") -> None:
        columns = f"{parent}, name" if parent else "name"
        super().__init__(db, name, columns)
        rows = db.execute(f"SELECT id, {columns} FROM {name}")  # noqa: S608
        self._ids: dict[tuple[int | str, ...], int] = {
            (*parents, unpack(stored)): row_id for row_id, *parents, stored in rows
        }

    def id(self, name: str, *parent: int) -> int:
        """Return the id of `name`, giving it one if it is new."""
        known = self._ids.get((*parent, name))
        if known is None:
            known = self._ids[(*parent, name)] = self.add(*parent, pack(name))
        return known

    def identity(self, row_id: int) -> tuple[int | str, ...]:
        """Return parent, if any, and name of an id; for messages, it searches."""
        return next(identity for identity, known in self._ids.items() if known == row_id)


_BODIES_KEPT = 16_384
"""Request bodies whose ids are kept in memory; others are looked up in the file."""


class Bodies(AppendedTable):
    """The request bodies, each stored once and known by its digest."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db, "bodies", "digest, body")
        self._ids: dict[bytes, int] = {}

    def id(self, text: str) -> int:
        """Return the id of a body, given as JSON text, storing it if it is new."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._ids.get(digest)
        if known is None:
            stored = self._db.execute("SELECT id FROM bodies WHERE digest = ?", (digest,)).fetchone()
            if stored is None:
                known = self.add(digest, pack(text))
            else:
                known = int(stored[0])
            self._ids[digest] = known
        return known

    def written(self) -> None:
        """Forget the waiting bodies: they are committed."""
        super().written()
        if len(self._ids) > _BODIES_KEPT:
            self._ids.clear()


KEEP_ALL = 128
"""Number of latest snapshots that are all kept."""

FEWEST_KEPT = 8
USUAL_PAIRS = 500
"""Up to so many pairs KEEP_ALL snapshots are kept, beyond as many as take no more room."""


def kept_with(pairs: int) -> int:
    """Return how many of the latest snapshots of so many pairs are all kept.

    Examples
    --------
    >>> kept_with(55), kept_with(4950), kept_with(44850)
    (128, 12, 8)
    """
    return max(FEWEST_KEPT, KEEP_ALL * USUAL_PAIRS // max(pairs, USUAL_PAIRS))


def expired_by(newest: int, keep: int = KEEP_ALL) -> Iterator[int]:
    """Yield the numbers of the snapshots to delete when number `newest` (from 0) is stored.

    Snapshot s = 2^z · odd lives until number s + keep · 2^z is stored, and number 0 for ever. So among
    those of age a (in snapshots) every 2^z-th is kept with 2^z ≤ 2 a / keep: with 128 the spacing is below
    2 % of the age, and n snapshots leave about keep · (1 + ½ log₂(n / keep)).

    Examples
    --------
    >>> list(expired_by(127)), list(expired_by(128)), list(expired_by(129)), list(expired_by(258))
    ([], [], [1], [2])
    """
    span = keep
    while newest > span:
        candidate = newest - span
        if candidate & -candidate == span // keep:
            yield candidate
        span *= 2


TALLY_EVERY = 50_000
"""Outcomes that are counted together: the most that a reader has to count itself."""

_COUNT = f"""
INSERT INTO tallies (model, question, category, missing, stored, truncated)
{COUNTED.format(which="id >= :upto AND id < :end")}
ON CONFLICT (model, question, category, missing)
DO UPDATE SET stored = stored + excluded.stored, truncated = truncated + excluded.truncated
"""


def tally(db: sqlite3.Connection, end: int) -> None:
    """Bring the tallies up to outcome number `end`, if enough have come; inside the caller's transaction.

    A commit that is repeated counts nothing twice: how far the tallies reach is stored with them.
    """
    (upto,) = db.execute("SELECT upto FROM tallied").fetchone()
    if end - upto < TALLY_EVERY:
        return
    db.execute(_COUNT, {"upto": upto, "end": end})
    db.execute("UPDATE tallied SET upto = ?", (end,))


_ASKED = "SELECT question, repeat, seed FROM outcomes WHERE model = ? AND step = ?"
_FURTHEST = "SELECT model, max(step) FROM outcomes GROUP BY model"

_TRIAL = "model, step, question, repeat, seed"
_LOGS = {
    "launches": f"{_TRIAL}, at",
    "attempts": "model, step, attempt, endpoint, started_at, latency, status, error, message",
    "outcomes": f"{_TRIAL}, {OUTCOME}",
    "decisions": "at, trials, body",
    "snapshots": "at, elapsed, trials, body",
}
"""Tables of the log, with their columns after the id."""

_UPSERT_META = (
    "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


class Pending:
    """The rows of the next commit.

    Everything that could be wrong with a row is found when it is added: one that failed at commit would fail
    again at every further commit, and make the trials of the same commit fail too.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        names = [Names(db, name) for name in ("models", "tasks", "endpoints", "signal_sets")]
        self._models, self._tasks, self._endpoints, self._signal_sets = names
        self._questions = Names(db, "questions", parent="task")
        self._bodies = Bodies(db)
        logs = [AppendedTable(db, name, columns) for name, columns in _LOGS.items()]
        self._launches, self._attempts, self._outcomes, self._decisions, self._snapshots = logs
        self._answers = AppendedTable(db, "answers", f"body, sent_seed, checksum, {TEXTS}", key="outcome")
        self._tables: tuple[AppendedTable, ...] = (
            *names,
            self._questions,
            self._bodies,
            *logs,
            self._answers,
        )
        self._meta: dict[str, str] = {}
        self._asked: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._furthest: dict[int, int] = dict(db.execute(_FURTHEST))  # step of each model that is stored
        self._keep = KEEP_ALL

    def __bool__(self) -> bool:
        return bool(self._meta) or any(table.rows for table in self._tables)

    @property
    def trials(self) -> int:
        """Number of outcomes that wait."""
        return len(self._outcomes.rows)

    def add_launches(self, requests: Sequence[TrialRequest], at: float) -> None:
        """Add a launch of each request, or of none if one of them is wrong."""
        at = real("at", at)
        rows = [(*self._trial(request), at) for request in requests]
        for row in rows:
            self._launches.add(*row)

    def add_attempt(self, record: AttemptRecord) -> None:
        """Add one attempt."""
        status = None
        if record.status is not None:
            status = whole("status", record.status)
        self._attempts.add(
            self._models.id(record.key.model),
            whole("step", record.key.index),
            whole("attempt", record.attempt),
            self._endpoints.id(record.endpoint),
            real("started_at", record.started_at),
            real("latency", record.latency),
            status,
            *packed((record.error, record.message)),
        )

    def add_outcome(self, record: TrialRecord) -> bool:
        """Add a finished trial with its answer; return False if it has an outcome already."""
        trial = self._trial(record.request)
        key = trial[:2]
        asked = trial[2:]
        before = self._asked.get(key)
        if before is None and key[1] <= self._furthest.get(key[0], -1):
            before = self._db.execute(_ASKED, key).fetchone()
        if before == asked:
            return False
        if before is not None:
            raise self._mismatch(record.request, before, asked)
        outcome = outcome_row(record)
        answer = answer_row(record)
        body, seed = sent_parts(record.sent)
        checksum = checksum_of(record.request, outcome, (body, seed), answer)
        signal_set = None
        if answer.signal_set is not None:
            signal_set = self._signal_sets.id(answer.signal_set)
        sent = self._bodies.id(body), seed
        self._answers.next_id = self._outcomes.add(*trial, *packed(outcome))
        self._answers.add(*sent, checksum, *packed(answer._replace(signal_set=signal_set)))
        self._asked[key] = asked
        self._furthest[key[0]] = max(key[1], self._furthest.get(key[0], -1))
        return True

    def add_decision(self, at: float, trials: int, body: Mapping[str, Any]) -> None:
        """Add a decision."""
        self._decisions.add(real("at", at), whole("trials", trials), pack(dump_json(body)))

    def add_snapshot(self, record: SnapshotRecord) -> None:
        """Add a snapshot; those that it makes superfluous are deleted in the same commit."""
        endpoints = list(map(asdict, record.endpoints))
        body = {"results": record.results, "endpoints": endpoints}
        self._keep = kept_with(len(record.results.get("pairs", ())))
        self._snapshots.add(
            real("at", record.at),
            real("elapsed", record.elapsed),
            whole("trials", record.trials),
            pack(dump_json(body)),
        )

    def set_meta(self, key: str, value: str) -> None:
        """Set one value of the run's description."""
        self._meta[key] = value

    def write(self) -> None:
        """Write every row, inside the caller's transaction; writing the same rows again changes nothing."""
        for table in self._tables:
            table.write()
        tally(self._db, self._outcomes.next_id)
        if self._meta:
            self._db.executemany(_UPSERT_META, map(packed, self._meta.items()))
            seal(self._db)
        for row in self._snapshots.rows:
            expired = ((number,) for number in expired_by(row[0], self._keep))
            self._db.executemany("DELETE FROM snapshots WHERE id = ?", expired)

    def written(self) -> None:
        """Forget the rows: they are committed."""
        for table in self._tables:
            table.written()
        self._meta.clear()
        self._asked.clear()

    def _trial(self, request: TrialRequest) -> tuple[int, ...]:
        """Return the columns :data:`_TRIAL` of a trial."""
        return (
            self._models.id(request.key.model),
            whole("step", request.key.index),
            self._questions.id(request.question, self._tasks.id(request.task)),
            whole("repeat", request.repeat),
            whole("seed", request.seed),
        )

    def _mismatch(self, request: TrialRequest, before: tuple[int, ...], now: tuple[int, ...]) -> RunMismatch:
        task, question = self._questions.identity(before[0])
        compared = (
            ("question", question, request.question),
            ("task", self._tasks.identity(int(task))[0], request.task),
            ("repeat", before[1], now[1]),
            ("seed", before[2], now[2]),
        )
        differences = [
            f"{name} {old!r} is stored, {new!r} is given" for name, old, new in compared if old != new
        ]
        return RunMismatch(
            f"trial {request.key.index} of model {request.key.model!r} would change: "
            f"{'; '.join(differences)}. Start a new run for another schedule or seed"
        )


def add_scoring(db: sqlite3.Connection, record: ScoringRecord, rows: Iterable[Rescored]) -> int:
    """Add a scoring with its rows, in one transaction; return its id."""
    db.execute("BEGIN IMMEDIATE")
    with db:
        number = largest_id(db, "scorings") + 1
        made = list(map(_rescored, sorted(rows, key=attrgetter("outcome"))))
        told = (record.name, real("at", record.at), dump_json(record.body))
        query = "INSERT INTO scorings (id, name, at, body, checksum) VALUES (?, ?, ?, ?, ?)"
        db.execute(query, (number, *packed(told), scoring_checksum(told, made)))
        query = "INSERT INTO rescored (scoring, outcome, category, extracted, reason) VALUES (?, ?, ?, ?, ?)"
        db.executemany(query, ((number, *packed(row)) for row in made))
    return number


def _rescored(row: Rescored) -> tuple[int, int | None, str | None, str]:
    category = None
    if row.category is not None:
        category = whole("category", row.category)
    return whole("outcome", row.outcome), category, row.extracted, row.reason
