"""The sections that name results of earlier runs: models to compare with, and priors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from adaptive_eval.options.mistakes import Place, shown, twice
from adaptive_eval.options.section import Label, Section


class ReferenceConfig(Section):
    """Models whose results are all in: they are asked nothing, and the models are compared with them."""

    run: str | None = Field(default=None, min_length=1, description="The earlier run's directory.")
    file: str | None = Field(
        default=None, min_length=1, description="A file of recorded outcomes, instead of a run."
    )
    models: tuple[Label, ...] = Field(min_length=1, description="Names of its models to compare with.")


class PriorConfig(Section):
    """Earlier results that enter the estimates, never a stopping decision."""

    from_: str = Field(
        alias="from", min_length=1, description="The earlier run's directory, or a file of recorded outcomes."
    )
    depth: int = Field(
        default=1,
        ge=1,
        le=10**6,
        description="How many earlier trials per question Bayes@N starts from; 1 to 4 help.",
    )
    transfer: bool = Field(
        default=False,
        description="Give an early ranking too, from all earlier trials, through a model-level effect.",
    )


def reference_names(config: Mapping[str, Any]) -> list[str]:
    """Return the names of all references of a config given as plain data."""
    return [name for _, name in _named(config)]


def check_references(config: Mapping[str, Any], models: Sequence[str]) -> Iterator[tuple[Place, str]]:
    """Yield what is wrong with the references of a config."""
    for place, item in enumerate(_sections(config)):
        if (item.get("run") is None) == (item.get("file") is None):
            yield ("references", place), "give run (an earlier run's directory) or file (recorded outcomes)"
    seen: list[str] = []
    for path, name in _named(config):
        if name in models:
            words = f"{shown(name)} is also a model of this config; a model is asked or a reference"
            yield path, twice(words)
        elif name in seen:
            yield path, twice(f"{shown(name)} appears twice")
        seen.append(name)
    stopping = config.get("stopping")
    if seen and isinstance(stopping, dict) and stopping.get("rule") == "exact":
        yield ("stopping", "rule"), "exact reads single trials, which references do not have; use anytime"


def _sections(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = config.get("references")
    return [item if isinstance(item, dict) else {} for item in found] if isinstance(found, tuple) else []


def _named(config: Mapping[str, Any]) -> list[tuple[Place, str]]:
    return [
        (("references", place, "models", position), name)
        for place, item in enumerate(_sections(config))
        if isinstance(item.get("models"), tuple)
        for position, name in enumerate(item["models"])
        if isinstance(name, str)
    ]
