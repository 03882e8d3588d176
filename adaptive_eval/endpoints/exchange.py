"""Requests to one server: address, credentials, HTTP client, timeouts and failures."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

from adaptive_eval.endpoints.failures import from_connection, from_status, malformed, web_page
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.endpoints.streaming import Assembly
from adaptive_eval.endpoints.transport import HTTPClient
from adaptive_eval.errors import EndpointError, TransientEndpointError, UsageError

if TYPE_CHECKING:
    import aiohttp
    import openai


@dataclass(frozen=True, slots=True)
class Address:
    """A base address, taken apart.

    Examples
    --------
    >>> Address.parse("https://host/prefix/v1/?api-version=2")
    Address(base='https://host/prefix/v1', query={'api-version': '2'})
    """

    base: str  # scheme, host, port and path prefix, without a slash at the end; fit to be stored and shown
    query: Mapping[str, str]  # query parameters to send with every request, such as an API version

    @classmethod
    def parse(cls, url: str) -> Self:
        """Take `url` apart."""
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise UsageError(
                "endpoint: the address holds a user name or password; "
                "put it into an environment variable and name that as api_key_env"
            )
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise UsageError(f"endpoint: {url!r} is not an address such as http://localhost:8000/v1")
        base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        return cls(base, dict(parse_qsl(parts.query)))

    @property
    def root(self) -> str:
        """The base without the ``/v1`` at its end: where servers keep what is not part of the API.

        Examples
        --------
        >>> Address.parse("http://gpu1:8000/v1").root
        'http://gpu1:8000'
        """
        return self.base.removesuffix("/v1")

    @property
    def origin(self) -> str:
        """Scheme, host and port alone.

        Examples
        --------
        >>> Address.parse("http://gpu1:8000/team/v1").origin
        'http://gpu1:8000'
        """
        parts = urlsplit(self.base)
        return f"{parts.scheme}://{parts.netloc}"


def read_key(variable: str | None, environ: Mapping[str, str]) -> str | None:
    r"""Look up an API key.

    Examples
    --------
    >>> read_key("VLLM_API_KEY", {"VLLM_API_KEY": "sk-1234\n"})
    'sk-1234'
    """
    if variable is None:
        return None
    key = environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"api_key_env: the environment variable {variable} is not set; export it first")
    check_header(f"api_key_env: the value of {variable}", key)
    return key


def check_header(place: str, value: str) -> None:
    """Refuse a value that a header cannot hold, without showing it.

    Examples
    --------
    >>> check_header("headers['x-team']", "evals")
    """
    if not (value.isascii() and value.isprintable()):
        raise UsageError(f"{place} has characters that cannot be sent in a header; check how it was set")


T = TypeVar("T")

_NO_KEY = "none"
"""Sent where neither key nor headers are configured: some gateways insist on a key, and others ignore it."""

_OF_A_BODY = ("Accept", "Content-Type")
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def bearer(key: str) -> Mapping[str, str]:
    """Return the header that holds the key, as OpenAI's API has it."""
    return {"Authorization": f"Bearer {key}"}


