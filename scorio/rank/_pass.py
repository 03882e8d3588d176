"""Rankings by metrics of `k` drawn trials that count how many are right: the Pass@k family."""

from __future__ import annotations

from numpy.typing import ArrayLike

from scorio.eval import _kernels
from scorio.eval._arguments import unit
from scorio.rank._ranked import Ranking, ranked
from scorio.rank._tensor import Missing, read_binary
from scorio.rank._ties import TieMethod

__all__ = [
    "auc_at_k",
    "g_pass_at_k",
    "g_pass_at_k_tau",
    "maj_at_k",
    "mg_pass_at_k",
    "pass_at_k",
    "pass_hat_k",
    "unanimous_at_k",
]


def pass_at_k(
    R: ArrayLike | None,
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
    R : array_like of int, shape (L, M, N) or (L, M), or None
        Outcomes 0 or 1 of L models on M questions in N trials; (L, M) means N = 1. None with `counts`.
    k : int
        Trials drawn without replacement, at least 1 and at most any question's number of trials.
    method : {'competition', 'competition_max', 'dense', 'avg', 'ordinal'}
        Ranks of tied models (:func:`rank_scores`).
    return_scores : bool
        Also return the scores.
    counts : array_like of int, shape (L, M, 2), optional
        Wrong and correct trials, in place of `R`; questions may differ in their number of trials.
    missing : float or ndarray of bool, optional
        A value in `R`, such as −1, or a mask of its shape: trials that were not made.
    question_weights : array_like, shape (M,), optional
        At least 0, with sum 1; default 1/M each.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best; int64, for ``method="avg"`` float64.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.pass_at_k`.

    Raises
    ------
    ValueError
        If an argument is malformed or `k` is out of range; the message names it and the value.

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
    trials = read_binary(R, counts, missing, question_weights)
    scores = _kernels.pass_at_k(trials.correct, trials.n, trials.draws(k), trials.question_weights)
    return ranked(scores, method, return_scores)


def pass_hat_k(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.pass_hat_k`.

    Raises
    ------
    ValueError
        If an argument is malformed or `k` is out of range.

    References
    ----------
    .. [1] Yao, Shinn, Razavi and Narasimhan (2024). τ-bench: A Benchmark for Tool-Agent-User Interaction in
       Real-World Domains. arXiv:2406.12045.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> pass_hat_k(R, 2)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights)
    scores = _kernels.pass_hat_k(trials.correct, trials.n, trials.draws(k), trials.question_weights)
    return ranked(scores, method, return_scores)


unanimous_at_k = pass_hat_k


def auc_at_k(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.auc_at_k`.

    Raises
    ------
    ValueError
        If an argument is malformed or `k` is out of range.

    References
    ----------
    .. [1] Hu et al. (2026). Rewarding the Rare: Uniqueness-Aware RL for Creative Problem Solving in LLMs.
       arXiv:2601.08763.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> auc_at_k(R, 3)
    array([2, 1])
    """
    trials = read_binary(R, counts, missing, question_weights)
    scores = _kernels.auc_at_k(trials.correct, trials.n, trials.draws(k), trials.question_weights)
    return ranked(scores, method, return_scores)


def maj_at_k(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.maj_at_k`.

    Raises
    ------
    ValueError
        If an argument is malformed or `k` is out of range.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> maj_at_k(R, 3)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights)
    scores = _kernels.maj_at_k(trials.correct, trials.n, trials.draws(k), trials.question_weights)
    return ranked(scores, method, return_scores)


def g_pass_at_k(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.g_pass_at_k`.

    Raises
    ------
    ValueError
        If an argument is malformed or `k` is out of range.

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> g_pass_at_k(R, 2)
    array([1, 2])
    """
    return pass_hat_k(
        R,
        k,
        method,
        return_scores,
        counts=counts,
        missing=missing,
        question_weights=question_weights,
    )


def g_pass_at_k_tau(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`pass_at_k`.
    tau : float
        Share of the `k` trials that must be correct, in [0, 1]: at least max(1, ⌈τk⌉) of them; 0 is Pass@k, 1
        is Pass^k.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.g_pass_at_k_tau`.

    Raises
    ------
    ValueError
        If an argument is malformed, or `k` or `tau` is out of range.

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
    trials = read_binary(R, counts, missing, question_weights)
    tau = unit("tau", tau)
    scores = _kernels.g_pass_at_k_tau(trials.correct, trials.n, trials.draws(k), tau, trials.question_weights)
    return ranked(scores, method, return_scores)


def mg_pass_at_k(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.mg_pass_at_k`.

    Raises
    ------
    ValueError
        If an argument is malformed or `k` is out of range.

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> mg_pass_at_k(R, 2)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights)
    scores = _kernels.mg_pass_at_k(trials.correct, trials.n, trials.draws(k), trials.question_weights)
    return ranked(scores, method, return_scores)
