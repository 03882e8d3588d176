"""Make metrics of one model and `k` trials from their kernels, by a decorator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Signature, signature
from typing import Any, TypeAlias, TypeVar

from numpy.typing import ArrayLike

from scorio._arguments import beta_prior, resamples
from scorio._arrays import Floats

from ._inputs import BinaryTrials, Missing, read_binary
from ._interval import Interval, credible_interval

Moments: TypeAlias = tuple[Floats, Floats]
Prior: TypeAlias = tuple[float, float]
Function = TypeVar("Function", bound=Callable[..., Any])


def by_draws(value: Callable[..., Floats | float]) -> Callable[..., float]:
    """Make a metric from its value on counted trials; further parameters of `value` follow `k`."""

    def metric(
        R: ArrayLike | None,
        k: int,
        *own: Any,
        counts: ArrayLike | None = None,
        missing: Missing = None,
        question_weights: ArrayLike | None = None,
        **own_by_name: Any,
    ) -> float:
        trials = read_binary(R, counts, missing, question_weights)
        return float(value(trials, trials.draws(k), *own, **own_by_name))

    R, k, _, *weights, _ = signature(metric).parameters.values()
    own = list(signature(value).parameters.values())[2:]
    return _like(value, metric, Signature([R, k, *own, *weights]))


def by_posterior(moments: Callable[..., Moments]) -> Callable[..., Interval]:
    """Make a posterior summary with ``k <= N`` from its moments on counted trials."""
    return _summary(moments, BinaryTrials.budget)


def by_any_posterior(moments: Callable[..., Moments]) -> Callable[..., Interval]:
    """Make a posterior summary with any ``k >= 1`` from its moments on counted trials."""
    return _summary(moments, lambda _, k: resamples(k))


def _summary(
    moments: Callable[..., Moments], checked: Callable[[BinaryTrials, int], int]
) -> Callable[..., Interval]:
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

    def summary(asked: Mapping[str, Any], own: Sequence[Any]) -> Interval:
        trials = read_binary(asked["R"], asked["counts"], asked["missing"], asked["question_weights"])
        k, prior = checked(trials, asked["k"]), beta_prior(asked["alpha0"], asked["beta0"])
        return credible_interval(*moments(trials, k, prior, *own), asked["confidence"], asked["bounds"])

    return with_own(moments, 3, common, 2, summary)


def with_own(
    source: Callable[..., Any],
    taken: int,
    common: Callable[..., Any],
    first: int,
    call: Callable[[Mapping[str, Any], Sequence[Any]], Any],
) -> Callable[..., Any]:
    """Return a function with the name and docstring of `source`, the parameters of `common`, and its own.

    Its own parameters, those of `source` behind the number `taken`, stand behind the `first` of `common`.
    `call` gets all arguments by name, and the values of its own.
    """
    parameters = list(signature(common).parameters.values())
    own = list(signature(source).parameters.values())[taken:]
    form = Signature([*parameters[:first], *own, *parameters[first:]])

    def function(*args: Any, **options: Any) -> Any:
        given = form.bind(*args, **options)
        given.apply_defaults()
        return call(given.arguments, [given.arguments[one.name] for one in own])

    return _like(source, function, form)


def _like(source: Callable[..., Any], function: Function, form: Signature) -> Function:
    """Give a function the name and docstring of its source, and a signature."""
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(function, attribute, getattr(source, attribute))
    function.__signature__ = form  # type: ignore[attr-defined]
    return function
