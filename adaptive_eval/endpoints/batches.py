"""Requests in batches: many at once, answered within a day at half the price.

The common part of OpenAI's and Anthropic's interfaces, which are in `batch_interfaces.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from adaptive_eval.endpoints.exchange import Exchange
from adaptive_eval.endpoints.failures import malformed
from adaptive_eval.errors import EndpointError, PermanentEndpointError, TransientEndpointError

if TYPE_CHECKING:
    from adaptive_eval.options.request_options import BatchConfig

T = TypeVar("T")
Result: TypeAlias = "asyncio.Future[Any]"

_BETWEEN = 2
"""Bytes between two requests of a batch, at most."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Options for collecting requests into batches.

    Parameters
    ----------
    label : str
        Of the run: a session that continues it finds its batches by this.
    times : BatchConfig
        When a batch is sent and looked at.
    notes : Path, optional
        File of the run for what a server without labels does not keep.
    """

    label: str
    times: BatchConfig
    notes: Path | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch at a server, as last seen."""

    name: str
    status: str  # in the interface's own word
    under_way: bool
    refused: str = ""  # why the whole batch was refused
    body: Any = None  # as the server sent it


class BatchInterface(ABC):
    """The differences between the batch interfaces of providers."""

    most: ClassVar[int]  # requests of a batch, as the provider limits them
    most_bytes: ClassVar[int]  # likewise

    def __init__(self, exchange: Exchange, options: BatchOptions) -> None:
        self.exchange = exchange
        self.options = options

    @abstractmethod
    def line(self, name: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request as it goes into a batch."""

    @abstractmethod
    async def send(self, lines: Mapping[str, Mapping[str, Any]]) -> Batch:
        """Send a batch of named requests."""

    @abstractmethod
    async def own(self) -> list[Batch]:
        """Return the batches that earlier sessions of the run have sent, the newest first."""

    @abstractmethod
    async def look(self, batch: Batch) -> Batch:
        """Return the state of a batch."""

    @abstractmethod
    async def asked(self, batch: Batch) -> Iterable[str]:
        """Return the names of the requests of a batch that is under way."""

    @abstractmethod
    async def answers(self, batch: Batch) -> dict[str, Any]:
        """Return the bodies of answers, or EndpointErrors, by the names of the requests."""


@dataclass(slots=True)
class _Waiting:
    """Requests that will be the next batch."""

    lines: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    size: int = 0
    timer: asyncio.TimerHandle | None = None


class Batches:
    """Sends posted requests in batches, and returns each answer to its caller.

    The name of a request follows from its body and its seed, and a session that continues a run finds the
    batches of earlier ones. So a request that was in a batch when the process was killed is not sent again.
    """

    def __init__(self, interface: BatchInterface) -> None:
        self._interface = interface
        self._times = interface.options.times
        self._waiting = _Waiting()
        self._earlier: dict[str, Result] | None = None
        self._adopting = asyncio.Lock()
        self._watchers: set[asyncio.Task[None]] = set()

    async def post(
        self, path: str, body: Mapping[str, Any], seed: int | None
    ) -> tuple[Any, Mapping[str, str]]:
        """Ask with the next batch; return the body of the answer, and no headers."""
        async with self._adopting:
            if self._earlier is None:
                self._earlier = await self._adopted()
        text = json.dumps(body, sort_keys=True, ensure_ascii=False)
        said = f"{path} {text} {uuid.uuid4() if seed is None else seed}"
        name = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:40]
        result = self._earlier.pop(name, None)
        if result is None:
            result = self._enter(name, self._interface.line(name, path, body))
        answer = await result
        if isinstance(answer, EndpointError):
            raise answer
        return answer, {}

    async def aclose(self) -> None:
        """Stop looking; batches under way stay with the server."""
        if self._waiting.timer is not None:
            self._waiting.timer.cancel()
        for task in self._watchers:
            task.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)

    # ------------------------------------------------------------------ sending

    def _enter(self, name: str, line: Mapping[str, Any]) -> Result:
        """Put a request into the next batch, or into the one after it if the next one is full."""
        loop, limits = asyncio.get_running_loop(), self._interface
        size = len(json.dumps(line)) + _BETWEEN
        if self._waiting.size + size > limits.most_bytes or len(self._waiting.lines) >= limits.most:
            self._submit()
        waiting = self._waiting
        result = waiting.results[name] = loop.create_future()
        waiting.lines[name] = line
        waiting.size += size
        if waiting.timer is not None:
            waiting.timer.cancel()
        waiting.timer = loop.call_later(self._times.gather, self._submit)
        return result

    def _submit(self) -> None:
        waiting, self._waiting = self._waiting, _Waiting()
        if waiting.timer is not None:
            waiting.timer.cancel()
        # Those who no longer wait have been cancelled: nothing is sent for them.
        results = {name: result for name, result in waiting.results.items() if not result.done()}
        if results:
            lines = {name: waiting.lines[name] for name in results}
            self._watch(lambda: self._interface.send(lines), results)

    async def _adopted(self) -> dict[str, Result]:
        """Return the results of batches that an earlier session of the run sent."""
        found: dict[str, Result] = {}
        loop = asyncio.get_running_loop()
        for batch in await self._interface.own():
            if batch.under_way:
                results = {name: loop.create_future() for name in await self._interface.asked(batch)}
                self._watch(partial(_at_once, batch), results)
            else:
                answered = await self._interface.answers(batch)
                results = {name: loop.create_future() for name in answered}
                _give(results, answered.__getitem__)
            found = {**results, **found}  # the newest first
        return found

    # ------------------------------------------------------------------ waiting

    def _watch(self, begin: Callable[[], Awaitable[Batch]], results: Mapping[str, Result]) -> None:
        task = asyncio.get_running_loop().create_task(self._watched(begin, results))
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)

    async def _watched(self, begin: Callable[[], Awaitable[Batch]], results: Mapping[str, Result]) -> None:
        """Hand out the answers of a batch once it has ended, or what went wrong."""
        try:
            batch = await begin()
            while batch.under_way:
                await asyncio.sleep(self._times.poll)
                batch = await self._patiently(partial(self._interface.look, batch))
            answered = await self._patiently(lambda: self._interface.answers(batch))
        except EndpointError as error:
            _give(results, dict.fromkeys(results, error).__getitem__)
            return
        _give(results, lambda name: answered.get(name) or _unanswered(batch))

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until the server answers: a batch is paid for, so no transient failure ends it."""
        while True:
            try:
                return await ask()
            except TransientEndpointError:
                await asyncio.sleep(self._times.poll)


def json_lines(content: bytes, exchange: Exchange) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON Lines."""
    try:
        lines = [json.loads(line) for line in content.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        raise malformed("the file of a batch is not JSON Lines", redact=exchange.redact) from None
    return [line for line in lines if isinstance(line, dict)]


def _unanswered(batch: Batch) -> EndpointError:
    """Return why a request that a batch has no line for has no answer: nothing says that it did not begin."""
    if batch.refused:
        return PermanentEndpointError(f"the batch was refused: {batch.refused}", kind="bad_request")
    words = f"the batch ended ({batch.status}) without an answer to this request"
    return TransientEndpointError(words, kind="malformed")


async def _at_once(batch: Batch) -> Batch:
    return batch


def _give(results: Mapping[str, Result], what: Callable[[str], Any]) -> None:
    for name, result in results.items():
        if not result.done():
            result.set_result(what(name))
