"""Counts of what a mock server has served."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ModelStats", "ServerStats"]


@dataclass(slots=True)
class ModelStats:
    """Counts of one model.

    Parameters
    ----------
    requests : int
        Well-formed requests for it, answered or struck by a fault.
    in_flight, peak_in_flight : int
        Requests being served now, and the most there have been at once.
    answers, right : int
        Samples whose last byte was sent, and those of them that are right.
    prompt_tokens, completion_tokens : int
        Usage of the answered requests.
    seeds : Counter of str
        Answered requests by their seed (``none`` without one): a count above 1 was paid for twice.
    """

    requests: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    answers: int = 0
    right: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seeds: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """Count a request that comes in."""
        self.requests += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)

    def end(self) -> None:
        """Count a request that is over, however it ended."""
        self.in_flight -= 1

    def answered(self, seed: int | None, right: Sequence[bool], usage: tuple[int, int]) -> None:
        """Count an answered request: which samples are right, and (prompt, completion) tokens."""
        self.answers += len(right)
        self.right += sum(right)
        self.prompt_tokens += usage[0]
        self.completion_tokens += usage[1]
        self.seeds["none" if seed is None else str(seed)] += 1

    def as_data(self) -> dict[str, Any]:
        """Return the counts as JSON-able data."""
        return {
            "requests": self.requests,
            "in_flight": self.in_flight,
            "peak_in_flight": self.peak_in_flight,
            "answers": self.answers,
            "right": self.right,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "seeds": dict(self.seeds),
        }


class ServerStats:
    """Counts of all models.

    Examples
    --------
    >>> stats = ServerStats(["a"])
    >>> stats.begin("a"); stats.models["a"].answered(7, [True], (10, 40)); stats.end("a")
    >>> stats.as_data()["models"]["a"]["seeds"], stats.as_data()["peak_in_flight"]
    ({'7': 1}, 1)
    """

    def __init__(self, models: Sequence[str]) -> None:
        self.models = {name: ModelStats() for name in models}
        self.refused = 0
        self._whole = ModelStats()

    def begin(self, model: str) -> None:
        """Count a request for `model` that comes in."""
        self.models[model].begin()
        self._whole.begin()

    def end(self, model: str) -> None:
        """Count a request for `model` that is over."""
        self.models[model].end()
        self._whole.end()

    def as_data(self) -> dict[str, Any]:
        """Return everything as JSON-able data; `refused` counts requests that were wrong (4xx)."""
        return {
            "requests": self._whole.requests,
            "refused": self.refused,
            "in_flight": self._whole.in_flight,
            "peak_in_flight": self._whole.peak_in_flight,
            "models": {name: stats.as_data() for name, stats in self.models.items()},
        }