class Exchange:
    """Sends requests to a server, and raises every failure as an EndpointError without a secret in it.

    One pool of connections, opened with the first request. Nothing is retried.

    Examples
    --------
    >>> exchange = Exchange("http://gpu1:8000/v1", {}, None, {}, 10.0, 600.0, None, 64, 2**22)
    >>> exchange.address.root
    'http://gpu1:8000'
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        api_key_env: str | None,
        environ: Mapping[str, str],
        connect_timeout: float,
        total_timeout: float,
        idle_timeout: float | None,
        connections: int,
        most_bytes: int,
        credentials: Callable[[str], Mapping[str, str]] = bearer,
    ) -> None:
        self.address = Address.parse(url)
        self._headers = dict(headers)
        self._key = read_key(api_key_env, environ)
        sent = dict(credentials(self._key or _NO_KEY))
        if self._key is None and self._headers:
            # One of the headers may hold the key, as at Azure's old addresses.
            sent = {name: value for name, value in sent.items() if _NO_KEY not in value}
        self._credentials = sent
        for name, value in self._headers.items():
            check_header(f"headers[{name!r}]", value)
        self._connect_timeout = connect_timeout
        self._total_timeout = total_timeout
        self._idle_timeout = idle_timeout
        self._query = urlencode(self.address.query)
        self.answered = False  # whether an answer could be read
        self._client = HTTPClient(
            self.address.base,
            self._all_headers(),
            connections=connections,
            connect_timeout=connect_timeout,
            most_bytes=most_bytes,
        )
        # A server may echo only the second word of "Bearer KEY".
        words = [word for value in self._headers.values() for word in value.split()[1:]]
        self.redact = Redactor([self._key or "", *self._headers.values(), *words])

    async def get(self, path: str) -> bytes:
        """Return the body of the answer to a GET of `path` below the base address, or of a whole address."""
        content, _ = await self._whole("GET", path)
        return content

    async def post(self, path: str, body: Mapping[str, Any]) -> tuple[Any, Mapping[str, str]]:
        """Send `body`; return the parsed body of the answer, and its headers about rate limits."""
        content, limits = await self._whole("POST", path, _COMPACT.encode(body).encode())
        return self.json(content), limits

    async def call(self, ask: Callable[[openai.AsyncOpenAI], Awaitable[T]]) -> T:
        """Return what `ask` gets from OpenAI's own client, for interfaces beyond a single request."""
        import openai

        try:
            async with asyncio.timeout(self._total_timeout):
                return await ask(self._openai)
        except openai.APIStatusError as error:
            said = error.response
            raise from_status(
                said.status_code, said.headers, error.message, now=time.time(), redact=self.redact
            ) from None
        except (openai.APIError, OSError) as error:
            raise self._mapped(error) from None

    async def stream(self, path: str, body: Mapping[str, Any]) -> tuple[Any, Mapping[str, str]]:
        """Send `body`, which asks for a stream; return the same as :meth:`post` without streaming."""
        assembly = Assembly(self.redact)
        idle = asyncio.timeout(self._idle_timeout)
        clock = asyncio.get_running_loop().time
        url = self._url(path)
        data = _COMPACT.encode(body).encode()
        try:
            async with (
                asyncio.timeout(self._total_timeout),
                idle,
                self._client.send("POST", url, data) as got,
            ):
                if got.status >= 300:
                    raise self._refused(got, await self._client.read(got))
                if got.content_type in ("application/json", "text/html"):
                    content = await self._client.read(got)
                    if not content.startswith((b"data:", b"event:", b":")):  # the server does not stream
                        return self.json(content), _limits(got)
                    for event in content.splitlines():
                        assembly.feed(event.decode("utf-8", "replace"))
                async with aclosing(self._client.lines(got)) as lines:
                    async for line in lines:
                        if self._idle_timeout is not None:
                            idle.reschedule(clock() + self._idle_timeout)
                        assembly.feed(line)
        except _client_failures() as error:
            raise self._mapped(error, silent=idle.expired()) from None
        return assembly.body(), _limits(got)

    def json(self, content: bytes) -> Any:
        """Return the parsed body of an answer.

        A web page is a refusal until the server has given any other answer: later it may be that of a gateway
        that is out of order.
        """
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            page = web_page(content, redact=self.redact)
            if page is not None and not self.answered:
                raise page from None
            said = content.decode("utf-8", "replace").strip() or "nothing"
            raise malformed("JSON was expected, not:", said, redact=self.redact) from None

    async def _whole(
        self, method: str, path: str, data: bytes | None = None
    ) -> tuple[bytes, Mapping[str, str]]:
        """Return the whole body of the answer to a request, and its headers about rate limits."""
        url = self._url(path)
        try:
            async with asyncio.timeout(self._total_timeout), self._client.send(method, url, data) as got:
                content = await self._client.read(got)
        except _client_failures() as error:
            # Not chained: an exception of the client may carry the request, and with it the key.
            raise self._mapped(error) from None
        if got.status >= 300:
            raise self._refused(got, content)
        return content, _limits(got)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
        if "_openai" in self.__dict__:
            await self._openai.close()

    @cached_property
    def _openai(self) -> openai.AsyncOpenAI:
        import openai

        # The client adds what OPENAI_CUSTOM_HEADERS holds, which is meant for another server.
        ambient = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
        without = {line.partition(":")[0].strip(): openai.omit for line in ambient if ":" in line}
        own = {name: value for name, value in self._all_headers().items() if name not in _OF_A_BODY}
        if "Authorization" not in self._credentials:
            without["Authorization"] = openai.omit
        client = openai.AsyncOpenAI(
            base_url=self.address.base,
            api_key=self._key or _NO_KEY,
            max_retries=0,
            default_headers=cast("Mapping[str, str]", {**without, **own}),
            default_query=dict(self.address.query),
        )
        client.organization = client.project = None
        return client

    def _url(self, path: str) -> str:
        """Return the whole address of `path`, which may be one already, with the base address's query."""
        whole = path
        if "://" not in path:
            whole = self.address.base + path
        join = "&" if "?" in whole else "?"
        if self._query:
            return f"{whole}{join}{self._query}"
        return whole

    def _all_headers(self) -> Mapping[str, str]:
        """Return the headers of every request: ours, or the config's of the same name in any case."""
        of_a_body = dict.fromkeys(_OF_A_BODY, "application/json")
        own = {**of_a_body, **self._credentials, "User-Agent": "adaptive-eval"}
        configured = {name.lower() for name in self._headers}
        kept = {name: value for name, value in own.items() if name.lower() not in configured}
        return {**kept, **self._headers}

    def _refused(self, response: aiohttp.ClientResponse, content: bytes) -> EndpointError:
        """Return the EndpointError for an answer with an error status."""
        headers = {name.lower(): value for name, value in response.headers.items()}
        text = content.decode("utf-8", "replace")
        return from_status(response.status, headers, text, now=time.time(), redact=self.redact)

    def _mapped(self, error: Exception, *, silent: bool = False) -> EndpointError:
        """Return the EndpointError for a failure of the client; `silent`: nothing arrived for too long."""
        import aiohttp

        url = self.address.base
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
            words = f"no answer within {self._total_timeout:g} s"
            if silent:
                words = f"silent for {self._idle_timeout:g} s"
            return TransientEndpointError(f"{url}: {words}", kind="timeout")
        return from_connection(error, url=url, connect_timeout=self._connect_timeout, redact=self.redact)


def _limits(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Return the headers about rate limits."""
    return {name.lower(): value for name, value in response.headers.items() if "ratelimit" in name.lower()}


@cache
def _client_failures() -> tuple[type[Exception], ...]:
    """Return the error that the client raises if a request fails."""
    import aiohttp

    return (aiohttp.ClientError, OSError)  # a TimeoutError is an OSError
