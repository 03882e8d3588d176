"""Which trials share a request: those that ask the same, one after the other on a model's walk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adaptive_eval.engine.flight import Flight, SharedRequest

__all__ = ["share"]


def share(flights: Iterable[Flight]) -> None:
    """Let trials that come after each other and ask the same share requests, as far as their lanes want.

    Trials whose prompts differ, because their options are shuffled, do not.
    """
    together: list[Flight] = []
    for flight in flights:
        if together and not _joins(flight, together):
            _close(together)
            together = []
        together.append(flight)
    _close(together)


def _joins(flight: Flight, together: Sequence[Flight]) -> bool:
    last, new = together[-1].request, flight.request
    return (
        flight.lane is together[-1].lane
        and len(together) < flight.lane.samples
        and (new.task, new.question, new.seed) == (last.task, last.question, last.seed + 1)
        and flight.messages == together[-1].messages
    )


def _close(together: Sequence[Flight]) -> None:
    if len(together) > 1:
        request = SharedRequest(together)
        for flight in together:
            flight.shared = request
