"""Metrics of `k` drawn trials that have no further parameters, and their posterior summaries."""

from scorio.arrays import Floats

from ._by_k import Moments, Prior, by_any_posterior, by_draws, by_posterior
from ._inputs import BinaryTrials
from ._kernels import _bank_metrics, _posteriors


@by_draws
def pass_at_k(trials: BinaryTrials, k: int) -> Floats:
    r"""Pass@k: probability that at least one of `k` of a question's trials, drawn at random, is correct.

    Parameters
    ----------
    R : array_like of int, shape (M, N) or (N,)
        Outcomes 0 and 1; None with `counts`.
    k : int
        Trials to draw, ``1 <= k <= N``.
    counts : array_like of int, shape (M, 2), optional
        Wrong and correct trials of each question, in place of `R`.
    missing : number or array_like of bool, optional
        Marks trials of `R` that were not made.
    question_weights : array_like, shape (M,), optional
        At least 0, with sum 1; default 1 / M each.

    Returns
    -------
    float
        Mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        Outcomes other than 0 and 1, `k` no integer or out of range, another argument malformed.

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
def pass_hat_k(trials: BinaryTrials, k: int) -> Floats:
    r"""Pass^k: probability that all of `k` of a question's trials, drawn at random, are correct.

    Also under the names `unanimous_at_k` and `g_pass_at_k`.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.

    Returns
    -------
    float

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
def g_pass_at_k(trials: BinaryTrials, k: int) -> Floats:
    """G-Pass@k with threshold 1: `pass_hat_k` under the name of the G-Pass@k literature.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.

    Returns
    -------
    float

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
def auc_at_k(trials: BinaryTrials, k: int) -> Floats:
    r"""AUC@K: area under the Pass@j curve from 1 to `k`, by the trapezoidal rule and scaled to [0, 1].

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.

    Returns
    -------
    float

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
def maj_at_k(trials: BinaryTrials, k: int) -> Floats:
    r"""Maj@k: probability that more than half of `k` of a question's trials, drawn at random, are correct.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.

    Returns
    -------
    float

    See Also
    --------
    g_pass_at_k_tau : The same with a threshold of ``tau = (k // 2 + 1) / k``.

    Notes
    -----
    The number X of correct trials among the `k` is hypergeometric; :math:`P(X \ge \lfloor k / 2 \rfloor +
    1)`. It stands in for majority voting if the answers themselves are not known.

    Examples
    --------
    >>> from scorio.eval import maj_at_k
    >>> round(maj_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.85
    """
    return _bank_metrics.maj_at_k(trials, k)


