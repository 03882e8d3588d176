"""The scorer ``checks``: several scorers of one answer, which together say whether it is right."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Self

from pydantic import PrivateAttr

from adaptive_eval.options.scorers import ChecksScorerConfig
from adaptive_eval.scoring.registry import Given, build_scorer, score_here
from adaptive_eval.scoring.scorer import (
    NOT_FOUND,
    AwaitedScorer,
    Scorer,
    grade_or_failure,
    graded,
    score_or_failure,
)
from adaptive_eval.trial import CHECK, Completion, Question, Score, Signal

_OF_THE_WHOLE = ("is_correct", "score")


class ChecksScorer(ChecksScorerConfig):
    """Has each part score an answer, and combines their scores; each is the signal ``check_NAME``.

    Every part scores every answer, and an answer that one part cannot score has no category, even if the
    others would decide: with ``all`` a part that fails would otherwise lose right answers alone, because a
    wrong one is wrong without it.

    Examples
    --------
    >>> parts = {"number": "numeric", "whole": {"kind": "exact", "extract": "whole"}}
    >>> found = ChecksScorer(parts=parts).score(Completion("It is 4.", "stop"), Question("t", "q", "4"))
    >>> found.category, found.signals["check_number"], found.signals["check_whole"], found.reason
    (0, True, False, 'number: right (last number); whole: wrong (whole text)')
    """

    _scorers: dict[str, Scorer] = PrivateAttr(default_factory=dict)

    def model_post_init(self, context: Any, /) -> None:
        """Make the parts."""
        self.taking({})

    def taking(self, given: Given) -> Self:
        """Return this scorer, whose parts may be functions that were `given` to ``evaluate``."""
        for name, part in self.parts.items():
            self._scorers[name] = build_scorer(part.kind, part.options(), given)
        return self

    @property
    def scorers(self) -> Mapping[str, Scorer]:
        """The parts by name."""
        return self._scorers

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).model_validate, (self.model_dump(by_alias=True),)

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable for a part, or None."""
        for name, part in self._scorers.items():
            problem = part.check_target(question)
            if problem is not None:
                return f"{problem} (check {name})"
        return None

    def score(self, completion: Completion, question: Question) -> Score:
        """Score one answer, outside an event loop."""
        found = {name: score_or_failure(one, completion, question) for name, one in self._scorers.items()}
        return self.together(found)

    def score_all(self, answers: Sequence[tuple[Completion, Question]]) -> list[Score]:
        """Score stored answers, outside an event loop."""
        columns = []
        for name, one in self._scorers.items():
            ((_, column),) = score_here(one, [(None, answers)], at_once=self.parts[name].at_once)
            columns.append(column)
        answered = zip(*columns, strict=True)
        return [self.together(dict(zip(self._scorers, scores, strict=True))) for scores in answered]

    async def grade(self, completion: Completion, question: Question) -> Score:
        """Score one answer; ScorerUnavailable if a judge or verifier cannot be asked now."""
        found = {}
        for name, one in self._scorers.items():
            if isinstance(one, AwaitedScorer):
                found[name] = await grade_or_failure(one, completion, question)
            else:
                found[name] = await asyncio.to_thread(score_or_failure, one, completion, question)
        return self.together(found)

    def together(self, scores: Mapping[str, Score]) -> Score:
        """Return the score of an answer from those of the parts."""
        signals: dict[str, Signal] = {}
        for score in scores.values():
            signals |= {key: value for key, value in score.signals.items() if key not in signals}
        for key in _OF_THE_WHOLE:
            signals.pop(key, None)
        known = {name: score for name, score in scores.items() if score.category is not None}
        signals |= {f"{CHECK}{name}": self._shown(name, score) for name, score in known.items()}
        extracted = next((one.extracted for one in scores.values() if one.extracted is not None), None)
        discarded = tuple(chain.from_iterable(score.discarded for score in scores.values()))
        for name, score in scores.items():
            if name not in known:
                return Score(None, extracted, signals, f"{score.reason} (check {name})", discarded)
        reason = "; ".join(f"{name}: {score.reason}" for name, score in scores.items())
        nothing = [score.reason.startswith(NOT_FOUND) for score in scores.values()]
        if any(nothing) if self.by == "all" else all(nothing):
            reason = f"{NOT_FOUND} ({reason})"
        shares = {name: self._share(name, signals[f"{CHECK}{name}"]) for name in scores}
        if self.by == "mean":
            weights = self.weights or dict.fromkeys(scores, 1.0)
            value = sum(weights[name] * share for name, share in shares.items()) / sum(weights.values())
        else:
            value = float({"all": all, "any": any}[self.by](shares.values()))
        whole = graded(self, value, extracted, reason)
        return replace(whole, signals={**signals, **whole.signals}, discarded=discarded)

    def _shown(self, name: str, score: Score) -> Signal:
        """Return a part's result: a number of its range, else whether the answer is right."""
        kind = "is_correct"
        if self.parts[name].numbers:
            kind = "score"
        return score.signals[kind]

    def _share(self, name: str, value: Any) -> float:
        """Return a part's result as a share of its range."""
        low, high = self.parts[name].numbers or (0.0, 1.0)
        return (float(value) - low) / (high - low)
