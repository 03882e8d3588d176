"""Exit codes of the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaptive_eval.errors import AdaptiveEvalError, EndpointsUnusable, Interrupted, UsageError, WorkersLost
from adaptive_eval.run.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from adaptive_eval.core.results import StopReason

RESOLVED, UNEXPECTED, USAGE, ENDED_FIRST, ENDPOINTS, FAILED = 0, 1, 2, 3, 4, 5

EXIT_CODES_HELP = (
    "Exit codes: 0 goal reached; 3 a budget or cap ended first, the partial ranking is valid; 4 endpoints or "
    "answers unusable; 2 wrong usage or config; 130 interrupted, can be resumed; 1 unexpected."
)


def exit_code_of(error: AdaptiveEvalError) -> int:
    """Return the exit code for an error.

    Examples
    --------
    >>> exit_code_of(UsageError("no such file"))
    2
    """
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, Interrupted):
        return INTERRUPTED
    return ENDPOINTS if isinstance(error, EndpointsUnusable | WorkersLost) else UNEXPECTED


def exit_code_of_stop(reason: StopReason) -> int:
    """Return the exit code for the end of a run.

    Examples
    --------
    >>> exit_code_of_stop("resolved"), exit_code_of_stop("budget")
    (0, 3)
    """
    codes: dict[StopReason, int] = {
        "resolved": RESOLVED,
        "partial": ENDED_FIRST,
        "budget": ENDED_FIRST,
        "max_passes": ENDED_FIRST,
        "endpoints": ENDPOINTS,
        "unusable": ENDPOINTS,
        "interrupted": INTERRUPTED,
    }
    return codes[reason]
