"""What is watched in the outcomes of a run: answers that say nothing, and models that change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from adaptive_eval.engine.answer_watch import AnswerWatch
from adaptive_eval.engine.drift import DriftWatch
from adaptive_eval.engine.no_answers import NoAnswers
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import TrialKey


@dataclass(frozen=True, slots=True)
class Watches:
    """The watches of a run."""

    drift: DriftWatch
    no_answers: NoAnswers
    answers: AnswerWatch

    def remarks(self) -> Iterator[str]:
        """Yield what is wrong at present."""
        yield from self.no_answers.remarks()
        yield from self.answers.remarks()
        yield from self.drift.remarks

    def changed(self, records: Sequence[TrialRecord], servers: Mapping[TrialKey, str]) -> list[str]:
        """Take in stored trials with their servers; return new remarks about models that have changed."""
        for record in records:
            request = record.request
            category = None if record.score is None else record.score.category
            question = request.task, request.question
            server = servers[request.key]
            self.drift.add(request.key, question, category, at=record.finished_at, server=server)
        return self.drift.take_news()
