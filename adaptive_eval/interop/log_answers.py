"""Score the answers of a log again, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adaptive_eval.interop.found import Choices
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.scorer import Scorer
from adaptive_eval.trial import Completion, Question


class Rescorer:
    """A scorer of this package over the answers of a log.

    Examples
    --------
    >>> rescorer = Rescorer(Choices(scorer="numeric"))
    >>> rescorer.score("It is 44.", "44.0", {})["score"]
    1.0
    >>> rescorer.problem("a cat", {})
    "the scorer numeric cannot use the target: the target 'a cat' is not a number; use the scorer exact, or \
correct it"
    """

    def __init__(self, choices: Choices) -> None:
        assert choices.scorer is not None
        self.kind = choices.scorer
        self._scorer: Scorer = build_scorer(choices.scorer, dict(choices.scorer_options))

    def problem(self, target: str, fields: Mapping[str, Any]) -> str | None:
        """Return why a target cannot be scored against, or None."""
        wrong = self._scorer.check_target(_question(target, fields))
        return None if wrong is None else f"the scorer {self.kind} cannot use the target: {wrong}"

    def score(
        self, text: str, target: str, fields: Mapping[str, Any], finish_reason: str = "stop"
    ) -> dict[str, Any]:
        """Return what an answer's :class:`~adaptive_eval.interop.found.Found` is to say of its score."""
        score = self._scorer.score(Completion(text, finish_reason), _question(target, fields))
        if score.category is None:
            return {"missing": f"could not be scored: {score.reason}"}
        return {"score": float(score.category), "extracted": score.extracted, "reason": score.reason}


def _question(target: str, fields: Mapping[str, Any]) -> Question:
    found = fields.get("choices")
    choices = tuple(map(str, found)) if isinstance(found, list) else ()
    return Question("", "", target, fields, choices)
