"""Make metrics of one model and `k` trials from their kernels, by a decorator."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from numpy.typing import ArrayLike

from scorio._arguments import beta_prior, resamples
from scorio._arrays import Floats
from scorio._signatures import with_own

from ._inputs import BinaryTrials, Missing, read_binary
from ._interval import Interval, credible_interval

Moments: TypeAlias = tuple[Floats, Floats]
Prior: TypeAlias = tuple[float, float]


class Drawn(Protocol):
    """A metric of `k` drawn trials; its own parameters follow `k`."""

    __name__: str

    def __call__(self, R: ArrayLike | None, k: int, *own: Any, **options: Any) -> float:
        """Return the metric's value."""


class Summary(Protocol):
    """A posterior summary of a metric on `k` new trials; its own parameters follow `k`."""

    __name__: str

    def __call__(self, R: ArrayLike | None, k: int, *own: Any, **options: Any) -> Interval:
        """Return mean, deviation and interval."""


def by_draws(value: Callable[..., Floats]) -> Drawn:
    """Make a metric from its value on counted trials."""

    def common(
        R: ArrayLike | None,
        k: int,
        *,
        counts: ArrayLike | None = None,
        missing: Missing = None,
        question_weights: ArrayLike | None = None,
    ) -> float:
        raise NotImplementedError

    def metric(asked: Mapping[str, Any], own: dict[str, Any]) -> float:
        trials = asked_trials(asked)
        return float(value(trials, trials.draws(asked["k"]), **own))

    return with_own(value, 2, common, 2, metric)


def by_posterior(moments: Callable[..., Moments]) -> Summary:
    """Make a posterior summary with ``k <= N`` from its moments on counted trials."""
    return _summary(moments, BinaryTrials.budget)


def by_any_posterior(moments: Callable[..., Moments]) -> Summary:
    """Make a posterior summary with any ``k >= 1`` from its moments on counted trials."""
    return _summary(moments, lambda _, k: resamples(k))


def _summary(moments: Callable[..., Moments], checked: Callable[[BinaryTrials, int], int]) -> Summary:
    def common(
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
        raise NotImplementedError

    def summary(asked: Mapping[str, Any], own: dict[str, Any]) -> Interval:
        trials = asked_trials(asked)
        prior = beta_prior(asked["alpha0"], asked["beta0"])
        found = moments(trials, checked(trials, asked["k"]), prior, **own)
        return credible_interval(*found, asked["confidence"], asked["bounds"])

    return with_own(moments, 3, common, 2, summary)


def asked_trials(asked: Mapping[str, Any], *, models: bool = False) -> BinaryTrials:
    """Return the trials that arguments by name give, of one model or of several."""
    given = (asked[name] for name in ("R", "counts", "missing", "question_weights"))
    return read_binary(*given, models=models)
