"""Rankings by blends of Pass@k and Pass^k and by threshold spectra: the GeoSpectrum family."""

from __future__ import annotations

from numpy.typing import ArrayLike

from scorio.eval import _kernels
from scorio.eval._arguments import power, spectrum_weights, unit
from scorio.rank._ranked import Ranking, ranked
from scorio.rank._tensor import Missing, read_binary
from scorio.rank._ties import TieMethod

__all__ = [
    "geo_spectrum_at_k",
    "geo_spectrum_star_at_k",
    "geom_at_k",
    "geom_ds_at_k",
    "threshold_spectrum_at_k",
]


def geom_at_k(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`~scorio.rank.pass_at_k`.
    pass_power, unanimous_power : float
        Exponents of Pass@k and of Pass^k.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.geom_at_k`.

    Raises
    ------
    ValueError
        If an argument is malformed, `k` is out of range, or a negative exponent makes a score infinite.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> geom_at_k(R, 2)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights)
    scores = _kernels.geom_at_k(
        trials.correct,
        trials.n,
        trials.draws(k),
        power("pass_power", pass_power),
        power("unanimous_power", unanimous_power),
        trials.question_weights,
    )
    return ranked(scores, method, return_scores)


def geom_ds_at_k(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`~scorio.rank.pass_at_k`.
    pass_power, unanimous_power : float
        Exponents of Pass@k and of Pass^k.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.geom_ds_at_k`.

    Raises
    ------
    ValueError
        If an argument is malformed, `k` is out of range, or a negative exponent makes a score infinite.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> geom_ds_at_k(R, 2)
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights)
    scores = _kernels.geom_ds_at_k(
        trials.correct,
        trials.n,
        trials.draws(k),
        power("pass_power", pass_power),
        power("unanimous_power", unanimous_power),
        trials.question_weights,
    )
    return ranked(scores, method, return_scores)


def geo_spectrum_at_k(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`~scorio.rank.pass_at_k`.
    lam : float
        Coupling λ in [0, 1]: the score is Pass@k^λ · S^(1 − λ), S the threshold spectrum.
    weights : array_like, shape (k,), optional
        Weights of the spectrum, at least 0 with a sum of at most 1; default: those that make S mG-Pass@k.
        With ``lam = 1`` they are not looked at.
    lambda_ : float, optional
        Another name of `lam`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.geo_spectrum_at_k`.

    Raises
    ------
    ValueError
        If an argument is malformed, or `k` or `lam` is out of range.
    TypeError
        If both `lam` and `lambda_` are given.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> geo_spectrum_at_k(R, 2)
    array([1, 2])
    >>> geo_spectrum_at_k(R, 2, lam=1.0)
    array([2, 1])
    """
    trials = read_binary(R, counts, missing, question_weights)
    k = trials.draws(k)
    coupling = _coupling(lam, lambda_)
    checked = None if weights is None or coupling == 1.0 else spectrum_weights(weights, k)
    scores = _kernels.geo_spectrum_at_k(
        trials.correct, trials.n, k, coupling, checked, trials.question_weights
    )
    return ranked(scores, method, return_scores)


def geo_spectrum_star_at_k(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`~scorio.rank.pass_at_k`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.geo_spectrum_star_at_k`.

    Raises
    ------
    ValueError
        If an argument is malformed or `k` is out of range.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> geo_spectrum_star_at_k(R, 2)
    array([1, 2])
    """
    return geo_spectrum_at_k(
        R,
        k,
        method=method,
        return_scores=return_scores,
        counts=counts,
        missing=missing,
        question_weights=question_weights,
    )


def threshold_spectrum_at_k(
    R: ArrayLike | None,
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
    R, k, method, return_scores, counts, missing, question_weights
        As in :func:`~scorio.rank.pass_at_k`.
    weights : array_like, shape (k,)
        Weight w_r of "at least r of `k` trials are correct", at least 0 with a sum of at most 1.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: values of :func:`scorio.eval.threshold_spectrum_at_k`.

    Raises
    ------
    ValueError
        If an argument is malformed or `k` is out of range.

    Examples
    --------
    >>> R = [[[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    >>> threshold_spectrum_at_k(R, 2, [1.0, 0.0])
    array([2, 1])
    >>> threshold_spectrum_at_k(R, 2, [0.0, 1.0])
    array([1, 2])
    """
    trials = read_binary(R, counts, missing, question_weights)
    k = trials.draws(k)
    scores = _kernels.threshold_spectrum_at_k(
        trials.correct, trials.n, k, spectrum_weights(weights, k), trials.question_weights
    )
    return ranked(scores, method, return_scores)


def _coupling(lam: float, lambda_: float | None) -> float:
    if lambda_ is None:
        return float(unit("lam", lam))
    if lam != 0.5:
        raise TypeError(f"lam and lambda_ are one argument; got lam={lam!r} and lambda_={lambda_!r}")
    return float(unit("lambda_", lambda_))
