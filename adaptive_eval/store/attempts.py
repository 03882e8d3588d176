"""How attempts are read from their rows."""

from __future__ import annotations

from adaptive_eval.store.codec import Packed, unpack, unpack_optional
from adaptive_eval.store.records import AttemptRecord
from adaptive_eval.trial import TrialKey

__all__ = ["ATTEMPTS", "ERROR_COUNTS", "attempt_of"]

ATTEMPTS = """
SELECT id, model, step, attempt, endpoint, started_at, latency, status, error, message FROM attempts
WHERE id > :last AND id <= :end AND (:model IS NULL OR model = :model) AND (:step IS NULL OR step = :step)
  AND (NOT :errors_only OR error IS NOT NULL)
ORDER BY id LIMIT 4096
"""
"""Attempts from id ``:last`` on, the filters being NULL or a value."""

ERROR_COUNTS = """
SELECT model, error, count(*) FROM attempts
WHERE error IS NOT NULL AND error NOT IN ('cancelled', 'withdrawn')
GROUP BY model, error ORDER BY model, error
"""
"""Failed attempts by model and kind of failure."""


def attempt_of(
    models: list[str],
    endpoints: list[str],
    _id: int,
    model: int,
    step: int,
    attempt: int,
    endpoint: int,
    started_at: float,
    latency: float,
    status: int | None,
    error: Packed | None,
    message: Packed,
) -> AttemptRecord:
    """Return the attempt of one row of :data:`ATTEMPTS`; names are by id."""
    return AttemptRecord(
        TrialKey(models[model], step),
        attempt,
        endpoints[endpoint],
        started_at,
        latency,
        status,
        unpack_optional(error),
        unpack(message),
    )
