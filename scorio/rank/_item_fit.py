"""The fit of item response models: Newton steps that eliminate the questions' parameters."""

from typing import NamedTuple

import numpy as np

from scorio.arrays import Floats, product
from scorio.rank._fitting import SETTLED, Prior, minimum, penalised, quadratic

LARGEST_LOG_DISCRIMINATION = 4.0
"""Log-discriminations are kept within plus and minus this: exp(4) = 55 is a step function."""

FIRST_DAMPING = 1e-3
MOST_DAMPING = 1e12
LEAST_INFORMATION = 1e-12


class Parameters(NamedTuple):
    """Abilities (L,), difficulties with mean 0 and log-discriminations (M,)."""

    theta: Floats
    b: Floats
    log_a: Floats


class Terms(NamedTuple):
    """First and second derivatives of the penalised likelihood."""

    slope: Parameters
    curvature: Parameters
    theta_b: Floats
    theta_a: Floats
    b_a: Floats


class ItemFit:
    """Right answers among the trials made, (L, M) each, under a prior of the abilities.

    Without `regularisation` all discriminations are 1.
    """

    def __init__(self, right: Floats, made: Floats, regularisation: float | None, prior: Prior) -> None:
        self.right = right
        self.made = made
        self.regularisation = regularisation
        self.prior = prior

    def solve(self, max_iter: int, name: str) -> Parameters:
        """Return the parameters at the minimum."""
        normal = quadratic(self.prior, len(self.right))
        if normal is None:
            return self._descend(self.start(), max_iter, name)
        at, damping = self.start(), FIRST_DAMPING
        value = self._value(at, *normal)
        for _ in range(max_iter):
            terms = self._terms(at, *normal)
            while damping < MOST_DAMPING:
                step = self._step(at, terms, damping)
                if step is not None:
                    there = self._moved(at, step)
                    reached = self._value(there, *normal)
                    gain = -sum(float(a @ b) for a, b in zip(terms.slope, step, strict=True))
                    if damping < 1.0 and gain <= SETTLED * (1.0 + value):
                        return there
                    if reached < value:
                        break
                damping = 10.0 * damping
            else:
                break
            at = there
            value = reached
            damping = damping / 10.0
        # Newton's steps are short where the block of a question is not convex at the minimum itself.
        return self._descend(at, max_iter, name)

    def start(self) -> Parameters:
        """Return the place at which fits begin."""
        share = (self.right + 0.5) / (self.made + 1.0)
        ability = share.mean(axis=1)
        ease = share.mean(axis=0)
        difficulty = np.log((1.0 - ease) / ease)
        theta = np.log(ability / (1.0 - ability)) - difficulty.mean()
        return Parameters(theta, difficulty - difficulty.mean(), np.zeros(ease.size))

    def _logits(self, at: Parameters) -> tuple[Floats, Floats]:
        """Return the logits, and exp(-|logit|)."""
        logit = np.exp(at.log_a) * (at.theta[:, None] - at.b)
        return logit, np.exp(-np.abs(logit))

    def _likelihood(self, at: Parameters) -> float:
        """Minus the log-likelihood, with the penalty of the discriminations."""
        logit, small = self._logits(at)
        losses = self.made * (np.maximum(logit, 0.0) + np.log1p(small)) - self.right * logit
        return float(losses.sum()) + (self.regularisation or 0.0) * float(at.log_a @ at.log_a)

    def _value(self, at: Parameters, centre: Floats, precision: float) -> float:
        return self._likelihood(at) + 0.5 * precision * float(((at.theta - centre) ** 2).sum())

    def _terms(self, at: Parameters, centre: Floats, precision: float) -> Terms:
        logit, small = self._logits(at)
        a = np.exp(at.log_a)
        high = 1.0 / (1.0 + small)
        error = self.made * np.where(logit >= 0.0, high, 1.0 - high) - self.right
        weight = self.made * high * (1.0 - high)
        information = weight * a**2
        theta = (error * a).sum(axis=1) + precision * (at.theta - centre)
        slope_b = -a * error.sum(axis=0)
        on_theta = information.sum(axis=1) + precision
        on_b = information.sum(axis=0)
        flat = np.zeros(a.size)
        if self.regularisation is None:
            still = Parameters(theta, slope_b, flat), Parameters(on_theta, on_b, flat + 1.0)
            return Terms(*still, -information, np.zeros((len(theta), 1)), flat)
        slope_a = (error * logit).sum(axis=0) + 2.0 * self.regularisation * at.log_a
        on_a = ((weight * logit + error) * logit).sum(axis=0) + 2.0 * self.regularisation
        b_a = -((weight * logit + error) * a).sum(axis=0)
        # Where a question's own block is not convex, the errors are left out: Fisher's scoring.
        error[:, on_b * on_a <= b_a**2] = 0.0
        theta_a = (weight * logit + error) * a
        on_a = (theta_a * logit).sum(axis=0) / a + 2.0 * self.regularisation
        b_a = -theta_a.sum(axis=0)
        # A discrimination that is at its limit and would leave it stays there.
        held = (np.abs(at.log_a) >= LARGEST_LOG_DISCRIMINATION) & (slope_a * at.log_a < 0.0)
        theta_a[:, held], b_a[held], slope_a[held], on_a[held] = 0.0, 0.0, 0.0, 1.0
        return Terms(
            Parameters(theta, slope_b, slope_a),
            Parameters(on_theta, on_b, on_a),
            -information,
            theta_a,
            b_a,
        )

    def _step(self, at: Parameters, terms: Terms, damping: float) -> Parameters | None:
        """Return the damped Newton step that keeps the mean difficulty; None if it leads nowhere."""
        slope = terms.slope
        (on_theta, on_b, on_a) = terms.curvature
        # A question far from every model tells nothing of its difficulty.
        on_b = (1.0 + damping) * np.maximum(on_b, LEAST_INFORMATION)
        on_a = (1.0 + damping) * on_a
        determinant = on_b * on_a - terms.b_a**2
        # The inverse of each question's 2 x 2 block.
        bb = on_a / determinant
        ba = -terms.b_a / determinant
        aa = on_b / determinant
        by_b = terms.theta_b * bb + terms.theta_a * ba
        by_a = terms.theta_b * ba + terms.theta_a * aa
        system = np.diag((1.0 + damping) * on_theta) - product(by_b, terms.theta_b.T)
        if self.regularisation is not None:
            system -= product(by_a, terms.theta_a.T)
        shift = by_b.sum(axis=1)
        total = bb.sum()
        system += np.outer(shift, shift) / total
        moved_b = bb * slope.b + ba * slope.log_a
        target = by_b @ slope.b + by_a @ slope.log_a - slope.theta - shift * moved_b.sum() / total
        try:
            root = np.linalg.cholesky(system)
        except np.linalg.LinAlgError:
            return None
        theta = np.linalg.solve(root.T, np.linalg.solve(root, target))
        pulled_b = slope.b + theta @ terms.theta_b
        pulled_a = slope.log_a + theta @ terms.theta_a
        level = (bb @ pulled_b + ba @ pulled_a) / total
        pulled_b = pulled_b - level
        return Parameters(theta, -(bb * pulled_b + ba * pulled_a), -(ba * pulled_b + aa * pulled_a))

    def _moved(self, at: Parameters, step: Parameters) -> Parameters:
        log_a = np.clip(at.log_a + step.log_a, -LARGEST_LOG_DISCRIMINATION, LARGEST_LOG_DISCRIMINATION)
        b = at.b + step.b
        return Parameters(at.theta + step.theta, b - b.mean(), log_a)

    def _descend(self, start: Parameters, max_iter: int, name: str) -> Parameters:
        """Minimise by L-BFGS, for a prior that is not normal; RuntimeError if it is not reached."""
        models, questions = self.right.shape

        def unpacked(x: Floats) -> Parameters:
            theta, b, log_a = np.split(x, [models, models + questions])
            return Parameters(theta, b - b.mean(), log_a)

        def likelihood(x: Floats) -> tuple[float, Floats]:
            at = unpacked(x)
            slope = self._terms(at, start.theta, 0.0).slope
            return self._likelihood(at), np.concatenate([slope.theta, slope.b - slope.b.mean(), slope.log_a])

        limit = 0.0
        if self.regularisation is not None:
            limit = LARGEST_LOG_DISCRIMINATION
        bounds: list[tuple[float | None, float | None]] = [(None, None)] * (models + questions)
        bounds += [(-limit, limit)] * questions
        objective = penalised(likelihood, self.prior, models, centred=False)
        return unpacked(minimum(objective, np.concatenate(start), max_iter, name, bounds))
