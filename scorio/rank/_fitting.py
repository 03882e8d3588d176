"""Maximum likelihood and maximum a posteriori, and the priors: penalties of the abilities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import finite, positive, whole
from scorio.arrays import Floats
from scorio.eval._inputs import read_binary


@runtime_checkable
class Prior(Protocol):
    """Anything with a penalty of the centred abilities, shape (L,)."""

    def penalty(self, theta: Floats) -> float:
        """Return minus the log-density at `theta`, up to a constant."""


@dataclass(frozen=True)
class GaussianPrior:
    """Normal prior: ``sum (theta - mean)^2 / (2 var)``.

    Examples
    --------
    >>> GaussianPrior(var=0.5).penalty(np.array([1.0, -1.0]))
    2.0
    """

    mean: float = 0.0
    var: float = 1.0

    def __post_init__(self) -> None:
        finite("mean", self.mean)
        positive("var", self.var)

    def penalty(self, theta: Floats) -> float:
        """Return the penalty of `theta`."""
        return float(((theta - self.mean) ** 2).sum() / (2.0 * self.var))


@dataclass(frozen=True)
class _Located:
    """A prior with a place and a width."""

    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        finite("loc", self.loc)
        positive("scale", self.scale)


class LaplacePrior(_Located):
    """Laplace prior: ``sum |theta - loc| / scale``."""

    def penalty(self, theta: Floats) -> float:
        """Return the penalty of `theta`."""
        return float(np.abs(theta - self.loc).sum() / self.scale)


class CauchyPrior(_Located):
    """Cauchy prior: ``sum log(1 + ((theta - loc) / scale)^2)``."""

    def penalty(self, theta: Floats) -> float:
        """Return the penalty of `theta`."""
        return float(np.log1p(((theta - self.loc) / self.scale) ** 2).sum())


@dataclass(frozen=True)
class UniformPrior:
    """Flat prior: maximum likelihood."""

    def penalty(self, theta: Floats) -> float:
        """Return 0."""
        return 0.0


SYMMETRIC = (GaussianPrior, LaplacePrior, CauchyPrior, UniformPrior)
"""Priors that treat all models alike."""


@dataclass(frozen=True)
class CustomPrior:
    """A function of the abilities as penalty."""

    penalty_fn: Callable[[Floats], float]

    def __post_init__(self) -> None:
        if not callable(self.penalty_fn):
            raise ValueError(f"penalty_fn must be a function of the abilities; got {self.penalty_fn!r}")

    def penalty(self, theta: Floats) -> float:
        """Return the penalty of `theta`."""
        return float(self.penalty_fn(theta))


class EmpiricalPrior:
    """Normal prior around the centred log-odds of each model's accuracy in previous outcomes.

    Parameters
    ----------
    R0 : array_like of int, shape (L, M, D) or (L, M)
        Previous outcomes, 0 or 1.
    var : float
        Variance around the log-odds.
    eps : float
        Accuracies are moved into [eps, 1 - eps], 0 < eps < 0.5.
    """

    def __init__(self, R0: ArrayLike, var: float = 1.0, eps: float = 1e-6) -> None:
        self.var = positive("var", var)
        if not 0.0 < finite("eps", eps) < 0.5:
            raise ValueError(f"eps must be in (0, 0.5); got {eps!r}")
        trials = read_binary(R0, None, None, None, models=True)
        accuracy = np.clip(trials.correct.mean(axis=1) / trials.n, eps, 1.0 - eps)
        log_odds = np.log(accuracy / (1.0 - accuracy))
        self.prior_mean: Floats = log_odds - log_odds.mean()

    def penalty(self, theta: Floats) -> float:
        """Return the penalty of `theta`."""
        if theta.shape != self.prior_mean.shape:
            raise ValueError(f"R0 must have {theta.size} models; got {self.prior_mean.size}")
        return float(((theta - self.prior_mean) ** 2).sum() / (2.0 * self.var))


def read_prior_penalty(prior: Any) -> Prior:
    """Return a prior; a number is the variance of a normal prior around 0."""
    if isinstance(prior, Real):
        return GaussianPrior(0.0, positive("prior", prior))
    if not isinstance(prior, Prior):
        raise TypeError(f"prior must be a variance or an object with a penalty method; got {prior!r}")
    return prior


SETTLED = 1e-14
"""Gain of the last Newton step, as a share of the value: what rounding leaves."""
_SHORTEST = 1e-6
"""Share of a Newton step below which rounding hides whether it is downwards."""

Objective: TypeAlias = Callable[[Floats], tuple[float, Floats]]


def minimum(
    objective: Objective,
    start: Floats,
    max_iter: int,
    method: str,
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
) -> Floats:
    """Return the minimum of `objective` (value and gradient); RuntimeError if it is not reached."""
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    scale = max(1.0, abs(objective(start)[0]))

    def scaled(x: Floats) -> tuple[float, Floats]:
        value, gradient = objective(x)
        return value / scale, gradient / scale

    # Bounds are those of 2PL, whose flat valleys take thousands of iterations to the last digits.
    accuracy = 1e-15 if bounds is None else 1e-12
    left = whole("max_iter", max_iter)
    x = start
    value = np.inf
    while left > 0:
        options: Any = {"maxiter": left, "ftol": accuracy, "gtol": 1e-9}
        with threadpool_limits(1, "blas"):  # its solves of 20 x 20 would wait for a second thread
            found = minimize(scaled, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        # A line search that fails at the minimum finds nothing better from there either.
        if found.success or (found.status == 2 and value - found.fun <= 10.0 * accuracy):
            return found.x
        x = found.x
        value = found.fun
        left = left - max(found.nit, 1)
    raise not_converged(method, max_iter)


class Derivatives(NamedTuple):
    """A value with its first derivatives (P,) and its second ones (P, P)."""

    value: float
    slope: Floats
    curvature: Floats


def convex_minimum(
    likelihood: Callable[[Floats], Derivatives],
    start: Floats,
    prior: Prior,
    models: int,
    max_iter: int,
    name: str,
) -> Floats:
    """Return the minimum of minus a log-likelihood, which is convex, and the penalty of the first `models`.

    A common level of the models changes neither; that of `start` is kept. Newton's steps for a normal prior:
    L-BFGS, for others, takes many more.
    """
    most = whole("max_iter", max_iter)
    normal = quadratic(prior, models)
    if normal is None:
        objective = penalised(lambda x: likelihood(x)[:2], prior, models)
        return minimum(objective, start, most, name)
    centre, precision = normal
    level = np.full((models, models), 1.0 / models)

    def terms(x: Floats) -> Derivatives:
        found = likelihood(x)
        away = x[:models] - x[:models].mean() - centre
        found.slope[:models] += precision * (away - away.mean())
        found.curvature[:models, :models] += precision * (np.eye(models) - level) + level
        return found._replace(value=found.value + 0.5 * precision * float(away @ away))

    at, now = start, terms(start)
    for _ in range(most):
        step = np.linalg.solve(now.curvature, now.slope)
        gain = float(step @ now.slope)
        if gain <= SETTLED * (1.0 + now.value):
            return np.asarray(at - step)
        size = 1.0
        reached = terms(at - step)
        while reached.value > now.value - 0.25 * size * gain and size > _SHORTEST:
            size /= 2.0
            reached = terms(at - size * step)
        at = at - size * step
        now = reached
    raise not_converged(name, most)


def not_converged(name: str, max_iter: int) -> RuntimeError:
    """Return the error of a fit that has taken all its iterations."""
    return RuntimeError(f"{name} has not converged in max_iter = {max_iter} iterations; allow more")


def quadratic(prior: Prior, models: int) -> tuple[Floats, float] | None:
    """Return the centre (L,) and the precision of a normal prior, 0 of a flat one; None of others."""
    if isinstance(prior, UniformPrior):
        return np.zeros(models), 0.0
    if isinstance(prior, GaussianPrior):
        return np.full(models, prior.mean), 1.0 / prior.var
    if isinstance(prior, EmpiricalPrior):
        prior.penalty(np.zeros(models))
        return prior.prior_mean, 1.0 / prior.var
    return None


def penalised(likelihood: Objective, prior: Prior, models: int, *, centred: bool = True) -> Objective:
    """Add the penalty of the first `models` parameters, centred or not, to minus a log-likelihood."""
    if isinstance(prior, UniformPrior):
        return likelihood

    def objective(x: Floats) -> tuple[float, Floats]:
        value, gradient = likelihood(x)
        centre = 0.0
        if centred:
            centre = x[:models].mean()
        theta = x[:models] - centre
        slope = _slope(prior, theta)
        added = np.zeros(x.size)
        centre = 0.0
        if centred:
            centre = slope.mean()
        added[:models] = slope - centre
        return value + prior.penalty(theta), gradient + added

    return objective


def _slope(prior: Prior, theta: Floats) -> Floats:
    if isinstance(prior, GaussianPrior):
        return (theta - prior.mean) / prior.var
    step = 1e-6
    moved = theta + step * np.vstack([np.eye(theta.size), -np.eye(theta.size)])
    values = np.array(list(map(prior.penalty, moved)))
    return np.asarray((values[: theta.size] - values[theta.size :]) / (2.0 * step))


def require_connected(wins: Floats, method: str) -> None:
    """Raise ValueError if maximum likelihood has no finite solution (Ford 1957)."""
    from scipy.sparse.csgraph import connected_components

    if connected_components(wins > 0, directed=True, connection="strong")[0] > 1:
        raise ValueError(
            f"R must connect all models by wins in both directions, or {method} has no finite "
            f"maximum-likelihood solution; use {method}_map"
        )
