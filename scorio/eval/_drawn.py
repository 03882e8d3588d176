"""Metrics of `k` drawn trials of a question that have no further parameters."""

from __future__ import annotations

from ._by_k import BinaryTrials, FloatArray, by_draws
from ._kernels import _bank_metrics


@by_draws
def pass_at_k(trials: BinaryTrials, k: int) -> FloatArray:
    r"""Pass@k: probability that at least one of `k` of a question's trials, drawn at random, is correct.

    See Also
    --------
    pass_at_k_ci : Posterior summary for new trials.

    Notes
    -----
    With :math:`c_q` correct among :math:`n_q` trials, :math:`1 - \binom{n_q - c_q}{k} / \binom{n_q}{k}` [1]_.

    References
    ----------
    .. [1] Chen et al. (2021). Evaluating Large Language Models Trained on Code. arXiv:2107.03374.

    Examples
    --------
    >>> from scorio.eval import pass_at_k
    >>> round(pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.95
    """
    return _bank_metrics.pass_at_k(trials, k)


@by_draws
def pass_hat_k(trials: BinaryTrials, k: int) -> FloatArray:
    r"""Pass^k: probability that all of `k` of a question's trials, drawn at random, are correct.

    Also under the names `unanimous_at_k` and `g_pass_at_k`.

    See Also
    --------
    pass_hat_k_ci : Posterior summary for new trials.

    Notes
    -----
    With :math:`c_q` correct among :math:`n_q` trials, :math:`\binom{c_q}{k} / \binom{n_q}{k}` [1]_.

    References
    ----------
    .. [1] Yao, Shinn, Razavi & Narasimhan (2024). tau-bench: A Benchmark for Tool-Agent-User Interaction in
       Real-World Domains. arXiv:2406.12045.

    Examples
    --------
    >>> from scorio.eval import pass_hat_k
    >>> round(pass_hat_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.45
    """
    return _bank_metrics.pass_hat_k(trials, k)


unanimous_at_k = pass_hat_k


@by_draws
def g_pass_at_k(trials: BinaryTrials, k: int) -> FloatArray:
    """G-Pass@k with threshold 1: `pass_hat_k` under the name of the G-Pass@k literature.

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> from scorio.eval import g_pass_at_k
    >>> round(g_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2), 6)
    0.45
    """
    return _bank_metrics.pass_hat_k(trials, k)


@by_draws
def auc_at_k(trials: BinaryTrials, k: int) -> FloatArray:
    r"""AUC@K: area under the Pass@j curve from 1 to `k`, by the trapezoidal rule and scaled to [0, 1].

    Notes
    -----
    For ``k > 1``, :math:`\frac{1}{k - 1} \sum_{j=1}^{k-1} \frac{\mathrm{Pass@}j + \mathrm{Pass@}(j + 1)}{2}`
    [1]_. The sum telescopes: :math:`\sum_{j=0}^{k} \binom{m}{j} / \binom{n}{j} = \frac{n + 1}{n + 1 - m}
    \bigl(1 - \binom{m}{k + 1} / \binom{n + 1}{k + 1}\bigr)`, so the cost does not grow with `k`.

    References
    ----------
    .. [1] Hu et al. (2026). Rewarding the Rare: Uniqueness-Aware RL for Creative Problem Solving in LLMs.
       arXiv:2601.08763.

    Examples
    --------
    >>> from scorio.eval import auc_at_k
    >>> round(auc_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.9
    """
    return _bank_metrics.auc_at_k(trials, k)


@by_draws
def maj_at_k(trials: BinaryTrials, k: int) -> FloatArray:
    r"""Maj@k: probability that more than half of `k` of a question's trials, drawn at random, are correct.

    See Also
    --------
    g_pass_at_k_tau : The same with a threshold of ``tau = (k // 2 + 1) / k``.

    Notes
    -----
    The number X of correct trials among the `k` is hypergeometric; :math:`P(X \ge \lfloor k / 2 \rfloor +
    1)`. It stands in for majority voting where the answers themselves are not known.

    Examples
    --------
    >>> from scorio.eval import maj_at_k
    >>> round(maj_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.85
    """
    return _bank_metrics.maj_at_k(trials, k)


@by_draws
def mg_pass_at_k(trials: BinaryTrials, k: int) -> FloatArray:
    r"""mG-Pass@k: mean of G-Pass@k_tau over ``tau`` from 0.5 to 1.

    Notes
    -----
    With X hypergeometric, :math:`\frac{2}{k} \mathrm{E}[\max(X - \lceil k / 2 \rceil, 0)]`, which
    approximates :math:`2 \int_{0.5}^{1} \mathrm{G\text{-}Pass@}k_\tau \, d\tau` [1]_; for ``k = 1`` it is 0.

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> from scorio.eval import mg_pass_at_k
    >>> round(mg_pass_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.166667
    """
    return _bank_metrics.mg_pass_at_k(trials, k)


@by_draws
def geo_spectrum_star_at_k(trials: BinaryTrials, k: int) -> FloatArray:
    """GeoSpectrum*: `geo_spectrum_at_k` with its default coupling and weights.

    Examples
    --------
    >>> from scorio.eval import geo_spectrum_star_at_k
    >>> round(geo_spectrum_star_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.408248
    """
    return _bank_metrics.geo_spectrum_at_k(trials, k)
