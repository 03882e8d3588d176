"""The ``notify`` section: whom to tell what while a run goes on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from adaptive_eval.config.section import EnvName, Section

__all__ = ["NotifyConfig"]

NoticeKind = Literal["pair_decided", "stopped", "error"]


def _command(value: Any) -> Any:
    if not isinstance(value, tuple) or not value or not all(isinstance(part, str) for part in value):
        raise ValueError("write the program and its arguments as a list of texts, such as [notify-send, run]")
    if not value[0]:
        raise ValueError("the first text is the program, and it is empty")
    return value


class NotifyConfig(Section):
    """Who is told of what happens: webhook, command, experiment trackers; none can delay or fail the run."""

    webhook_env: EnvName | None = Field(
        default=None,
        description="Name of the environment variable that holds the URL to post to; the URL is a secret.",
    )
    command: Annotated[tuple[str, ...] | None, BeforeValidator(_command)] = Field(
        default=None, description="Program with its arguments; it gets the notice as JSON on its input."
    )
    wandb: str | None = Field(
        default=None, min_length=1, description="Project of Weights & Biases that the figures are logged to."
    )
    mlflow: str | None = Field(
        default=None, min_length=1, description="Experiment of MLflow that the figures are logged to."
    )
    on: tuple[NoticeKind, ...] = Field(
        default=("pair_decided", "stopped", "error"), min_length=1, description="What to tell."
    )

    @model_validator(mode="after")
    def _somebody(self) -> NotifyConfig:
        if not any((self.webhook_env, self.command, self.wandb, self.mlflow)):
            raise ValueError("nobody would be told: give webhook_env, command, wandb or mlflow")
        return self
