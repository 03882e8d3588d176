"""Copies: a repeat that is the same as the answer before counts only once its model has been seen to vary.

A cache, or a server that ignores the seed, answers a question the same every time. Nothing in a short answer
tells that from a model that is sure. So as long as all repeats of a model came out the same, they count as
missing trials; the first that differs ends that. Answers are the same if their texts are, or, where
the texts are not known, their category and number of completion tokens. They are compared in the order of the
model's trial sequence, so arrival order cannot matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.trial import TrialOutcome
from scorio.sequential.cells import DROPPED
from scorio.sequential.trial_sequence import RunSequence

COPY_REASON = "a copy of the answer before to this question"
"""The reason of a missing trial whose answer is a copy."""


Answer = tuple[int | None, ...]
"""The identity of an answer: the digest of its text, or its category and tokens."""


@dataclass(slots=True)
class _Model:
    """The answers of one model up to the first repeat that differs."""

    varies: bool = False
    unread: dict[int, Answer] = field(default_factory=dict)
    answers: dict[tuple[int, int], Answer] = field(default_factory=dict)
    copies: int = 0


class Copies:
    """The trials, of models that are tested for copies, that do not count."""

    def __init__(self, spec: SessionSpec, run_sequence: RunSequence) -> None:
        self._models = {number: _Model() for number, model in enumerate(spec.models) if model.drop_copies}
        self._run_sequence = run_sequence

    def note(self, model: int, outcome: TrialOutcome) -> None:
        """Store an answer; the order does not matter."""
        known = self._models.get(model)
        if known is None or known.varies:
            return
        answer = outcome.answer, outcome.category, outcome.usage.completion_tokens
        known.unread[outcome.key.index] = answer[1:] if answer[0] is None else answer[:1]

    def counted(self, model: int, index: int, category: int) -> int:
        """Return the category with which the model's next index counts: DROPPED for a copy."""
        known = self._models.get(model)
        if known is None or known.varies or category < 0:
            return category
        answer = known.unread.pop(index)
        if known.answers.setdefault(self._run_sequence.at(index, model), answer) != answer:
            known.varies = True
            known.answers, known.unread = {}, {}
        elif self._run_sequence.repeat(index, model) > 0:
            known.copies += 1
            return DROPPED
        return category

    def count(self, model: int) -> int:
        """Return how many trials of a model do not count as copies."""
        known = self._models.get(model)
        return 0 if known is None else known.copies
