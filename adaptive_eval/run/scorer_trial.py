"""A trial call of functions that score, before a model is asked: a function that fails always is refused."""

from adaptive_eval.build.assembly import PreparedRun
from adaptive_eval.errors import UserCodeError, last_line, user_code
from adaptive_eval.scoring.combined import ChecksScorer
from adaptive_eval.scoring.registry import WRONG
from adaptive_eval.scoring.scorer import Scorer, ScorerFailed
from adaptive_eval.scoring.user_function import FunctionScorer
from adaptive_eval.trial import Completion, Question

_OF_CODE = (NameError, AttributeError, TypeError, KeyError, ImportError, NotImplementedError)
_WHATEVER_THE_ANSWER = (*_OF_CODE, ScorerFailed)
"""Errors that are those of a function and not of an answer, if two answers raise the same one.

A ValueError or an IndexError may come from any answer without a number, or without a mark that is looked for.
"""


async def try_functions(built: PreparedRun) -> None:
    """Call each function that scores with the target as the answer, and if it fails with a wrong one too.

    Raises
    ------
    UserCodeError
        The function fails with both, in the same way, whatever the answer is.
    """
    for task in built.tasks:
        question = task.questions[0]
        for scorer in _functions(built.scorers[task.name]):
            if not question.target:
                continue
            words = await _failure(scorer, question.target, question)
            if words is not None and words == await _failure(scorer, WRONG, question):
                raise UserCodeError(
                    f"task {task.name}: the scorer fails, whatever the answer is: {words}; nothing was asked"
                )


def _functions(scorer: Scorer) -> list[FunctionScorer]:
    """Return the functions that a scorer calls in this process."""
    if isinstance(scorer, ChecksScorer):
        parts = [*scorer.scorers.values()]
    else:
        parts = [scorer]
    return [one for one in parts if isinstance(one, FunctionScorer)]


async def _failure(scorer: FunctionScorer, answer: str, question: Question) -> str | None:
    """Return how a function fails with an answer; None if it does not, or if the answer may be the cause."""
    try:
        with user_code():
            await scorer.grade(Completion(answer, "stop"), question)
    except _WHATEVER_THE_ANSWER as error:
        if isinstance(error, ScorerFailed):
            words = str(error)
        else:
            words = last_line(error)
        # "None" is a pattern that did not match, or a branch without a result.
        if "None" in words:
            return None
        return words
    except Exception:  # noqa: BLE001 - any function
        return None
    return None
