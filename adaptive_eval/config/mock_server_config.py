"""The ``mimic`` section: the server of biased coins that the run starts for itself.

It has the fields of :class:`adaptive_eval.mock_server.mock_spec.MimicSpec`; the questions and their right
answers are those of the run's tasks.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from adaptive_eval.config.section import Label, Section

__all__ = ["FaultConfig", "LatencyConfig", "MimicConfig", "MimicModelConfig", "TokensConfig"]


class LatencyConfig(Section):
    """Seconds from request to answer, lognormal."""

    median: float = Field(default=0.0, ge=0, description="Median in seconds; 0 answers at once.")
    sigma: float = Field(default=0.4, ge=0, description="Standard deviation of the logarithm.")
    correct_factor: float = Field(
        default=1.0, ge=0, description="Right answers take this many times as long."
    )


class TokensConfig(Section):
    """Lengths of prompts and answers in tokens."""

    prompt_overhead: int = Field(
        default=8, ge=0, description="Tokens that the chat template adds to a prompt."
    )
    completion_median: int = Field(default=60, ge=1, description="Median length of an answer.")
    completion_sigma: float = Field(
        default=0.3, ge=0, description="Standard deviation of the logarithm of that length."
    )


class FaultConfig(Section):
    """One way to misbehave, and when; without a trigger every request is struck."""

    kind: Literal["status", "hang", "drop", "malformed", "cut_off", "echo_key"] = Field(
        description="What happens."
    )
    probability: float | None = Field(default=None, ge=0, le=1, description="Chance for each attempt.")
    first: int | None = Field(default=None, ge=1, description="The first so many requests.")
    requests: tuple[int, int] | None = Field(default=None, description="Requests number i to j, from 1.")
    every: int | None = Field(default=None, ge=1, description="Every so many-th request.")
    attempts: int | None = Field(
        default=None, ge=1, description="The first so many attempts of each distinct request."
    )
    status: int = Field(default=500, ge=400, le=599, description="HTTP status of the kind status.")
    retry_after: float | None = Field(default=None, ge=0, description="Seconds for the Retry-After header.")
    seconds: float | None = Field(default=None, ge=0, description="Length of a hang that ends.")
    after: float = Field(
        default=0.5, ge=0, le=1, description="Share of the answer's bytes sent before hang or drop."
    )
    finish_reason: Literal["abort", "length"] = Field(default="abort", description="What cut_off says.")


class MimicModelConfig(Section):
    """One model of biased coins: a chance to be right for every question."""

    mean: float | None = Field(default=None, ge=0, le=1, description="Mean probability of a right answer.")
    accuracies: tuple[float, ...] | None = Field(
        default=None, min_length=1, description="Probabilities given outright, in the order of the questions."
    )
    spread: float = Field(
        default=8.0, ge=1e-6, description="Concentration of the questions' probabilities around the mean."
    )
    like: Label | None = Field(
        default=None, description="A model whose easy questions are easy for this one too."
    )
    latency: LatencyConfig | None = Field(
        default=None, description="How long answers take; default: the mimic's."
    )
    tokens: TokensConfig | None = Field(
        default=None, description="How long prompts and answers are; default: the mimic's."
    )
    faults: tuple[FaultConfig, ...] = Field(default=(), description="How this model misbehaves.")
    context_length: int = Field(
        default=131_072, ge=1, description="Tokens that prompt and answer may have together."
    )
    ignores: tuple[Literal["seed", "n", "max_tokens", "stop", "logprobs"], ...] = Field(
        default=(), description="Parameters that are taken without a word and have no effect."
    )
    cached: bool = Field(
        default=False, description="Answer a prompt always with the same text, as a proxy that caches."
    )


class MimicConfig(Section):
    """The server of biased coins."""

    models: dict[Label, MimicModelConfig] = Field(min_length=1, description="The models it serves, by id.")
    seed: int = Field(
        default=0, ge=0, lt=2**63, description="Seed of every coin, length, latency and random fault."
    )
    correlation: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="How much the same questions are hard for every model; 1: entirely.",
    )
    latency: LatencyConfig = Field(default_factory=LatencyConfig, description="How long answers take.")
    tokens: TokensConfig = Field(
        default_factory=TokensConfig, description="How long prompts and answers are."
    )
    faults: tuple[FaultConfig, ...] = Field(default=(), description="How the whole server misbehaves.")
    slow_start: float = Field(
        default=0.0, ge=0, description="Seconds after the start during which everything is answered 503."
    )
    answer: str = Field(
        default="The answer is \\boxed{{answer}}.",
        description="The last sentence of an answer, with {answer} in it.",
    )

    def spec_data(self) -> dict[str, Any]:
        """Return the section as plain data in the form of a mimic's spec, without its questions.

        Examples
        --------
        >>> mimic = MimicConfig(models={"a": {"mean": 0.7}}, latency={"median": 0.05})
        >>> mimic.spec_data()["models"][0]["latency"]["median"]
        0.05
        """
        defaults = {"latency": self.latency, "tokens": self.tokens}
        data = self.model_dump(exclude={"models", *defaults})
        data["models"] = [
            {
                "name": name,
                **model.model_dump(exclude=set(defaults)),
                **{
                    part: (getattr(model, part) or default).model_dump() for part, default in defaults.items()
                },
            }
            for name, model in self.models.items()
        ]
        return data
