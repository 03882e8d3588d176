"""Empty and refused answers: counted by model and cause, and reported when frequent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from adaptive_eval.errors import Coded
from adaptive_eval.trial import NO_ANSWER, Score

_ADVICE = {
    "content_filter": "a filter of the server withheld them",
    "tool_calls": "the model called tools; nothing here runs them",
    "reasoning": "the server put all text into the reasoning; does its reasoning parser match the model?",
    "length": "they ended at the token limit before an answer; raise max_tokens",
    "empty": "the text is empty",
}
"""The advice for each cause."""


class NoAnswers:
    """Counts answers that are none.

    Examples
    --------
    >>> counts = NoAnswers({"quiet": (40, {"reasoning": 39})})
    >>> print(counts.refusal("quiet"))
    39 of its 40 answers hold no answer (reasoning 39): the server put all text into the reasoning; does its \
reasoning parser match the model? Its score would say nothing, so it is not ranked; on: {mostly_empty: rank} \
ranks it
    """

    fewest, share = 5, 0.1  # empty answers, and their share, from which a warning is shown
    # answers, and the share of them that are none, from which a model's score says nothing about it
    enough, nearly_all = 20, 0.95

    def __init__(
        self, stored: Mapping[str, tuple[int, Mapping[str, int]]] | None = None, *, ranked: bool = False
    ) -> None:
        stored = stored or {}
        self._answers = Counter({model: answers for model, (answers, _) in stored.items()})
        self._causes = {model: Counter(causes) for model, (_, causes) in stored.items()}
        self._ranked = ranked

    def add(self, model: str, score: Score) -> None:
        """Count an answer, by its signals."""
        self._answers[model] += 1
        for name in score.signals:
            if name.startswith(NO_ANSWER):
                self._causes.setdefault(model, Counter())[name.removeprefix(NO_ANSWER)] += 1

    @property
    def answered(self) -> frozenset[str]:
        """The models that have given an answer."""
        return frozenset(self._answers)

    def count(self, model: str) -> int:
        """Return how many answers of `model` are none."""
        return self._causes.get(model, Counter()).total()

    def refusal(self, model: str) -> str | None:
        """Say why `model` is not ranked, where nearly all of its answers are none."""
        answers, causes = self._answers[model], self._causes.get(model, Counter())
        if self._ranked or answers < self.enough or causes.total() < self.nearly_all * answers:
            return None
        return (
            f"{_in_words(answers, causes)} Its score would say nothing, so it is not ranked; "
            "on: {mostly_empty: rank} ranks it"
        )

    def refusals(self) -> dict[str, str]:
        """Return the models that are not ranked, and why."""
        found = ((model, self.refusal(model)) for model in self._causes)
        return {model: reason for model, reason in found if reason is not None}

    def remarks(self) -> Iterator[str]:
        """Yield of each model with many answers that are none how many, and why."""
        for model, causes in self._causes.items():
            if causes.total() >= max(self.fewest, self.share * self._answers[model]):
                words = _in_words(self._answers[model], causes)
                yield Coded("warning/no-answers", f"{model}: {words}")


def _in_words(answers: int, causes: Counter[str]) -> str:
    shown = ", ".join(f"{cause} {count:,}" for cause, count in causes.most_common())
    advice = _ADVICE.get(causes.most_common(1)[0][0], "")
    advice = advice if advice.endswith("?") else f"{advice}."
    return f"{causes.total():,} of its {answers:,} answers hold no answer ({shown}): {advice}"
