"""Decisions from posterior means and standard deviations, as in the published package's module of this name.

Every rule here is for one look at the data and takes posteriors as normal: repeated while trials arrive, it
stops too early. :mod:`scorio.sequential` holds the rules that may be repeated.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import bounds_pair, credibility, finite, numbers, one_of
from scorio.arrays import Floats

__all__ = [
    "ci_from_mu_sigma",
    "ranking_confidence",
    "should_stop",
    "should_stop_top1",
    "suggest_next_allocation",
]

Rule: TypeAlias = Literal["ci_overlap", "zscore"]


class Top1(TypedDict):
    """Result of :func:`should_stop_top1`."""

    stop: bool
    leader: int
    ambiguous: list[int]


def ranking_confidence(mu_a: float, sigma_a: float, mu_b: float, sigma_b: float) -> tuple[float, float]:
    """Return how sure the order of two scores is, and their distance in standard deviations.

    Parameters
    ----------
    mu_a, mu_b : float
        Posterior means.
    sigma_a, sigma_b : float
        Posterior standard deviations.

    Returns
    -------
    rho, z : float
        z = |mu_a - mu_b| / sqrt(sigma_a² + sigma_b²) and rho = Φ(z). Without any uncertainty z is infinite
        and rho is 1, or 0.5 if the means are equal.

    Raises
    ------
    ValueError
        If a number is not finite.

    Examples
    --------
    >>> rho, z = ranking_confidence(0.60, 0.03, 0.55, 0.04)
    >>> round(rho, 4), round(z, 4)
    (0.8413, 1.0)
    """
    from scipy.special import ndtr

    gap = abs(finite("mu_a", mu_a) - finite("mu_b", mu_b))
    spread = (finite("sigma_a", sigma_a) ** 2 + finite("sigma_b", sigma_b) ** 2) ** 0.5
    if spread == 0.0:
        return (0.5 if gap == 0.0 else 1.0), np.inf
    z = gap / spread
    return float(ndtr(z)), z


def ci_from_mu_sigma(
    mu: float, sigma: float, confidence: float = 0.95, clip: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Return the normal interval ``mu ± z sigma``.

    Parameters
    ----------
    mu, sigma : float
        Mean and standard deviation.
    confidence : float
        Mass of the interval, in (0, 1).
    clip : tuple of float, optional
        Lowest and highest value that the ends may have.

    Returns
    -------
    low, high : float

    Raises
    ------
    ValueError
        If `confidence` is outside (0, 1), or `sigma` is negative.

    Examples
    --------
    >>> low, high = ci_from_mu_sigma(0.9, 0.1, clip=(0.0, 1.0))
    >>> round(low, 4), high
    (0.704, 1.0)
    """
    if finite("sigma", sigma) < 0.0:
        raise ValueError(f"sigma must be at least 0; got {sigma!r}")
    reach = _reach(confidence) * sigma
    low, high = finite("mu", mu) - reach, mu + reach
    least, most = bounds_pair(clip, "clip")
    return float(max(least, low)), float(min(most, high))


def should_stop(
    sigma: float,
    confidence: float = 0.95,
    max_ci_width: float | None = None,
    max_half_width: float | None = None,
) -> bool:
    """Return whether the interval of one score is narrow enough.

    Parameters
    ----------
    sigma : float
        Standard deviation of the score.
    confidence : float
        Mass of the interval, in (0, 1).
    max_ci_width, max_half_width : float, optional
        Largest width of the interval, or half of it. Exactly one is given.

    Raises
    ------
    ValueError
        If both widths are given, or none, or `sigma` is negative.

    Examples
    --------
    >>> should_stop(0.01, max_half_width=0.02), should_stop(0.02, max_half_width=0.02)
    (True, False)
    """
    if finite("sigma", sigma) < 0.0:
        raise ValueError(f"sigma must be at least 0; got {sigma!r}")
    half = _reach(confidence) * sigma
    if max_ci_width is None and max_half_width is not None:
        return half <= finite("max_half_width", max_half_width)
    if max_ci_width is not None and max_half_width is None:
        return 2.0 * half <= finite("max_ci_width", max_ci_width)
    raise ValueError(
        "give exactly one of max_ci_width and max_half_width; "
        f"got max_ci_width={max_ci_width!r} and max_half_width={max_half_width!r}"
    )


