"""The ``budget`` sections: of the run, and of a model or task alone."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from adaptive_eval.config.section import Count, Duration, Section

__all__ = ["BudgetConfig", "LimitsConfig"]


class LimitsConfig(Section):
    """What a model or a task may take on its own; what is left out is not limited."""

    trials: Count | None = Field(default=None, description="Trials, such as 20000 or 20k.")
    tokens: Count | None = Field(default=None, description="Prompt and answer tokens, such as 50M.")
    prompt_tokens: Count | None = Field(default=None, description="Prompt tokens.")
    completion_tokens: Count | None = Field(default=None, description="Answer tokens.")
    usd: float | None = Field(default=None, gt=0, description="US dollars.")
    wall_clock: Duration | None = Field(default=None, description="Running time, such as 2h or 30m.")

    def limits(self) -> dict[str, Any]:
        """Return what is limited, by name.

        Examples
        --------
        >>> BudgetConfig(trials="2k", at_deadline="cancel").limits()
        {'trials': 2000}
        """
        return self.model_dump(exclude={"at_deadline"}, exclude_none=True)


class BudgetConfig(LimitsConfig):
    """What the run may cost at most; what is left out is not limited."""

    at_deadline: Literal["drain", "cancel"] = Field(
        default="drain",
        description="When the time of the run is up: wait for the requests that are out, or cancel them.",
    )
