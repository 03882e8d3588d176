"""Requests that may have been billed although nothing shows it: the presumed part of a run's bill.

For each trial, over all sessions of the run: its launches, less those that ended with an outcome or that the
engine dropped, and its failures after which a server may have answered all the same. In a run file that was
closed in good order the former is zero. After a ``kill -9`` each launch without an end counts once: its
request may have been out, or its answer was not scored yet.
"""

from __future__ import annotations

import sqlite3

from adaptive_eval.errors import BILLED_KINDS, BILLED_STATUSES
from adaptive_eval.store.records import CANCELLED, WITHDRAWN

_BILLED = (
    f"error IN ({', '.join(repr(kind) for kind in sorted(BILLED_KINDS))}) "
    f"OR status IN ({', '.join(map(str, sorted(BILLED_STATUSES)))})"
)
# A request that was cancelled may have been billed, and closes its launch: 1 - 1. An answer is paid for by
# the outcome, or by the launch that has none yet; one that no scorer could use is logged as a failure too.
_WORTH = f"CASE WHEN error = '{WITHDRAWN}' THEN -1 WHEN {_BILLED} THEN 1 ELSE 0 END"

_TOTAL = f"""
SELECT (SELECT count(*) FROM launches) - (SELECT count(*) FROM outcomes)
     + (SELECT coalesce(sum({_WORTH}), 0) FROM attempts WHERE error IS NOT NULL)
"""  # noqa: S608 - our own words

_BY_TRIAL = f"""
SELECT model, step, sum(n) AS left FROM (
    SELECT model, step, 1 AS n FROM launches
    UNION ALL SELECT model, step, -1 FROM outcomes
    UNION ALL SELECT model, step, {_WORTH} FROM attempts WHERE error IS NOT NULL
) GROUP BY model, step HAVING left > 0 ORDER BY model, step
"""  # noqa: S608


def read_unanswered(db: sqlite3.Connection) -> list[tuple[int, int, int]]:
    """Return model, step and number of requests of every trial that has such requests."""
    (total,) = db.execute(_TOTAL).fetchone()
    return db.execute(_BY_TRIAL).fetchall() if total else []


_LOST = f"""
SELECT task, sum(n) AS lost FROM (
    SELECT question, 1 AS n FROM launches
    UNION ALL SELECT question, -1 FROM outcomes
    UNION ALL SELECT question, -1 FROM attempts JOIN (SELECT DISTINCT model, step, question FROM launches)
        USING (model, step) WHERE error IN ('{CANCELLED}', '{WITHDRAWN}')
) JOIN questions ON questions.id = question GROUP BY task HAVING lost > 0
"""  # noqa: S608


def read_lost(db: sqlite3.Connection) -> list[tuple[int, int]]:
    """Return the tasks with launches that a killed process left without an end, and how many."""
    return db.execute(_LOST).fetchall()
