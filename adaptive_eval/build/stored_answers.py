"""Answers that a pilot has paid for, returned in place of new requests."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaptive_eval.endpoints.streaming import STREAMED
from adaptive_eval.engine.protocols import Endpoint, Executor
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import Completion, Message, Score, TrialRequest, stored_body


@dataclass(frozen=True)
class StoredAnswers:
    """Stored answers by model and trial seed, with the request each one answered."""

    answers: Mapping[tuple[str, int], tuple[Mapping[str, Any], Completion]]
    scores: Mapping[tuple[str, int], Score]

    @classmethod
    def read(cls, directory: Path) -> StoredAnswers:
        """Return every answer stored in the run in `directory`."""
        answers, scores = {}, {}
        with RunReader(directory) as reader:
            for record in reader.trials():
                key = record.request.key.model, record.request.seed
                if record.completion is not None:
                    answers[key] = record.sent, record.completion
                if record.score is not None and record.score.category is not None:
                    scores[key] = record.score
        return cls(answers, scores)

    def find(self, model: str, seed: int, body: Mapping[str, Any]) -> Completion | None:
        """Return the answer to this very request, or None where it was not asked before."""
        found = self.answers.get((model, seed))
        return found[1] if found is not None and _asked(found[0]) == _asked(body) else None

    def score(self, request: TrialRequest, completion: Completion) -> Score | None:
        """Return the stored score of this answer, or None where it was not scored before."""
        key = request.key.model, request.seed
        found = self.answers.get(key)
        return self.scores.get(key) if found is not None and found[1] is completion else None


class AnsweringFromStore:
    """An executor that returns stored answers and makes only the other requests."""

    def __init__(self, executor: Executor, stored: StoredAnswers) -> None:
        self._executor = executor
        self._stored = stored

    async def attempt(
        self, endpoint: Endpoint, messages: Sequence[Message], requests: Sequence[TrialRequest]
    ) -> Sequence[Completion | None]:
        """Return the stored answers to these requests; ask where none has one.

        Where only some have one, the others are asked one by one.
        """
        body = stored_body(endpoint.body(messages, seed=requests[0].seed), messages)
        found = [self._stored.find(one.key.model, one.seed, body) for one in requests]
        if any(found):
            return found
        return await self._executor.attempt(endpoint, messages, requests)

    def score(self, request: TrialRequest, completion: Completion) -> Coroutine[Any, Any, Score]:
        """Return the category of `completion` as an answer to the trial's question."""
        return self._executor.score(request, completion)


def _asked(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a request without its trials and its transport.

    Answer i of several has the seed plus i.
    """
    return {name: value for name, value in body.items() if name not in ("seed", "n", *STREAMED)}
