"""The metrics of :mod:`scorio.eval` as rankings; the file has its name from the published package."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, Unpack, overload

from numpy.typing import ArrayLike

from scorio._arguments import coupling, powers, spectrum_weights, unit
from scorio._named import Outcomes
from scorio.eval._inputs import Missing, read_binary, read_categories, read_prior
from scorio.eval._kernels import _bank_metrics, _categories
from scorio.rank._ranked import (
    ByName,
    Counts,
    NamedRanking,
    Prepared,
    Ranking,
    Rewarded,
    ScoredRanks,
    keeps_names,
    ranked,
)
from scorio.rank._ties import Ranks, TieMethod

__all__ = ["avg", "bayes", "g_pass_at_k_tau", "mg_pass_at_k", "pass_at_k", "pass_hat_k"]


@overload
def max_at_k(
    R: ByName,
    k: int,
    w: ArrayLike | None = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> NamedRanking: ...


@overload
def max_at_k(
    R: ArrayLike | None,
    k: int,
    w: ArrayLike | None = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def max_at_k(
    R: ArrayLike | None,
    k: int,
    w: ArrayLike | None = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def max_at_k(
    R: ArrayLike | None,
    k: int,
    w: ArrayLike | None = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> Ranks | ScoredRanks: ...


@keeps_names
def max_at_k(
    R: Outcomes | None,
    k: int,
    w: ArrayLike | None = None,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by Max@k: the expected best reward among `k` of a question's trials.

    Parameters
    ----------
    R, w, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Bagirov et al. (2025). The Best of N Worlds: Aligning Reinforcement Learning with Best-of-N
       Sampling via max@k Optimization. arXiv:2510.23393.

    Examples
    --------
    >>> max_at_k([[[0, 2, 0]], [[1, 1, 1]]], 2, w=[0.0, 0.5, 1.0], return_scores=True)
    (array([1, 2]), array([0.66666667, 0.5       ]))
    """
    trials = read_categories(R, w, counts, missing, question_weights, models=True)
    scores = _categories.max_at_k(trials.counts, trials.draws(k), trials.w, trials.question_weights)
    return ranked(scores, method, return_scores, trials.size)


@overload
def avg(
    R: ByName, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Rewarded]
) -> NamedRanking: ...


@overload
def avg(
    R: ArrayLike | None, method: TieMethod = ..., *, return_scores: Literal[True], **given: Unpack[Rewarded]
) -> ScoredRanks: ...


@overload
def avg(
    R: ArrayLike | None,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Rewarded],
) -> Ranks: ...


@overload
def avg(
    R: ArrayLike | None, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Rewarded]
) -> Ranks | ScoredRanks: ...


