"""What one who connects to the live page may take up before the token is looked at."""

import asyncio
from collections.abc import Iterator
from typing import Any

import h11
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from adaptive_eval.http_server import QuietServer, quiet_server

MOST_HEADERS = 64 * 1024  # bytes
MOST_CONNECTIONS = 256
PATIENCE = 10.0
"""Seconds that a request may take to arrive, and a reader to take what was sent."""

_LEAST_READ = 16 * 1024  # bytes in that time, of a reader who is only slow
_AT_ONCE = 128  # connections taken in one turn, each with a descriptor before it can be refused
_PIECE = 4096

_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def bounded_server(app: ASGIApp, **options: Any) -> QuietServer:
    """Return a server of `app` that bounds headers, connections and waiting."""
    return quiet_server(
        app,
        http=_BoundedConnection,
        # h11 looks at what it holds after each piece.
        h11_max_incomplete_event_size=MOST_HEADERS - _PIECE,
        backlog=_AT_ONCE,
        **options,
    )


class _BoundedConnection(H11Protocol):
    """A connection that is refused or cut off if it takes more than its part."""

    _deadline: asyncio.TimerHandle | None = None
    _unread = 0  # bytes that the reader had not taken when the waiting began

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; one too many is told so and closed."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.write(_BUSY)
            transport.close()
        else:
            self._expect_progress()

    def data_received(self, data: bytes) -> None:
        """Take data in pieces, so that headers that come at once meet their bound, too."""
        for piece in _pieces(data):
            if self.transport.is_closing():
                return
            super().data_received(piece)
        if self._is_answering():
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request, and for the rest of this one if it was answered before its end."""
        self._expect_progress()
        super().on_response_complete()
        if self._is_answering():  # the next request had come already
            self._stop_waiting()

    def pause_writing(self) -> None:
        """Wait for a reader who takes nothing."""
        self._expect_progress()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on: the reader took what was sent."""
        if self._is_answering():
            self._stop_waiting()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request; what goes wrong after an answer has begun ends the connection."""
        if self.conn.our_state is h11.IDLE:
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def _is_answering(self) -> bool:
        """Return whether a request has come as a whole and waits for its answer."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        return under_way and self.conn.their_state is not h11.SEND_BODY

    def _expect_progress(self) -> None:
        self._stop_waiting()
        self._unread = self.transport.get_write_buffer_size()
        self._deadline = self.loop.call_later(PATIENCE, self._give_up)

    def _give_up(self) -> None:
        """End the connection, unless its reader is only slow."""
        if self.transport.get_write_buffer_size() > 0 and self._has_read() >= _LEAST_READ:
            self._expect_progress()
        else:
            self.transport.abort()  # to close it would wait for a reader who does not read

    def _has_read(self) -> int:
        return self._unread - self.transport.get_write_buffer_size()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]
