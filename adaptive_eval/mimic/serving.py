"""Serve a mimic server over HTTP until it is stopped: in this process, or as a child process.

A child is run as ``python -m adaptive_eval.mimic.serving HOST PORT``. The first line of its standard input is
the spec as JSON. One line of JSON goes to standard output: ``{"port": N}`` when connections are accepted, or
``{"error": kind, "message": text}``. It ends when its standard input ends: when the parent closes the pipe
or dies.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adaptive_eval.errors import DatasetError, UsageError
from adaptive_eval.http_server import listen, quiet_server
from adaptive_eval.mimic.delivery import CLOSE_EXTENSION
from adaptive_eval.mimic.mimic_spec import MimicSpec, spec_from_json
from adaptive_eval.mimic.routes import create_app

_IDLE_CONNECTION = 600  # seconds; long, so that no client finds its pooled connection closed
_BACKLOG = 2048
_GRACE = 1  # seconds for answers under way when Ctrl-C comes


def serve(
    app: ASGIApp,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[int], None],
    lifeline: int | None = None,
) -> None:
    """Serve `app` until SIGINT or SIGTERM."""
    listener = listen(host, port, _BACKLOG)
    server = quiet_server(
        app,
        loop="asyncio",
        http=_ClosableProtocol,
        timeout_keep_alive=_IDLE_CONNECTION,
        timeout_graceful_shutdown=_GRACE,
    )
    asyncio.run(_run(server, listener, ready, lifeline))


async def _run(
    server: uvicorn.Server, listener: socket.socket, ready: Callable[[int], None], lifeline: int | None
) -> None:
    if lifeline is not None:
        asyncio.get_running_loop().add_reader(lifeline, _exit_at_end_of_file, lifeline)
    # The socket listens already: a client that connects before the loop turns waits in its backlog.
    ready(listener.getsockname()[1])
    await server.serve(sockets=[listener])


def _exit_at_end_of_file(lifeline: int) -> None:
    if not os.read(lifeline, 4096):
        # The process that started this server has ended or stops it; there is no state to save.
        os._exit(0)


class _ClosableProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose application can close the connection in the middle of a response."""

    def on_message_begin(self) -> None:
        """Offer :data:`CLOSE_EXTENSION` to the application."""
        super().on_message_begin()
        self.scope["extensions"] = {CLOSE_EXTENSION: {"close": self.transport.close}}


def main(create_app: Callable[[MimicSpec], ASGIApp] = create_app) -> int:
    """Serve until standard input ends."""
    host = sys.argv[1]
    port = int(sys.argv[2])
    try:
        spec = spec_from_json(_first_line(sys.stdin.fileno()))
        serve(create_app(spec), host=host, port=port, ready=lambda bound: _say({"port": bound}), lifeline=0)
    except UsageError as error:
        kind = "usage"
        if isinstance(error, DatasetError):
            kind = "dataset"
        _say({"error": kind, "message": str(error)})
        return 2
    return 0


def _first_line(descriptor: int) -> str:
    """Read one line and nothing after it, so that the end of file is still to be seen."""
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        return stream.readline().decode("utf-8", "surrogatepass")


def _say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
