"""The counts that the writer keeps of all but the latest outcomes."""

from __future__ import annotations

import sqlite3

__all__ = ["TALLY_EVERY", "tally"]

TALLY_EVERY = 50_000
"""Outcomes that are counted together: the most that a reader has to count itself."""

_COUNT = """
INSERT INTO tallies (model, question, category, missing, stored, truncated)
SELECT model, question, coalesce(category, -1), coalesce(missing, ''), count(*),
       coalesce(sum(finish_reason = 'length'), 0)
FROM outcomes WHERE id >= :upto AND id < :end GROUP BY model, question, category, missing
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
