"""From an answer to its category: the signals that need no scorer, a rubric, and the scoring of one task."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.scoring.scorer import NOT_FOUND, Scorer, score_or_failure
from adaptive_eval.trial import NO_ANSWER, NOTHING_FOUND, Completion, Question, Score, ScoreRange, Signal

if TYPE_CHECKING:
    from scorio.categorical import Schema, Thresholds


TOKEN_RATIO_UNIT = 32_768
"""Tokens to which ``token_ratio`` is relative (:data:`scorio.categorical.TOKEN_RATIO_UNIT`)."""

PROMPT_LOGPROBS = "prompt"
"""Key under which a completion's log-probabilities hold those of the prompt, one mapping a token."""


def attempt_signals(completion: Completion) -> dict[str, Signal]:
    """Return the signals of one answer that do not depend on the target.

    Examples
    --------
    >>> from adaptive_eval.trial import Usage
    >>> tokens = [{"token": "4", "logprob": -math.log(2)}]
    >>> answer = Completion("4", "stop", Usage(9, 8192), latency=0.5, logprobs={"content": tokens})
    >>> signals = attempt_signals(answer)
    >>> signals["token_ratio"], signals["repeated_pattern"], signals["completion_bpt"]
    (0.25, 0, 1.0)
    """
    signals: dict[str, Signal] = {
        "latency": completion.latency,
        "truncated": completion.cut_off,
    }
    if completion.finish_reason:
        signals["repeated_pattern"] = int(completion.finish_reason != "stop")
    if completion.no_answer is not None:
        signals[f"{NO_ANSWER}{completion.no_answer}"] = True
    usage = completion.usage
    if usage.total_tokens:
        signals["token_ratio"] = usage.completion_tokens / TOKEN_RATIO_UNIT
        signals["prompt_tokens"] = usage.prompt_tokens
        signals["completion_tokens"] = usage.completion_tokens
    logprobs = completion.logprobs
    if logprobs and isinstance(logprobs, Mapping):
        of_prompt = _of_prompt(logprobs.get(PROMPT_LOGPROBS))
        for name, values in (("completion_bpt", _of_tokens(logprobs)), ("prompt_bpt", of_prompt)):
            mean = _bits_per_token(values)
            if mean is not None:
                signals[name] = mean
    return signals


def _of_tokens(logprobs: Mapping[str, Any]) -> Iterable[Any]:
    """Yield the log-probability of each token of a chat or plain completion."""
    content = logprobs.get("content")
    plain = logprobs.get("token_logprobs")
    for entry in content if isinstance(content, list) else ():
        if isinstance(entry, Mapping):
            yield entry.get("logprob")
        else:
            yield None
    yield from plain if isinstance(plain, list) else ()


def _of_prompt(tokens: Any) -> Iterable[Any]:
    """Yield the log-probability of each prompt token, the first entry of its mapping."""
    for candidates in tokens if isinstance(tokens, list) else ():
        first = None
        if isinstance(candidates, Mapping):
            first = next(iter(candidates.values()), None)
        if isinstance(first, Mapping):
            yield first.get("logprob")


def _bits_per_token(logprobs: Iterable[Any]) -> float | None:
    """Return the mean negative log-probability in bits, or None without a finite value."""
    known = [
        float(value)
        for value in logprobs
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ]
    if known:
        return -math.fsum(known) / (len(known) * math.log(2.0))
    return None


class SignalMissing(Exception):
    """An answer lacks a signal on which its category depends; the message names it."""


