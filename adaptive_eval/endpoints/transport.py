"""The HTTP client under an endpoint: connections as many as requests in flight, and no waiting for them.

The openai client takes any client with the interface of httpx. Measured by ``benchmarks/transport.py``,
the one over aiohttp answers 1.5 to 2 times as many requests per second as httpx2 at 64 and 256 in flight
and about four times as many as httpx 0.28, with the shortest tails; so it is the one used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

__all__ = ["KEEPALIVE_SECONDS", "open_http_client"]

KEEPALIVE_SECONDS = 4.0
"""Idle connections are dropped after this long: before uvicorn, and so vLLM, closes them at 5 s. A request
sent into a connection that the server is just closing is lost."""


def open_http_client(*, connections: int, connect_timeout: float) -> httpx2.AsyncClient:
    """Open an HTTP client for one endpoint.

    Proxies and the CA bundle are taken from the environment as httpx does (``HTTPS_PROXY``, ``NO_PROXY``,
    ``SSL_CERT_FILE``). Redirects are not followed: a header that holds a key must not go to another host.

    Parameters
    ----------
    connections : int
        Most connections at a time: at least as many as requests in flight, or they wait for each other.
    connect_timeout : float
        Seconds to wait for a connection. How long an answer may take is up to the caller.

    Returns
    -------
    httpx2.AsyncClient
        To be closed by the caller with ``aclose()``.

    Examples
    --------
    >>> import asyncio
    >>> client = open_http_client(connections=64, connect_timeout=10.0)
    >>> client.timeout.connect, client.timeout.read
    (10.0, None)
    >>> asyncio.run(client.aclose())
    """
    import httpx2
    import openai

    return openai.DefaultAioHttpClient(
        limits=httpx2.Limits(
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=KEEPALIVE_SECONDS,
        ),
        timeout=httpx2.Timeout(None, connect=connect_timeout),
        follow_redirects=False,
    )
