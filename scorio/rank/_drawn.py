"""Rankings by what `k` drawn trials of each question show: the metrics without further parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._labels import Outcomes
from scorio.eval._inputs import BinaryTrials, Missing, read_binary
from scorio.eval._kernels import _bank_metrics
from scorio.rank._ranked import Ranking, documented, ranked
from scorio.rank._ties import TieMethod

Scores = NDArray[np.float64]


class DrawnMetric(Protocol):
    """A ranking by what `k` drawn trials of a question show, without further parameters."""

    __name__: str

    def __call__(
        self,
        R: Outcomes | None,
        k: int,
        method: TieMethod = "competition",
        return_scores: bool = False,
        *,
        counts: ArrayLike | None = None,
        missing: Missing = None,
        question_weights: ArrayLike | None = None,
    ) -> Ranking:
        """Return the ranks, with the scores where `return_scores`."""


def _by_draws(scores: Callable[[BinaryTrials, int], Scores]) -> DrawnMetric:
    """Make the ranking by `scores`, under its name and with its docstring completed."""

    def metric(
        R: Outcomes | None,
        k: int,
        method: TieMethod = "competition",
        return_scores: bool = False,
        *,
        counts: ArrayLike | None = None,
        missing: Missing = None,
        question_weights: ArrayLike | None = None,
    ) -> Ranking:
        trials = read_binary(R, counts, missing, question_weights, models=True)
        return ranked(scores(trials, trials.draws(k)), method, return_scores)

    metric.__name__, metric.__qualname__ = scores.__name__, scores.__qualname__
    metric.__doc__ = scores.__doc__
    return documented(metric)


@_by_draws
def pass_at_k(trials: BinaryTrials, k: int) -> Scores:
    """Rank models by Pass@k: at least one of `k` of a question's trials is correct.

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
    return _bank_metrics.pass_at_k(trials, k)


@_by_draws
def pass_hat_k(trials: BinaryTrials, k: int) -> Scores:
    """Rank models by Pass^k, also called Unanimous@k: all of `k` of a question's trials are correct.

    References
    ----------
    .. [1] Yao, Shinn, Razavi and Narasimhan (2024). τ-bench: A Benchmark for Tool-Agent-User Interaction in
       Real-World Domains. arXiv:2406.12045.

    Examples
    --------
    >>> pass_hat_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2)
    array([1, 2])
    """
    return _bank_metrics.pass_hat_k(trials, k)


unanimous_at_k = pass_hat_k


@_by_draws
def auc_at_k(trials: BinaryTrials, k: int) -> Scores:
    """Rank models by AUC@k: the trapezoidal mean of Pass@1 to Pass@k.

    References
    ----------
    .. [1] Hu et al. (2026). Rewarding the Rare: Uniqueness-Aware RL for Creative Problem Solving in LLMs.
       arXiv:2601.08763.

    Examples
    --------
    >>> auc_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 3)
    array([2, 1])
    """
    return _bank_metrics.auc_at_k(trials, k)


@_by_draws
def maj_at_k(trials: BinaryTrials, k: int) -> Scores:
    """Rank models by Maj@k: more than half of `k` of a question's trials are correct.

    Examples
    --------
    >>> maj_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 3)
    array([1, 2])
    """
    return _bank_metrics.maj_at_k(trials, k)


@_by_draws
def g_pass_at_k(trials: BinaryTrials, k: int) -> Scores:
    """Rank models by G-Pass@k at τ = 1, which is Pass^k: all of `k` trials are correct.

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> g_pass_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2)
    array([1, 2])
    """
    return _bank_metrics.pass_hat_k(trials, k)


@_by_draws
def mg_pass_at_k(trials: BinaryTrials, k: int) -> Scores:
    """Rank models by mG-Pass@k: the mean of G-Pass@k_τ over τ from 0.5 to 1.

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> mg_pass_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2)
    array([1, 2])
    """
    return _bank_metrics.mg_pass_at_k(trials, k)


@_by_draws
def geo_spectrum_star_at_k(trials: BinaryTrials, k: int) -> Scores:
    """Rank models by GeoSpectrum*@k: √(Pass@k · mG-Pass@k) of the dataset.

    Examples
    --------
    >>> geo_spectrum_star_at_k([[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]], 2)
    array([1, 2])
    """
    return _bank_metrics.geo_spectrum_at_k(trials, k)
