"""A real HTTP server on loopback that answers as a test has scripted, down to the byte where it must."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.errors import EndpointError
from adaptive_eval.trial import Message

ASK = [Message("user", "What is 2 + 2?")]


@dataclass
class Request:
    """One request as the server has read it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


class ScriptedServer:
    """Passes each request to `handler` and keeps it in `requests`."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.requests: list[Request] = []
        self.connections = 0
        self.url = ""
        self.port = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                request = await _read(reader)
                self.requests.append(request)
                await self.handler(request, writer)
                if writer.is_closing():
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    named = (line.partition(":") for line in lines)
    headers: dict[str, str] = {}
    for name, _, value in named:
        key = name.strip().lower()
        headers[key] = ", ".join(
            [*filter(None, [headers.get(key)]), value.strip()]
        )  # of one sent twice, both
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


@asynccontextmanager
async def serving(handler: Handler, **options: Any) -> AsyncIterator[ScriptedServer]:
    """Run a server that answers every request with `handler`; `options` are those of asyncio.start_server."""
    scripted = ScriptedServer(handler)
    server = await asyncio.start_server(scripted._serve, "127.0.0.1", 0, **options)
    scripted.port = server.sockets[0].getsockname()[1]
    scripted.url = f"http://127.0.0.1:{scripted.port}/v1"
    try:
        yield scripted
    finally:
        server.close()


def asked(
    handler: Handler,
    use: Callable[[Any], Awaitable[Any]] = lambda client: client.complete(ASK, seed=7),
    *,
    api: Any = OpenAIChat,
    model: str = "tiny",
    path: str = "/v1",
    **options: Any,
) -> tuple[Any, ScriptedServer]:
    """Return what `use` of a client comes to at a server with `handler`, or its error; and the server."""

    async def main() -> tuple[Any, ScriptedServer]:
        async with (
            serving(handler) as server,
            api(f"http://127.0.0.1:{server.port}{path}", model, **options) as client,
        ):
            try:
                return await use(client), server
            except EndpointError as error:
                return error, server

    return asyncio.run(main())


@contextmanager
def refusing() -> Iterator[int]:
    """Give a port of 127.0.0.1 at which nobody listens, and nobody else can begin to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def reply(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Handler:
    """Return a handler that answers with `status` and `body` (JSON, or text or bytes as they are)."""
    if isinstance(body, bytes):
        payload, kind = body, "application/json"
    elif isinstance(body, str):
        payload, kind = body.encode(), "text/plain"
    else:
        payload, kind = json.dumps(body).encode(), "application/json"
    fields = {"content-type": kind, "content-length": str(len(payload)), **(headers or {})}
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in fields.items())]
    return raw("\r\n".join([*lines, "\r\n"]).encode("latin-1") + payload, keep=True)


def raw(data: bytes, *, keep: bool = False) -> Handler:
    """Return a handler that writes `data`, and closes the connection unless it is to `keep` it."""

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if not keep:
            writer.close()

    return handler


async def reset(request: Request, writer: asyncio.StreamWriter) -> None:
    """Handle a request by resetting the connection."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.close()


async def hang(request: Request, writer: asyncio.StreamWriter) -> None:
    """Handle a request by never answering."""
    await asyncio.Event().wait()


_END = {"index": 0, "logprobs": None, "finish_reason": "stop", "stop_reason": None}


def completion(content: Any = "42", **changes: Any) -> dict[str, Any]:
    """Return the body of a chat completion as vLLM writes it, with `changes`."""
    message = {"role": "assistant", "content": content, "refusal": None, "reasoning": None}
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11, "prompt_tokens_details": None}
    body = {"id": "chatcmpl-9c7001c149e36175", "object": "chat.completion", "created": 1795158410}
    return {**body, "model": "tiny", "choices": [{**_END, "message": message}], "usage": usage, **changes}


def continuation(text: Any = "42", **changes: Any) -> dict[str, Any]:
    """Return the body of a plain completion as vLLM writes it, with `changes`."""
    named = {"id": "cmpl-aa28409a8fcbf830", "object": "text_completion"}
    return completion(**{**named, "choices": [{**_END, "text": text, "prompt_logprobs": None}], **changes})
