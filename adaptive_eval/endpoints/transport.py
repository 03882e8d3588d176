"""The HTTP client under an endpoint: as many connections as requests in flight, and bodies of bounded size.

It is aiohttp itself: docs/architecture.md has the figures. httpx2 finds the certificates.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from adaptive_eval.errors import UsageError

if TYPE_CHECKING:
    import ssl

    import aiohttp

KEEPALIVE_SECONDS = 4.0
"""Idle connections are dropped after this long: before uvicorn, and so vLLM, closes them at 5 s. A request
sent into a connection that the server is just closing is lost."""

LEAST_BODY = 4 * 2**20
"""Bytes that every response may have."""

_TOKENS = 2**17
"""Tokens of an answer where none are set as the limit."""

_TOKEN_BYTES, _EVENT_BYTES, _ALTERNATIVE_BYTES = 64, 512, 256
"""Bytes of a token in the text, of its event in a stream, and of each alternative among log-probabilities."""

_ENCODING = "gzip"
"""The accepted compression: :mod:`zlib` can decompress it piece by piece, within a limit."""

_PIECE = 2**16


class BodyTooLarge(OSError):
    """A response has more bytes, decompressed, than it may have."""


class Undecodable(OSError):
    """A response is compressed in a way that was not asked for, or wrongly."""


def body_limit(parameters: Mapping[str, Any], *, n: int = 1, stream: bool = False) -> int:
    """Return how many bytes, decompressed, a response to these request parameters may have.

    Examples
    --------
    >>> body_limit({"max_tokens": 1024}) == LEAST_BODY
    True
    >>> body_limit({"max_tokens": 32768}, n=4)
    8388608
    """
    limits = list(map(parameters.get, ("max_tokens", "max_completion_tokens")))
    tokens = max((limit for limit in limits if isinstance(limit, int)), default=_TOKENS)
    each = _EVENT_BYTES if stream else _TOKEN_BYTES
    asked = list(map(parameters.get, ("logprobs", "top_logprobs", "prompt_logprobs")))
    wanted = max((int(value) for value in asked if isinstance(value, int)), default=0)
    if wanted:
        each += _ALTERNATIVE_BYTES * (wanted + 1)
    of_prompt = 0
    if parameters.get("prompt_logprobs") is not None:
        of_prompt = _TOKENS * each
    return max(LEAST_BODY, tokens * n * each + of_prompt)


class HTTPClient:
    """The connections to one server, opened with the first request. Nothing is retried or redirected.

    The proxy and the certificates are taken from the environment (``HTTPS_PROXY``, ``NO_PROXY``,
    ``SSL_CERT_FILE``). Cookies are not kept: no trial depends on those before it.

    Examples
    --------
    >>> client = HTTPClient("http://gpu1:8000", {}, connections=64, connect_timeout=10, most_bytes=2**22)
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        connections: int,
        connect_timeout: float,
        most_bytes: int,
    ) -> None:
        self._tls = url.startswith("https:")
        self._connections = connections
        self._connect_timeout = connect_timeout
        self._most_bytes = most_bytes
        self._proxy, authorization = _proxy(url)
        self._proxy_headers = authorization if self._tls else None
        # Not the session's own headers: those would be sent to the proxy of a TLS connection, too.
        shown = authorization
        if self._tls:
            shown = {}
        self._headers = {"Accept-Encoding": _ENCODING, **shown, **headers}

    def send(
        self, method: str, url: str, data: bytes | None = None
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send one request; the response has its status and headers, and is still to be read."""
        return self._session.request(
            method,
            url,
            data=data,
            headers=self._headers,
            allow_redirects=False,
            proxy=self._proxy,
            proxy_headers=self._proxy_headers,
        )

    async def read(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the body of `response`, decompressed."""
        decompress = self._decompressor(response)
        body = list[bytes]()
        while raw := await response.content.readany():
            body += decompress(raw)
        return b"".join(body)

    async def lines(self, response: aiohttp.ClientResponse) -> AsyncGenerator[str, None]:
        """Yield the lines of `response` as they arrive, without their ends."""
        decompress = self._decompressor(response)
        begun = list[bytes]()
        while raw := await response.content.readany():
            for piece in decompress(raw):
                *whole, rest = piece.split(b"\n")
                for line in whole:
                    begun.append(line)
                    yield b"".join(begun).decode("utf-8", "replace").removesuffix("\r")
                    begun.clear()
                begun.append(rest)
        if any(begun):
            yield b"".join(begun).decode("utf-8", "replace")

    async def aclose(self) -> None:
        """Close the connections."""
        if "_session" in self.__dict__:
            await self._session.close()

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        import aiohttp

        certificates: ssl.SSLContext | bool = True
        if self._tls:
            import httpx2

            certificates = httpx2.create_ssl_context()  # the system's, or those of SSL_CERT_FILE
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._connections, keepalive_timeout=KEEPALIVE_SECONDS, ssl=certificates
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    def _decompressor(self, response: aiohttp.ClientResponse) -> _Decompressor:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise Undecodable(f"it is compressed with {encoding[:40]!r}, which was not asked for")
        return _Decompressor(self._most_bytes, compressed=encoding not in ("", "identity"))


def _proxy(url: str) -> tuple[str | None, dict[str, str]]:
    """Return the proxy that the environment names for `url`, without its password, and a header with that."""
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.netloc):
        return None, {}
    whole = proxy
    if "://" not in proxy:
        whole = f"http://{proxy}"
    named = urlsplit(whole)
    if named.scheme not in ("http", "https") or not named.hostname:
        raise UsageError(
            f"the proxy for {parts.scheme} in the environment ({named.scheme}://…) is no HTTP proxy: name "
            "one that begins with http://, or exempt this server with NO_PROXY"
        )
    credentials, _, address = named.netloc.rpartition("@")
    headers = {}
    if credentials:
        encoded = b64encode(unquote(credentials).encode()).decode()
        headers["Proxy-Authorization"] = f"Basic {encoded}"
    return f"{named.scheme}://{address}", headers


class _Decompressor:
    """Decompresses the bytes of a body piece by piece, with an error beyond a limit.

    Left to the client, 16 kB on the wire could become gigabytes in memory before anybody counts.
    """

    def __init__(self, most: int, *, compressed: bool) -> None:
        self._most = self._left = most
        self._state = zlib.decompressobj(zlib.MAX_WBITS | 16) if compressed else None

    def __call__(self, raw: bytes) -> Iterator[bytes]:
        """Yield what these bytes hold."""
        pieces = (raw,) if self._state is None else self._decompressed(raw)
        for piece in pieces:
            self._left -= len(piece)
            if self._left < 0:
                raise BodyTooLarge(f"the response has more than {self._most:,} bytes")
            yield piece

    def _decompressed(self, raw: bytes) -> Iterator[bytes]:
        state = self._state
        assert state is not None
        try:
            while raw:
                yield state.decompress(raw, _PIECE)
                raw = state.unconsumed_tail
                if state.eof and state.unused_data:  # a file of several members
                    raw = state.unused_data
                    state = zlib.decompressobj(zlib.MAX_WBITS | 16)
                    self._state = state
        except zlib.error as error:
            raise Undecodable(str(error)) from None
