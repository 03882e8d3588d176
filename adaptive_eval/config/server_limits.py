"""Limits on what is in flight and on what is sent in a minute, as models and servers have them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from adaptive_eval.config.section import Count, Section

__all__ = ["RateLimitConfig", "read_concurrency"]


def read_concurrency(value: Any) -> Any:
    """Return a number of requests in flight, or ``auto``, as it is; ValueError for all else."""
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10_000):
        return value
    raise ValueError(f"{value!r} is neither 'auto' nor a whole number from 1 to 10000")


class RateLimitConfig(Section):
    """What may be sent in a minute: in every minute, not only on average."""

    requests_per_minute: Count | None = Field(default=None, description="Requests a minute.")
    tokens_per_minute: Count | None = Field(
        default=None, description="Tokens a minute, prompt and answer together."
    )
