"""Ranks of scores, the agreement of two rankings, and rankings as numbers, as in the published package."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypedDict, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from scorio import _orders
from scorio._arguments import one_of
from scorio._orders import lehmer_hash, lehmer_unhash, ranking_hash, unhash_ranking
from scorio.arrays import Floats, floats
from scorio.rank._confidence import rank_with_confidence
from scorio.rank._ties import Ranks, TieMethod, rank_groups
from scorio.rank._ties import rank_scores as ranks_of

__all__ = [
    "compare_rankings",
    "lehmer_hash",
    "lehmer_unhash",
    "rank_scores",
    "ranking_hash",
    "unhash_ranking",
]

Statistic: TypeAlias = tuple[float, float]

blocks_from_rank_list = _orders.blocks_from_rank_list
comb_rank_lex = _orders.comb_rank_lex
comb_unrank_lex = _orders.comb_unrank_lex
ordered_bell = _orders.ordered_bell

_METHODS: tuple[TieMethod, ...] = ("competition", "competition_max", "dense", "avg")


def rank_scores(
    scores_in_id_order: Sequence[float] | ArrayLike,
    tol: float = 1e-12,
    sigmas_in_id_order: Sequence[float] | ArrayLike | None = None,
    confidence: float = 0.95,
    ci_tie_method: Literal["zscore_adjacent", "ci_overlap_adjacent"] = "zscore_adjacent",
) -> dict[str, Ranks]:
    """Rank models by their scores, by every tie method at once.

    Parameters
    ----------
    scores_in_id_order : array_like, shape (L,)
        Higher is better.
    tol : float
        Neighbours tie up to this difference.
    sigmas_in_id_order : array_like, shape (L,), optional
        Standard deviations of the scores; adds ranks in which neighbours tie that are not separated.
    confidence : float
        Of such ties, in (0.5, 1).
    ci_tie_method : {'zscore_adjacent', 'ci_overlap_adjacent'}
        Neighbours tie if their z-score is below the one-sided quantile (the paper's rule), or if their
        two-sided intervals overlap.

    Returns
    -------
    dict of str to numpy.ndarray
        ``competition`` (1, 2, 2, 4), ``competition_max`` (1, 3, 3, 4), ``dense`` (1, 2, 2, 3) and ``avg``;
        with standard deviations also the same with ``_ci``.

    Raises
    ------
    ValueError
        If an argument is malformed or out of range.

    Examples
    --------
    >>> rank_scores([0.9, 0.8, 0.8])["dense"]
    array([1, 2, 2])
    >>> rank_scores([0.9, 0.85, 0.2], sigmas_in_id_order=[0.05, 0.05, 0.05])["competition_ci"]
    array([1, 1, 3])
    """
    if np.ndim(scores_in_id_order) != 1:
        raise ValueError(f"scores must be 1D, one a model; got shape {np.shape(scores_in_id_order)}")
    ranks: dict[str, Ranks] = {
        method: ranks_of(scores_in_id_order, method, tol, scale=1.0) for method in _METHODS
    }
    if sigmas_in_id_order is None:
        return ranks
    one_of("ci_tie_method", ci_tie_method, ("zscore_adjacent", "ci_overlap_adjacent"))
    mu = floats(scores_in_id_order)
    sigma = floats(sigmas_in_id_order)
    for method in _METHODS:
        ranks[f"{method}_ci"] = rank_with_confidence(mu, sigma, confidence, method)
        if ci_tie_method == "ci_overlap_adjacent":
            ranks[f"{method}_ci"] = _apart_where_intervals_are(mu, sigma, confidence, method)
    return ranks


def _apart_where_intervals_are(mu: Floats, sigma: Floats, confidence: float, method: TieMethod) -> Ranks:
    from statistics import NormalDist

    reach = NormalDist().inv_cdf(0.5 + confidence / 2.0) * sigma
    order = np.argsort(-mu, kind="stable")
    return rank_groups(order, (mu - reach)[order[:-1]] > (mu + reach)[order[1:]], method)


class Agreement(TypedDict):
    """Result of :func:`compare_rankings` by all measures."""

    kendalltau: Statistic
    spearmanr: Statistic
    weighted_kendalltau: Statistic
    fraction_mismatched: float
    max_disp: float


@overload
def compare_rankings(
    ranked_list_a: ArrayLike, ranked_list_b: ArrayLike, method: Literal["all"] = "all"
) -> Agreement: ...


@overload
def compare_rankings(
    ranked_list_a: ArrayLike,
    ranked_list_b: ArrayLike,
    method: Literal["kendall", "spearman", "weighted_kendall"],
) -> Statistic: ...


def compare_rankings(
    ranked_list_a: ArrayLike,
    ranked_list_b: ArrayLike,
    method: Literal["kendall", "spearman", "weighted_kendall", "all"] = "all",
) -> Statistic | Agreement:
    """Measure the agreement of two rankings of the same models.

    Parameters
    ----------
    ranked_list_a, ranked_list_b : array_like, shape (L,)
        Ranks (or scores) of the same models.
    method : {'all', 'kendall', 'spearman', 'weighted_kendall'}
        Kendall's tau-b, Spearman's rho, the tau that weighs the top more, or all of them.

    Returns
    -------
    tuple of float or dict
        Statistic and p-value (NaN for the weighted tau); for ``all`` a dict of ``kendalltau``,
        ``spearmanr``, ``weighted_kendalltau``, ``fraction_mismatched`` (share of models with another rank)
        and ``max_disp`` (largest displacement over L - 1).

    Raises
    ------
    ValueError
        If the rankings differ in length, are empty or not finite, or `method` is unknown.
    TypeError
        If a ranking does not hold numbers.

    Examples
    --------
    >>> tau, p = compare_rankings([1, 2, 3, 4, 5], [1, 3, 2, 4, 5], "kendall")
    >>> print(round(tau, 4))
    0.8
    >>> compare_rankings([1, 2, 3], [1, 3, 2])["max_disp"]
    0.5
    """
    from scipy import stats

    measures = {"kendall": "kendalltau", "spearman": "spearmanr", "weighted_kendall": "weightedtau"}
    one_of("method", method, ("all", *measures))
    a, b = np.asarray(ranked_list_a), np.asarray(ranked_list_b)
    if a.shape != b.shape or a.ndim != 1 or a.size == 0:
        raise ValueError(
            "ranked_list_a and ranked_list_b must have the same non-zero length; "
            f"got shapes {a.shape} and {b.shape}"
        )
    for name, values in (("ranked_list_a", a), ("ranked_list_b", b)):
        if values.dtype.kind not in "biuf":
            raise TypeError(f"{name} must be numeric; got dtype {values.dtype}")
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must not contain NaN or inf; got {values!r}")

    def measured(name: str) -> Statistic:
        found = cast(Any, getattr(stats, measures[name])(a, b))
        return float(found.statistic), float(found.pvalue)

    if method != "all":
        return measured(method)
    moved = np.abs(b.astype(np.float64) - a.astype(np.float64))
    return {
        "kendalltau": measured("kendall"),
        "spearmanr": measured("spearman"),
        "weighted_kendalltau": measured("weighted_kendall"),
        "fraction_mismatched": float((moved > 0).mean()),
        "max_disp": float(moved.max()) / max(a.size - 1, 1),
    }
