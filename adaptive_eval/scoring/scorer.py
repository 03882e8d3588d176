"""The base of all scorers: find the answer, compare it with the target, score several answers together."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from adaptive_eval.errors import EndpointError, last_line, user_code
from adaptive_eval.options.scorers import AnswerScorerConfig, GradedScorerConfig
from adaptive_eval.scoring.text import Extract, answer_part, last_boxed, storable
from adaptive_eval.trial import Completion, Question, Score, Signal

NOT_FOUND = "no answer found"
"""The reason of an answer in which a scorer finds no result."""


class Ambiguous(Exception):
    """An answer names several results, which the message says: that is no answer."""


class Undecided(Exception):
    """An answer is too large to be compared; the message says why. The answer counts as wrong."""


class ScorerFailed(Exception):
    """The scorer itself failed, or gave no score; the message says how. The answer gets no category."""


@runtime_checkable
class Scorer(Protocol):
    """Turns a completion into a score."""

    def score(self, completion: Completion, question: Question) -> Score:
        """Return the score of `completion` as an answer to `question`.

        Whatever it raises is a failure of the scorer: the answer gets no category.
        """

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable for this scorer, or None."""


def score_or_failure(scorer: Scorer, completion: Completion, question: Question) -> Score:
    """Return the scorer's score; if the scorer fails, one without a category that says how."""
    try:
        with user_code():
            return scorer.score(completion, question)
    except EndpointError:  # it asks others, and can be asked again
        raise
    except Exception as error:  # noqa: BLE001 - any scorer
        return failed_score(error)


@runtime_checkable
class AwaitedScorer(Scorer, Protocol):
    """A scorer that waits for others, and is awaited in the event loop of the run."""

    async def grade(self, completion: Completion, question: Question) -> Score:
        """Return the score of `completion` as an answer to `question`."""


async def grade_or_failure(scorer: AwaitedScorer, completion: Completion, question: Question) -> Score:
    """Return the score that is awaited; if the scorer fails, one without a category that says how."""
    try:
        with user_code():
            return await scorer.grade(completion, question)
    except EndpointError:
        raise
    except Exception as error:  # noqa: BLE001 - any scorer
        return failed_score(error)


def failed_score(error: Exception) -> Score:
    """Return the score of an answer whose scorer has failed."""
    if isinstance(error, ScorerFailed):
        words = str(error)
    else:
        words = last_line(error)
    return Score(None, None, {}, storable(f"the scorer failed: {words}"))


def graded(scorer: GradedScorerConfig, score: float, extracted: str | None, words: str = "") -> Score:
    """Return the score of an answer that got a number; `words` say why, by default what it counts as.

    Examples
    --------
    >>> graded(GradedScorerConfig(), 0.37, None).reason
    'wrong'
    >>> graded(GradedScorerConfig(range=(1.0, 10.0)), 0.37, None)
    Traceback (most recent call last):
    adaptive_eval.scoring.scorer.ScorerFailed: 0.37 is not a score from 1 to 10
    """
    low, high = scorer.range or (0.0, 1.0)
    if not low <= score <= high:
        raise ScorerFailed(f"{score:g} is not a score from {low:g} to {high:g}")
    if extracted is not None:
        extracted = storable(extracted)
    if scorer.range is not None:
        return Score(0, extracted, {"score": score}, storable(words) or f"{score:g}")
    right = score >= scorer.right_from
    words = storable(words) or ("right" if right else "wrong")
    return Score(int(right), extracted, {"score": score, "is_correct": right}, words)


def likeliest_tokens(logprobs: Any) -> list[tuple[str, float]]:
    """Return the likeliest first tokens of a reply with their log-probabilities.

    Examples
    --------
    >>> likeliest_tokens({"content": [{"top_logprobs": [{"token": " A", "logprob": -0.5}]}]})
    [(' A', -0.5)]
    >>> likeliest_tokens({"top_logprobs": [{" A": -0.5}]})
    [(' A', -0.5)]
    """
    known = logprobs
    if not isinstance(logprobs, dict):
        known = {}
    of_chat, of_text = (next(iter(known.get(name) or ()), None) for name in ("content", "top_logprobs"))
    listed = None
    if isinstance(of_chat, dict):
        listed = of_chat.get("top_logprobs")
    if isinstance(of_text, dict):
        listed = [{"token": token, "logprob": value} for token, value in of_text.items()]
    found = []
    for one in listed if isinstance(listed, list) else ():
        token, logprob = (one.get("token"), one.get("logprob")) if isinstance(one, dict) else (None, None)
        if isinstance(token, str) and isinstance(logprob, int | float):
            found.append((token, float(logprob)))
    return found


