"""The results of rankings."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, TypeAlias, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._named import Named, read_labels
from scorio.arrays import Floats
from scorio.eval._inputs import Missing
from scorio.rank._ties import Ranks, TieMethod, rank_scores


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
        The questions' parameters, if a ranking was asked for them.
    deviations : ndarray, shape (L,), optional
        The scores' deviations, if a ranking was asked for them.

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
    scores: Floats
    item_params: Mapping[str, Any] | None = None
    deviations: Floats | None = None

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

    def __repr__(self) -> str:
        """Say the order of the models in a line."""
        return f"<NamedRanking by {self.ranking}: {', '.join(self.rows()['model'])}>"

    def __str__(self) -> str:
        """Show ranks, models and scores, the best first."""
        width = max(len(name) for name in (*self.names, "model"))
        lines = [f"rank  {'model':<{width}}  {self.ranking:>6}"]
        for rank, name, score in zip(*self.rows().values(), strict=True):
            lines.append(f"{rank:>4}  {name:<{width}}  {score:6.4f}")
        return "\n".join(lines)


class ScoredRanks(NamedTuple):
    """Ranks and the scores that they follow from, shape (L,) each; a pair that prints like one."""

    ranks: Ranks
    scores: Floats

    def __repr__(self) -> str:
        return tuple.__repr__(self)


class ScoredItems(NamedTuple):
    """Ranks, scores and the questions' parameters by name."""

    ranks: Ranks
    scores: Floats
    item_params: dict[str, Floats]

    def __repr__(self) -> str:
        return tuple.__repr__(self)


class Rated(NamedTuple):
    """Ranks, ratings and the ratings' deviations, shape (L,) each."""

    ranks: Ranks
    scores: Floats
    deviations: Floats

    def __repr__(self) -> str:
        return tuple.__repr__(self)


Plain: TypeAlias = Ranks | ScoredRanks
Ranking: TypeAlias = Plain | ScoredItems | Rated | NamedRanking
ByName: TypeAlias = Mapping[str, ArrayLike]
"""Outcomes by model's name, of which the ranking is a :class:`NamedRanking`."""


class Marked(TypedDict, total=False):
    """What may be given by keyword with outcomes."""

    missing: Missing


class Counts(Marked, total=False):
    """The same of a metric."""

    counts: ArrayLike | None
    question_weights: ArrayLike | None


class Rewarded(Counts, total=False):
    """The same of `avg`."""

    w: ArrayLike | None


class Prepared(Counts, total=False):
    """The same of `bayes`."""

    prior_counts: ArrayLike | None


def ranked(scores: Floats, method: TieMethod, return_scores: bool, scale: float | None = None) -> Plain:
    """Return the ranks of `scores`, made from numbers of size `scale`, and the scores if `return_scores`."""
    ranks = rank_scores(scores, method, scale=scale)
    if return_scores:
        return ScoredRanks(ranks, scores)
    return ranks


def fitted(theta: Floats, scores: Floats, method: TieMethod, return_scores: bool) -> Plain:
    """Return the ranks of the abilities of an iterative fit, tied up to its accuracy, and the scores."""
    ranks = rank_scores(theta, method, 1e-6, scale=max(1.0, float(np.abs(theta).max())))
    if return_scores:
        return ScoredRanks(ranks, scores)
    return ranks


Function = TypeVar("Function", bound=Callable[..., Any])


def keeps_names(function: Function) -> Function:
    """Let a ranking keep the names of models."""
    name = function.__name__
    signature = inspect.signature(function)

    @wraps(function)
    def ranking(R: Any, *args: Any, **options: Any) -> Any:
        names, tensor = read_labels(R)
        if names is None:
            return function(tensor, *args, **options)
        given = signature.bind(tensor, *args, **options)
        given.arguments["return_scores"] = True
        found = function(*given.args, **given.kwargs)
        return NamedRanking(name, names, **found._asdict())

    return cast(Function, ranking)
