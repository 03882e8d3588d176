"""Limits: the budgets of a run, a model or a task, and the rates of a server."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from adaptive_eval.config.section import Count, Duration, Section

NO_LIMITS = ("at_deadline", "usage_on_failure")
"""Fields of a budget that limit nothing themselves."""


class LimitsConfig(Section):
    """Limits of one model or task; a limit that is left out does not apply."""

    trials: Count | None = Field(default=None, description="Trials, such as 20000 or 20k.")
    tokens: Count | None = Field(default=None, description="Prompt and answer tokens, such as 50M.")
    prompt_tokens: Count | None = Field(default=None, description="Prompt tokens.")
    completion_tokens: Count | None = Field(default=None, description="Answer tokens.")
    usd: float | None = Field(default=None, gt=0, description="US dollars.")
    wall_clock: Duration | None = Field(default=None, description="Running time, such as 2h or 30m.")

    def limits(self) -> dict[str, Any]:
        """Return the limits by name.

        Examples
        --------
        >>> BudgetConfig(trials="2k", at_deadline="cancel").limits()
        {'trials': 2000}
        """
        return self.model_dump(exclude=set(NO_LIMITS), exclude_none=True)


class BudgetConfig(LimitsConfig):
    """Limits of the run; a limit that is left out does not apply."""

    at_deadline: Literal["drain", "cancel"] = Field(
        default="drain",
        description="At the end of the run's time: await the requests in flight, or cancel them.",
    )
    usage_on_failure: Literal["presume", "prompt-only", "none"] = Field(
        default="presume",
        description="How a failed request counts that may have been billed: prompt and longest answer, the "
        "prompt, or nothing; with less than presume a bill may exceed the budget.",
    )


def auto_or_up_to(most: int) -> BeforeValidator:
    """Return a check of a number from 1, or ``auto``."""

    def check(value: Any) -> Any:
        if value == "auto" or (isinstance(value, int) and value is not True and 1 <= value <= most):
            return value
        raise ValueError(f"{value!r} is neither 'auto' nor a whole number from 1 to {most}")

    return BeforeValidator(check)


Concurrency: TypeAlias = Annotated[int | Literal["auto"], auto_or_up_to(10_000)]
"""A number of requests in flight."""


class RateLimitConfig(Section):
    """Requests and tokens allowed in every minute."""

    requests_per_minute: Count | None = Field(default=None, description="Requests a minute.")
    tokens_per_minute: Count | None = Field(
        default=None, description="Tokens a minute, prompt and answer together."
    )


class SharedLimits(Section):
    """Limits of one server, for all models that name it together; those of each model hold as well."""

    concurrency: Concurrency | None = Field(
        default=None, description="Requests in flight there at once, of all models."
    )
    rate_limit: RateLimitConfig | None = Field(
        default=None, description="Requests and tokens a minute at this server, of all models."
    )