@keeps_names
def avg(
    R: Outcomes | None,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    w: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by avg@N: their mean reward over questions and trials.

    Every model needs a trial of every question.

    Parameters
    ----------
    R, method, return_scores, w, counts, missing, question_weights
        As in :func:`bayes`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> avg([[[1, 0, 1], [0, 0, 1]], [[1, 1, 1], [0, 1, 1]], [[0, 0, 0], [0, 1, 0]]])
    array([2, 1, 3])
    """
    trials = read_categories(R, w, counts, missing, question_weights, models=True)
    trials.require_trials("avg")
    scores = _categories.avg_mean(trials.counts, trials.w, trials.question_weights)
    return ranked(scores, method, return_scores, trials.size)


@overload
def bayes(
    R: ByName,
    w: ArrayLike | None = ...,
    R0: ArrayLike | None = ...,
    quantile: float | None = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Prepared],
) -> NamedRanking: ...


@overload
def bayes(
    R: ArrayLike | None,
    w: ArrayLike | None = ...,
    R0: ArrayLike | None = ...,
    quantile: float | None = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Prepared],
) -> ScoredRanks: ...


@overload
def bayes(
    R: ArrayLike | None,
    w: ArrayLike | None = ...,
    R0: ArrayLike | None = ...,
    quantile: float | None = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Prepared],
) -> Ranks: ...


@overload
def bayes(
    R: ArrayLike | None,
    w: ArrayLike | None = ...,
    R0: ArrayLike | None = ...,
    quantile: float | None = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Prepared],
) -> Ranks | ScoredRanks: ...


@keeps_names
def bayes(
    R: Outcomes | None,
    w: ArrayLike | None = None,
    R0: ArrayLike | None = None,
    quantile: float | None = None,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    prior_counts: ArrayLike | None = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by Bayes@N: their posterior mean, or a quantile of their posterior.

    A model's score is μ, or μ + Φ⁻¹(q) σ with `quantile` q, taking its posterior as normal; μ and σ are those
    of :func:`scorio.eval.bayes` (Algorithm 1 of [1]_). A quantile below 0.5 ranks cautiously: of two models
    with the same mean, the one that is known better comes first.

    Parameters
    ----------
    R : array_like of int, shape (L, M, N) or (L, M), mapping of names to matrices (M, N), or None
        Outcomes 0 or 1 of L models on M questions in N trials; (L, M) means N = 1. None with
        `counts`.
    R0 : array_like of int, shape (M, D) or (L, M, D), optional
        Categories of prior trials, the same for all models or of each model.
    prior_counts : array_like of int, shape (M, C + 1) or (L, M, C + 1), optional
        Prior trials in each category, in place of `R0`.
    quantile : float, optional
        In (0, 1).
    w : array_like, shape (C + 1,), optional
        Rewards of the categories, in any order and of any sign; default [0, 1] for outcomes 0 and 1. With `w`
        the trials in `R` are categories 0..C.
    method : {'competition', 'competition_max', 'dense', 'avg', 'ordinal'}
        Ranks of tied models (:func:`rank_scores`).
    return_scores : bool
        Also return the scores.
    counts : array_like of int, shape (L, M, C + 1), optional
        Trials in each category (wrong and correct ones: C = 1), in place of `R`; questions may differ in
        their number of trials.
    missing : number or array_like of bool, optional
        A value in `R`, such as −1, or a mask of its shape: trials that were not made.
    question_weights : array_like, shape (M,), optional
        At least 0, with sum 1; default 1/M each.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best; int64, for ``method="avg"`` float64.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.bayes`.

    For a mapping, or labels of xarray or pandas, a :class:`NamedRanking` of names, ranks and scores.

    Raises
    ------
    ValueError
        If an argument is malformed or out of range; the message names it, the value and what is allowed.

    Notes
    -----
    With unequal numbers of trials the uniform prior pulls models with fewer trials closer to its mean, so the
    order of μ is biased; the order is that of :func:`avg` if all numbers are equal and there is no
    prior (Appendix B of [1]_).

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski and Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
       Language Model Evaluation. arXiv:2510.04265.

    Examples
    --------
    >>> R = [[[1, 0, 1], [0, 0, 1]], [[1, 1, 1], [0, 1, 1]], [[0, 0, 0], [0, 1, 0]]]
    >>> bayes(R)
    array([2, 1, 3])
    >>> ranks, scores = bayes(R, quantile=0.05, return_scores=True)
    >>> scores.round(4)
    array([0.2674, 0.4877, 0.0877])
    """
    trials = read_categories(R, w, counts, missing, question_weights, models=True)
    prior = read_prior(R0, prior_counts, trials, missing)
    if quantile is None:
        scores = _categories.bayes_mean(trials.counts, trials.w, prior, trials.question_weights)
    else:
        mu, sigma = _categories.bayes(trials.counts, trials.w, prior, trials.question_weights)
        scores = mu + _normal_quantile(quantile) * sigma
    return ranked(scores, method, return_scores, trials.size)


def _normal_quantile(quantile: Any) -> float:
    # True and False are real numbers to Python, but 0 and 1: outside the range.
    level = 0.0
    if isinstance(quantile, Real):
        level = float(quantile)
    if not 0.0 < level < 1.0:
        raise ValueError(f"quantile must be a number in (0, 1); got {quantile!r}")
    from scipy.special import ndtri

    return float(ndtri(level))


@overload
def pass_at_k(
    R: ByName, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> NamedRanking: ...


@overload
def pass_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def pass_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def pass_at_k(
    R: ArrayLike | None, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> Ranks | ScoredRanks: ...


@keeps_names
def pass_at_k(
    R: Outcomes | None,
    k: int,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by Pass@k: at least one of `k` of a question's trials is correct.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k : int
        Trials drawn without replacement, at least 1 and at most any question's number of trials.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Chen et al. (2021). Evaluating Large Language Models Trained on Code. arXiv:2107.03374.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> pass_at_k(R, 2, return_scores=True)
    (array([2, 1]), array([0.5       , 0.66666667]))

    The second model has made only two trials of its second question:

    >>> pass_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, -1]]], 2, missing=-1)
    array([2, 1])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    return ranked(_bank_metrics.pass_at_k(trials, trials.draws(k)), method, return_scores)