@by_draws
def mg_pass_at_k(trials: BinaryTrials, k: int) -> Floats:
    r"""mG-Pass@k: mean of G-Pass@k_tau over ``tau`` from 0.5 to 1.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.

    Returns
    -------
    float

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
def geo_spectrum_star_at_k(trials: BinaryTrials, k: int) -> Floats:
    """GeoSpectrum*: `geo_spectrum_at_k` with its default coupling and weights.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.

    Returns
    -------
    float

    Examples
    --------
    >>> from scorio.eval import geo_spectrum_star_at_k
    >>> round(geo_spectrum_star_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3), 6)
    0.408248
    """
    return _bank_metrics.geo_spectrum_at_k(trials, k)


@by_posterior
def pass_at_k_ci(trials: BinaryTrials, k: int, prior: Prior) -> Moments:
    r"""Posterior summary of Pass@k on `k` new trials of each question.

    Parameters
    ----------
    R : array_like of int, shape (M, N) or (N,)
        Outcomes 0 and 1; None with `counts`.
    k : int
        New trials, ``1 <= k <= N``; N is the largest number of trials of any question.
    confidence : float, default 0.95
        Credibility level of the interval, in (0, 1).
    bounds : (float, float) or None, default (0, 1)
        The interval is clipped to these.
    alpha0 : float, default 1
        First parameter of the Beta prior of a question's probability of success, positive.
    beta0 : float, default 1
        Second parameter of it, positive.
    counts : array_like of int, shape (M, 2), optional
        Wrong and correct trials of each question, in place of `R`.
    missing : number or array_like of bool, optional
        Marks trials of `R` that were not made.
    question_weights : array_like, shape (M,), optional
        At least 0, with sum 1; default 1 / M each.

    Returns
    -------
    mu, sigma, lo, hi : float
        Posterior mean, standard deviation, and ``mu -/+ z sigma`` clipped to `bounds`.

    Raises
    ------
    ValueError
        Outcomes other than 0 and 1; an argument malformed or out of range.

    Notes
    -----
    With :math:`p_q \sim \mathrm{Beta}(\alpha_q, \beta_q)`, :math:`\alpha_q = \alpha_0 + c_q`,
    :math:`\beta_q = \beta_0 + n_q - c_q`, the metric is :math:`g(p_q) = 1 - (1 - p_q)^k` and

    .. math:: \mu = \sum_q \omega_q \mathrm{E}[g(p_q)], \qquad
              \sigma^2 = \sum_q \omega_q^2 \mathrm{Var}[g(p_q)], \qquad
              \mathrm{E}[g(p_q)] = 1 - \frac{B(\alpha_q, \beta_q + k)}{B(\alpha_q, \beta_q)}.

    The variance is evaluated as a square times a sum of positive terms, not as a difference of moments.

    Examples
    --------
    >>> from scorio.eval import pass_at_k_ci
    >>> mu, sigma, lo, hi = pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)
    >>> round(mu, 6), round(sigma, 6), round(lo, 4), round(hi, 4)
    (0.839286, 0.097263, 0.6487, 1.0)
    """
    return _posteriors.pass_at_k_posterior(trials, k, prior)


@by_posterior
def pass_hat_k_ci(trials: BinaryTrials, k: int, prior: Prior) -> Moments:
    r"""Posterior summary of Pass^k on `k` new trials of each question.

    Also under the names `unanimous_at_k_ci` and `g_pass_at_k_ci`.

    Parameters
    ----------
    R, k, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Notes
    -----
    As `pass_at_k_ci` with :math:`g(p) = p^k`, :math:`\mathrm{E}[g(p_q)] = B(\alpha_q + k, \beta_q) /
    B(\alpha_q, \beta_q)`.

    Examples
    --------
    >>> from scorio.eval import pass_hat_k_ci
    >>> mu, sigma, lo, hi = pass_hat_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)
    >>> round(mu, 6), round(sigma, 6), round(lo, 4), round(hi, 4)
    (0.446429, 0.146167, 0.1599, 0.7329)
    """
    return _posteriors.pass_hat_k_posterior(trials, k, prior)


unanimous_at_k_ci = pass_hat_k_ci


@by_posterior
def g_pass_at_k_ci(trials: BinaryTrials, k: int, prior: Prior) -> Moments:
    """Posterior summary of G-Pass@k with threshold 1: `pass_hat_k_ci`.

    Parameters
    ----------
    R, k, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Examples
    --------
    >>> from scorio.eval import g_pass_at_k_ci
    >>> mu, sigma, lo, hi = g_pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)
    >>> round(mu, 6), round(sigma, 6)
    (0.446429, 0.146167)
    """
    return _posteriors.pass_hat_k_posterior(trials, k, prior)


@by_posterior
def auc_at_k_ci(trials: BinaryTrials, k: int, prior: Prior) -> Moments:
    """Posterior summary of AUC@K on new trials of each question.

    Parameters
    ----------
    R, k, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Notes
    -----
    As `pass_at_k_ci` with the trapezoidal mean over j of :math:`1 - (1 - p)^j` in place of :math:`g(p)`.

    Examples
    --------
    >>> from scorio.eval import auc_at_k_ci
    >>> mu, sigma, lo, hi = auc_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)
    >>> round(mu, 6), round(sigma, 6)
    (0.809524, 0.09506)
    """
    return _posteriors.auc_at_k_posterior(trials, k, prior)


@by_posterior
def maj_at_k_ci(trials: BinaryTrials, k: int, prior: Prior) -> Moments:
    r"""Posterior summary of Maj@k on `k` new trials of each question.

    Parameters
    ----------
    R, k, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Notes
    -----
    As `pass_at_k_ci` with :math:`g(p) = P(X \ge \lfloor k / 2 \rfloor + 1)`, X binomial with parameters k and
    p.

    Examples
    --------
    >>> from scorio.eval import maj_at_k_ci
    >>> mu, sigma, lo, hi = maj_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)
    >>> round(mu, 6), round(sigma, 6), round(lo, 4), round(hi, 4)
    (0.684524, 0.151958, 0.3867, 0.9824)
    """
    return _posteriors.maj_at_k_posterior(trials, k, prior)


@by_posterior
def mg_pass_at_k_ci(trials: BinaryTrials, k: int, prior: Prior) -> Moments:
    r"""Posterior summary of mG-Pass@k on `k` new trials of each question.

    Parameters
    ----------
    R, k, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Notes
    -----
    As `pass_at_k_ci` with :math:`g(p) = \frac{2}{k} \mathrm{E}[\max(X - \lceil k / 2 \rceil, 0)]`, X
    binomial.

    Examples
    --------
    >>> from scorio.eval import mg_pass_at_k_ci
    >>> mu, sigma, lo, hi = mg_pass_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)
    >>> round(mu, 6), round(sigma, 6)
    (0.218254, 0.098816)
    """
    return _posteriors.mg_pass_at_k_posterior(trials, k, prior)


@by_any_posterior
def geo_spectrum_star_at_k_ci(trials: BinaryTrials, k: int, prior: Prior) -> Moments:
    """Approximate posterior summary of GeoSpectrum*, the default of `geo_spectrum_at_k_ci`.

    Parameters
    ----------
    R, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.
    k : int
        New trials, any ``k >= 1``.

    Returns
    -------
    mu, sigma, lo, hi : float

    Examples
    --------
    >>> from scorio.eval import geo_spectrum_star_at_k_ci
    >>> mu, sigma, lo, hi = geo_spectrum_star_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)
    >>> round(mu, 6), round(sigma, 6)
    (0.447288, 0.114255)
    """
    return _posteriors.geo_spectrum_at_k_posterior(trials, k, prior=prior)
