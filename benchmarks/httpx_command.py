"""``adaptive-eval`` with httpx2 on its aiohttp transport in the place of aiohttp itself.

    python benchmarks/httpx_command.py run config.yaml

``benchmarks/engine.py --ways command httpx`` compares the two.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any

from adaptive_eval.cli.main import main
from adaptive_eval.endpoints import exchange
from adaptive_eval.endpoints.transport import KEEPALIVE_SECONDS, HTTPClient


class OverHttpx(HTTPClient):
    """The same requests and the same limit on a body's bytes, by the other client."""

    @cached_property
    def _session(self) -> Any:
        import httpx2
        import openai

        most = self._connections
        return openai.DefaultAioHttpClient(
            limits=httpx2.Limits(
                max_connections=most, max_keepalive_connections=most, keepalive_expiry=KEEPALIVE_SECONDS
            ),
            timeout=httpx2.Timeout(None, connect=self._connect_timeout),
            follow_redirects=False,
            headers=self._headers,
        )

    @asynccontextmanager
    async def send(self, method: str, url: str, data: bytes | None = None) -> AsyncIterator[Any]:
        """Send one request."""
        async with self._session.stream(method, url, content=data) as response:
            response.status = response.status_code
            yield response

    async def read(self, response: Any) -> bytes:
        """Return the body, decompressed."""
        decompress, body = self._decompressor(response), list[bytes]()
        async for raw in response.aiter_raw():
            body += decompress(raw)
        return b"".join(body)

    async def aclose(self) -> None:
        """Close the connections."""
        if "_session" in self.__dict__:
            await self._session.aclose()


if __name__ == "__main__":
    vars(exchange)["HTTPClient"] = OverHttpx
    main()
