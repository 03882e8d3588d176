"""Why a run stops, and the exit code of every command: the one table of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

REACHED, UNEXPECTED, USAGE, ENDED_FIRST, ENDPOINTS, FAILED, LOST, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130
"""Exit codes: as it should be; unexpected; wrong usage; a limit came first; no endpoint; a claim fails;
lost answers could turn what is open; interrupted."""

StopReason = Literal[
    "resolved", "partial", "budget", "max_passes", "endpoints", "unusable", "lost", "interrupted"
]
"""``partial``: every pair is decided that the answering models and the references can decide; ``endpoints``:
none could be.
``unusable``: most answers could not be scored, or were cut off.
``lost``: lost answers could turn every open pair."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One reason for which a run stops."""

    exit_code: int
    replayed: str  # what it means where recorded answers are replayed
    to_continue: str = ""  # what to say before the command that continues the run


_AGAIN = "Remove the cause, which is named above, and continue with"

STOPS: Mapping[StopReason, Stop] = MappingProxyType(
    {
        "resolved": Stop(REACHED, "everything decided"),
        "partial": Stop(ENDED_FIRST, "trials ran out, some pairs undecided", _AGAIN),
        "budget": Stop(ENDED_FIRST, "budget", "Raise the budget and continue"),
        "max_passes": Stop(ENDED_FIRST, "trials ran out", "Allow more passes and continue"),
        "endpoints": Stop(ENDPOINTS, "trials ran out, nothing decided", _AGAIN),
        "unusable": Stop(ENDPOINTS, "most answers could not be scored"),
        "lost": Stop(LOST, "lost answers could turn what is open", _AGAIN),
        "interrupted": Stop(INTERRUPTED, "interrupted", "Continue with"),
    }
)

EXIT_CODES_HELP = (
    "Exit codes: 0 goal reached; 3 a budget or cap ended first, the partial ranking is valid; 4 endpoints or "
    "answers unusable; 5 a claim does not hold (check, goal not-worse); 6 lost answers could turn what is "
    "open; 2 wrong usage or config; 130 interrupted; 1 unexpected."
)
