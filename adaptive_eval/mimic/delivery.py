"""One exchange with a client over ASGI: waiting, sending, and injected faults."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final

from starlette.types import Receive, Scope, Send

from adaptive_eval.mimic.examinee import Tosses
from adaptive_eval.mimic.mimic_spec import FaultSpec


class FaultPlan:
    """The faults of one model, or of the whole server.

    Examples
    --------
    >>> plan = FaultPlan([FaultSpec(kind="drop", attempts=1)], seed=0)
    >>> [fault and fault.kind for fault in (plan.strike("a"), plan.strike("b"), plan.strike("a"))]
    ['drop', 'drop', None]
    """

    def __init__(self, faults: Sequence[FaultSpec], seed: int, scope: str = "") -> None:
        self._faults = tuple(faults)
        self._seed = seed
        self._scope = scope
        self._requests = 0
        self._attempts: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()  # requests that met each kind of fault

    def strike(self, request: str) -> FaultSpec | None:
        """Count one more attempt at `request` and return the fault that it meets."""
        if not self._faults:
            return None
        self._requests += 1
        self._attempts[request] += 1
        for index, fault in enumerate(self._faults):
            if self._strikes(fault, index, request):
                self.struck[fault.kind] += 1
                return fault
        return None

    def _strikes(self, fault: FaultSpec, index: int, request: str) -> bool:
        attempt = self._attempts[request]
        if fault.probability is not None:
            stream = Tosses(self._seed, "fault", self._scope, index, request)
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


class ServedRequest:
    """A request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._began = monotonic()

    def header(self, name: bytes) -> str:
        """Return the request header `name` (in lower case), empty if it is missing."""
        return next((value.decode("latin-1") for key, value in self._scope["headers"] if key == name), "")

    async def body(self) -> bytes | None:
        """Return the request's body; None if the client left before the end of it."""
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

    async def left_before(self, due: float) -> bool:
        """Wait until `due` seconds after the request and say whether the client has left meanwhile."""
        return due > 0 and await self.client_left(due - (monotonic() - self._began))

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a whole JSON response, or an empty one."""
        await self.start(status, {**headers, "content-length": str(len(body))})
        await self.send(body, more=False)

    async def deliver(self, body: bytes, due: float, fault: FaultSpec | None) -> bool:
        """Send a response when it is due, with what `fault` does to it; return whether all of it was sent."""
        if fault is not None and fault.kind == "malformed":
            body = body[: len(body) // 2]
        if await self.left_before(due):
            return False
        head = {"content-length": str(len(body))}
        before = 0
        if fault is not None and fault.kind in ("drop", "hang"):
            before = min(int(fault.after * len(body)), len(body) - 1)
            if before:
                await self.start(200, head)
                await self.send(body[:before], more=True)
            if not await self.survives(fault):
                return False
        if not before:
            await self.start(200, head)
        await self.send(body[before:], more=False)
        return True

    async def survives(self, fault: FaultSpec) -> bool:
        """Drop the connection or be silent, as `fault` says; return whether the response may go on."""
        if fault.kind == "drop":
            # Whatever has been sent of the response, the connection closes under the client.
            self._scope["extensions"][CLOSE_EXTENSION]["close"]()
            await self.client_left(None)
            return False
        return fault.kind != "hang" or not await self.client_left(fault.seconds)

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of a response."""
        given = {"content-type": "application/json", **headers}
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def send(self, data: bytes, *, more: bool) -> None:
        """Send bytes of the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
