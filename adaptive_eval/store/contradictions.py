"""What the tables of a run file say of each other that cannot be true: rows changed by other hands than ours.

What no other row confirms is not seen here: times, messages, and texts of requests.
"""

import sqlite3
from collections.abc import Iterator
from hashlib import blake2b

from adaptive_eval.store.cells import COUNTED, TALLIED
from adaptive_eval.store.codec import load_json, misfit, unpack
from adaptive_eval.store.pending import FEWEST_KEPT

_COUNTED = COUNTED.format(which="id < (SELECT upto FROM tallied)")
_OF_REQUESTS = (
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
)
_OF_IMPORTED = (
    (
        "{:,} requests are in the log of a run that was imported",
        "SELECT 1 FROM launches UNION ALL SELECT 1 FROM attempts",
    ),
)
_WRONG = (
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
    (
        "{:,} trials are said to be neither before nor after a stop",
        "SELECT 1 FROM outcomes WHERE after_stop NOT IN (0, 1)",
    ),
    (
        "{:,} trials lack an attempt before the last one, or have one with a number below 1",
        "SELECT 1 FROM attempts GROUP BY model, step "
        "HAVING min(attempt) <> 1 OR count(DISTINCT attempt) <> max(attempt)",
    ),
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
        "some of the first or latest results are gone from among those that are stored",
        "SELECT 1 FROM (SELECT min(id) AS first, max(id) AS last FROM snapshots) WHERE first > 0 "  # noqa: S608
        f"OR (SELECT count(*) FROM snapshots WHERE id > last - {FEWEST_KEPT}) < min(last + 1, {FEWEST_KEPT})",
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


def contradictions(db: sqlite3.Connection, *, imported: bool) -> Iterator[str]:
    """Yield what contradicts what in an open run file, one line each; an imported run has asked nothing."""
    for words, query in (*(_OF_IMPORTED if imported else _OF_REQUESTS), *_WRONG):
        ((number,),) = db.execute(f"SELECT count(*) FROM ({query})")  # noqa: S608
        if number:
            yield words.format(number)
    for digest, body in db.execute("SELECT digest, body FROM bodies"):
        if blake2b(unpack(body).encode("utf-8", "surrogatepass"), digest_size=16).digest() != digest:
            yield "the digest of a request body is not that of its text"
        wrong = misfit(load_json(body), _BODY)
        if wrong is not None:
            yield f"a request body is none: {wrong}"
    yield from _other_trials(db, "decisions")
    yield from _other_trials(db, "snapshots")
    yield from _unknown_servers(db)
    yield from _other_times(db)


_BODY = {"model?": str, "messages?": [{"role?": str}]}


def _other_trials(db: sqlite3.Connection, table: str) -> Iterator[str]:
    """Yield the rows of packed results or decisions that were stored with another number of trials."""
    for number, trials, body in db.execute(f"SELECT id, trials, body FROM {table} ORDER BY id"):  # noqa: S608
        data = load_json(body)
        said = data.get("results", data).get("trials")
        if said != trials:
            yield f"row {number} of {table} is stored with {trials:,} trials and says {said}"


def _unknown_servers(db: sqlite3.Connection) -> Iterator[str]:
    """Yield the servers that have answered by the results of a run that stopped, and no attempt names."""
    known = {unpack(name) for (name,) in db.execute("SELECT name FROM endpoints")}
    for (body,) in db.execute("SELECT body FROM snapshots ORDER BY id DESC LIMIT 1"):
        stored = load_json(body)
        servers = stored["endpoints"]
        if stored["results"].get("stop") is None or any(one["in_flight"] for one in servers):
            return  # the attempts of the latest answers may not be stored yet
        for name in sorted({one["endpoint"] for one in servers if one["answered"]} - known):
            yield f"stored results name a server that has answered, {name!r:.80}, and no attempt does"


_TIMES = (
    "SELECT count(*), total(abs(json_extract(signals, ?) - latency) > 1e-6) FROM answers "
    "JOIN outcomes ON outcome = id WHERE signal_set = ? AND typeof(signals) = 'text' AND json_valid(signals)"
)


def _other_times(db: sqlite3.Connection) -> Iterator[str]:
    """Yield that answers took another time by their signals, unless that signal is a scorer's own for all."""
    for number, packed in db.execute("SELECT id, name FROM signal_sets"):
        names = load_json(packed)
        if "latency" in names:
            place = f"$[{names.index('latency')}]"
            answers, others = db.execute(_TIMES, (place, number)).fetchone()
            if 0 < others < answers:
                yield f"{others:,.0f} answers took another time by their signals than is stored with them"