def form_signals(text: str, completion: Completion) -> dict[str, Signal]:
    """Return what an answer's form says: whether its text has a box, and whether it is cut off."""
    return {"has_box": last_boxed(text) is not None, "truncated": completion.cut_off}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as a scorer found it."""

    text: str  # the answer
    how: str  # where it was found, for the score's reason: ``boxed``, ``stated``, ``last number``, …
    is_final: bool  # false if a text cut off here may have gone on to another answer


class AnswerScorer(AnswerScorerConfig, ABC):
    """Compares one extracted answer with the target: category 1 if right, else 0.

    A scorer is its section of the config, with what it does.

    An answer cut off at its token limit gets category 0 and the reason ``truncated``, unless its result comes
    before the cut (a closed box, a stated answer that ends before it). The rubric may make it 0 all the same.
    """

    @abstractmethod
    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the answer in `text`, whose last box is `box`, or None; raise Ambiguous for several."""

    @abstractmethod
    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether `answer` is the target; raise :class:`Undecided` if it cannot be told."""

    def score_signal(self, answer: Answer | None, question: Question) -> dict[str, Signal]:
        """Return the scorer's further signals; none by default."""
        return {}

    @abstractmethod
    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable for this scorer, or None."""

    def score(self, completion: Completion, question: Question) -> Score:
        """Score one answer."""
        text = self._part(completion.text)
        box = last_boxed(text)
        truncated = completion.cut_off
        right = False
        reason = NOT_FOUND
        if truncated:
            reason = "truncated"
        answer: Answer | None = None
        try:
            answer = self.find(text, box, question)
        except Ambiguous as several:
            reason = f"{reason}: {storable(str(several))}"
        if truncated and answer is not None and not answer.is_final:
            answer = None
        own = self.score_signal(None, question)
        if answer is not None:
            try:
                right = self.is_right(answer, question)
                own = self.score_signal(answer, question)
                reason = f"{'right' if right else 'wrong'} ({answer.how})"
            except Undecided as error:
                reason = f"undecided ({answer.how}): {storable(str(error))}"
        extracted = None
        if answer is not None:
            extracted = storable(answer.text)
        return Score(
            category=int(right),
            extracted=extracted,
            signals={"is_correct": right, "has_box": box is not None, "truncated": truncated, **own},
            reason=reason,
        )

    def _part(self, text: str) -> str:
        """Return the part of a text that may hold the answer; without the marker there is none."""
        part = answer_part(text, strip_reasoning=self.strip_reasoning)
        if self.marker is None:
            return part
        if self.marker not in part:
            return ""
        after = part.rpartition(self.marker)[2]
        if self.marker[:1] == "<" and self.marker[-1:] == ">":  # a tag: up to the one that closes it
            after = after.partition(f"</{self.marker[1:]}")[0]
        return after.strip()


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
        """Score a trial; if the scorer fails on one of its answers, the trial has no category."""
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
    found = []
    for call in completion.calls:
        names = call.keys() & {"text", "finish_reason", "reasoning", "tool_calls"}
        found.append(Completion(**{name: call[name] for name in names}))
    return found or [completion]


def _most_frequent(scores: Sequence[Score]) -> str | None:
    """Return the most frequent extracted answer, the first of equals; None if nothing was extracted."""
    found = Counter(score.extracted for score in scores if score.extracted is not None)
    if found:
        return found.most_common(1)[0][0]
    return None


def asked_times(count: int, by: By, missing: Collection[str]) -> Callable[..., Awaitable[Completion]]:
    """Return a solver that asks the same `count` times.

    One answer that counts as `missing` loses the trial. Of other answers that are none or cut off, the trial
    is one if so many are that the right answers of the others could not make it right.
    """
    enough = {"all": 1, "majority": count // 2 + 1, "any": count}[by]

    async def ask(
        model: Callable[..., Awaitable[Completion]], messages: Sequence[Mapping[str, Any]]
    ) -> Completion:
        answers = [await model(messages) for _ in range(count)]
        none = [answer for answer in answers if answer.no_answer is not None]
        lost = [answer for answer in none if answer.no_answer in missing]
        if lost or len(none) >= enough:
            return (lost or none)[0]
        given = [answer for answer in answers if answer.no_answer is None]
        cut = [answer for answer in answers if answer.cut_off]
        whole = [answer for answer in given if answer not in cut]
        shown = (cut if len(cut) >= enough else whole or given)[0]
        return replace(shown, text="\n\n".join(answer.text for answer in answers))

    return ask
