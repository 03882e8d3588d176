"""Several answers of one trial, scored as one: all of them right, any of them, or the majority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from adaptive_eval.scoring.scorer import CUT_OFF, Scorer, score_or_failure
from adaptive_eval.trial import Completion, Question, Score

By: TypeAlias = Literal["all", "any", "majority"]


@dataclass(frozen=True, slots=True)
class TogetherScorer:
    """Scores each answer of a trial, then the trial.

    ``all`` is pass^k, ``any`` pass@k, ``majority`` maj@k: the most frequent extracted answer counts, and of
    equally frequent ones the first. Answers to one question are exchangeable, so the choice is a fair draw.

    Examples
    --------
    >>> from adaptive_eval.scoring.match import ExactScorer
    >>> answers = [{"text": text, "finish_reason": "stop"} for text in ("4", "5", "4")]
    >>> trial, question = Completion("4, 5, 4", "stop", calls=tuple(answers)), Question("t", "q", "4")
    >>> for by in ("all", "any", "majority"):
    ...     print(by, TogetherScorer(ExactScorer(), by).score(trial, question).category)
    all 0
    any 1
    majority 1
    """

    scorer: Scorer
    by: By

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        return self.scorer.check_target(question)

    def score(self, completion: Completion, question: Question) -> Score:
        """Score a trial; where the scorer fails on one of its answers, the trial has no category."""
        scores = [score_or_failure(self.scorer, answer, question) for answer in _answers(completion)]
        for score in scores:
            if score.category is None:
                return score
        right = [bool(score.category) and not score.signals.get("truncated") for score in scores]
        extracted = _most_frequent(scores)
        counts = {
            "all": all(right),
            "any": any(right),
            "majority": any(
                yes for yes, score in zip(right, scores, strict=True) if score.extracted == extracted
            ),
        }[self.by]
        return Score(
            category=int(counts),
            extracted=extracted,
            signals={"is_correct": counts, "truncated": False, "right_answers": sum(right)},
            reason=f"{sum(right)} of {len(right)} answers right",
        )


def _answers(completion: Completion) -> list[Completion]:
    names = ("text", "finish_reason", "reasoning", "tool_calls")
    return [
        Completion(**{name: call[name] for name in names if name in call}) for call in completion.calls
    ] or [completion]


def _most_frequent(scores: Sequence[Score]) -> str | None:
    """Return the most frequent extracted answer, the first of equals; None where nothing was extracted."""
    found = Counter(score.extracted for score in scores if score.extracted is not None)
    return found.most_common(1)[0][0] if found else None


def asked_times(count: int) -> Callable[..., Awaitable[Completion]]:
    """Return a solver that asks the same `count` times."""

    async def ask(
        model: Callable[..., Awaitable[Completion]], messages: Sequence[Mapping[str, Any]]
    ) -> Completion:
        answers = [await model(messages) for _ in range(count)]
        for answer in answers:
            if answer.no_answer is not None:  # the settings of `on` say how the trial counts
                return answer
        cut = [answer.finish_reason for answer in answers if answer.finish_reason in CUT_OFF]
        text = "\n\n".join(answer.text for answer in answers)
        return replace(answers[0], text=text, finish_reason=(*cut, answers[0].finish_reason)[0])

    return ask