@overload
def pass_hat_k(
    R: ByName, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> NamedRanking: ...


@overload
def pass_hat_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def pass_hat_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def pass_hat_k(
    R: ArrayLike | None, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> Ranks | ScoredRanks: ...


@keeps_names
def pass_hat_k(
    R: Outcomes | None,
    k: int,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by Pass^k, also called Unanimous@k: all of `k` of a question's trials are correct.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Yao, Shinn, Razavi and Narasimhan (2024). τ-bench: A Benchmark for Tool-Agent-User Interaction in
       Real-World Domains. arXiv:2406.12045.

    Examples
    --------
    >>> pass_hat_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    return ranked(_bank_metrics.pass_hat_k(trials, trials.draws(k)), method, return_scores)


unanimous_at_k = pass_hat_k


@overload
def auc_at_k(
    R: ByName, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> NamedRanking: ...


@overload
def auc_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def auc_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def auc_at_k(
    R: ArrayLike | None, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> Ranks | ScoredRanks: ...


@keeps_names
def auc_at_k(
    R: Outcomes | None,
    k: int,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by AUC@k: the trapezoidal mean of Pass@1 to Pass@k.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Hu et al. (2026). Rewarding the Rare: Uniqueness-Aware RL for Creative Problem Solving in LLMs.
       arXiv:2601.08763.

    Examples
    --------
    >>> auc_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 3)
    array([2, 1])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    return ranked(_bank_metrics.auc_at_k(trials, trials.draws(k)), method, return_scores)


@overload
def maj_at_k(
    R: ByName, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> NamedRanking: ...


@overload
def maj_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def maj_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def maj_at_k(
    R: ArrayLike | None, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> Ranks | ScoredRanks: ...


@keeps_names
def maj_at_k(
    R: Outcomes | None,
    k: int,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by Maj@k: more than half of `k` of a question's trials are correct.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> maj_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 3)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    return ranked(_bank_metrics.maj_at_k(trials, trials.draws(k)), method, return_scores)


@overload
def g_pass_at_k(
    R: ByName, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> NamedRanking: ...


@overload
def g_pass_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def g_pass_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def g_pass_at_k(
    R: ArrayLike | None, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> Ranks | ScoredRanks: ...


@keeps_names
def g_pass_at_k(
    R: Outcomes | None,
    k: int,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by G-Pass@k at τ = 1, which is Pass^k: all of `k` trials are correct.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> g_pass_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    return ranked(_bank_metrics.pass_hat_k(trials, trials.draws(k)), method, return_scores)


@overload
def mg_pass_at_k(
    R: ByName, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> NamedRanking: ...


@overload
def mg_pass_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def mg_pass_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def mg_pass_at_k(
    R: ArrayLike | None, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> Ranks | ScoredRanks: ...


@keeps_names
def mg_pass_at_k(
    R: Outcomes | None,
    k: int,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by mG-Pass@k: the mean of G-Pass@k_τ over τ from 0.5 to 1.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> mg_pass_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    return ranked(_bank_metrics.mg_pass_at_k(trials, trials.draws(k)), method, return_scores)


@overload
def geo_spectrum_star_at_k(
    R: ByName, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> NamedRanking: ...


@overload
def geo_spectrum_star_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def geo_spectrum_star_at_k(
    R: ArrayLike | None,
    k: int,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def geo_spectrum_star_at_k(
    R: ArrayLike | None, k: int, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> Ranks | ScoredRanks: ...


@keeps_names
def geo_spectrum_star_at_k(
    R: Outcomes | None,
    k: int,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by GeoSpectrum*@k: √(Pass@k · mG-Pass@k) of the dataset.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> geo_spectrum_star_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    return ranked(_bank_metrics.geo_spectrum_at_k(trials, trials.draws(k)), method, return_scores)


@overload
def g_pass_at_k_tau(
    R: ByName, k: int, tau: float, method: TieMethod = ..., return_scores: bool = ..., **given: Unpack[Counts]
) -> NamedRanking: ...


@overload
def g_pass_at_k_tau(
    R: ArrayLike | None,
    k: int,
    tau: float,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def g_pass_at_k_tau(
    R: ArrayLike | None,
    k: int,
    tau: float,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def g_pass_at_k_tau(
    R: ArrayLike | None,
    k: int,
    tau: float,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> Ranks | ScoredRanks: ...


@keeps_names
def g_pass_at_k_tau(
    R: Outcomes | None,
    k: int,
    tau: float,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by G-Pass@k_τ: at least a share τ of `k` of a question's trials is correct.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.
    tau : float
        Share of the `k` trials that must be correct, in [0, 1]: at least max(1, ⌈τk⌉) of them; 0 is Pass@k, 1
        is Pass^k.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> g_pass_at_k_tau(R, 2, 1.0)
    array([1, 2])
    >>> g_pass_at_k_tau(R, 2, 0.0)
    array([2, 1])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    return ranked(
        _bank_metrics.g_pass_at_k_tau(trials, trials.draws(k), unit("tau", tau)), method, return_scores
    )


@overload
def geom_at_k(
    R: ByName,
    k: int,
    pass_power: float = ...,
    unanimous_power: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> NamedRanking: ...


@overload
def geom_at_k(
    R: ArrayLike | None,
    k: int,
    pass_power: float = ...,
    unanimous_power: float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def geom_at_k(
    R: ArrayLike | None,
    k: int,
    pass_power: float = ...,
    unanimous_power: float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def geom_at_k(
    R: ArrayLike | None,
    k: int,
    pass_power: float = ...,
    unanimous_power: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> Ranks | ScoredRanks: ...


@keeps_names
def geom_at_k(
    R: Outcomes | None,
    k: int,
    pass_power: float = 0.5,
    unanimous_power: float = 0.5,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by Geom@k: the mean over questions of Pass@k^a · Pass^k^b of the question.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.
    pass_power, unanimous_power : float
        Exponents a of Pass@k and b of Pass^k, not both 0.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> geom_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    return ranked(
        _bank_metrics.geom_at_k(trials, trials.draws(k), *powers(pass_power, unanimous_power)),
        method,
        return_scores,
    )


@overload
def geom_ds_at_k(
    R: ByName,
    k: int,
    pass_power: float = ...,
    unanimous_power: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> NamedRanking: ...


@overload
def geom_ds_at_k(
    R: ArrayLike | None,
    k: int,
    pass_power: float = ...,
    unanimous_power: float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def geom_ds_at_k(
    R: ArrayLike | None,
    k: int,
    pass_power: float = ...,
    unanimous_power: float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def geom_ds_at_k(
    R: ArrayLike | None,
    k: int,
    pass_power: float = ...,
    unanimous_power: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> Ranks | ScoredRanks: ...


@keeps_names
def geom_ds_at_k(
    R: Outcomes | None,
    k: int,
    pass_power: float = 0.5,
    unanimous_power: float = 0.5,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by Geom_ds@k: Pass@k^a · Pass^k^b of the whole dataset.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.
    pass_power, unanimous_power : float
        Exponents a of Pass@k and b of Pass^k, not both 0.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> geom_ds_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    return ranked(
        _bank_metrics.geom_ds_at_k(trials, trials.draws(k), *powers(pass_power, unanimous_power)),
        method,
        return_scores,
    )


@overload
def geo_spectrum_at_k(
    R: ByName,
    k: int,
    lam: float = ...,
    weights: ArrayLike | None = ...,
    lambda_: float | None = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> NamedRanking: ...


@overload
def geo_spectrum_at_k(
    R: ArrayLike | None,
    k: int,
    lam: float = ...,
    weights: ArrayLike | None = ...,
    lambda_: float | None = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def geo_spectrum_at_k(
    R: ArrayLike | None,
    k: int,
    lam: float = ...,
    weights: ArrayLike | None = ...,
    lambda_: float | None = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def geo_spectrum_at_k(
    R: ArrayLike | None,
    k: int,
    lam: float = ...,
    weights: ArrayLike | None = ...,
    lambda_: float | None = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> Ranks | ScoredRanks: ...


@keeps_names
def geo_spectrum_at_k(
    R: Outcomes | None,
    k: int,
    lam: float = 0.5,
    weights: ArrayLike | None = None,
    lambda_: float | None = None,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by GeoSpectrum@k: a geometric blend of Pass@k and a threshold spectrum.

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.
    lam : float
        Coupling λ in [0, 1]: the score is Pass@k^λ · S^(1 − λ), S the threshold spectrum.
    weights : array_like, shape (k,), optional
        Weights of the spectrum, at least 0 with a sum of at most 1; default: those that make S mG-Pass@k.
        With ``lam = 1`` they do not matter and are not checked.
    lambda_ : float, optional
        Another name of `lam`; TypeError if both are given.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> geo_spectrum_at_k(R, 2)
    array([1, 2])
    >>> geo_spectrum_at_k(R, 2, lam=1.0)
    array([2, 1])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    drawn = trials.draws(k)
    return ranked(
        _bank_metrics.geo_spectrum_at_k(trials, drawn, *coupling(lam, lambda_, weights, drawn)),
        method,
        return_scores,
    )


@overload
def threshold_spectrum_at_k(
    R: ByName,
    k: int,
    weights: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> NamedRanking: ...


@overload
def threshold_spectrum_at_k(
    R: ArrayLike | None,
    k: int,
    weights: ArrayLike,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    **given: Unpack[Counts],
) -> ScoredRanks: ...


@overload
def threshold_spectrum_at_k(
    R: ArrayLike | None,
    k: int,
    weights: ArrayLike,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    **given: Unpack[Counts],
) -> Ranks: ...


@overload
def threshold_spectrum_at_k(
    R: ArrayLike | None,
    k: int,
    weights: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    **given: Unpack[Counts],
) -> Ranks | ScoredRanks: ...


@keeps_names
def threshold_spectrum_at_k(
    R: Outcomes | None,
    k: int,
    weights: ArrayLike,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models by a threshold spectrum: Σ_r w_r P(at least r of `k` trials are correct).

    Parameters
    ----------
    R, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`.
    k
        As in :func:`pass_at_k`.
    weights : array_like, shape (k,)
        Weight w_r of "at least r of `k` trials are correct", at least 0 with a sum of at most 1.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> threshold_spectrum_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2, [1.0, 0.0])
    array([2, 1])
    """
    trials = read_binary(R, counts, missing, question_weights, models=True)
    drawn = trials.draws(k)
    return ranked(
        _bank_metrics.threshold_spectrum_at_k(trials, drawn, spectrum_weights(weights, drawn)),
        method,
        return_scores,
    )
