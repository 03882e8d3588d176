"""HTTP servers of this process: a listening socket, and uvicorn without its own log."""

import logging
import socket
from types import FrameType
from typing import Any

import uvicorn

from adaptive_eval.errors import UsageError, in_words


class QuietServer(uvicorn.Server):
    """A server that stops without complaints about the responses it cuts off."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop: no messages about requests that are cancelled now."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        super().handle_exit(sig, frame)


def quiet_server(app: Any, **options: Any) -> QuietServer:
    """Return a server of `app` that logs errors only."""
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        **options,
    )
    return QuietServer(config)


def listen(host: str, port: int, backlog: int = 128) -> socket.socket:
    """Return a socket that listens on `host`; raise UsageError if it cannot."""
    if ":" in host:
        family = socket.AF_INET6
    else:
        family = socket.AF_INET
    # asyncio switches Nagle's delay off only on sockets that say they are TCP; with it, answers take 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(backlog)
    except (OSError, OverflowError) as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {host} port {port}: {in_words(error)}; choose another --host, or --port 0"
        ) from None
    return listener
