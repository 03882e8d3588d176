"""What every ranking returns, and the parts of its docstring that all rankings share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

import scorio.eval as metrics
from scorio._documented import completed
from scorio.rank._ties import Ranks, TieMethod, rank_scores

__all__ = ["Ranking", "documented", "fitted", "ranked"]

Ranking: TypeAlias = Ranks | tuple[Ranks, NDArray[np.float64]]
Function = TypeVar("Function", bound=Callable[..., Any])


def ranked(scores: NDArray[np.float64], method: TieMethod, return_scores: bool) -> Ranking:
    """Return the ranks of `scores`, with the scores themselves where `return_scores`."""
    ranks = rank_scores(scores, method)
    return (ranks, scores) if return_scores else ranks


def fitted(
    theta: NDArray[np.float64], scores: NDArray[np.float64], method: TieMethod, return_scores: bool
) -> Ranking:
    """Return the ranks of the abilities of an iterative fit, tied up to its accuracy, and the scores."""
    ranks = rank_scores(theta, method, 1e-6)
    return (ranks, scores) if return_scores else ranks


PARAMETERS = {
    "R": """array_like of int, shape (L, M, N) or (L, M), or None
    Outcomes 0 or 1 of L models on M questions in N trials; (L, M) means N = 1. None with
    `counts`.""",
    "k": """int
    Trials drawn without replacement, at least 1 and at most any question's number of trials.""",
    "max_iter": """int
    Largest number of iterations; ValueError where the fit has not converged by then.""",
    "w": """array_like, shape (C + 1,), optional
    Rewards of the categories, in any order and of any sign; default [0, 1] for outcomes 0 and 1. With `w`
    the trials in `R` are categories 0..C.""",
    "prior": """float or object with a ``penalty(theta)`` method
    Variance of a normal prior around 0 of the centred log-strengths, or a prior such as
    :class:`GaussianPrior`, :class:`LaplacePrior`, :class:`CauchyPrior` or :class:`EmpiricalPrior`.""",
    "tie_policy": """{'half', 'ignore'}
    A question on which two models are right as often counts half for each, or for none.""",
    "return_item_params": """bool
    Also return a dict of the questions' parameters (and the scores).""",
    "method": """{'competition', 'competition_max', 'dense', 'avg', 'ordinal'}
    Ranks of tied models (:func:`rank_scores`).""",
    "return_scores": """bool
    Also return the scores.""",
    "counts": """array_like of int, shape (L, M, C + 1), optional
    Trials in each category (wrong and correct ones: C = 1), in place of `R`; questions may differ in their
    number of trials.""",
    "missing": """number or array_like of bool, optional
    A value in `R`, such as −1, or a mask of its shape: trials that were not made.""",
    "question_weights": """array_like, shape (M,), optional
    At least 0, with sum 1; default 1/M each.""",
}
"""Parameters that mean the same in several rankings."""

_RESULT = """Returns
-------
ranks : numpy.ndarray, shape (L,)
    1 is best; int64, for ``method="avg"`` float64.
scores : numpy.ndarray, shape (L,)
    With `return_scores` only{scores}.

Raises
------
ValueError
    If an argument is malformed or out of range; the message names it, the value and what is allowed."""


def documented(function: Function) -> Function:
    """Complete a ranking's docstring by the shared parameters, the result and the errors."""
    name = function.__name__
    scores = f": values of :func:`scorio.eval.{name}`" if hasattr(metrics, name) else ""
    return completed(function, PARAMETERS, _RESULT.format(scores=scores))