@dataclass(frozen=True)
class Rubric:
    """Assigns answers to categories.

    Examples
    --------
    >>> Rubric().category({"is_correct": True})
    1
    >>> Rubric().category({"is_correct": True, "truncated": True})
    0
    >>> from scorio.categorical import get_schema
    >>> signals = {"is_correct": True, "has_box": False, "repeated_pattern": 0}
    >>> Rubric(get_schema("format-aware")).category(signals)
    3
    """

    schema: Schema | None = None  # the categories. Default: right (1) and wrong (0).
    # frozen values of the schema's thresholds
    thresholds: Mapping[str, float] = field(default_factory=dict)
    # whether an answer that was cut off at its token limit gets category 0, or the category that its
    # signals give as if it had ended by itself
    truncated: Literal["zero", "judged"] = "zero"
    # the range of the signal ``score`` where scores are numbers
    range: ScoreRange | None = None

    @property
    def open_thresholds(self) -> tuple[str, ...]:
        """Names of the thresholds without a value."""
        if self.schema is not None:
            rules = self.schema.threshold_rules
        else:
            rules = ()
        return tuple(rule.name for rule in rules if rule.name not in self.thresholds)

    @property
    def categories(self) -> tuple[str, ...]:
        """Names of the categories, 0 first; none if scores are numbers."""
        if self.range is not None:
            return ()
        if self.schema is None:
            return ("wrong", "right")
        return tuple(category.name for category in self.schema.categories)

    def with_thresholds(self, thresholds: Mapping[str, float]) -> Rubric:
        """Return this rubric with `thresholds` frozen."""
        if self.schema is None:
            return self
        from scorio.categorical import Thresholds

        frozen = thresholds if isinstance(thresholds, Thresholds) else Thresholds(thresholds)
        frozen.require(self.schema)
        return replace(self, thresholds=frozen)

    def observed(self, records: Sequence[Mapping[str, Signal]]) -> Thresholds:
        """Return the thresholds: frozen ones as they are, the others as quantiles of these answers."""
        from scorio.categorical import Thresholds

        if self.schema is None:
            return Thresholds()
        return Thresholds.observed(self._signals(records), self.schema, given=self.thresholds)

    def category(self, signals: Mapping[str, Signal]) -> int:
        """Return the category of one answer."""
        return self.assign([signals])[0]

    def assign(self, records: Sequence[Mapping[str, Signal]]) -> list[int]:
        """Return the category of each answer; 100,000 take about a second."""
        if not records:
            return []
        if self.schema is None or self.range is not None:
            return list(map(self._plain, records))
        try:
            found = self.schema.assign(self._signals(records), self.thresholds).tolist()
        except ValueError as error:
            raise SignalMissing(str(error)) from None
        categories = []
        for signals, category in zip(records, found, strict=True):
            if self._is_zero(signals):
                categories.append(0)
            else:
                categories.append(int(category))
        return categories

    def _is_zero(self, signals: Mapping[str, Signal]) -> bool:
        return self.truncated == "zero" and bool(signals.get("truncated"))

    def _plain(self, signals: Mapping[str, Signal]) -> int:
        """Return the category of an answer that needs no schema."""
        if self._is_zero(signals):
            return 0
        if self.range is None:
            return _right(signals.get("is_correct"))
        score = signals.get("score")
        step = None
        if isinstance(score, int | float):
            step = self.range.category(score)
        if step is None:
            raise SignalMissing(f"its score {score!r} is no number of the range {self.range}")
        return step

    def _signals(self, records: Sequence[Mapping[str, Signal]]) -> Any:
        from scorio.categorical import Signals

        assert self.schema is not None
        names = sorted(self.schema.signals | self.schema.optional_signals)
        if self.truncated == "judged":
            records = list(map(_without_pattern, records))
        if not any(record.get(name) is not None for record in records for name in names):
            raise ValueError(f"no answer has the signal {' or '.join(map(repr, names))}")
        return Signals.from_records(records, names)


def _right(value: Signal) -> int:
    """Return the category of an answer that is right or wrong."""
    if not isinstance(value, int | float):
        raise SignalMissing("nothing says whether it is right: the signal is_correct is missing")
    return int(value >= 0.5)


@dataclass(frozen=True)
class TaskScoring:
    """A scorer and a rubric."""

    scorer: Scorer  # extracts the answer and compares it with the target
    rubric: Rubric  # turns the signals into a category; its thresholds are frozen
    # causes for which an answer that is none counts as missing
    # (:attr:`~adaptive_eval.trial.Completion.no_answer`); of others it is scored as it is
    missing: Collection[str] = ()

    def score(self, completion: Completion, question: Question) -> Score:
        """Return the category of an answer, with all its signals."""
        without = self.not_scored(completion)
        if without is not None:
            return without
        return self.categorised(score_or_failure(self.scorer, completion, question), completion)

    def not_scored(self, completion: Completion) -> Score | None:
        """Return the score without a category of an answer that counts as missing; None for any other."""
        cause = completion.no_answer
        if cause is None or cause not in self.missing:
            return None
        return Score(None, None, attempt_signals(completion), f"no answer: {cause}")

    def categorised(self, score: Score, completion: Completion) -> Score:
        """Return the scorer's `score` with the rubric's category; a score without a category keeps none."""
        signals = {**attempt_signals(completion), **score.signals}
        if score.category is None:
            return replace(score, signals=signals)
        if score.reason.startswith(NOT_FOUND):
            signals[NOTHING_FOUND] = True
        try:
            category = self.rubric.category(signals)
        except SignalMissing as error:
            raise TransientEndpointError(f"the answer cannot be scored: {error}", kind="malformed") from None
        reason = score.reason
        if self.rubric.schema is not None:
            reason = f"{reason}: {self.rubric.categories[category]}"
        elif score.category and not category:
            reason = f"{reason}, truncated"
        return Score(category, score.extracted, signals, reason, score.discarded)


def _without_pattern(signals: Mapping[str, Signal]) -> Mapping[str, Signal]:
    """Return the signals of an answer; one that was cut off is not judged by its repetition."""
    if signals.get("truncated"):
        return {**signals, "repeated_pattern": 0}
    return signals
