"""Serves the web page from this process until a signal stops it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

from adaptive_eval.http_server import listen, quiet_server
from adaptive_eval.views.web.app import create_app
from adaptive_eval.views.web.folder import open_folder
from adaptive_eval.views.web.guard import new_token

_GRACE = 2  # seconds for answers under way when Ctrl-C comes


def serve(path: Path, *, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page of a run, or of all runs in a folder, until SIGINT or SIGTERM."""
    token, folder = new_token(), open_folder(path)
    try:
        listener = listen(host, port)
        server = quiet_server(create_app(folder, token), timeout_graceful_shutdown=_GRACE)
        ready(f"http://{_shown(host)}:{listener.getsockname()[1]}/{token}/")
        server.run(sockets=[listener])
    finally:
        folder.close()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on `host`.

    Examples
    --------
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "gpu-box")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _shown(host: str) -> str:
    """Return `host` as part of an address; every interface is reached by this machine's name."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
