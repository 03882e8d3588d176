"""Posterior summaries on `k` new trials: the metrics without further parameters."""

from __future__ import annotations

from ._by_k import BinaryTrials, Moments, Prior, by_any_posterior, by_posterior
from ._kernels import _posteriors


@by_posterior
def pass_at_k_ci(trials: BinaryTrials, k: int, prior: Prior) -> Moments:
    r"""Posterior summary of Pass@k on `k` new trials of each question.

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

    Examples
    --------
    >>> from scorio.eval import geo_spectrum_star_at_k_ci
    >>> mu, sigma, lo, hi = geo_spectrum_star_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)
    >>> round(mu, 6), round(sigma, 6)
    (0.447288, 0.114255)
    """
    return _posteriors.geo_spectrum_at_k_posterior(trials, k, prior=prior)
