"""Events of a run for observers, as plain data.

Observers are called in the event loop and must return quickly; slow work belongs elsewhere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from adaptive_eval.core.results import Decision, Results, StopVerdict
from adaptive_eval.stops import StopReason
from adaptive_eval.store.records import AttemptRecord, EndpointHealth, TrialRecord
from adaptive_eval.trial import TrialRequest


@dataclass(frozen=True, slots=True)
class Launched:
    """These trials are being sent; their launch is stored."""

    at: float
    requests: tuple[TrialRequest, ...]


@dataclass(frozen=True, slots=True)
class Attempted:
    """These requests have ended, with an answer or without; each trial of a request has its own record."""

    records: tuple[AttemptRecord, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """These trials have an answer or are missing; they are stored."""

    records: tuple[TrialRecord, ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """The session has decided something."""

    at: float
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """The results of the moment, as they are stored about once a second.

    `elapsed` is seconds of running time, previous sessions of the run included; `lag` the most seconds by
    which the event loop was late since the last one.
    """

    at: float
    elapsed: float
    results: Results
    endpoints: tuple[EndpointHealth, ...]
    lag: float = 0.0


@dataclass(frozen=True, slots=True)
class Draining:
    """Nothing more is launched; `in_flight` trials are awaited."""

    reason: StopReason
    in_flight: int


@dataclass(frozen=True, slots=True)
class Remarked:
    """A message for people while the run continues; each text is sent once."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run is over and stored."""

    verdict: StopVerdict


Event: TypeAlias = Launched | Attempted | Finished | Decided | Progress | Draining | Remarked | Stopped
Observer: TypeAlias = Callable[[Event], None]
