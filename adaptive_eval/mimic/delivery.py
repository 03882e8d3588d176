"""One exchange with a client over ASGI: waiting, sending, and injected faults."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final

from starlette.types import Receive, Scope, Send

from adaptive_eval.mimic.draws import Stream
from adaptive_eval.mimic.mimic_spec import FaultSpec
from adaptive_eval.mimic.wire import Frame


class FaultPlan:
    """The faults of one model, or of the whole server.

    Examples
    --------
    >>> plan = FaultPlan([FaultSpec(kind="drop", attempts=1)], seed=0)
    >>> [fault and fault.kind for fault in (plan.strike("a"), plan.strike("b"), plan.strike("a"))]
    ['drop', 'drop', None]
    """

    def __init__(self, faults: Sequence[FaultSpec], seed: int, scope: str = "") -> None:
        self.faults = tuple(faults)
        self._seed = seed
        self._scope = scope
        self._requests = 0
        self._attempts: Counter[str] = Counter()
        self._struck: Counter[str] = Counter()

    @property
    def struck(self) -> dict[str, int]:
        """Number of requests that met each kind of fault."""
        return dict(self._struck)

    def strike(self, request: str) -> FaultSpec | None:
        """Count one more attempt at `request` and return the fault that it meets."""
        if not self.faults:
            return None
        self._requests += 1
        self._attempts[request] += 1
        attempt = self._attempts[request]
        for index, fault in enumerate(self.faults):
            if self._strikes(fault, index, request, attempt):
                self._struck[fault.kind] += 1
                return fault
        return None

    def _strikes(self, fault: FaultSpec, index: int, request: str, attempt: int) -> bool:
        if fault.probability is not None:
            stream = Stream(self._seed, "fault", self._scope, index, request)
            return stream.toss(attempt).coin < fault.probability
        if fault.first is not None:
            return self._requests <= fault.first
        if fault.requests is not None:
            low, high = fault.requests
            return low <= self._requests <= high
        if fault.every is not None:
            return self._requests % fault.every == 0
        return fault.attempts is None or attempt <= fault.attempts


CLOSE_EXTENSION: Final = "adaptive_eval.close"
"""ASGI extension of our server: ``scope["extensions"][CLOSE_EXTENSION]["close"]()`` closes the connection."""

_NAP = 0.002  # seconds; a stream's event that is due sooner than this is sent now


class Exchange:
    """A request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._began = monotonic()

    def header(self, name: bytes) -> str:
        """Return the request header `name` (in lower case), empty where it is missing."""
        return next((value.decode("latin-1") for key, value in self._scope["headers"] if key == name), "")

    async def body(self) -> bytes | None:
        """Return the request's body; None where the client left before the end of it."""
        parts = []
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        return b"".join(parts)

    async def client_left(self, seconds: float | None) -> bool:
        """Wait for `seconds` (None: for ever) and say whether the client has left meanwhile."""
        if seconds is not None and seconds <= 0:
            return False
        try:
            async with asyncio.timeout(seconds):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole JSON response, or an empty one."""
        pairs = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        pairs += [(name.encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
        await self._send({"type": "http.response.body", "body": body})

    async def deliver(self, frames: Sequence[Frame], *, stream: bool, fault: FaultSpec | None) -> bool:
        """Send `frames` when each is due, with what `fault` does to them."""
        if fault is not None and fault.kind == "malformed":
            frames = _garbled(frames, stream=stream)
        sending = _Sending(self, frames, stream=stream)
        if fault is not None and fault.kind in ("drop", "hang"):
            if not await sending.up_to(fault.after):
                return False
            if fault.kind == "drop":
                await self._close()
                return False
            if await self.client_left(fault.seconds):
                return False
        return await sending.rest()

    async def left_before(self, due: float) -> bool:
        """Wait until `due` seconds after the request and say whether the client has left meanwhile."""
        if due <= 0:
            return False
        wait = due - (monotonic() - self._began)
        return wait > _NAP and await self.client_left(wait)

    async def start(self, *, stream: bool, length: int) -> None:
        """Send the head of a response with status 200."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        if not stream:
            headers = [(b"content-type", b"application/json"), (b"content-length", str(length).encode())]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def send(self, data: bytes, *, more: bool) -> None:
        """Send bytes of the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _close(self) -> None:
        """Close the connection under the client, whatever has been sent of the response."""
        self._scope["extensions"][CLOSE_EXTENSION]["close"]()
        await self.client_left(None)


class _Sending:
    """Frames on their way, and how far they have come."""

    def __init__(self, exchange: Exchange, frames: Sequence[Frame], *, stream: bool) -> None:
        self._exchange = exchange
        self._frames = list(frames)
        self._stream = stream
        self._total = sum(len(frame.data) for frame in frames)
        self._started = False

    async def up_to(self, share: float) -> bool:
        """Send `share` of all bytes, never the last one; False where the client left."""
        budget = min(int(share * self._total), self._total - 1)
        while budget > 0:
            frame = self._frames[0]
            head, tail = frame.data[:budget], frame.data[budget:]
            if not await self._send(Frame(frame.due, head), more=True):
                return False
            budget -= len(head)
            self._frames[:1] = [Frame(frame.due, tail)] if tail else []
        return True

    async def rest(self) -> bool:
        """Send the rest; False where the client closed the connection."""
        last = len(self._frames) - 1
        for index, frame in enumerate(self._frames):
            if not await self._send(frame, more=index < last):
                return False
        return True

    async def _send(self, frame: Frame, *, more: bool) -> bool:
        if await self._exchange.left_before(frame.due):
            return False
        if not self._started:
            await self._exchange.start(stream=self._stream, length=self._total)
            self._started = True
        await self._exchange.send(frame.data, more=more)
        return True


def _garbled(frames: Sequence[Frame], *, stream: bool) -> list[Frame]:
    """Return `frames` with JSON that breaks off: the body, or the middle event of a stream."""
    middle = len(frames) // 2
    victim = frames[middle]
    broken = victim.data[: len(victim.data) // 2] + (b"\n\n" if stream else b"")
    return [*frames[:middle], Frame(victim.due, broken), *frames[middle + 1 :]]
