"""Make metrics of one model and `k` trials from their kernels, by a decorator."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from numpy.typing import ArrayLike

from scorio._arguments import beta_prior, resamples
from scorio.arrays import Floats

from ._inputs import BinaryTrials, Missing, read_binary
from ._interval import Interval, credible_interval

Moments: TypeAlias = tuple[Floats, Floats]
Prior: TypeAlias = tuple[float, float]
Function = TypeVar("Function", bound=Callable[..., Any])


class MetricOfK(Protocol):
    """A metric of `k` drawn trials."""

    __name__: str

    def __call__(
        self,
        R: ArrayLike | None,
        k: int,
        *,
        counts: ArrayLike | None = None,
        missing: Missing = None,
        question_weights: ArrayLike | None = None,
    ) -> float:
        """Return the metric's value."""


class Summary(Protocol):
    """A posterior summary of a metric on `k` new trials."""

    __name__: str

    def __call__(
        self,
        R: ArrayLike | None,
        k: int,
        confidence: float = 0.95,
        bounds: Sequence[float] | None = (0.0, 1.0),
        alpha0: float = 1.0,
        beta0: float = 1.0,
        *,
        counts: ArrayLike | None = None,
        missing: Missing = None,
        question_weights: ArrayLike | None = None,
    ) -> Interval:
        """Return mean, deviation and interval."""


def by_draws(value: Callable[[BinaryTrials, int], Floats]) -> MetricOfK:
    """Make a metric from its value on counted trials."""

    def metric(
        R: ArrayLike | None,
        k: int,
        *,
        counts: ArrayLike | None = None,
        missing: Missing = None,
        question_weights: ArrayLike | None = None,
    ) -> float:
        trials = read_binary(R, counts, missing, question_weights)
        return float(value(trials, trials.draws(k)))

    return _named_like(value, metric)


def by_posterior(moments: Callable[[BinaryTrials, int, Prior], Moments]) -> Summary:
    """Make a posterior summary with ``k <= N`` from its moments on counted trials."""
    return _summary(moments, BinaryTrials.budget)


def by_any_posterior(moments: Callable[[BinaryTrials, int, Prior], Moments]) -> Summary:
    """Make a posterior summary with any ``k >= 1`` from its moments on counted trials."""
    return _summary(moments, lambda _, k: resamples(k))


def _summary(
    moments: Callable[[BinaryTrials, int, Prior], Moments],
    checked: Callable[[BinaryTrials, int], int],
) -> Summary:
    def summary(
        R: ArrayLike | None,
        k: int,
        confidence: float = 0.95,
        bounds: Sequence[float] | None = (0.0, 1.0),
        alpha0: float = 1.0,
        beta0: float = 1.0,
        *,
        counts: ArrayLike | None = None,
        missing: Missing = None,
        question_weights: ArrayLike | None = None,
    ) -> Interval:
        trials = read_binary(R, counts, missing, question_weights)
        found = moments(trials, checked(trials, k), beta_prior(alpha0, beta0))
        return credible_interval(*found, confidence, bounds)

    return _named_like(moments, summary)


def _named_like(source: Callable[..., Any], function: Function) -> Function:
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(function, attribute, getattr(source, attribute))
    return function
