"""Access to the pages, and security headers."""

from __future__ import annotations

import secrets

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adaptive_eval.views.page import style_source


def content_security_policy() -> str:
    """Return the policy of the pages: our own scripts and our one style sheet, nothing from elsewhere."""
    parts = (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src {style_source()}",
        "img-src data:",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
    return "; ".join(parts)


_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def new_token() -> str:
    """Return a token that cannot be guessed: 192 random bits, safe in an address."""
    return secrets.token_urlsafe(24)


class Guard:
    """Lets only those in who know the token, which is the first part of every path."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._headers = {"Content-Security-Policy": content_security_policy(), **_HEADERS}
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        given = str(scope["path"]).split("/")[1].encode("utf-8", "replace") if "/" in scope["path"] else b""
        if secrets.compare_digest(given, self._token):
            await self._app(scope, receive, with_headers)
        else:
            response = PlainTextResponse(
                "Not found: use the whole address that was printed.", status_code=404
            )
            await response(scope, receive, with_headers)
