"""The rows of the run file since the last commit, its tables, and which snapshots they keep."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

from adaptive_eval.errors import RunMismatch
from adaptive_eval.store.cells import COUNTED
from adaptive_eval.store.codec import Packed, dump_json, pack, pack_optional, real, unpack, whole
from adaptive_eval.store.queries import OUTCOME, TEXTS, largest_id
from adaptive_eval.store.records import (
    AttemptRecord,
    DecisionRecord,
    Rescored,
    ScoringRecord,
    SnapshotRecord,
    TrialRecord,
)
from adaptive_eval.store.trial_rows import (
    Texts,
    checksum_of,
    outcome_row,
    sent_parts,
    texts_of,
)
from adaptive_eval.trial import TrialRequest


class Table:
    """One append-only table: rows added since the last commit.

    The writer gives every id itself, from the largest stored one on, so that writing the same rows twice
    changes nothing: a commit whose result is not known can be repeated.
    """

    def __init__(self, db: sqlite3.Connection, name: str, columns: str) -> None:
        self._db = db
        marks = ", ".join("?" * (2 + columns.count(",")))
        self._insert = f"INSERT INTO {name} (id, {columns}) VALUES ({marks}) ON CONFLICT (id) DO NOTHING"  # noqa: S608
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


class Names(Table):
    """A table of names, each with a small integer id; all are kept in memory."""

    def __init__(self, db: sqlite3.Connection, name: str, parent: str = "") -> None:
        columns = f"{parent}, name" if parent else "name"
        super().__init__(db, name, columns)
        rows = db.execute(f"SELECT id, {columns} FROM {name}")  # noqa: S608
        self._ids: dict[tuple[int | str, ...], int] = {
            (*parents, unpack(packed)): row_id for row_id, *parents, packed in rows
        }

    def id(self, name: str, *parent: int) -> int:
        """Return the id of `name`, giving it one where it is new."""
        known = self._ids.get((*parent, name))
        if known is None:
            known = self._ids[(*parent, name)] = self.add(*parent, pack(name))
        return known

    def identity(self, row_id: int) -> tuple[int | str, ...]:
        """Return parent, if any, and name of an id; for messages, it searches."""
        return next(identity for identity, known in self._ids.items() if known == row_id)


_BODIES_KEPT = 16_384
"""Request bodies whose ids are kept in memory; others are looked up in the file."""


class Bodies(Table):
    """The request bodies, each stored once and known by its digest."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db, "bodies", "digest, body")
        self._ids: dict[bytes, int] = {}

    def id(self, text: str) -> int:
        """Return the id of a body, given as JSON text, storing it where it is new."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._ids.get(digest)
        if known is None:
            stored = self._db.execute("SELECT id FROM bodies WHERE digest = ?", (digest,)).fetchone()
            known = self.add(digest, pack(text)) if stored is None else int(stored[0])
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

_INSERT_ANSWER = f"""
INSERT INTO answers (outcome, body, sent_seed, checksum, {TEXTS})
VALUES (?, ?, ?, ?{", ?" * (TEXTS.count(",") + 1)})
ON CONFLICT (outcome) DO NOTHING
"""  # noqa: S608 - our own words

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
        self._models = Names(db, "models")
        self._tasks = Names(db, "tasks")
        self._questions = Names(db, "questions", parent="task")
        self._endpoints = Names(db, "endpoints")
        self._signal_sets = Names(db, "signal_sets")
        self._bodies = Bodies(db)
        asked = "model, step, question, repeat, seed"
        self._launches = Table(db, "launches", f"{asked}, at")
        self._attempts = Table(
            db, "attempts", "model, step, attempt, endpoint, started_at, latency, status, error, message"
        )
        self._outcomes = Table(db, "outcomes", f"{asked}, {OUTCOME}")
        self._decisions = Table(db, "decisions", "at, trials, body")
        self._snapshots = Table(db, "snapshots", "at, elapsed, trials, body")
        self._answers: list[tuple[Any, ...]] = []
        self._meta: dict[Packed, Packed] = {}
        self._asked: dict[tuple[int, int], tuple[int, int, int]] = {}
        self._furthest: dict[int, int] = dict(db.execute(_FURTHEST))  # step of each model that is stored
        self._keep = KEEP_ALL
        names = (self._models, self._tasks, self._questions, self._endpoints, self._signal_sets, self._bodies)
        logs = (self._launches, self._attempts, self._outcomes, self._decisions, self._snapshots)
        self._tables: tuple[Table, ...] = (*names, *logs)

    def __bool__(self) -> bool:
        return bool(self._meta) or any(table.rows for table in self._tables)

    @property
    def trials(self) -> int:
        """Number of outcomes that wait."""
        return len(self._outcomes.rows)

    def add_launches(self, requests: Sequence[TrialRequest], at: float) -> None:
        """Add a launch of each request, or of none if one of them is wrong."""
        at = real("at", at)
        rows = [(*self._key(request), *self._question(request), at) for request in requests]
        for row in rows:
            self._launches.add(*row)

    def add_attempt(self, record: AttemptRecord) -> None:
        """Add one attempt."""
        row = (
            self._models.id(record.key.model),
            whole("step", record.key.index),
            whole("attempt", record.attempt),
            self._endpoints.id(record.endpoint),
            real("started_at", record.started_at),
            real("latency", record.latency),
            None if record.status is None else whole("status", record.status),
            pack_optional(record.error),
            pack(record.message),
        )
        self._attempts.add(*row)

    def add_outcome(self, record: TrialRecord) -> bool:
        """Add a finished trial with its answer; return False where it has an outcome already."""
        key, asked = self._key(record.request), self._question(record.request)
        before = self._asked.get(key)
        if before is None and key[1] <= self._furthest.get(key[0], -1):
            before = self._db.execute(_ASKED, key).fetchone()
        if before == asked:
            return False
        if before is not None:
            raise self._mismatch(record.request, before, asked)
        outcome, texts = outcome_row(record), texts_of(record)
        body, seed = sent_parts(record.sent)
        checksum = checksum_of(record.request, outcome, (body, seed), texts)
        answer = (self._bodies.id(body), seed, checksum, *self._packed(texts))
        number = self._outcomes.add(*key, *asked, *_packed_words(outcome))
        self._answers.append((number, *answer))
        self._asked[key] = asked
        self._furthest[key[0]] = max(key[1], self._furthest.get(key[0], -1))
        return True

    def add_decision(self, record: DecisionRecord) -> None:
        """Add a decision."""
        self._decisions.add(
            real("at", record.at), whole("trials", record.trials), pack(dump_json(record.body))
        )

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
        self._meta[pack(key)] = pack(value)

    def write(self) -> None:
        """Write every row, inside the caller's transaction; writing the same rows again changes nothing."""
        for table in self._tables:
            table.write()
        self._db.executemany(_INSERT_ANSWER, self._answers)
        tally(self._db, self._outcomes.next_id)
        self._db.executemany(_UPSERT_META, self._meta.items())
        for row in self._snapshots.rows:
            expired = ((number,) for number in expired_by(row[0], self._keep))
            self._db.executemany("DELETE FROM snapshots WHERE id = ?", expired)

    def written(self) -> None:
        """Forget the rows: they are committed."""
        for table in self._tables:
            table.written()
        self._answers.clear()
        self._meta.clear()
        self._asked.clear()

    def _key(self, request: TrialRequest) -> tuple[int, int]:
        return self._models.id(request.key.model), whole("step", request.key.index)

    def _question(self, request: TrialRequest) -> tuple[int, int, int]:
        return (
            self._questions.id(request.question, self._tasks.id(request.task)),
            whole("repeat", request.repeat),
            whole("seed", request.seed),
        )

    def _packed(self, texts: Texts) -> list[Any]:
        *words, _, signals = _packed_words(texts)
        signal_set = None if texts[-2] is None else self._signal_sets.id(str(texts[-2]))
        return [*words, signal_set, signals]

    def _mismatch(
        self, request: TrialRequest, before: tuple[int, int, int], now: tuple[int, int, int]
    ) -> RunMismatch:
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
        db.executemany(_INSERT_RESCORED, (_rescored(number, row) for row in rows))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return number


def _rescored(scoring: int, row: Rescored) -> tuple[Any, ...]:
    category = None if row.category is None else whole("category", row.category)
    return scoring, whole("outcome", row.outcome), category, pack_optional(row.extracted), pack(row.reason)


def _packed_words(values: Sequence[Any]) -> list[Any]:
    """Return values with their texts packed."""
    return [pack(value) if isinstance(value, str) else value for value in values]
