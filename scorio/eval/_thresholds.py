"""G-Pass@k_tau, threshold spectra and GeoSpectrum."""

from numpy.typing import ArrayLike

from scorio._arguments import beta_prior, coupling, resamples, spectrum_weights, unit

from ._inputs import Missing, read_binary
from ._interval import Interval, credible_interval
from ._kernels import _bank_metrics, _posteriors


def g_pass_at_k_tau(
    R: ArrayLike | None,
    k: int,
    tau: float,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""G-Pass@k_tau: probability that at least a share `tau` of `k` of a question's trials is correct.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.
    tau : float
        Share in [0, 1] of the `k` trials that is to be correct. 0 is Pass@k (at least one), 1 is Pass^k.

    Returns
    -------
    float
        Mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        As `pass_at_k`; `tau` outside [0, 1].

    Notes
    -----
    The number X of correct trials among the `k` is hypergeometric; :math:`P(X \ge j_0)` with :math:`j_0 =
    \max(1, \lceil \tau k \rceil)` [1]_, the smallest j with ``j / k >= tau`` in double precision. (The
    product would ask for 12 of 20 trials at ``tau = 0.55``, because ``0.55 * 20`` rounds to more than 11.)

    References
    ----------
    .. [1] Liu et al. (2024). Are Your LLMs Capable of Stable Reasoning? arXiv:2412.13147.

    Examples
    --------
    >>> from scorio.eval import g_pass_at_k_tau
    >>> R = [[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]]
    >>> round(g_pass_at_k_tau(R, 2, 0.5), 6), round(g_pass_at_k_tau(R, 2, 1.0), 6)
    (0.95, 0.45)
    """
    trials = read_binary(R, counts, missing, question_weights)
    k = trials.draws(k)
    return float(_bank_metrics.g_pass_at_k_tau(trials, k, unit("tau", tau)))


def g_pass_at_k_tau_ci(
    R: ArrayLike | None,
    k: int,
    tau: float,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    alpha0: float = 1.0,
    beta0: float = 1.0,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Interval:
    r"""Posterior summary of G-Pass@k_tau on `k` new trials of each question.

    Parameters
    ----------
    R, k, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.
    tau : float
        As in `g_pass_at_k_tau`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `pass_at_k_ci`; `tau` outside [0, 1].

    Notes
    -----
    As `pass_at_k_ci` with :math:`g(p) = P(X \ge j_0)`, X binomial with parameters k and p.

    Examples
    --------
    >>> from scorio.eval import g_pass_at_k_tau_ci
    >>> mu, sigma, lo, hi = g_pass_at_k_tau_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3, 0.5)
    >>> round(mu, 6), round(sigma, 6)
    (0.684524, 0.151958)
    """
    trials = read_binary(R, counts, missing, question_weights)
    mu, sigma = _posteriors.g_pass_at_k_tau_posterior(
        trials, trials.budget(k), unit("tau", tau), beta_prior(alpha0, beta0)
    )
    return credible_interval(mu, sigma, confidence, bounds)


def threshold_spectrum_at_k(
    R: ArrayLike | None,
    k: int,
    weights: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""Threshold spectrum: weighted sum of the probabilities that at least r of `k` drawn trials are correct.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.
    weights : array_like of float, shape (k,)
        Weights ``w_1 .. w_k`` of the thresholds, at least 0 with a sum of at most 1.

    Returns
    -------
    float
        Mean over questions, in [0, 1].

    Raises
    ------
    ValueError
        As `pass_at_k`; `weights` of another length, negative, not finite, or with a sum above 1.

    Notes
    -----
    :math:`S_{w,k} = \sum_{r=1}^{k} w_r P(X \ge r) = \mathrm{E}[A_X]`, X the hypergeometric number of correct
    trials among the `k` and :math:`A_j = \sum_{r \le j} w_r` the score of the event :math:`X = j`.

    Examples
    --------
    >>> from scorio.eval import threshold_spectrum_at_k
    >>> round(threshold_spectrum_at_k([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3, [0.2, 0.3, 0.5]), 6)
    0.58
    """
    trials = read_binary(R, counts, missing, question_weights)
    k = trials.draws(k)
    checked = spectrum_weights(weights, k)
    return float(_bank_metrics.threshold_spectrum_at_k(trials, k, checked))


