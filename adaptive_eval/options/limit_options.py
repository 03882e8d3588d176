"""Prices and limits: the budgets of a run, a model or a task, and the rates of a server."""

from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from adaptive_eval.options.section import Count, Endpoint, Record, Seconds, Section, record


@record
class Price(Record):
    """Prices in USD per million tokens.

    Examples
    --------
    >>> Price(input=0.1, output=0.4, cached_input=0.05).picodollars(3, 1, cached=2)
    600000
    """

    input: float = Field(ge=0)
    """USD per million prompt tokens."""
    output: float = Field(ge=0)
    """USD per million answer tokens."""
    cached_input: float | None = Field(default=None, ge=0)
    """USD per million prompt tokens found in the cache."""

    def cost(self, prompt: int, completion: int, cached: int = 0) -> float:
        """Return the price of one request in USD."""
        return self.picodollars(prompt, completion, cached) / 1e12

    def picodollars(self, prompt: int, completion: int, cached: int = 0) -> int:
        """Return the price of one request in picodollars (10⁻¹² USD), exactly.

        Parameters
        ----------
        prompt, completion : int
            Tokens.
        cached : int
            Tokens of the prompt that were found in the cache.
        """
        cost = prompt * _per_token(self.input) + completion * _per_token(self.output)
        if cached and self.cached_input is not None:
            cost += min(cached, prompt) * (_per_token(self.cached_input) - _per_token(self.input))
        return cost

    def most(self, prompt: int, completion: int) -> int:
        """Return the highest cost of a request in picodollars, with any number of cached tokens."""
        dearest = max(self.input, self.cached_input or 0.0)
        return prompt * _per_token(dearest) + completion * _per_token(self.output)


@lru_cache(maxsize=256)
def _per_token(price: float) -> int:
    """Return USD per million tokens as picodollars per token, rounded up beyond the sixth decimal."""
    return int((Decimal(repr(price)) * 10**6).to_integral_value(ROUND_CEILING))


@record
class BudgetSpec(Record):
    """Limits of a run, a model or a task; a limit that is left out does not apply.

    Examples
    --------
    >>> BudgetSpec(trials="2k").limits()
    {'trials': 2000}
    """

    trials: Count | None = None
    """Trials, such as 20000 or 20k."""
    tokens: Count | None = None
    """Prompt and answer tokens, such as 50M."""
    usd: float | None = Field(default=None, gt=0, le=10**15)
    """US dollars."""
    wall_clock: Seconds | None = Field(default=None, gt=0)
    """Running time, such as 2h or 30m; a number alone is seconds."""
    prompt_tokens: Count | None = None
    """Prompt tokens."""
    completion_tokens: Count | None = None
    """Answer tokens."""

    def limits(self) -> dict[str, float]:
        """Return the limits by name."""
        limits = {name: getattr(self, name) for name in _LIMITS}
        return {name: limit for name, limit in limits.items() if limit is not None}

    @property
    def metered(self) -> bool:
        """Whether tokens or USD are limited, so that the worst case of a trial must be known."""
        return not self.limits().keys() <= {"trials", "wall_clock"}

    @property
    def limited(self) -> bool:
        """Whether anything is limited that trials take."""
        return self.trials is not None or self.metered


_LIMITS = ("trials", "tokens", "usd", "wall_clock", "prompt_tokens", "completion_tokens")


@record
class RunBudget(BudgetSpec):
    """Limits of the run; a limit that is left out does not apply."""

    at_deadline: Literal["drain", "cancel"] = "drain"
    """At the end of the run's time: await the requests in flight, or cancel them."""
    usage_on_failure: Literal["presume", "prompt-only", "none"] = "presume"
    """How a failed request counts that may have been billed: prompt and longest answer, the prompt, or
    nothing; with less than presume a bill may exceed the budget."""


def auto_or_up_to(most: int) -> BeforeValidator:
    """Return a check of a number from 1, or ``auto``."""

    def check(value: Any) -> Any:
        if value == "auto" or (isinstance(value, int) and value is not True and 1 <= value <= most):
            return value
        raise ValueError(f"{value!r} is neither 'auto' nor a whole number from 1 to {most}")

    return BeforeValidator(check)


AUTO_CONCURRENCY = 16
"""Requests in flight to begin with where `concurrency` is ``auto``."""

Concurrency: TypeAlias = Annotated[int | Literal["auto"], auto_or_up_to(10_000)]
"""A number of requests in flight."""


@record
class RateLimit(Record):
    """Requests and tokens allowed in every minute."""

    requests_per_minute: Count | None = None
    """Requests a minute."""
    tokens_per_minute: Count | None = None
    """Tokens a minute, prompt and answer together."""


class SharedLimits(Section):
    """Limits of one server, for all models that name it together; those of each model hold as well."""

    concurrency: Concurrency | None = None
    """Requests in flight there at once, of all models."""
    rate_limit: RateLimit | None = None
    """Requests and tokens a minute at this server, of all models."""


class ServerConfig(SharedLimits):
    """Limits of one server, for all models that name it together; those of each model hold as well."""

    url: Endpoint
    """Its base URL, as in the models' endpoints."""
