"""A model's ``endpoints`` where they are found: in files, or by a command."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from adaptive_eval.options.limits import SharedLimits
from adaptive_eval.options.mistakes import Place
from adaptive_eval.options.section import Endpoint, Seconds, Section


class DiscoveryConfig(Section):
    """Servers that come and go, and where it is said which are there."""

    discover: str
    every: Seconds = Field(default=10.0, gt=0, le=86_400, description="Seconds from one reading to the next.")
    patience: Seconds = Field(
        default=600.0,
        ge=0,
        le=8_640_000,
        description="Seconds without any server, the first one included, after which the model is stopped.",
    )
    each: SharedLimits = Field(
        default_factory=SharedLimits,
        description="Limits of each server that is found, unless servers has its address.",
    )

    @property
    def source(self) -> str:
        """The source to read and how; models with equal sections share one source."""
        return json.dumps(self.model_dump(mode="json", exclude={"patience", "each"}), sort_keys=True)


class FileDiscovery(DiscoveryConfig):
    """A file, or all that a pattern matches, with host:port or a URL on each line."""

    discover: Literal["file"] = Field(description="They are written into files.")
    path: str = Field(
        min_length=1,
        max_length=1000,
        description="The file, or a pattern such as servers/*.txt; from the config's folder.",
    )


class CommandDiscovery(DiscoveryConfig):
    """A command that writes host:port or a URL on each line of its output."""

    discover: Literal["command"] = Field(description="A command names them.")
    run: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        min_length=1, description="Program and arguments; it runs in the config's folder, without a shell."
    )
    every: Seconds = Field(default=30.0, gt=0, le=86_400, description="Seconds from one run to the next.")
    timeout: Seconds = Field(
        default=10.0, gt=0, le=3600, description="Seconds after which it is killed and counts as failed."
    )


def _how(value: Any) -> str:
    return "found" if isinstance(value, dict | Section) else "listed"


Endpoints: TypeAlias = Annotated[
    Annotated[tuple[Endpoint, ...], Field(min_length=1), Tag("listed")]
    | Annotated[FileDiscovery | CommandDiscovery, Field(discriminator="discover"), Tag("found")],
    Discriminator(_how),
]


def check_discovery(models: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[Place, str]]:
    """Yield the place and the words of every mistake that concerns the sources of several models.

    Examples
    --------
    >>> one = {"discover": "file", "path": "a.txt", "each": {"concurrency": 4}}
    >>> two = {"discover": "file", "path": "a.txt"}
    >>> list(check_discovery({0: {"endpoints": one}, 1: {"endpoints": two}}))
    [(('models', 1, 'endpoints', 'each'), 'models[0] finds the same servers and has other limits for each; \
write the same for both')]
    """
    seen: dict[str, tuple[int, Any]] = {}
    for place, model in models.items():
        section = model.get("endpoints")
        if not isinstance(section, dict):
            continue
        source = {name: value for name, value in section.items() if name not in ("patience", "each")}
        key, each = json.dumps(source, sort_keys=True, default=str), section.get("each", {})
        first, limits = seen.setdefault(key, (place, each))
        if limits != each:
            words = f"models[{first}] finds the same servers and has other limits for each"
            yield ("models", place, "endpoints", "each"), f"{words}; write the same for both"
