"""From a config to the files that name its servers, and to their clients."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from adaptive_eval.build.model_clients import endpoint_at
from adaptive_eval.config import RunConfig
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.engine.discovery import Discovery, Reading, ServerFinder
from adaptive_eval.errors import TransientEndpointError, in_words
from adaptive_eval.options.mistakes import shown
from adaptive_eval.options.section import check_url

_PATIENCE = 30.0
"""Seconds that a server may take to say which models it serves."""


class Finder:
    """Finds the servers of the models that name none; a context that closes its clients.

    Models whose sections name the same source share it.
    """

    def __init__(self, config: RunConfig) -> None:
        self._clients: dict[tuple[str, str], OpenAIEndpoint] = {}
        sources: dict[str, ServerFinder] = {}
        self.discoveries: dict[str, Discovery] = {}
        for model in config.models:
            section = model.discovery
            if section is None:
                continue
            self.client(model, "http://localhost/v1")  # what is wrong with its key or headers is said now
            if section.source not in sources:
                sources[section.source] = file_source(section.path, config.base_dir, every=section.every)
            source = sources[section.source]
            self.discoveries[model.name] = Discovery(source, partial(self.connect, model), section)

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


_MOST_BYTES = 1_000_000
"""Largest file that is read."""

_MAGIC = frozenset("*?[")


def read_addresses(text: str) -> tuple[str, ...]:
    r"""Return the base addresses in a text: a line holds ``host:port`` or a URL; ``#`` begins a comment.

    Examples
    --------
    >>> read_addresses("gpu1:8000\n\n# the big one\nhttps://gpu2/qwen/v1/\ngpu1:8000")
    ('http://gpu1:8000/v1', 'https://gpu2/qwen/v1')
    >>> read_addresses("gpu1:8000\ngpu")
    Traceback (most recent call last):
        ...
    ValueError: line 2: 'gpu' is neither host:port nor a URL such as http://gpu1:8000/v1
    """
    found: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.partition("#")[0].strip()
        if written:
            found[_address(written, number)] = None
    return tuple(found)


def _address(written: str, number: int) -> str:
    whole = "://" in written
    url = written
    if not whole:
        url = f"http://{written}/v1"
    try:
        if whole or urlsplit(url).port is not None:
            return check_url(url)
    except ValueError:
        pass  # the line is reported as wrong
    if "@" in written:
        raise ValueError(f"line {number} holds credentials; name the variable of the key in api_key_env")
    advice = "is neither host:port nor a URL such as http://gpu1:8000/v1"
    raise ValueError(f"line {number}: {shown(written)} {advice}")


class ServerSource:
    """Says which servers are there; while something cannot be read, no server leaves.

    An empty reading (a file may be about to be written) counts from the second time on.
    """

    def __init__(
        self, name: str, reading: Callable[[], Awaitable[Reading]], every: float, timeout: float
    ) -> None:
        self.name = name
        self.every = every
        self._reading = reading
        self._timeout = timeout
        self._last: tuple[str, ...] = ()
        self._was_empty = False

    async def read(self) -> Reading:
        """Read it; never raises, and ends within its time limit."""
        try:
            async with asyncio.timeout(self._timeout):
                reading = await self._reading()
        except TimeoutError:
            reading = Reading((), f"has not answered within {self._timeout:g} s")
        except (OSError, ValueError) as error:
            reading = Reading((), in_words(error))
        found = reading.addresses
        if reading.problem:
            self._last = tuple(dict.fromkeys((*self._last, *found)))
            return Reading(self._last, f"{self.name}: {reading.problem}")
        if found or self._was_empty:
            self._last = found
        self._was_empty = not found
        return Reading(self._last)


def file_source(pattern: str, folder: Path, *, every: float, timeout: float = 60.0) -> ServerSource:
    """Return the source in a file, or in all files that match a pattern; `folder` is where it begins."""
    return ServerSource(pattern, _InThread(partial(_read_files, pattern, folder)), every, timeout)


def _read_files(pattern: str, folder: Path) -> Reading:
    parts = Path(pattern).expanduser().parts
    plain = list(takewhile(_MAGIC.isdisjoint, parts))
    start = folder.joinpath(*plain)
    rest = "/".join(parts[len(plain) :])
    if not rest:
        return Reading(read_addresses(_content(start)))
    start.stat()  # OSError where the folder that the pattern begins in cannot be read
    found: dict[str, None] = {}
    problems = []
    for file in sorted(start.glob(rest)):
        if file.is_file() and not file.name.startswith("."):
            try:
                found |= dict.fromkeys(read_addresses(_content(file)))
            except FileNotFoundError:
                continue  # gone since it was listed
            except (OSError, ValueError) as error:
                problems.append(f"{file.name}: {in_words(error)}")
    return Reading(tuple(found), "; ".join(problems))


def _content(file: Path) -> str:
    with file.open("rb") as opened:
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"is larger than {_MOST_BYTES:,} bytes")
    return content.decode("utf-8-sig", "replace")


class _InThread:
    """Reads in a daemon thread, one at a time: at its end a process waits for the threads of a pool."""

    def __init__(self, read: Callable[[], Reading]) -> None:
        self._read = read
        self._reading: Future[Reading] | None = None

    async def __call__(self) -> Reading:
        if self._reading is not None and not self._reading.done():
            raise TimeoutError
        self._reading = Future()
        self._reading.set_running_or_notify_cancel()  # what hangs is not cancelled
        threading.Thread(target=self._run, args=(self._reading,), daemon=True).start()
        return await asyncio.wrap_future(self._reading)

    def _run(self, reading: Future[Reading]) -> None:
        try:
            reading.set_result(self._read())
        except (OSError, ValueError) as error:
            reading.set_exception(error)
