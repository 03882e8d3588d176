"""The scorers ``f1`` and ``rouge``: the overlap of the answer's words with the target's."""

import re
from abc import abstractmethod
from functools import lru_cache

from adaptive_eval.errors import library
from adaptive_eval.options.scorers import F1ScorerConfig, GradedScorerConfig, RougeScorerConfig
from adaptive_eval.scoring.scorer import Answer, AnswerScorer
from adaptive_eval.scoring.text import Extract, normalised
from adaptive_eval.scoring.workers import LIMIT, in_worker
from adaptive_eval.trial import Question, Signal

LONGEST = 20_000
"""Characters of an answer that are compared."""

# A word, or one character of a script that is written without spaces.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


class _OverlapScorer(GradedScorerConfig, AnswerScorer):
    """Scores the overlap of the answer's words with the target's; logged as the signal ``score``."""

    @abstractmethod
    def value(self, answer: str, target: str) -> float:
        """Return the score of a text, from 0 to 1."""

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        library("rouge_score", "the scorers f1 and rouge", "rouge-score")
        if len(question.target) > LONGEST:
            return f"the target has {len(question.target)} characters; at most {LONGEST} are compared"
        if _WORD.search(question.target):
            return None
        return "the target has no words"

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the answer's text, or None if it has no words."""
        part = text[:LONGEST]
        if _WORD.search(part):
            return Answer(part, "whole text", is_final=True)
        return None

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether the answer's score is high enough."""
        return self.value(answer.text, question.target) >= self.right_from

    def score_signal(self, answer: Answer | None, question: Question) -> dict[str, Signal]:
        """Return the score."""
        value = 0.0
        if answer is not None:
            value = round(self.value(answer.text, question.target), 6)
        return {"score": value}


class F1Scorer(F1ScorerConfig, _OverlapScorer):
    """Word-overlap F1 of the answer with the target; logged as the signal ``score``.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> question = Question("t", "q", "the quick brown fox")
    >>> F1Scorer().score(Completion("A quick brown dog", "stop"), question).signals["score"]
    0.5
    """

    def value(self, answer: str, target: str) -> float:
        """Return the score of a text, from 0 to 1."""
        return overlap("rouge1", target, answer)


class RougeScorer(RougeScorerConfig, _OverlapScorer):
    """ROUGE F-measure of the answer with the target; logged as the signal ``score``.

    Examples
    --------
    >>> RougeScorer().value("the fox is quick", "the quick fox")
    0.5714285714285715
    """

    def value(self, answer: str, target: str) -> float:
        """Return the score of a text, from 0 to 1; Undecided if it takes too long."""
        return _in_worker(self.measure, target, answer)


@lru_cache(maxsize=256)
def _in_worker(measure: str, target: str, answer: str) -> float:
    library = "rouge_score.rouge_scorer"
    return in_worker(overlap, measure, target, answer, limit=LIMIT, imports=library)


class _Words:
    """Splits any script into words; the library's tokenizer knows only a to z."""

    def tokenize(self, text: str) -> list[str]:
        return _WORD.findall(normalised(text, ignore_punctuation=False))


def overlap(measure: str, target: str, answer: str) -> float:
    """Return the F-measure of ``rouge1``, ``rouge2`` or ``rougeL``, by the library rouge-score.

    Examples
    --------
    >>> overlap("rouge1", "a b c d", "a b")
    0.6666666666666666
    """
    scorer = library("rouge_score.rouge_scorer", "the scorers f1 and rouge", "rouge-score")
    return float(scorer.RougeScorer([measure], tokenizer=_Words()).score(target, answer)[measure].fmeasure)
