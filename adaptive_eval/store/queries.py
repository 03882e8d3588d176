"""The queries of a run file's readers. Rows come in batches: ids from ``:last`` on, at most ``:end``."""

import sqlite3

from adaptive_eval.errors import BILLED_KINDS, BILLED_STATUSES
from adaptive_eval.store.records import CANCELLED, KILLED, WITHDRAWN
from adaptive_eval.store.trial_rows import AnswerRow, OutcomeRow
from adaptive_eval.trial import CUT_OFF

OUTCOME = ", ".join(OutcomeRow._fields)
"""Columns of an outcome after what was asked."""

TEXTS = ", ".join(AnswerRow._fields)
"""Columns of an answer."""

# CROSS JOIN: outcomes first, in id order, filtered before any answer is looked up.
_QUERY = f"""
SELECT o.id, o.model, o.step, o.question, o.repeat, o.seed,
       o.{OUTCOME.replace(", ", ", o.")}, b.body, a.sent_seed, a.checksum, a.{TEXTS.replace(", ", ", a.")}
FROM outcomes AS o CROSS JOIN answers AS a ON a.outcome = o.id CROSS JOIN bodies AS b ON b.id = a.body
WHERE o.id {{beyond}} :last AND o.id <= :end
  AND (:models IS NULL OR o.model IN (SELECT value FROM json_each(:models)))
  AND (:questions IS NULL OR o.question IN (SELECT value FROM json_each(:questions)))
  AND (:step IS NULL OR o.step = :step)
  AND (:category IS NULL OR o.category = :category)
  AND (:missing IS NULL OR (o.missing IS NOT NULL) = :missing)
  AND (:discarded IS NULL OR (o.discarded IS NOT NULL) = :discarded)
  AND (:after_stop IS NULL OR o.after_stop = :after_stop)
  AND (:lowest IS NULL OR o.category >= :lowest)
  AND (:below IS NULL OR o.category < :below)
  AND (:truncated IS NULL OR (o.finish_reason IN {CUT_OFF}) = :truncated)
  AND (:beaten IS NULL OR (o.question, o.repeat) IN
       (SELECT question, repeat FROM outcomes WHERE model = :beaten AND category < :lowest))
ORDER BY o.id {{order}} LIMIT :batch
"""  # noqa: S608 - our own words
FILTERS = (
    *("models", "questions", "step", "category", "missing", "discarded", "after_stop"),
    *("lowest", "below", "truncated", "beaten"),
)
"""Parameters of the query of trials that choose among them, each NULL for all."""

TRIALS = _QUERY.format(beyond=">", order="ASC")
"""Whole trials after id ``:last``, each filter NULL or a value; rows are :class:`TrialRow`."""

TRIALS_NEWEST_FIRST = _QUERY.format(beyond="<", order="DESC")

_BILLED = (
    f"error IN ({', '.join(repr(kind) for kind in sorted(BILLED_KINDS))}) "
    f"OR status IN ({', '.join(map(str, sorted(BILLED_STATUSES)))})"
)
# A request that was cancelled may have been billed, and closes its launch: 1 - 1. An answer is paid for by
# the outcome, or by the launch that has none yet; one that no scorer could use is logged as a failure too.
_WORTH = f"CASE WHEN error = '{WITHDRAWN}' THEN -1 WHEN {_BILLED} THEN 1 ELSE 0 END"

UNANSWERED = f"""
SELECT (SELECT count(*) FROM launches) - (SELECT count(*) FROM outcomes)
     + (SELECT coalesce(sum({_WORTH}), 0) FROM attempts WHERE error IS NOT NULL)
"""  # noqa: S608 - our own words

UNANSWERED_BY_TRIAL = f"""
SELECT model, step, sum(n) AS left FROM (
    SELECT model, step, 1 AS n FROM launches
    UNION ALL SELECT model, step, -1 FROM outcomes
    UNION ALL SELECT model, step, {_WORTH} FROM attempts WHERE error IS NOT NULL
) GROUP BY model, step HAVING left > 0 ORDER BY model, step
"""  # noqa: S608

