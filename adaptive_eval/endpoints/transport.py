"""The HTTP client under an endpoint: as many connections as requests in flight, and bodies of bounded size.

The openai client takes any client with the interface of httpx. Measured by ``benchmarks/transport.py``,
the one over aiohttp answers 1.5 to 2 times as many requests per second as httpx2 at 64 and 256 in flight
and about four times as many as httpx 0.28, with the shortest tails; so it is the one used.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2

__all__ = ["KEEPALIVE_SECONDS", "LEAST_BODY", "BodyTooLarge", "body_limit", "open_http_client"]

KEEPALIVE_SECONDS = 4.0
"""Idle connections are dropped after this long: before uvicorn, and so vLLM, closes them at 5 s. A request
sent into a connection that the server is just closing is lost."""

LEAST_BODY = 4 * 2**20
"""Bytes that every response may have."""

_TOKENS = 2**17
"""Tokens of an answer where none are set as the limit."""

_TOKEN_BYTES, _EVENT_BYTES, _ALTERNATIVE_BYTES = 64, 512, 256
"""Bytes of a token in the text, of its event in a stream, and of each alternative among log-probabilities."""

_ENCODINGS = "gzip, deflate"
"""What a server may compress with: what :mod:`zlib` can decompress piece by piece, within a limit."""

_PIECE = 2**16


class BodyTooLarge(OSError):
    """A response has more bytes, decompressed, than it may have."""


def body_limit(parameters: Mapping[str, Any], *, n: int = 1, stream: bool = False) -> int:
    """Return how many bytes, decompressed, a response to these request parameters may have.

    Examples
    --------
    >>> body_limit({"max_tokens": 1024}) == LEAST_BODY
    True
    >>> body_limit({"max_tokens": 32768}, n=4)
    8388608
    """
    limits = [parameters.get(name) for name in ("max_tokens", "max_completion_tokens")]
    tokens = max((limit for limit in limits if isinstance(limit, int)), default=_TOKENS)
    each = _EVENT_BYTES if stream else _TOKEN_BYTES
    asked = [parameters.get(name) for name in ("logprobs", "top_logprobs", "prompt_logprobs")]
    wanted = max((int(value) for value in asked if isinstance(value, int)), default=0)
    if wanted:
        each += _ALTERNATIVE_BYTES * (wanted + 1)
    of_prompt = _TOKENS * each if parameters.get("prompt_logprobs") is not None else 0
    return max(LEAST_BODY, tokens * n * each + of_prompt)


def open_http_client(*, connections: int, connect_timeout: float, most_bytes: int) -> httpx2.AsyncClient:
    """Open an HTTP client for one endpoint.

    Proxies and the CA bundle are taken from the environment as httpx does (``HTTPS_PROXY``, ``NO_PROXY``,
    ``SSL_CERT_FILE``). Redirects are not followed: a header that holds a key must not go to another host.

    Examples
    --------
    >>> import asyncio
    >>> client = open_http_client(connections=64, connect_timeout=10.0, most_bytes=LEAST_BODY)
    >>> client.timeout.connect, client.timeout.read
    (10.0, None)
    >>> asyncio.run(client.aclose())
    """
    import httpx2
    import openai

    class Bounded(httpx2.AsyncByteStream):
        """A body that is decompressed here, piece by piece, and ends with an error beyond the limit.

        Left to the client, 16 kB on the wire could become gigabytes in memory before anybody counts.
        """

        def __init__(self, stream: httpx2.AsyncByteStream, encoding: str) -> None:
            self._stream = stream
            self._encoding = encoding

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = most_bytes
            decompress = _decompressor(self._encoding)
            async for raw in self._stream:
                try:
                    for piece in decompress(raw):
                        left -= len(piece)
                        if left < 0:
                            raise BodyTooLarge(f"the response has more than {most_bytes:,} bytes")
                        yield piece
                except zlib.error as error:
                    raise httpx2.DecodingError(str(error)) from None

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: httpx2.Response) -> None:
        encoding = response.headers.pop("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            await response.aclose()
            raise httpx2.DecodingError(f"it is compressed with {encoding[:40]!r}, which was not asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Bounded(response.stream, encoding)

    client = openai.DefaultAioHttpClient(
        limits=httpx2.Limits(
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=KEEPALIVE_SECONDS,
        ),
        timeout=httpx2.Timeout(None, connect=connect_timeout),
        follow_redirects=False,
        event_hooks={"response": [bound]},
    )
    client.headers["accept-encoding"] = _ENCODINGS
    return client


def _decompressor(encoding: str) -> Any:
    """Return a function from the bytes of a body to pieces of bounded size, decompressed."""
    if encoding in ("", "identity"):
        return lambda raw: (raw,)
    state = [zlib.decompressobj(zlib.MAX_WBITS | 32)]
    begun = False

    def pieces(raw: bytes) -> Iterator[bytes]:
        nonlocal begun
        while raw:
            try:
                piece = state[0].decompress(raw, _PIECE)
            except zlib.error:
                if begun or encoding != "deflate":
                    raise
                state[0] = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers send it without its header
                piece = state[0].decompress(raw, _PIECE)
            begun = True
            yield piece
            raw = state[0].unconsumed_tail
            if state[0].eof and state[0].unused_data:  # a file of several members
                raw, state[0] = state[0].unused_data, zlib.decompressobj(zlib.MAX_WBITS | 32)

    return pieces
