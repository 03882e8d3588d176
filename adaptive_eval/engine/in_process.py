"""The executor that needs no other process: attempts and scores on this event loop."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from adaptive_eval.engine.protocols import Endpoint, SamplingEndpoint, Scoring
from adaptive_eval.trial import Completion, Message, Score, TrialRequest

__all__ = ["InProcess"]


class InProcess:
    """Asks the endpoints and scores the answers here.

    Parameters
    ----------
    scoring : Scoring
        Scores the answers.
    """

    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring

    async def attempt(
        self, endpoint: Endpoint, messages: Sequence[Message], requests: Sequence[TrialRequest]
    ) -> Sequence[Completion]:
        """Ask `endpoint` once for the answers to `requests`."""
        seed = requests[0].seed
        if len(requests) == 1:
            return [await endpoint.complete(messages, seed=seed)]
        assert isinstance(endpoint, SamplingEndpoint)
        return await endpoint.sample(messages, seed=seed, n=len(requests))

    def score(self, request: TrialRequest, completion: Completion) -> Coroutine[Any, Any, Score]:
        """Return the category of `completion` as an answer to the trial's question."""
        return self._scoring.score(request, completion)
