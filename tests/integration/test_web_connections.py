"""What strangers can take up of the live page: bounded before the token is looked at."""

import contextlib
import itertools
import resource
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from adaptive_eval.http_server import listen
from adaptive_eval.views import web_connections as bounds

ANSWER = b"x" * 8_000_000
WAIT = 1.0
"""Seconds of patience in these tests; the connections are given many times as long to end."""


async def app(scope, receive, send):
    """Answer ``/big`` with much, else with little."""
    body = ANSWER if scope["path"] == "/big" else b"here"
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]}
    )
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def address(monkeypatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(bounds, "PATIENCE", WAIT)
    server, listener = bounds.bounded_server(app, timeout_graceful_shutdown=1), listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()
    server.should_exit = True
    thread.join(timeout=20)
    assert not thread.is_alive()


@contextlib.contextmanager
def connected(address, sent: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection(address, timeout=20) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(sent)
        yield connection


def heard(connection: socket.socket) -> bytes:
    """Return all that comes until the server ends the connection; a timeout is a failure."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(2**16):
            found += part
    return found


def get(path: bytes = b"/", headers: bytes = b"Connection: close\r\n") -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n" + headers + b"\r\n"


def head(size: int, end: bytes) -> bytes:
    """Return a request whose head has `size` bytes in many headers."""
    start = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
    line = b"x-filler: " + b"y" * 990 + b"\r\n"
    lines = line * ((size - len(start)) // len(line) + 1)
    return start + lines[: size - len(start) - len(end) - 2] + b"\r\n" + end


def test_headers_are_bounded_whether_they_end_or_not(address):
    with connected(address, head(50_000, b"\r\n")) as connection:
        assert heard(connection).endswith(b"here")
    for end in (b"\r\n", b""):
        for size in (bounds.MOST_HEADERS + 1, 200_000, 5_000_000):
            with connected(address, head(size, end)) as connection:
                assert b"200 OK" not in heard(connection), (size, end)


HALF = (
    b"",
    b"GET",
    b"GET / HTTP/1.1\r\nHost: a\r\nx: ",
    get(headers=b""),
    get(headers=b"") + b"GET / HTT",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n",
)


def test_half_a_request_ends_in_time(address, caplog):
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(address, sent)) for sent in HALF]
        begun = time.monotonic()
        answers = [heard(connection) for connection in held]
    assert time.monotonic() - begun < 4.5, "the server's own limit for idle connections is five seconds"
    assert [b"200 OK" in answer for answer in answers[:7]] == [False] * 3 + [True] * 4
    assert not caplog.records


def test_bytes_that_trickle_in_gain_no_time(address):
    begun = time.monotonic()
    with connected(address, b"GET / HTTP/1.1\r\n") as connection, contextlib.suppress(ConnectionError):
        connection.settimeout(WAIT / 10)
        while time.monotonic() - begun < 20:
            connection.sendall(b"x: y\r\n")
            with contextlib.suppress(TimeoutError):
                if not connection.recv(100):
                    break
    assert time.monotonic() - begun < 10


@pytest.mark.slow
def test_who_does_not_read_is_cut_off_and_who_reads_slowly_is_not(address):
    with contextlib.ExitStack() as stack:
        silent, tired, slow = (stack.enter_context(connected(address, get(b"/big"))) for _ in range(3))
        got, first = b"", 0
        paused = threading.Event()
        for turn in itertools.count():
            part = slow.recv(2**18)
            if not part:
                break
            got += part
            if turn < 12:  # one and a half times as long as a silent reader has
                first += len(tired.recv(2**16))
            paused.wait(WAIT / 8)
        assert got.endswith(ANSWER)
        assert turn > 24, "the tired one had time enough to be cut off"
        assert first + len(heard(tired)) < len(ANSWER)
        assert len(heard(silent)) < len(ANSWER)


def test_connections_are_counted_and_freed(address, monkeypatch):
    monkeypatch.setattr(bounds, "PATIENCE", 20.0)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, most), most))  # both ends are in this process
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(address, b"GET")) for _ in range(bounds.MOST_CONNECTIONS)]
        for _ in range(50):
            with connected(address, get()) as refused:
                assert b"200 OK" not in heard(refused)
        held[0].sendall(b" / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert heard(held[0]).endswith(b"here")
    answered = False
    while not answered:  # the server sees the ends of the others one by one
        with connected(address, get()) as connection:
            answered = heard(connection).endswith(b"here")
