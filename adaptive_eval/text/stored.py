"""What views and reports take from a run file's description and decisions.

Of the run file's ``meta`` they know three keys: ``name``, ``started_at`` (Unix time of the first start, as
text) and ``config`` (the text of the config). All others are shown as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from adaptive_eval.core.results import Decision

__all__ = ["CONFIG", "NAME", "STARTED_AT", "decision_from", "started_at"]

NAME, STARTED_AT, CONFIG = "name", "started_at", "config"


def started_at(meta: Mapping[str, str]) -> float | None:
    """Return the Unix time of the run's first start, None where it is not stored.

    Examples
    --------
    >>> started_at({"started_at": "1750000000.5"}), started_at({})
    (1750000000.5, None)
    """
    try:
        value = float(meta[STARTED_AT])
    except (KeyError, ValueError):
        return None
    return value if math.isfinite(value) else None


def decision_from(body: Mapping[str, Any]) -> Decision:
    """Rebuild a decision from its stored form.

    Examples
    --------
    >>> decision_from(
    ...     {
    ...         "kind": "stop",
    ...         "models": [],
    ...         "verdict": "budget",
    ...         "step": 9,
    ...         "trials": 18,
    ...         "text": "…",
    ...         "evidence": {},
    ...     }
    ... ).verdict
    'budget'
    """
    return Decision(**{**body, "models": tuple(body["models"])})
