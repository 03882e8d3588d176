"""The result of every ranking, and the parts of the docstring that all rankings share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, Protocol, TypeAlias, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

import scorio.eval as metrics
from scorio._documented import completed
from scorio._labels import read_labels
from scorio._named import Named
from scorio.rank._ties import Ranks, TieMethod, rank_scores


@dataclass(frozen=True, slots=True, eq=False)
class NamedRanking(Named):
    """Ranks of models whose outcomes came with names; as an array it is `ranks`.

    Parameters
    ----------
    ranking : str
        Name of the ranking, such as ``avg``.
    names : tuple of str
        The models, in the order of the outcomes.
    ranks, scores : ndarray, shape (L,)
        1 is best; the scores that they follow from.
    item_params : dict, optional
        The questions' parameters, where a ranking was asked for them.

    Examples
    --------
    >>> from scorio import rank
    >>> print(rank.avg({"old": [[1, 0, 0], [1, 1, 0]], "new": [[1, 1, 1], [1, 1, 0]]}))
    rank  model     avg
       1  new    0.8333
       2  old    0.5000
    """

    ranking: str
    names: tuple[str, ...]
    ranks: Ranks
    scores: NDArray[np.float64]
    item_params: Mapping[str, Any] | None = None

    def rows(self) -> Mapping[str, Any]:
        """Return one row a model, the best first."""
        order = np.argsort(self.ranks, kind="stable")
        return {
            "rank": self.ranks[order],
            "model": [self.names[model] for model in order],
            self.ranking: self.scores[order],
        }

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the ranks."""
        return np.array(self.ranks, dtype=dtype)

    def __str__(self) -> str:
        """Show ranks, models and scores, the best first."""
        width = max(len(name) for name in (*self.names, "model"))
        lines = [f"rank  {'model':<{width}}  {self.ranking:>6}"]
        for rank, name, score in zip(*self.rows().values(), strict=True):
            lines.append(f"{rank:>4}  {name:<{width}}  {score:6.4f}")
        return "\n".join(lines)


Plain: TypeAlias = Ranks | tuple[Ranks, NDArray[np.float64]]
Ranking: TypeAlias = Plain | NamedRanking
Floats: TypeAlias = NDArray[np.float64]


class RankingFunction(Protocol):
    """A ranking: what it returns follows from the kind of outcomes and from two flags."""

    __name__: str

    @overload
    def __call__(self, R: Mapping[str, ArrayLike], *args: Any, **options: Any) -> NamedRanking: ...

    @overload
    def __call__(
        self, R: ArrayLike | None, *args: Any, return_item_params: Literal[True], **options: Any
    ) -> tuple[Ranks, Floats, dict[str, Floats]]: ...

    @overload
    def __call__(
        self,
        R: ArrayLike | None,
        *args: Any,
        return_scores: Literal[True],
        return_item_params: Literal[False] = False,
        **options: Any,
    ) -> tuple[Ranks, Floats]: ...

    @overload
    def __call__(
        self,
        R: ArrayLike | None,
        k: float = ...,
        /,
        *,
        return_scores: Literal[False] = False,
        return_item_params: Literal[False] = False,
        **options: Any,
    ) -> Ranks: ...

    @overload
    def __call__(self, R: ArrayLike | None, *args: Any, **options: Any) -> Any: ...


def ranked(
    scores: NDArray[np.float64], method: TieMethod, return_scores: bool, scale: float | None = None
) -> Plain:
    """Return the ranks of `scores`, made from numbers of size `scale`, and the scores if `return_scores`."""
    ranks = rank_scores(scores, method, scale=scale)
    return (ranks, scores) if return_scores else ranks


def fitted(
    theta: NDArray[np.float64], scores: NDArray[np.float64], method: TieMethod, return_scores: bool
) -> Plain:
    """Return the ranks of the abilities of an iterative fit, tied up to its accuracy, and the scores."""
    ranks = rank_scores(theta, method, 1e-6, scale=max(1.0, float(np.abs(theta).max())))
    return (ranks, scores) if return_scores else ranks


PARAMETERS = {
    "R": """array_like of int, shape (L, M, N) or (L, M), mapping of names to matrices (M, N), or None
    Outcomes 0 or 1 of L models on M questions in N trials; (L, M) means N = 1. None with
    `counts`.""",
    "k": """int
    Trials drawn without replacement, at least 1 and at most any question's number of trials.""",
    "max_iter": """int
    Largest number of iterations; RuntimeError where the fit has not converged by then.""",
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

For a mapping, or labels of xarray or pandas, a :class:`NamedRanking` of names, ranks and scores.

Raises
------
ValueError
    If an argument is malformed or out of range; the message names it, the value and what is allowed."""


def documented(function: Callable[..., Any]) -> RankingFunction:
    """Complete a ranking's docstring by what rankings share, and let it keep the names of models."""
    name = function.__name__
    scores = f": values of :func:`scorio.eval.{name}`" if hasattr(metrics, name) else ""
    completed(function, PARAMETERS, _RESULT.format(scores=scores))
    signature = inspect.signature(function)

    @wraps(function)
    def ranking(R: Any, *args: Any, **options: Any) -> Any:
        names, tensor = read_labels(R)
        if names is None:
            return function(R, *args, **options)
        given = signature.bind(tensor, *args, **options)
        given.arguments["return_scores"] = True
        ranks, values, *items = function(*given.args, **given.kwargs)
        return NamedRanking(name, names, ranks, values, *items)

    return cast(RankingFunction, ranking)
