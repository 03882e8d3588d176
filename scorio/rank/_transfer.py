"""Early rankings with the help of earlier results of the same models: a model-level random effect."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Floats, floats
from scorio.eval._inputs import Missing, read_categories, read_prior
from scorio.eval._kernels import _categories
from scorio.rank._ranked import Ranking, ranked
from scorio.rank._ties import TieMethod

_TAU_GRID = np.concatenate([[0.0], np.geomspace(0.01, 0.5, 24)])
"""Standard deviations of the change of a model's score, in ranges of the rewards; equally likely a priori."""


@dataclass(frozen=True, slots=True, eq=False)
class TransferPosterior:
    """Scores with the help of earlier results.

    Parameters
    ----------
    mu, sigma : float array, shape (..., L)
        Posterior mean and standard deviation of each model's score.
    tau : float array, shape (...)
        Posterior mean of τ, the standard deviation of how far scores have moved since the earlier results.
    """

    mu: Floats
    sigma: Floats
    tau: Floats


def transfer_posterior(
    mean: ArrayLike,
    variance: ArrayLike,
    earlier_mean: ArrayLike,
    earlier_variance: ArrayLike,
    scale: float = 1.0,
) -> TransferPosterior:
    r"""Combine models' scores with their scores in earlier results.

    If earlier trials are added up with new ones (`R0` of :func:`bayes`), they never give way, however
    much the models have changed. Here a model's score may have moved by a normal amount whose standard
    deviation τ is the same for all models and is learned from them: the less the new scores resemble the
    earlier ones, the less these count, and with growing `N` they count for nothing.

    Parameters
    ----------
    mean, variance : array_like, shape (..., L)
        Score of each model and its variance, at least 0.
    earlier_mean, earlier_variance : array_like, shape (..., L)
        The same of earlier results; NaN for a model that has none.
    scale : float
        Range of the rewards, above 0.

    Returns
    -------
    TransferPosterior
        A model without earlier results keeps its mean and variance.

    Raises
    ------
    ValueError
        If a value is not finite where it must be, a variance is negative, or shapes do not fit together.

    Notes
    -----
    :math:`\mu_l \sim \mathcal N(\mu^0_l, v^0_l + \tau^2)`, so that given τ the posterior mean of model l is
    :math:`(\mu^0_l v_l + \bar x_l (v^0_l + \tau^2)) / (v_l + v^0_l + \tau^2)`. It is averaged over a grid of
    τ (0 and 24 values from 0.01 to 0.5 of `scale`, all as likely) with the marginal likelihood
    :math:`\prod_l \mathcal N(\bar x_l; \mu^0_l, v_l + v^0_l + \tau^2)` as weight.

    Examples
    --------
    >>> found = transfer_posterior([0.5, 0.6], [0.01, 0.01], [0.4, np.nan], [0.0, np.nan])
    >>> found.mu.round(3)
    array([0.431, 0.6  ])
    """
    x, v, x0, v0 = np.broadcast_arrays(
        *(floats(value) for value in (mean, variance, earlier_mean, earlier_variance))
    )
    _check(x, v, x0, v0, scale)
    known = ~np.isnan(x0)
    gap = np.where(known, x - x0, 0.0)[..., None]
    grid = _TAU_GRID * scale
    # The smallest double keeps the case of two exact values and τ = 0 finite.
    prior = np.where(known, v0, 0.0)[..., None] + grid**2
    total = np.maximum(prior + v[..., None], np.finfo(np.float64).tiny)
    fit = np.where(known[..., None], -0.5 * (np.log(total) + gap**2 / total), 0.0).sum(axis=-2)
    weight = np.exp(fit - fit.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True)
    trust = np.where(known[..., None], prior / total, 1.0)
    shift = (trust - 1.0) * gap
    mu = x + np.einsum("...lt,...t->...l", shift, weight)
    second = trust * v[..., None] + (shift - (mu - x)[..., None]) ** 2
    sigma = np.sqrt(np.einsum("...lt,...t->...l", second, weight))
    return TransferPosterior(mu, sigma, np.asarray(weight @ grid))


def transfer(
    R: ArrayLike | None,
    R0: ArrayLike | None = None,
    w: ArrayLike | None = None,
    method: TieMethod = "competition",
    return_scores: bool = False,
    *,
    counts: ArrayLike | None = None,
    missing: Missing = None,
    prior_counts: ArrayLike | None = None,
    question_weights: ArrayLike | None = None,
) -> Ranking:
    """Rank models early, from few trials and earlier results of the same models.

    Means and variances are those of avg@N (:func:`scorio.eval.avg`), combined by
    :func:`transfer_posterior`. For early rankings only: it holds no error rate.

    Parameters
    ----------
    R, w, method, return_scores, counts, missing, question_weights
        As in :func:`bayes`. Every model needs a trial of every question.
    R0 : array_like of int, shape (L, M, D), optional
        Categories of earlier trials of each model; `R0` or `prior_counts` is needed.
    prior_counts : array_like of int, shape (L, M, C + 1), optional
        Earlier trials in each category, in place of `R0`. A model without earlier results has none for any
        question.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        1 is best.
    scores : numpy.ndarray, shape (L,)
        With `return_scores` only: posterior means.

    Raises
    ------
    ValueError
        If an argument is malformed, or a model has no trial of a question, or earlier trials of some
        questions only.

    Examples
    --------
    >>> earlier = [[[1, 1, 0], [1, 1, 1]], [[0, 1, 0], [0, 0, 0]]]
    >>> transfer([[1, 0], [1, 0]], earlier)
    array([1, 2])
    """
    trials = read_categories(R, w, counts, missing, question_weights, models=True)
    trials.require_trials("transfer")
    before = read_prior(R0, prior_counts, trials, missing)
    if before is None or before.ndim != 3:
        raise ValueError(
            "transfer needs earlier trials of each model: give R0 of shape (L, M, D), "
            "or prior_counts of shape (L, M, C + 1)"
        )
    asked = before.sum(axis=-1) > 0
    known = asked.all(axis=-1)
    partial = np.flatnonzero(asked.any(axis=-1) & ~known)
    if partial.size:
        model = int(partial[0])
        question = int(np.flatnonzero(~asked[model])[0])
        raise ValueError(
            f"model {model} has earlier trials, but none of question {question}; give one of every question, "
            "or none"
        )
    mean, sigma = _categories.avg(trials.counts, trials.w, trials.question_weights)
    earlier, earlier_sigma = np.full((2, len(mean)), np.nan)
    if known.any():
        earlier[known], earlier_sigma[known] = _categories.avg(
            before[known], trials.w, trials.question_weights
        )
    found = transfer_posterior(mean, sigma**2, earlier, earlier_sigma**2, float(np.ptp(trials.w)) or 1.0)
    return ranked(found.mu, method, return_scores, trials.size)


def _check(x: Floats, v: Floats, x0: Floats, v0: Floats, scale: float) -> None:
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"scale must be a finite number above 0, got {scale!r}")
    known = ~np.isnan(x0)
    for name, values in (("mean", x), ("earlier_mean", x0[known])):
        bad = values[~np.isfinite(values)]
        if bad.size:
            raise ValueError(f"{name} must be finite, got {bad[0]}")
    for name, values in (("variance", v), ("earlier_variance", v0[known])):
        bad = values[~(np.isfinite(values) & (values >= 0))]
        if bad.size:
            raise ValueError(f"{name} must be finite and at least 0, got {bad[0]}")
