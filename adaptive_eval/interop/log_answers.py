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
    >>> rescorer.score("44", "a cat", {})
    Traceback (most recent call last):
    ValueError: the scorer numeric cannot use the target: the target 'a cat' is not a number; use the scorer \
exact, or correct it
    """

    def __init__(self, choices: Choices) -> None:
        assert choices.scorer is not None
        self.kind = choices.scorer
        self._scorer: Scorer = build_scorer(choices.scorer, dict(choices.scorer_options))

    def score(self, text: str, target: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return what an answer's :class:`~adaptive_eval.interop.found.Found` is to say of its score."""
        options = fields.get("choices")
        choices = tuple(map(str, options)) if isinstance(options, list) else ()
        question = Question("", "", target, fields, choices)
        wrong = self._scorer.check_target(question)
        if wrong is not None:
            raise ValueError(f"the scorer {self.kind} cannot use the target: {wrong}")
        score = self._scorer.score(Completion(text, "stop"), question)
        if score.category is None:
            return {"missing": f"could not be scored: {score.reason}"}
        return {"score": float(score.category), "extracted": score.extracted, "reason": score.reason}
