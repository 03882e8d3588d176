"""Forecasts of open contrasts: posterior-predictive simulation of their evidence.

A single number would mislead (a plug-in estimate is off by a factor of about two), so paths are drawn: the
true difference d from its posterior given (D, V), then the estimate as a Brownian motion with drift d in the
information I = 1/V, stopped where a winner or a tie would be called.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from scorio.sequential.contrasts import later_growth
from scorio.sequential.evidence import (
    MIN_QUESTIONS,
    MIN_Z2,
    MIXTURE,
    beyond,
    likelihood_variance,
    log_bayes_factor,
    log_evidence,
    log_tie_evidence,
    margin_variance,
    score_radius,
)

Floats = NDArray[np.float64]

GRID = 96
"""Moments of a path that are looked at, spaced geometrically."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The state of some open contrasts; every array has shape (P,).

    Parameters
    ----------
    difference, variance : ndarray of float
        D and V now.
    steps : ndarray of int
        Equal progress at which they were read.
    one_trial : ndarray of float
        σ_d², variance of the difference of one trial of each model on a random question.
    within : ndarray of float
        W, the part of it within questions.
    questions : int
        M, the number of questions.
    rounds : tuple of (int, ndarray of float), optional
        The step from which models follow rounds of their own, and the variance of a contrast by a round over
        that by passes of as many trials (:meth:`scorio.sequential.cells.Cells.variance_by_rounds`).
    population : bool
        Whether the questions are a sample, whose spread stays in V when all are asked.
    """

    difference: Floats
    variance: Floats
    steps: NDArray[np.int64]
    one_trial: Floats
    within: Floats
    questions: int
    rounds: tuple[int, Floats] | None = None
    population: bool = False

    def future_variance(self, steps: Floats) -> Floats:
        """Return V at future `steps` (shape (P, K)), scaled to agree with the present V."""

        def formula(at: Floats) -> Floats:
            asked = np.minimum(at, self.questions)
            between = np.maximum(self.one_trial - self.within, 0.0)[:, None]
            worth = at
            if self.rounds is not None:
                first, share = self.rounds
                worth = np.minimum(at, first) + np.maximum(at - first, 0.0) / share[:, None]
            all_asked = 0.0 if self.population else 1.0 / self.questions
            return np.asarray(between * (1.0 / asked - all_asked) + self.within[:, None] / worth)

        now = formula(np.maximum(self.steps, 1)[:, None].astype(np.float64))
        return np.asarray(self.variance[:, None] * formula(steps) / np.maximum(now, 1e-15))


def closing_steps(
    outlook: Outlook,
    *,
    threshold: float,
    horizon: int,
    rng: np.random.Generator,
    paths: int = 200,
    equivalence: float | None = None,
    alpha: float = 0.05,
    moments: int = GRID,
) -> Floats:
    """Draw the steps at which open contrasts will be called.

    Parameters
    ----------
    outlook : Outlook
        The contrasts.
    threshold : float
        Log e-value of a call.
    horizon : int
        Steps up to which paths are drawn.
    rng : numpy.random.Generator
        Source of randomness.
    paths : int
        Paths per contrast.
    equivalence : float, optional
        Equivalence margin ε.
    alpha : float
        Error level of a tie.
    moments : int
        Moments of a path that are looked at, spaced geometrically.

    Returns
    -------
    ndarray of float, shape (P, paths)
        Step of the call; inf where it lies beyond the horizon.

    Examples
    --------
    >>> one = np.ones(1)
    >>> outlook = Outlook(0.3 * one, 0.01 * one, np.array([40]), 0.4 * one, 0.3 * one, questions=200)
    >>> drawn = closing_steps(outlook, threshold=3.0, horizon=5000, rng=np.random.default_rng(1))
    >>> bool(np.median(drawn) < 200)
    True
    """
    pairs = outlook.difference.size
    start = np.maximum(outlook.steps, 1).astype(np.float64)
    ratio = np.maximum(horizon / start, 1.0 + 1e-9)
    grid = np.ceil(start[:, None] * ratio[:, None] ** (np.arange(1, moments + 1) / moments))
    variance = np.maximum(outlook.future_variance(grid), 1e-15)
    information = np.maximum.accumulate(1.0 / variance, axis=1)
    now = 1.0 / np.maximum(outlook.variance, 1e-15)
    gain = np.maximum(np.diff(np.concatenate([now[:, None], information], axis=1), axis=1), 0.0)
    drift = _posterior_draws(outlook.difference, outlook.variance, paths, rng)
    noise = rng.standard_normal((pairs, paths, moments))
    moves = drift[:, :, None] * gain[:, None, :] + np.sqrt(gain)[:, None, :] * noise
    estimate = ((outlook.difference * now)[:, None, None] + np.cumsum(moves, axis=2)) / information[
        :, None, :
    ]
    v = (1.0 / information)[:, None, :]
    called = (log_evidence(estimate, v, equivalence) >= threshold) & (estimate**2 > MIN_Z2 * v)
    if equivalence is not None:
        # As in :func:`scorio.sequential.contrasts.first_pass_margin`: of single answers, then of repeats.
        single = np.maximum(outlook.one_trial, 1e-12)
        likely = v * (likelihood_variance(single, equivalence) / single)[:, None, None]
        at_margin = np.maximum(margin_variance(estimate, v, grid[:, None, :], equivalence), v)
        share = (1.0 - beyond(alpha)) * (grid <= outlook.questions)[:, None, :]
        asked = np.minimum(grid, outlook.questions)
        at_margin += v * (later_growth(grid - asked, asked)[:, None, :] - 1.0)
        at_margin = share * likely + (1.0 - share) * at_margin
        called |= log_tie_evidence(estimate, at_margin, equivalence) >= log(1.0 / alpha)
    called &= (np.minimum(grid, outlook.questions) >= MIN_QUESTIONS)[:, None, :]
    first = called.argmax(axis=2)
    return np.where(called.any(axis=2), np.take_along_axis(grid, first, axis=1), np.inf)


def measured_steps(
    outlook: Outlook,
    score: Floats,
    width: Floats,
    *,
    alpha: float,
    horizon: int,
    rng: np.random.Generator,
    paths: int = 200,
) -> Floats:
    """Draw the steps at which scores will be measured to a width.

    What is uncertain is how large the variance is: it is drawn from its posterior, and with the score, from
    which it follows for right-or-wrong answers.

    Parameters
    ----------
    outlook : Outlook
        The scores' variances; `difference` is not used.
    score, width : ndarray of float, shape (P,)
        Scores in [0, 1], and the widths that their intervals shall have.
    alpha : float
        Error level of an interval.
    horizon, rng, paths
        As in :func:`closing_steps`.

    Returns
    -------
    ndarray of float, shape (P, paths)
        Step at which each is measured; inf where it lies beyond the horizon.

    Examples
    --------
    >>> one = np.ones(1)
    >>> outlook = Outlook(0.6 * one, 0.006 * one, np.array([40]), 0.24 * one, 0.2 * one, questions=200)
    >>> rng = np.random.default_rng(1)
    >>> steps = measured_steps(outlook, 0.6 * one, 0.2 * one, alpha=0.05, horizon=5000, rng=rng)
    >>> bool(100 < np.median(steps) < 400)
    True
    """
    start = np.maximum(outlook.steps, 1).astype(np.float64)
    ratio = np.maximum(horizon / start, 1.0 + 1e-9)
    grid = np.ceil(start[:, None] * ratio[:, None] ** (np.arange(1, GRID + 1) / GRID))
    future = np.maximum(outlook.future_variance(grid), 1e-15)
    drawn = rng.normal(score[:, None], np.sqrt(outlook.variance)[:, None], (score.size, paths))
    drawn = np.clip(drawn, 0.0, 1.0)
    least = 1.0 / (start + 2.0)[:, None]
    # A variance estimated from m questions has about m degrees of freedom.
    freedom = np.minimum(start, outlook.questions)[:, None]
    share = freedom / rng.chisquare(freedom, drawn.shape)
    share *= (
        np.maximum(drawn * (1.0 - drawn), least) / np.maximum(score * (1.0 - score), least[:, 0])[:, None]
    )
    future = np.minimum.accumulate(future, axis=1)
    enough = np.minimum(grid, outlook.questions) >= MIN_QUESTIONS
    # Intervals only become narrower, so the first moment at which one is narrow enough is found by halving.
    low, high = np.zeros(drawn.shape, dtype=np.int64), np.full(drawn.shape, GRID)
    while (low < high).any():
        at = np.minimum((low + high) // 2, GRID - 1)
        radius = score_radius(drawn, np.take_along_axis(future, at, axis=1) * share, alpha)
        done = (2.0 * radius <= width[:, None]) & np.take_along_axis(enough, at, axis=1)
        low, high = np.where((low < high) & ~done, at + 1, low), np.where((low < high) & done, at, high)
    steps = np.take_along_axis(grid, np.minimum(low, GRID - 1), axis=1)
    return np.where(low < GRID, steps, np.inf)


def _posterior_draws(difference: Floats, variance: Floats, paths: int, rng: np.random.Generator) -> Floats:
    """Draw true differences given estimates, under the mixture that the evidence is built on."""
    log_weight = np.stack([np.log(w) + log_bayes_factor(difference, variance, tau) for w, tau in MIXTURE])
    share = np.exp(log_weight - np.logaddexp.reduce(log_weight, axis=0))
    component = (rng.random((difference.size, paths)) > share[0][:, None]).astype(np.int64)
    tau2 = np.array([tau * tau for _, tau in MIXTURE])[component]
    d, v = difference[:, None], variance[:, None]
    shrink = tau2 / (tau2 + v)
    return np.asarray(d * shrink + np.sqrt(shrink * v) * rng.standard_normal(component.shape))