def should_stop_top1(
    mus_in_id_order: Sequence[float] | ArrayLike,
    sigmas_in_id_order: Sequence[float] | ArrayLike,
    confidence: float = 0.95,
    method: Rule = "ci_overlap",
) -> Top1:
    """Return whether the model with the highest mean is parted from all others.

    Parameters
    ----------
    mus_in_id_order, sigmas_in_id_order : array_like, shape (L,)
        Posterior means and standard deviations.
    confidence : float
        In (0, 1).
    method : {'ci_overlap', 'zscore'}
        Parted from a model are intervals that do not overlap, or a :func:`ranking_confidence` of at least
        `confidence`.

    Returns
    -------
    dict
        ``stop``; ``leader``, the model's number; ``ambiguous``, the numbers of the models that it is not
        parted from.

    Raises
    ------
    ValueError
        If an argument is malformed or out of range.

    Examples
    --------
    >>> should_stop_top1([0.9, 0.5, 0.85], [0.02, 0.02, 0.02])
    {'stop': False, 'leader': 0, 'ambiguous': [2]}
    """
    mu, sigma, leader = _scores(mus_in_id_order, sigmas_in_id_order, confidence, method)
    if method == "ci_overlap":
        apart = _gaps(mu, sigma, leader, confidence) > 0.0
    else:
        apart = _confidences(mu, sigma, leader)[0] >= confidence
    apart[leader] = True
    ambiguous = np.flatnonzero(~apart).tolist()
    return {"stop": not ambiguous, "leader": leader, "ambiguous": ambiguous}


def suggest_next_allocation(
    mus_in_id_order: Sequence[float] | ArrayLike,
    sigmas_in_id_order: Sequence[float] | ArrayLike,
    confidence: float = 0.95,
    method: Rule = "ci_overlap",
) -> tuple[int, int]:
    """Return the model with the highest mean and the model that is hardest to part from it.

    Parameters
    ----------
    mus_in_id_order, sigmas_in_id_order, confidence, method
        As in :func:`should_stop_top1`; at least two models.

    Returns
    -------
    leader, competitor : int
        Of models that are equally hard to part, the first.

    Raises
    ------
    ValueError
        If an argument is malformed or out of range.

    Examples
    --------
    >>> suggest_next_allocation([0.9, 0.5, 0.85], [0.02, 0.02, 0.02])
    (0, 2)
    """
    mu, sigma, leader = _scores(mus_in_id_order, sigmas_in_id_order, confidence, method)
    if mu.size < 2:
        raise ValueError(f"mus_in_id_order must have at least two models; got {mu.size}")
    if method == "ci_overlap":
        margins = _gaps(mu, sigma, leader, confidence)
    else:
        margins = _confidences(mu, sigma, leader)[1]
    others = np.delete(np.arange(mu.size), leader)
    return leader, int(others[np.argmin(margins[others])])


def _reach(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + credibility(confidence) / 2.0))


def _scores(mus: ArrayLike, sigmas: ArrayLike, confidence: float, method: str) -> tuple[Floats, Floats, int]:
    """Return the means, the deviations and the leader after checking all arguments."""
    mu = numbers("mus_in_id_order", mus, "one mean a model")
    sigma = numbers("sigmas_in_id_order", sigmas, "one standard deviation a model", mu.size, least=0.0)
    one_of("method", method, get_args(Rule))
    credibility(confidence)
    return mu, sigma, int(np.argmax(mu))


def _gaps(mu: Floats, sigma: Floats, leader: int, confidence: float) -> Floats:
    """Return the leader's lower limit minus each model's upper limit."""
    reach = _reach(confidence)
    return np.asarray(mu[leader] - reach * sigma[leader] - (mu + reach * sigma))


def _confidences(mu: Floats, sigma: Floats, leader: int) -> Floats:
    """Return the ranking confidence and z of the leader against each model, shape (2, L)."""
    return np.array(
        [ranking_confidence(mu[leader], sigma[leader], m, s) for m, s in zip(mu, sigma, strict=True)]
    ).T
