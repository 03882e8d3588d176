"""The ``executor`` section: where requests are made and answers scored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from adaptive_eval.config.secret_checks import shown
from adaptive_eval.config.section import Seconds, Section

__all__ = ["ExecutorConfig"]


def _address(value: str) -> str:
    scheme, _, rest = value.rpartition("://")
    host, _, port = rest.rpartition(":")
    if value in ("auto", "local") or (scheme in ("", "ray") and host and port.isdecimal()):
        return value
    raise ValueError(
        f"{shown(value)} is no address of a cluster: write local (start one on this machine), auto (the one "
        "this machine belongs to), HOST:PORT, or ray://HOST:10001"
    )


class ExecutorConfig(Section):
    """Where requests are made and answers scored: in this process, or by workers on a cluster of Ray."""

    kind: Literal["local", "ray"] = Field(
        default="local", description="local: in this process; ray: by workers on a cluster of Ray."
    )
    address: Annotated[str, AfterValidator(_address)] = Field(
        default="auto",
        description="The cluster: auto (the one this machine belongs to), local (started for the run), "
        "HOST:PORT or ray://HOST:PORT.",
    )
    actors: int = Field(default=2, ge=1, le=10_000, description="Workers.")
    cpus_per_actor: float = Field(
        default=1.0,
        gt=0,
        description="CPUs that a worker takes on its node: it scores as many answers at once.",
    )
    jobs_per_actor: int = Field(
        default=256, ge=1, description="Requests and scores that one worker has in hand at most."
    )
    patience: Seconds = Field(
        default=300.0, gt=0, description="Time without any worker after which the run ends; resume goes on."
    )

    @model_validator(mode="before")
    @classmethod
    def _says_which(cls, data: Any) -> Any:
        if isinstance(data, dict) and data and "kind" not in data:
            raise ValueError(f"kind is missing: {', '.join(data)} would do nothing; write kind: ray")
        return data
