"""A response has a largest size, decompressed: whatever a server sends, and whatever was asked."""

import asyncio
import gzip
import json
import tracemalloc
import zlib

import pytest
from scripted_http import ASK, Request, asked, completion, reply

from adaptive_eval.endpoints import transport
from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.endpoints.transport import LEAST_BODY, body_limit
from adaptive_eval.errors import EndpointError

CHUNK = b"10000\r\n" + b" " * 65_536 + b"\r\n"


def bomb() -> bytes:
    """Return 40 MB of JSON in 40 kB."""
    squeeze = zlib.compressobj(9, wbits=31)
    return b"".join([*(squeeze.compress(b" " * 2**20) for _ in range(40)), squeeze.flush()])


async def endless(request: Request, writer: asyncio.StreamWriter) -> None:
    """Send a body without an end, as text and as events alike."""
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n")
    while not writer.is_closing():
        writer.write(CHUNK)
        await writer.drain()


def failure(handler, ask=lambda chat: chat.complete(ASK, seed=1), **options) -> EndpointError:
    """Ask a server that answers with `handler`; return how it fails, and check what memory it took."""

    async def use(chat):
        await chat.alive()  # whatever is imported or opened once
        tracemalloc.start()
        with pytest.raises(EndpointError) as raised:
            await ask(chat)
        assert tracemalloc.get_traced_memory()[1] < 3 * LEAST_BODY
        tracemalloc.stop()
        return raised.value

    return asked(handler, use, sampling={"max_tokens": 1024}, **options)[0]


@pytest.mark.parametrize("status", [200, 500])
def test_a_compressed_bomb_is_a_failure_of_its_own_kind(status):
    error = failure(reply(status, bomb(), {"content-encoding": "gzip"}))
    assert (error.kind, error.billed) == ("too_large", True)
    assert f"{LEAST_BODY:,}" in str(error)


@pytest.mark.parametrize("idle", [None, 60.0])
def test_an_endless_body_ends_at_the_limit(idle):
    error = failure(endless, idle_timeout=idle, total_timeout=60.0)
    assert error.kind == "too_large"


def test_a_model_list_and_the_servers_own_word_on_its_health_are_bounded_too():
    assert failure(endless, OpenAIChat.probe).kind == "too_large"
    assert asked(endless, OpenAIChat.alive)[0] is False


def test_the_limit_can_be_chosen_and_follows_what_was_asked_for():
    long = completion("x" * 20_000)
    assert failure(reply(200, long), most_bytes=10_000).kind == "too_large"
    packed = gzip.compress(json.dumps(long).encode())
    assert failure(reply(200, packed, {"content-encoding": "gzip"}), most_bytes=10_000).kind == "too_large"
    asked = {"max_tokens": 2**18}
    assert body_limit({"max_tokens": 16}) == LEAST_BODY
    assert body_limit(asked, n=4) == 4 * body_limit(asked)
    assert body_limit({**asked, "logprobs": True, "top_logprobs": 20}) > 10 * body_limit(asked)
    assert body_limit(asked, stream=True) > body_limit(asked)
    # a refused flag asks for nothing
    assert body_limit({**asked, "logprobs": False}) == body_limit(asked)


@pytest.mark.parametrize("more", [{}, {"most_answers": 2}, {"idle_timeout": 60.0}])
def test_several_answers_and_streams_may_be_longer(monkeypatch, more):
    monkeypatch.setattr(transport, "LEAST_BODY", 1)
    answer, _ = asked(reply(200, completion("x" * 100_000)), sampling={"max_tokens": 1024}, **more)
    if more:
        assert len(answer.text) == 100_000
    else:
        assert "more than 65,536 bytes" in str(answer)


BODY = json.dumps(completion("forty-two " * 30_000)).encode()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(BODY)),
        ("gzip", gzip.compress(BODY[:1000]) + gzip.compress(BODY[1000:])),
        ("identity", BODY),
    ],
    ids=["gzip", "two members", "identity"],
)
def test_a_compressed_answer_is_read(encoding, packed):
    answer, server = asked(reply(200, packed, {"content-encoding": encoding}))
    assert server.requests[0].headers["accept-encoding"] == "gzip"
    assert answer.text == "forty-two " * 30_000


@pytest.mark.parametrize(("encoding", "body"), [("gzip", b"no gzip"), ("deflate", b"x"), ("br", b"x")])
def test_what_cannot_be_decompressed_is_a_malformed_answer(encoding, body):
    assert failure(reply(200, body, {"content-encoding": encoding})).kind == "malformed"
