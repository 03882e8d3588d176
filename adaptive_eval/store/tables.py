"""Tables of the run file as the writer fills them, and which snapshots they keep."""

from __future__ import annotations

import math
import operator
import sqlite3
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, SupportsIndex

from adaptive_eval.store.codec import pack, unpack

_LARGEST = 2**63 - 1


def whole(field: str, value: SupportsIndex) -> int:
    """Return `value` as an int that SQLite can hold.

    NumPy's integers are converted: SQLite would store them as bytes.

    Examples
    --------
    >>> whole("step", 3)
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number <= _LARGEST:
        raise ValueError(f"{field} is {value!r}: give an integer from 0 to 2**63 - 1")
    return number


def real(field: str, value: float) -> float:
    """Return `value` as a finite float.

    Examples
    --------
    >>> real("latency", 2)
    2.0
    """
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{field} is {value!r}: give a finite number of seconds")
    return number + 0.0  # -0.0 would be read back as 0.0


def largest_id(db: sqlite3.Connection, table: str) -> int:
    """Return the largest id of a table, -1 where it is empty."""
    (largest,) = db.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608 - our own names
    return -1 if largest is None else int(largest)


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


def spread(snapshots: Sequence[tuple[int, int]], most: int) -> list[int]:
    """Return which of these snapshots to look at where about `most` are enough.

    They are spread evenly over the square root of the trials, in which a run's intervals narrow; of several
    with the same trials the latest counts.

    Examples
    --------
    >>> spread([(number, 10 * number) for number in range(101)], 5)
    [0, 6, 25, 56, 100]
    """
    if len(snapshots) <= most:
        return [number for number, _ in snapshots]
    first, last = math.sqrt(snapshots[0][1]), math.sqrt(snapshots[-1][1])
    width = (last - first) / (most - 1) or 1.0
    nearest: dict[int, tuple[float, int]] = {}
    for number, trials in snapshots:
        place = (math.sqrt(trials) - first) / width
        slot = round(place)
        distance = abs(place - slot)
        if slot not in nearest or distance <= nearest[slot][0]:
            nearest[slot] = (distance, number)
    return sorted({snapshots[0][0], snapshots[-1][0], *(number for _, number in nearest.values())})