def threshold_spectrum_at_k_ci(
    R: ArrayLike | None,
    k: int,
    weights: ArrayLike,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    alpha0: float = 1.0,
    beta0: float = 1.0,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Interval:
    r"""Posterior summary of a threshold spectrum on `k` new trials of each question.

    Parameters
    ----------
    R, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.
    k : int
        New trials, any ``k >= 1``.
    weights : array_like of float, shape (k,)
        As in `threshold_spectrum_at_k`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `pass_at_k_ci`; `weights` as in `threshold_spectrum_at_k`.

    Notes
    -----
    As `pass_at_k_ci` with :math:`g(p) = \sum_{j=1}^{k} A_j \binom{k}{j} p^j (1 - p)^{k - j}`. The moments are
    exact to rounding: a quadrature that integrates these polynomials against a Beta density.

    Examples
    --------
    >>> from scorio.eval import threshold_spectrum_at_k_ci
    >>> mu, sigma, lo, hi = threshold_spectrum_at_k_ci(
    ...     [[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3, [0.2, 0.3, 0.5]
    ... )
    >>> round(mu, 6), round(sigma, 6)
    (0.552381, 0.128807)
    """
    trials = read_binary(R, counts, missing, question_weights)
    k = resamples(k)
    mu, sigma = _posteriors.threshold_spectrum_at_k_posterior(
        trials, k, spectrum_weights(weights, k), beta_prior(alpha0, beta0)
    )
    return credible_interval(mu, sigma, confidence, bounds)


def geo_spectrum_at_k(
    R: ArrayLike | None,
    k: int,
    lam: float = 0.5,
    weights: ArrayLike | None = None,
    lambda_: float | None = None,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> float:
    r"""GeoSpectrum: geometric blend of the dataset's Pass@k and a threshold spectrum.

    Parameters
    ----------
    R, k, counts, missing, question_weights
        As in `pass_at_k`.
    lam : float, default 0.5
        Coupling in [0, 1]; 1 is Pass@k, 0 the spectrum.
    weights : array_like of float, shape (k,), optional
        As in `threshold_spectrum_at_k`; by default those of mG-Pass@k, which make this GeoSpectrum*. With
        ``lam = 1`` they do not matter and are not looked at.
    lambda_ : float, optional
        Another name of `lam`.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        As `threshold_spectrum_at_k`; `lam` outside [0, 1].
    TypeError
        Both `lam` and `lambda_` given.

    Notes
    -----
    :math:`\mathrm{Pass@}k(R)^\lambda \, S_{w,k}(R)^{1 - \lambda}`; the default is
    :math:`\sqrt{\mathrm{Pass@}k(R) \, \mathrm{mG\text{-}Pass@}k(R)}`.

    Examples
    --------
    >>> from scorio.eval import geo_spectrum_at_k
    >>> R = [[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]]
    >>> round(geo_spectrum_at_k(R, 3), 6), round(geo_spectrum_at_k(R, 3, lambda_=1.0), 6)
    (0.408248, 1.0)
    """
    trials = read_binary(R, counts, missing, question_weights)
    k = trials.draws(k)
    return float(_bank_metrics.geo_spectrum_at_k(trials, k, *coupling(lam, lambda_, weights, k)))


def geo_spectrum_at_k_ci(
    R: ArrayLike | None,
    k: int,
    lam: float = 0.5,
    weights: ArrayLike | None = None,
    lambda_: float | None = None,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    alpha0: float = 1.0,
    beta0: float = 1.0,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> Interval:
    r"""Approximate posterior summary of GeoSpectrum on `k` new trials of each question.

    Parameters
    ----------
    R, confidence, bounds, alpha0, beta0, counts, missing, question_weights
        As in `pass_at_k_ci`.
    k : int
        New trials, any ``k >= 1``.
    lam, weights, lambda_
        As in `geo_spectrum_at_k`.

    Returns
    -------
    mu, sigma, lo, hi : float

    Raises
    ------
    ValueError
        As `pass_at_k_ci`; `lam` and `weights` as in `geo_spectrum_at_k`.
    TypeError
        Both `lam` and `lambda_` given.

    Notes
    -----
    The delta method to first order around the posterior means of the dataset's Pass@k and spectrum, with
    their exact variances and covariance.

    Examples
    --------
    >>> from scorio.eval import geo_spectrum_at_k_ci
    >>> mu, sigma, lo, hi = geo_spectrum_at_k_ci([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 3)
    >>> round(mu, 6), round(sigma, 6)
    (0.447288, 0.114255)
    """
    trials = read_binary(R, counts, missing, question_weights)
    k = resamples(k)
    mu, sigma = _posteriors.geo_spectrum_at_k_posterior(
        trials, k, *coupling(lam, lambda_, weights, k), beta_prior(alpha0, beta0)
    )
    return credible_interval(mu, sigma, confidence, bounds)