# Attempts of trials that have no outcome, and a row for each launch that nothing has ended.
UNFINISHED = f"""
WITH unfinished AS (
    SELECT model, step, count(*) AS launches, max(at) AS at FROM launches AS l
    WHERE NOT EXISTS (SELECT 1 FROM outcomes AS o WHERE o.model = l.model AND o.step = l.step)
    GROUP BY model, step)
SELECT a.id, a.model, a.step, a.attempt, a.endpoint, a.started_at, a.latency, a.status, a.error, a.message
FROM attempts AS a JOIN unfinished USING (model, step) WHERE a.error IS NOT NULL
UNION ALL
SELECT -1, model, step, 1, NULL, at, 0.0, NULL, '{KILLED}', '' FROM unfinished AS u
WHERE launches > (SELECT count(*) FROM attempts AS a
    WHERE a.model = u.model AND a.step = u.step AND a.error IN ('{CANCELLED}', '{WITHDRAWN}'))
ORDER BY 2, 3, 1
"""  # noqa: S608

FASTEST = "SELECT endpoint, min(latency) FROM attempts WHERE error IS NULL GROUP BY endpoint"

LOST_LAUNCHES = f"""
SELECT task, sum(n) AS lost FROM (
    SELECT question, 1 AS n FROM launches
    UNION ALL SELECT question, -1 FROM outcomes
    UNION ALL SELECT question, -1 FROM attempts JOIN (SELECT DISTINCT model, step, question FROM launches)
        USING (model, step) WHERE error IN ('{CANCELLED}', '{WITHDRAWN}')
) JOIN questions ON questions.id = question GROUP BY task HAVING lost > 0
"""  # noqa: S608

QUESTIONS = """
SELECT (SELECT tasks.name FROM tasks WHERE tasks.id = questions.task), name FROM questions
ORDER BY id LIMIT -1 OFFSET :known
"""

LOG = """
SELECT o.id, o.model, o.step, o.question, o.category, o.prompt_tokens, o.completion_tokens, o.cached_tokens,
    o.finish_reason, o.missing, o.after_stop, o.finished_at, o.answer, o.response, o.discarded, a.signal_set
FROM outcomes AS o CROSS JOIN answers AS a ON a.outcome = o.id
WHERE o.id > :last AND o.id <= :end ORDER BY o.id LIMIT :batch
"""

ATTEMPTS = """
SELECT id, model, step, attempt, endpoint, started_at, latency, status, error, message FROM attempts
WHERE id > :last AND id <= :end AND (:model IS NULL OR model = :model) AND (:step IS NULL OR step = :step)
ORDER BY id LIMIT 4096
"""

ANSWERS_BY_SIGNALS = """
SELECT o.model, q.task, a.signal_set, count(*)
FROM answers AS a JOIN outcomes AS o ON o.id = a.outcome JOIN questions AS q ON q.id = o.question
WHERE a.signal_set IS NOT NULL GROUP BY o.model, q.task, a.signal_set
"""

ERROR_COUNTS = """
SELECT model, error, count(*) FROM attempts
WHERE error IS NOT NULL AND error NOT IN ('cancelled', 'withdrawn', 'seed_test')
GROUP BY model, error ORDER BY model, error
"""

RUNNING_TIME = """
SELECT at, elapsed, (
    SELECT max(at) FROM (
        SELECT at FROM launches WHERE id = (SELECT max(id) FROM launches)
        UNION ALL SELECT started_at + latency FROM attempts WHERE id = (SELECT max(id) FROM attempts)
        UNION ALL SELECT finished_at FROM outcomes WHERE id = (SELECT max(id) FROM outcomes)))
FROM snapshots ORDER BY id DESC LIMIT 1
"""

SNAPSHOTS = """
SELECT * FROM snapshots
WHERE id > :last AND id <= :end AND (:since IS NULL OR at > :since)
  AND (:chosen IS NULL OR id IN (SELECT value FROM json_each(:chosen))) ORDER BY id LIMIT 16
"""

PLACE = "SELECT id FROM outcomes WHERE model = :model AND step = :step"

LAUNCHED = """
SELECT model, step, question, repeat, seed FROM launches AS l
WHERE NOT EXISTS (SELECT 1 FROM outcomes AS o WHERE o.model = l.model AND o.step = l.step) ORDER BY id
"""

RESCORED = (
    "SELECT outcome, category, extracted, reason FROM rescored WHERE scoring = :scoring ORDER BY outcome"
)


def largest_id(db: sqlite3.Connection, table: str) -> int:
    """Return the largest id of a table, -1 if it is empty."""
    (largest,) = db.execute(f"SELECT max(rowid) FROM {table}").fetchone()  # noqa: S608 - our own names
    if largest is None:
        return -1
    return int(largest)
