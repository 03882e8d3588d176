"""What the tables of a run file say of each other that cannot be true: rows changed by other hands than ours.

What no other row confirms is not seen here: times, latencies, messages and the names of endpoints.
"""

import sqlite3
from collections.abc import Iterator
from hashlib import blake2b

from adaptive_eval.store.cells import COUNTED, TALLIED
from adaptive_eval.store.codec import load_json, unpack

_COUNTED = COUNTED.format(which="id < (SELECT upto FROM tallied)")
_WRONG = (
    (
        "{:,} trials have no launch in the log that agrees with them",
        "SELECT model, step, question, repeat, seed FROM outcomes "
        "EXCEPT SELECT model, step, question, repeat, seed FROM launches",
    ),
    (
        "{:,} trials have no attempt in the log that agrees with them",
        "SELECT model, step FROM outcomes WHERE missing IS NULL "
        "EXCEPT SELECT model, step FROM attempts WHERE error IS NULL",
    ),
    (
        "{:,} trials have attempts in the log and were not launched",
        "SELECT model, step FROM attempts EXCEPT SELECT model, step FROM launches",
    ),
    (
        "{:,} attempts are stored twice",
        "SELECT 1 FROM attempts GROUP BY model, step, attempt, endpoint, started_at, latency, status, error, "
        "message HAVING count(*) > 1",
    ),
    (
        "{:,} decisions are stored twice",
        "SELECT 1 FROM decisions GROUP BY at, trials, body HAVING count(*) > 1",
    ),
    ("{:,} attempts have a number below 1", "SELECT 1 FROM attempts WHERE attempt < 1"),
    (
        "{:,} attempts have an answer and the status of a failure",
        "SELECT 1 FROM attempts WHERE error IS NULL AND status NOT BETWEEN 200 AND 299",
    ),
    (
        "decisions are stored and no results",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM decisions) AND NOT EXISTS (SELECT 1 FROM snapshots)",
    ),
    (
        "{:,} stored results have less running time than those before them",
        "SELECT 1 FROM (SELECT elapsed - lag(elapsed, 1, 0) OVER (ORDER BY id) AS passed FROM snapshots) "
        "WHERE passed < 0",
    ),
    (
        "it is not known how many trials are counted in advance",
        "SELECT 1 WHERE (SELECT count(*) FROM tallied) <> 1",
    ),
    (
        "{:,} of the numbers of trials counted in advance are not those of the trials",
        f"SELECT * FROM (SELECT * FROM ({TALLIED}) EXCEPT SELECT * FROM ({_COUNTED})) "  # noqa: S608 - ours
        f"UNION ALL SELECT * FROM (SELECT * FROM ({_COUNTED}) EXCEPT SELECT * FROM ({TALLIED}))",
    ),
    (
        "more trials are counted in advance than there are",
        "SELECT 1 FROM tallied WHERE upto NOT BETWEEN 0 AND (SELECT count(*) FROM outcomes)",
    ),
)
"""What is wrong where a query has rows, with their number."""


def contradictions(db: sqlite3.Connection) -> Iterator[str]:
    """Yield what contradicts what in an open run file, one line each."""
    for words, query in _WRONG:
        ((number,),) = db.execute(f"SELECT count(*) FROM ({query})")  # noqa: S608
        if number:
            yield words.format(number)
    for digest, body in db.execute("SELECT digest, body FROM bodies"):
        if blake2b(unpack(body).encode("utf-8", "surrogatepass"), digest_size=16).digest() != digest:
            yield "the digest of a request body is not that of its text"
    yield from _other_trials(db, "decisions")
    yield from _other_trials(db, "snapshots")


def _other_trials(db: sqlite3.Connection, table: str) -> Iterator[str]:
    """Yield the rows of packed results or decisions that were stored with another number of trials."""
    for number, trials, body in db.execute(f"SELECT id, trials, body FROM {table} ORDER BY id"):  # noqa: S608
        data = load_json(body)
        said = data.get("results", data).get("trials")
        if said != trials:
            yield f"row {number} of {table} is stored with {trials:,} trials and says {said}"
