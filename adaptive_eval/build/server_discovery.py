"""From a config to the sources that name its servers, and to their clients."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Self

from adaptive_eval.build.model_clients import endpoint_at, limits_of
from adaptive_eval.build.server_sources import command_source, file_source
from adaptive_eval.config import RunConfig
from adaptive_eval.config.model import (
    CommandDiscovery,
    DiscoveryConfig,
    FileDiscovery,
    ModelConfig,
)
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.engine.discovery import Discovery, Source
from adaptive_eval.errors import TransientEndpointError

_PATIENCE = 30.0
"""Seconds that a server may take to say which models it serves."""


class Finder:
    """Finds the servers of the models that name none; a context that closes its clients.

    Models whose sections name the same source share it.
    """

    def __init__(self, config: RunConfig) -> None:
        self._clients: dict[tuple[str, str], OpenAIEndpoint] = {}
        sources: dict[str, Source] = {}
        self.discoveries: dict[str, Discovery] = {}
        for model in config.models:
            section = model.discovery
            if section is None:
                continue
            self.client(model, "http://localhost/v1")  # what is wrong with its key or headers is said now
            if section.source not in sources:
                sources[section.source] = source_of(section, config.base_dir, _secrets(config))
            source = sources[section.source]
            self.discoveries[model.name] = Discovery(
                source, partial(self.connect, model), section.patience, partial(limits_of, section.each)
            )

    async def connect(self, model: ModelConfig, url: str) -> OpenAIEndpoint:
        """Return the client for `model` at `url`, once the server there has said that it serves the model."""
        client = self.client(model, url)
        try:
            async with asyncio.timeout(_PATIENCE):
                await client.probe()
        except TimeoutError:
            words = f"{url} has not said within {_PATIENCE:g} s which models it serves"
            raise TransientEndpointError(words, kind="timeout") from None
        return client

    def client(self, model: ModelConfig, url: str) -> OpenAIEndpoint:
        """Return the client for `model` at `url`."""
        key = model.name, url
        if key not in self._clients:
            self._clients[key] = endpoint_at(model, url)
        return self._clients[key]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        for client in self._clients.values():
            await client.aclose()


def source_of(section: DiscoveryConfig, folder: Path, secrets: Iterable[str] = ()) -> Source:
    """Return the source that a section describes; relative paths begin in `folder`, `secrets` are not shown.

    Examples
    --------
    >>> section = FileDiscovery(discover="file", path="servers/*.txt")
    >>> source_of(section, Path("/data")).name
    'servers/*.txt'
    """
    match section:
        case FileDiscovery():
            return file_source(section.path, folder, every=section.every)
        case CommandDiscovery():
            redact = Redactor(secrets)
            return command_source(
                section.run, folder, every=section.every, timeout=section.timeout, redact=redact
            )
    raise TypeError(f"{type(section).__name__} is no kind of source")


def _secrets(config: RunConfig) -> list[str]:
    """Return the values of all variables that the models name for keys and headers."""
    names = [model.api_key_env for model in config.models]
    names += [header.env for model in config.models for header in model.headers.values()]
    return [os.environ.get(name, "").strip() for name in names if name is not None]
