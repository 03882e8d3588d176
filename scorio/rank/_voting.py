"""Rankings by voting: every question ranks the models by how often they are right."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import one_of, positive
from scorio._named import Outcomes
from scorio.arrays import Bools, Floats, Ints
from scorio.eval._inputs import read_outcomes
from scorio.rank._ranked import ByName, NamedRanking, Ranking, ScoredRanks, keeps_names, ranked
from scorio.rank._ties import Ranks, TieMethod, rank_scores

TiePolicy = Literal["half", "ignore"]
Strength = Literal["margin", "winning_votes"]

_SECONDS = 60.0
"""Of one integer program by default."""
_MOST_MODELS = 25
"""Of a tie-aware Kemeny ranking by default: 13 seconds (20 models: 4)."""


def preferences(R: Outcomes, tie_policy: str = "ignore") -> Floats:
    """Return on how many questions model i is right more often than model j, shape (L, L)."""
    one_of("tie_policy", tie_policy, get_args(TiePolicy))
    right = _right(R)
    above = np.array([(row > right).sum(axis=1) for row in right], dtype=np.float64)
    if tie_policy == "half":
        above = 0.5 * (right.shape[1] + above - above.T)
        np.fill_diagonal(above, 0.0)
    return above


def _right(R: Outcomes) -> Ints:
    return np.asarray(read_outcomes(R).sum(axis=2, dtype=np.int64))


@overload
def borda(R: ByName, method: TieMethod = ..., return_scores: bool = ...) -> NamedRanking: ...


@overload
def borda(R: ArrayLike, method: TieMethod = ..., *, return_scores: Literal[True]) -> ScoredRanks: ...


@overload
def borda(R: ArrayLike, method: TieMethod = ..., return_scores: Literal[False] = ...) -> Ranks: ...


@overload
def borda(R: ArrayLike, method: TieMethod = ..., return_scores: bool = ...) -> Ranks | ScoredRanks: ...


@keeps_names
def borda(R: Outcomes, method: TieMethod = "competition", return_scores: bool = False) -> Ranking:
    """Rank models by Borda count [1]_: a question gives L − rank points, the mean of them to tied models.

    Cost: O(ML log L).

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] de Borda (1781). Mémoire sur les élections au scrutin; Brandt et al. (2016). Handbook of
       Computational Social Choice.

    Examples
    --------
    >>> R = [[[1, 1, 1], [1, 0, 0]], [[1, 1, 0], [0, 1, 0]], [[0, 0, 0], [1, 1, 1]]]
    >>> borda(R, return_scores=True)
    (array([1, 3, 2]), array([2.5, 1.5, 2. ]))
    """
    right = _right(R)
    return ranked((len(right) - rank_scores(right.T, "avg")).sum(axis=0), method, return_scores)


@overload
def copeland(R: ByName, method: TieMethod = ..., return_scores: bool = ...) -> NamedRanking: ...


@overload
def copeland(R: ArrayLike, method: TieMethod = ..., *, return_scores: Literal[True]) -> ScoredRanks: ...


@overload
def copeland(R: ArrayLike, method: TieMethod = ..., return_scores: Literal[False] = ...) -> Ranks: ...


@overload
def copeland(R: ArrayLike, method: TieMethod = ..., return_scores: bool = ...) -> Ranks | ScoredRanks: ...


@keeps_names
def copeland(R: Outcomes, method: TieMethod = "competition", return_scores: bool = False) -> Ranking:
    """Rank models by Copeland's rule [1]_: won minus lost pairs, a pair going to the majority of questions.

    Cost: O(L²M).

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Copeland (1951). A reasonable social welfare function. University of Michigan.

    Examples
    --------
    >>> copeland([[[1, 1], [1, 0]], [[1, 0], [1, 0]], [[0, 0], [0, 0]]], return_scores=True)
    (array([1, 2, 3]), array([ 2.,  0., -2.]))
    """
    above = preferences(R)
    return ranked(np.sign(above - above.T).sum(axis=1), method, return_scores)


@overload
def win_rate(R: ByName, method: TieMethod = ..., return_scores: bool = ...) -> NamedRanking: ...


@overload
def win_rate(R: ArrayLike, method: TieMethod = ..., *, return_scores: Literal[True]) -> ScoredRanks: ...


@overload
def win_rate(R: ArrayLike, method: TieMethod = ..., return_scores: Literal[False] = ...) -> Ranks: ...


@overload
def win_rate(R: ArrayLike, method: TieMethod = ..., return_scores: bool = ...) -> Ranks | ScoredRanks: ...


@keeps_names
def win_rate(R: Outcomes, method: TieMethod = "competition", return_scores: bool = False) -> Ranking:
    """Rank models by their share of the decided comparisons, over all questions and opponents.

    A model without a decided comparison has 0.5. Cost: O(L²M).

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> win_rate([[[1, 1], [1, 0]], [[1, 0], [1, 0]], [[0, 0], [0, 0]]], return_scores=True)
    (array([1, 2, 3]), array([1.        , 0.66666667, 0.        ]))
    """
    above = preferences(R)
    won = above.sum(axis=1)
    decided = (above + above.T).sum(axis=1)
    scores = np.divide(won, decided, out=np.full(len(won), 0.5), where=decided > 0)
    return ranked(scores, method, return_scores)


@overload
def schulze(
    R: ByName, tie_policy: TiePolicy = ..., method: TieMethod = ..., return_scores: bool = ...
) -> NamedRanking: ...


@overload
def schulze(
    R: ArrayLike, tie_policy: TiePolicy = ..., method: TieMethod = ..., *, return_scores: Literal[True]
) -> ScoredRanks: ...


@overload
def schulze(
    R: ArrayLike, tie_policy: TiePolicy = ..., method: TieMethod = ..., return_scores: Literal[False] = ...
) -> Ranks: ...


@overload
def schulze(
    R: ArrayLike, tie_policy: TiePolicy = ..., method: TieMethod = ..., return_scores: bool = ...
) -> Ranks | ScoredRanks: ...


@keeps_names
def schulze(
    R: Outcomes,
    tie_policy: TiePolicy = "half",
    method: TieMethod = "competition",
    return_scores: bool = False,
) -> Ranking:
    """Rank models by Schulze's method [1]_: the stronger of the strongest paths of majorities decides a pair.

    Scores are levels of the resulting order, L for models that none beats. Cost: O(L³ + L²M).

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.
    tie_policy : {'half', 'ignore'}
        A question on which two models are right as often counts half for each, or for none.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Schulze (2011). A new monotonic, clone-independent, reversal symmetric, and Condorcet-consistent
       single-winner election method. Social Choice and Welfare 36, 267-303.

    Examples
    --------
    >>> schulze([[[1, 1], [1, 0]], [[1, 0], [1, 0]], [[0, 0], [0, 0]]], return_scores=True)
    (array([1, 2, 3]), array([3., 2., 1.]))
    """
    above = preferences(R, tie_policy)
    paths = np.where(above > above.T, above, 0.0)
    for middle in range(len(paths)):
        paths = np.maximum(paths, np.minimum(paths[:, middle, None], paths[middle]))
    np.fill_diagonal(paths, 0.0)
    return ranked(_levels(paths > paths.T), method, return_scores)


@overload
def ranked_pairs(
    R: ByName,
    strength: Strength = ...,
    tie_policy: TiePolicy = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
) -> NamedRanking: ...


@overload
def ranked_pairs(
    R: ArrayLike,
    strength: Strength = ...,
    tie_policy: TiePolicy = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
) -> ScoredRanks: ...


@overload
def ranked_pairs(
    R: ArrayLike,
    strength: Strength = ...,
    tie_policy: TiePolicy = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
) -> Ranks: ...


@overload
def ranked_pairs(
    R: ArrayLike,
    strength: Strength = ...,
    tie_policy: TiePolicy = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
) -> Ranks | ScoredRanks: ...


@keeps_names
def ranked_pairs(
    R: Outcomes,
    strength: Strength = "margin",
    tie_policy: TiePolicy = "half",
    method: TieMethod = "competition",
    return_scores: bool = False,
) -> Ranking:
    """Rank models by Tideman's ranked pairs [1]_: the strongest majorities count first.

    A majority is left out if stronger ones already decide its pair the other way. Of equally strong ones
    those that contradict each other are all left out, so that the order of the models decides nothing. Scores
    are levels of the resulting order, L for models that none beats. Cost: O(L⁵ + L²M) at most.

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.
    strength : {'margin', 'winning_votes'}
        Strength of a majority: votes for it minus votes against it, or votes for it. Of equally strong ones
        that with more votes for it comes first.
    tie_policy
        As in :func:`schulze`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Tideman (1987). Independence of clones as a criterion for voting rules. Social Choice and
       Welfare 4, 185-206.

    Examples
    --------
    >>> ranked_pairs([[[1, 1], [1, 0]], [[1, 0], [1, 0]], [[0, 0], [0, 0]]], return_scores=True)
    (array([1, 2, 3]), array([3., 2., 1.]))
    """
    one_of("strength", strength, get_args(Strength))
    above = preferences(R, tie_policy)
    margin = above - above.T
    won = margin > 0.0
    first = above
    if strength == "margin":
        first = margin
    reaches = np.zeros(won.shape, dtype=np.bool_)
    strengths = sorted(set(zip(first[won].tolist(), above[won].tolist(), strict=True)), reverse=True)
    for strongest, votes in strengths:
        equal = won & (first == strongest) & (above == votes) & ~reaches.T
        if not equal.any():
            continue
        together = _reach(reaches | equal)
        sound = equal & ~together.T
        if np.array_equal(sound, equal):
            reaches = together
        else:
            reaches = _reach(reaches | sound)
    return ranked(_levels(reaches), method, return_scores)


def _reach(above: Bools) -> Bools:
    """Return which models are above which others, directly or by way of others."""
    reaches = above
    for middle in range(len(above)):
        reaches = reaches | (reaches[:, middle, None] & reaches[middle])
    return reaches


@overload
def kemeny_young(
    R: ByName,
    tie_policy: TiePolicy = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    time_limit: float | None = ...,
    tie_aware: bool = ...,
) -> NamedRanking: ...


@overload
def kemeny_young(
    R: ArrayLike,
    tie_policy: TiePolicy = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    time_limit: float | None = ...,
    tie_aware: bool = ...,
) -> ScoredRanks: ...


@overload
def kemeny_young(
    R: ArrayLike,
    tie_policy: TiePolicy = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    time_limit: float | None = ...,
    tie_aware: bool = ...,
) -> Ranks: ...


@overload
def kemeny_young(
    R: ArrayLike,
    tie_policy: TiePolicy = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    time_limit: float | None = ...,
    tie_aware: bool = ...,
) -> Ranks | ScoredRanks: ...


@keeps_names
def kemeny_young(
    R: Outcomes,
    tie_policy: TiePolicy = "half",
    method: TieMethod = "competition",
    return_scores: bool = False,
    time_limit: float | None = None,
    tie_aware: bool = True,
) -> Ranking:
    """Rank models by the Kemeny-Young method [1]_: the order that agrees with most pairs of votes.

    Found as a linear ordering problem by integer programming, NP-hard in general; some 20 models take
    seconds. Scores are levels of the order.

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.
    time_limit : float, optional
        Seconds for one integer program; RuntimeError if the best order is not proven by then. Default: 60,
        and ValueError for more than 25 models with `tie_aware`, whose programs together take minutes.
    tie_aware : bool
        Tie models whose order differs among the best orders, at the cost of a program for each pair; with
        False one of the best orders is returned.
    tie_policy
        As in :func:`schulze`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Kemeny (1959). Mathematics without numbers. Daedalus 88; Young (1977). Extending Condorcet's rule.
       Journal of Economic Theory 16.

    Examples
    --------
    >>> kemeny_young([[[1, 1], [1, 0]], [[1, 0], [1, 0]], [[0, 0], [0, 0]]])
    array([1, 2, 3])
    """
    limit = _SECONDS
    if time_limit is not None:
        limit = positive("time_limit", time_limit)
    above = preferences(R, tie_policy)
    models = len(above)
    if tie_aware and time_limit is None and models > _MOST_MODELS:
        raise ValueError(
            f"R must have at most {_MOST_MODELS} models, or time_limit must be given, or tie_aware=False; "
            f"got {models} models: {models * (models - 1) // 2} integer programs"
        )
    order = _LinearOrder(above - above.T, limit)
    first = order.solve({})
    if not tie_aware:
        return ranked(first.sum(axis=1).astype(np.float64), method, return_scores)
    forced = first.copy()
    for i, j in combinations(range(models), 2):
        winner, loser = (i, j) if first[i, j] else (j, i)
        reverse = order.solve({(loser, winner): True})
        forced[winner, loser] = order.value(reverse) < order.value(first) - 1e-6
    return ranked(_levels(forced), method, return_scores)


class _LinearOrder:
    """The order of models with the largest sum of `margin` over its pairs; one binary variable a pair."""

    def __init__(self, margin: Floats, time_limit: float) -> None:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        models = len(margin)
        self.margin, self.time_limit = margin, time_limit
        self.pairs = {pair: at for at, pair in enumerate(combinations(range(models), 2))}
        triples = list(combinations(range(models), 3))
        # i before j before k excludes k before i, and the reverse: 0 <= x_ij + x_jk - x_ik <= 1.
        columns = [self.pairs[p] for i, j, k in triples for p in ((i, j), (j, k), (i, k))]
        rows = np.repeat(np.arange(len(triples)), 3)
        shape = (len(triples), len(self.pairs))
        signs = csr_array((np.tile([1.0, 1.0, -1.0], len(triples)), (rows, columns)), shape=shape)
        self.transitive = LinearConstraint(signs, 0.0, 1.0) if triples else ()

    def value(self, before: Bools) -> float:
        """Return the sum of margins of an order."""
        return float(self.margin[before].sum())

    def solve(self, fixed: dict[tuple[int, int], bool]) -> Bools:
        """Return before[i, j] of a best order in which the pairs in `fixed` have the given order."""
        from scipy.optimize import Bounds, milp

        low, high = np.zeros(len(self.pairs)), np.ones(len(self.pairs))
        for (i, j), holds in fixed.items():
            at = self.pairs[min(i, j), max(i, j)]
            value = float(holds == (i < j))
            low[at] = high[at] = value
        options: Any = {"time_limit": self.time_limit}
        found = milp(
            -np.array([self.margin[pair] for pair in self.pairs]),
            integrality=np.ones(len(self.pairs), dtype=np.int64),
            bounds=Bounds(low, high),
            constraints=self.transitive,
            options=options,
        )
        if found.status != 0:
            raise RuntimeError(f"kemeny_young: no best order is proven ({found.message}); raise time_limit")
        before = np.zeros(self.margin.shape, dtype=np.bool_)
        for (i, j), x in zip(self.pairs, found.x > 0.5, strict=True):
            before[i, j], before[j, i] = x, not x
        return before


def _levels(above: Bools) -> Floats:
    """Return L for models that none is above, L − 1 for those beneath only these, and so on."""
    models = len(above)
    levels = np.zeros(models)
    left = np.ones(models, dtype=np.bool_)
    level = float(models)
    while left.any():
        top = left & ~above[left].any(axis=0)
        levels[top], left, level = level, left & ~top, level - 1.0
    return levels
