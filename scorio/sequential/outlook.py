"""Forecasts of open contrasts: posterior-predictive simulation of their evidence.

A single number would mislead (a plug-in estimate is off by a factor of about two), so paths are drawn: the
true difference d from its posterior given (D, V), then the estimate as a Brownian motion with drift d in the
information I = 1/V, stopped where a winner or a tie would be called.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scorio.sequential.contrasts import ENOUGH_NOISE, TRUST
from scorio.sequential.evidence import (
    GUARD,
    MIN_QUESTIONS,
    MIXTURE,
    confidence_radius,
    log_bayes_factor,
    log_evidence,
    log_tie_evidence,
    tie_variance,
)
from scorio.sequential.trial_sequence import MAX_REPEATS, REPEAT_EVERY

Floats = NDArray[np.float64]

HALF = 0.5
"""Squared differences beyond those seen, in the mean that future ones are expected to have."""
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
    known : ndarray of float, optional
        The smaller G of the models, by default as if both had half of W.
    kappa : ndarray of float, shape (2, P), optional
        Continuity terms of V before the first repeats and since; of right-or-wrong answers by default.
    """

    difference: Floats
    variance: Floats
    steps: NDArray[np.int64]
    one_trial: Floats
    within: Floats
    questions: int
    rounds: tuple[int, Floats] | None = None
    population: bool = False
    known: Floats | None = None
    kappa: Floats | None = None

    @classmethod
    def of(
        cls,
        difference: Floats,
        variance: Floats,
        steps: NDArray[np.int64],
        square: Floats,
        within: Floats,
        questions: int,
        **others: Any,
    ) -> Outlook:
        """Return the outlook of contrasts whose squared values on single questions have the mean `square`.

        What that mean holds of W became smaller by the trials that a question has.
        """
        asked = np.maximum(np.minimum(steps, questions), 1)
        between = np.maximum(square + HALF / asked - within * asked / np.maximum(steps, 1), 0.0)
        return cls(difference, variance, steps, between + within, within, questions, **others)

    def future_variance(
        self, steps: Floats, growth: Floats | float = 1.0, known: Floats | None = None
    ) -> Floats:
        """Return V at future `steps` (shape (P, K)), scaled to agree with the present V.

        With `growth` (which may broadcast to (P, paths, K)) answers differ so many times as often; `known` is
        G at these steps.
        """
        return self._ratio(steps) * self._variance(steps, growth, known)

    def known_noise(self, steps: Floats, more: Floats | float = 1.0) -> Floats:
        """Return G at future `steps`, if what comes is so many times what is expected."""
        start = np.maximum(self.steps, 1).astype(np.float64)
        known = 0.5 * self.within * start if self.known is None else self.known
        # Of two models that little is known of, the one with less noise may have it by chance.
        trust = known / (known + ENOUGH_NOISE)
        trust = np.where(np.isinf(known), 1.0, trust)
        a_trial = trust * known / start + (1.0 - trust) * 0.5 * self.within
        return _wide(known, steps) + _wide(a_trial, steps) * more * (steps - _wide(start, steps))

    def true_variance(self, steps: Floats, growth: Floats | float = 1.0) -> Floats:
        """Return the same without what V has for safety: the variance that D has."""
        asked = self.asked(steps)
        all_asked = 0.0 if self.population else 1.0 / self.questions
        between = _wide(np.maximum(self.one_trial - self.within, 0.0), steps) * (1.0 / asked - all_asked)
        return self._ratio(steps) * growth * (between + self._within(steps))

    def repeats(self, steps: Floats) -> Floats:
        """Return the repeated answers of each model by some steps."""
        first = REPEAT_EVERY * max(-(-self.questions // (8 * REPEAT_EVERY)), 1)
        calibration = np.clip((steps - first + REPEAT_EVERY) // (REPEAT_EVERY + 1), 0.0, MAX_REPEATS)
        return np.maximum(calibration, steps - self.questions)

    def asked(self, steps: Floats) -> Floats:
        """Return the questions asked by some steps."""
        return np.asarray(np.minimum(np.maximum(steps - self.repeats(steps), 1.0), self.questions))

    def _ratio(self, steps: Floats) -> Floats:
        now = self._variance(np.maximum(self.steps, 1)[:, None].astype(np.float64), 1.0)[:, 0]
        return _wide(self.variance / np.maximum(now, 1e-15), steps)

    def _within(self, steps: Floats) -> Floats:
        worth = steps
        if self.rounds is not None:
            first, share = self.rounds
            worth = np.minimum(steps, first) + np.maximum(steps - first, 0.0) / _wide(share, steps)
        return _wide(self.within, steps) / worth

    def _parts(
        self, steps: Floats, kappa: Floats | float, growth: Floats | float
    ) -> tuple[Floats, Floats, Floats]:
        """Return the variances by the spread between questions and within them, and the share asked."""
        asked, within = self.asked(steps), growth * self._within(steps)
        spread = growth * _wide(np.maximum(self.one_trial - self.within, 0.0), steps) + within * asked
        fraction = np.zeros(1) if self.population else asked / self.questions
        return (spread * asked + kappa) / asked**2, within, np.asarray(fraction)

    def _variance(self, steps: Floats, growth: Floats | float, known: Floats | None = None) -> Floats:
        """Return :func:`scorio.sequential.contrasts.contrast_variance` of what is expected at `steps`."""
        asked, repeats = self.asked(steps), self.repeats(steps)
        early, late = (0.0, GUARD) if self.kappa is None else (_wide(one, steps) for one in self.kappa)
        kappa = np.where(repeats > 0.0, late, early)
        between, within, fraction = self._parts(steps, kappa, growth)
        n, noise = steps / asked, growth * _wide(self.within, steps)
        # Little noise has been seen: the larger of it and of that of uniform priors, as for two models.
        uniform = (n * (n - 1.0) * noise + 2.0 * (n + 1.0)) / (n * n * (n + 3.0)) / asked
        known = self.known_noise(steps) if known is None else known
        trust = np.where(noise > 0.0, 1.0 - (TRUST / (TRUST + repeats)) ** 2, 1.0)
        seen = (1.0 - trust) * between + trust * (within + kappa / steps**2)
        guarded = np.minimum(between, np.maximum(within, uniform))
        within = np.where((known >= ENOUGH_NOISE) | (noise <= 0.0), seen, guarded)
        return np.asarray((1.0 - fraction) * between + fraction * within)


def _wide(values: Floats, steps: Floats) -> Floats:
    """Return values of contrasts, shape (P,), with the dimensions of `steps`."""
    return values.reshape(values.shape + (1,) * (steps.ndim - 1))


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
    steps = grid[:, None, :]
    # How often answers will differ is known from those that did; what is estimated of it follows.
    differed = np.maximum(outlook.one_trial * start, HALF)[:, None]
    growth = (rng.gamma(differed, size=(pairs, paths)) / differed)[:, :, None]
    seen = growth + (1.0 - growth) * (start[:, None] / grid)[:, None, :]
    information = np.maximum.accumulate(1.0 / np.maximum(outlook.true_variance(steps, growth), 1e-15), axis=2)
    begin = start[:, None, None]
    variance = np.maximum(outlook.true_variance(begin), 1e-15)[:, 0, 0]
    now = 1.0 / np.maximum(outlook.true_variance(begin, growth), 1e-15)
    gain = np.maximum(np.diff(np.concatenate([now, information], axis=2), axis=2), 0.0)
    drift = _posterior_draws(outlook.difference, variance, paths, rng)[:, :, None]
    noise = rng.standard_normal((pairs, paths, moments))
    moves = drift * gain + np.sqrt(gain) * noise
    estimate = (outlook.difference[:, None, None] * now + np.cumsum(moves, axis=2)) / information
    seen_noise = np.clip(outlook.known_noise(begin)[:, :, 0], HALF, 1e6)
    more = (rng.gamma(seen_noise, size=(pairs, paths)) / seen_noise)[:, :, None]
    v = np.maximum(outlook.future_variance(steps, seen, outlook.known_noise(steps, more)), 1e-15)
    called = log_evidence(estimate, v, equivalence) >= threshold
    if equivalence is not None:
        n = outlook.asked(steps) if outlook.population else steps
        at_margin = tie_variance(estimate, v, v, n, equivalence)
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
        radius = confidence_radius(np.take_along_axis(future, at, axis=1) * share, alpha)
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
