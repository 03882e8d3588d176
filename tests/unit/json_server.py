"""A server on loopback that answers in JSON, as the methods of a handler say."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Replies(BaseHTTPRequestHandler):
    """Reads and writes JSON, and keeps connections."""

    protocol_version = "HTTP/1.1"

    def asked(self) -> Any:
        """Return the body of the request."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def reply(self, data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Write an answer: JSON, or a text as it is."""
        raw = (data if isinstance(data, str) else json.dumps(data)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong, but that a client is gone, as one that a test has killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve in a thread, and yield the address."""
    with _Server(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
