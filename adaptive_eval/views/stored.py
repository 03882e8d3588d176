"""A run file's description and decisions, read for views and reports.

Of the run file's ``meta`` they know three keys: ``name``, ``started_at`` (Unix time of the first start, as
text) and ``config`` (the text of the config). All others are shown as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from adaptive_eval.core.results import Decision, StopVerdict

NAME, STARTED_AT, CONFIG = "name", "started_at", "config"


def started_at(meta: Mapping[str, str]) -> float | None:
    """Return the Unix time of the run's first start, None where it is not stored.

    Examples
    --------
    >>> started_at({"started_at": "1750000000.5"}), started_at({})
    (1750000000.5, None)
    """
    try:
        value = float(meta.get(STARTED_AT, "nan"))
    except ValueError:
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


_OLD_STOPS = (
    (re.compile(r"budget of task (?P<owner>.+?) (?:ended before|is spent: )"), "task"),
    (re.compile(r".* of task '(?P<owner>.+)' is reached$"), "task"),
    (
        re.compile(r"the budget of the (?P<owner>judge|verifier) of task '(?P<task>.+)' has no room "),
        "scorer",
    ),
    (re.compile(r"the budgets of models ended "), "models"),
)


def stop_evidence(stop: StopVerdict) -> Mapping[str, Any]:
    """Return the evidence of a stop; where an earlier version stored a sentence only, whose budget it names.

    Examples
    --------
    >>> old = StopVerdict("budget", "budget of task sums is spent: 60 of 60 trials; the next trial might …")
    >>> stop_evidence(old)
    {'scope': 'task', 'owner': 'sums'}
    """
    if stop.evidence or stop.reason != "budget":
        return stop.evidence
    for pattern, scope in _OLD_STOPS:
        if found := pattern.match(stop.text):
            named = found.groupdict()
            owner = " of ".join(filter(None, (named.get("owner"), named.get("task"))))
            return {"scope": scope, "owner": owner}
    return {"scope": "run", "owner": ""}
