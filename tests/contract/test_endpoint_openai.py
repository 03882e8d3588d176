"""Both OpenAI-compatible endpoints over real HTTP on loopback, against servers that answer well and badly."""

import asyncio
import json
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from scripted_http import (
    ASK,
    asked,
    completion,
    continuation,
    hang,
    raw,
    refusing,
    reply,
    reset,
)  # fmt: skip

from adaptive_eval.endpoints.apis import OpenAIChat, OpenAICompletions
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.errors import EndpointError, PermanentEndpointError, TransientEndpointError

KEY = "sk-proj-1234567890abcdef"
KEYED = {"api_key_env": "KEY", "environ": {"KEY": KEY}}


@dataclass(frozen=True)
class Api:
    """One of the two APIs: its endpoint, where it is, and how it words question and answer."""

    endpoint: type[OpenAIEndpoint]
    path: str
    answer: Callable[..., dict]
    question: dict


ASKED = {"messages": [{"role": "user", "content": "What is 2 + 2?"}]}
APIS = [
    Api(OpenAIChat, "/chat/completions", completion, ASKED),
    Api(OpenAICompletions, "/completions", continuation, {"prompt": "What is 2 + 2?"}),
]


@pytest.fixture(params=APIS, ids=["chat", "completions"])
def api(request):
    return request.param


def ask(api, handler, *use, **options):
    return asked(handler, *use, api=api.endpoint, **options)


def test_the_request_as_it_goes_out(api):
    sampling = {"temperature": 0.6, "top_p": 0.95, "max_tokens": 32768, "top_k": 20}
    extra = {"structured_outputs": {"choice": ["A", "B"]}, "min_p": 0.0}
    options = {"sampling": sampling, "extra_body": extra, "headers": {"X-Team": "evals"}, **KEYED}
    _, server = ask(api, reply(200, api.answer()), **options)
    (request,) = server.requests
    assert request.method == "POST"
    assert request.json == {"model": "tiny", **api.question, "seed": 7, **sampling, **extra}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-team"] == "evals"
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        ({}, "Bearer none"),
        ({"api-key": "sk-12345678"}, None),  # as at Azure's old addresses, which a second key confuses
        ({"authorization": "Basic bWU6cHc="}, "Basic bWU6cHc="),
    ],
)
def test_without_a_key_a_header_may_hold_it(api, headers, sent):
    _, server = ask(api, reply(200, api.answer()), headers=headers)
    assert server.requests[0].headers.get("authorization") == sent


def test_a_header_of_the_config_takes_the_place_of_ours_in_any_case(api):
    given = {"authorization": "Basic bWU6cHc=", "USER-AGENT": "mine", "content-type": "application/json; v=2"}
    _, server = ask(api, reply(200, api.answer()), headers=given, **KEYED)
    (request,) = server.requests
    assert {name: request.headers[name.lower()] for name in given} == given


def test_variables_meant_for_another_server_are_not_sent(api, monkeypatch):
    for name in ("API_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", "a-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-other: a-secret\nAuthorization: Bearer a-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    _, server = ask(api, reply(200, api.answer()))
    assert "secret" not in json.dumps(server.requests[0].headers)


def test_a_path_prefix_and_a_query_are_kept(api):
    async def twice(chat):
        for _ in range(2):
            await chat.complete(ASK, seed=None)
        await chat._exchange.get("/batches?limit=1")
        await chat._exchange.call(lambda client: client.batches.retrieve("b"))
        return chat.url

    answer = reply(200, api.answer(), {"Set-Cookie": "seen=1"})
    shown, server = ask(api, answer, twice, path="/team/proxy/v1/?api-version=2")
    first, second, *others = server.requests
    assert "cookie" not in second.headers  # no trial depends on those before it
    assert first.target == f"/team/proxy/v1{api.path}?api-version=2"
    targets = [one.target.removeprefix("/team/proxy/v1/batches") for one in others]
    assert targets == ["?limit=1&api-version=2", "/b?api-version=2"]
    assert shown == f"http://127.0.0.1:{server.port}/team/proxy/v1"


def test_redirects_are_not_followed(api):
    echo = {"location": "http://127.0.0.1:9/v1?as=tok-12345678"}
    error, server = ask(api, reply(307, "", echo), headers={"x-auth": "Token tok-12345678"})
    assert isinstance(error, PermanentEndpointError)
    assert "http://127.0.0.1:9/v1?as=[redacted]" in str(error)
    assert len(server.requests) == 1


def test_a_limit_carries_its_wait(api):
    error, _ = ask(api, reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "12"}))
    assert isinstance(error, TransientEndpointError)
    assert (error.kind, error.status, error.retry_after) == ("rate_limit", 429, 12.0)
    assert str(error) == "HTTP 429 Too Many Requests: slow down"
    left = {"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "6s"}
    answer, _ = ask(api, reply(200, api.answer(), left))
    assert answer.paid.total_tokens > 5
    assert answer.pause == 6.0  # the next one would take as many


OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


BROKEN = {
    "dropped": (raw(b""), "dropped", "closed the connection without an answer"),
    "reset": (reset, "dropped", "reset"),
    "not http": (raw(b"hello, this is no http\r\n\r\n"), "malformed", "not HTTP"),
    "cut off": (raw(OK + b'content-length: 1000\r\n\r\n{"choices": ['), "dropped", "middle of the answer"),
    "cut off in a chunk": (
        raw(OK + b'transfer-encoding: chunked\r\n\r\nff\r\n{"choices'), "dropped", "middle of the answer",
    ),
    "bad compression": (
        raw(OK + b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\n{true"), "malformed", "decoded",
    ),
    "half a json": (reply(200, b'{"choices": [{"message": {"content": "4'), "malformed", "JSON was expected"),
    "not utf-8": (reply(200, b"\xff\xfe\xfa"), "malformed", "JSON was expected"),
    "empty": (reply(200, b""), "malformed", "nothing"),
    "deep json": (reply(200, b"[" * 50_000), "malformed", "JSON was expected"),
    "gateway timeout": (reply(504, "<html><title>Gateway Time-out</title></html>"), "server", "Time-out"),
}  # fmt: skip
"""What else is no answer, ``tests/unit/test_endpoint_answer.py`` and ``test_endpoint_failures.py`` have."""


@pytest.mark.parametrize(("handler", "kind", "words"), BROKEN.values(), ids=BROKEN)
def test_what_is_worth_another_attempt_is_not_tried_again_here(api, handler, kind, words):
    error, server = ask(api, handler)
    assert isinstance(error, TransientEndpointError)
    assert error.kind == kind
    assert words in str(error)
    assert len(server.requests) == 1


def test_a_web_page_is_a_refusal_until_an_answer_has_come(api):
    replies = [reply(200, "<html>welcome</html>"), reply(200, api.answer()), reply(200, "<html>busy</html>")]
    errors = []

    async def handler(request, writer):
        await replies.pop(0)(request, writer)

    async def use(client):
        for _ in range(3):
            try:
                await client.complete(ASK, seed=1)
            except EndpointError as error:
                errors.append(error)

    ask(api, handler, use)
    assert [(type(error), error.kind) for error in errors] == [
        (PermanentEndpointError, "not_found"),
        (TransientEndpointError, "malformed"),
    ]
    assert "welcome" in str(errors[0])
    assert errors[0].cause == ("page",)


def test_a_hung_answer_ends_at_the_total_timeout(api):
    error, _ = ask(api, hang, total_timeout=0.2)
    assert (type(error), error.kind) == (TransientEndpointError, "timeout")
    assert "no answer within 0.2 s" in str(error)


def unanswered(api, url, timeout=100.0):
    async def main():
        async with api.endpoint(url, "tiny", connect_timeout=timeout) as chat:
            await chat.complete(ASK, seed=1)

    with pytest.raises(EndpointError) as raised:
        asyncio.run(main())
    return raised.value


def test_a_handshake_that_hangs_ends_at_the_connect_timeout(api):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = unanswered(api, f"https://127.0.0.1:{silent.getsockname()[1]}/v1", 0.2)
    assert (type(error), error.kind) == (TransientEndpointError, "connection")
    assert "no connection within 0.2 s" in str(error)


def test_a_refused_connection(api):
    with refusing() as port:
        url = f"http://127.0.0.1:{port}/v1"
        error = unanswered(api, url)
    assert (type(error), error.kind) == (TransientEndpointError, "connection")
    assert str(error) == f"{url}: connection refused"


def test_an_unknown_host(api, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    error = unanswered(api, "http://no-such-host.invalid:8000/v1")
    assert error.kind == "connection"
    assert "host name cannot be resolved" in str(error)


def test_tls_spoken_to_a_plain_port_is_permanent(api):
    async def plain(reader, writer):
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main():
        listener = await asyncio.start_server(plain, "127.0.0.1", 0)
        url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
        async with listener, api.endpoint(url, "tiny") as chat:
            await chat.complete(ASK, seed=1)

    with pytest.raises(PermanentEndpointError, match="TLS failed") as raised:
        asyncio.run(main())
    assert raised.value.kind == "connection"
    assert "if the server speaks plain HTTP, write http:// for https://" in str(raised.value)


def test_a_key_is_in_no_error_even_when_the_server_echoes_it(api, caplog):
    caplog.set_level("DEBUG")
    echo = reply(401, {"error": {"message": f"bad header Bearer {KEY}"}})
    error, server = ask(api, echo, **KEYED, headers={"x-auth": "Bearer tok-12345678"})
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert str(error) == "HTTP 401 Unauthorized: bad header Bearer [redacted]"
    assert error.__cause__ is error.__context__ is None
    assert KEY not in caplog.text
    assert "tok-12345678" not in caplog.text


@pytest.mark.parametrize(
    "bad",
    [reset, raw(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{{{"), reply(500, {"error": "down"})],
    ids=["reset", "no JSON", "500"],
)
@pytest.mark.parametrize("options", [{}, {"idle_timeout": 5.0}], ids=["whole", "streamed"])
def test_no_traceback_of_a_failure_shows_what_the_client_held(api, bad, options):
    """An exception of the client carries the request, and with it the key: none is chained."""
    error, _ = ask(api, bad, **KEYED, **options)
    assert isinstance(error, EndpointError)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    assert "sk-proj" not in "".join(traceback.format_exception(error))


def test_a_key_is_in_no_answer_even_when_the_server_echoes_it(api):
    """A proxy that is being debugged, or a model with a tool, may say in an answer what it was sent."""
    said = f"Bearer {KEY}"
    echo = reply(200, api.answer(f"I was sent {said}.", id=said, model=said))
    completion, server = ask(api, echo, **KEYED)
    assert server.requests[0].headers["authorization"] == said
    assert completion.text == "I was sent Bearer [redacted]."
    assert KEY not in repr(completion)


def test_connections_are_as_many_as_requests_in_flight_and_are_kept(api):
    gate = asyncio.Barrier(32)

    async def together(request, writer):
        await gate.wait()
        await reply(200, api.answer())(request, writer)

    async def use(chat):
        for _ in range(2):
            await asyncio.gather(*(chat.complete(ASK, seed=i) for i in range(32)))

    _, server = ask(api, together, use, concurrency=32)
    assert (len(server.requests), server.connections) == (64, 32)


def test_a_cancelled_request_closes_its_connection(api):
    async def main():
        asked = asyncio.Event()
        gone = asyncio.Event()

        async def watch(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            asked.set()
            while await reader.read(1000):
                pass
            gone.set()
            writer.close()

        server = await asyncio.start_server(watch, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with server, api.endpoint(url, "tiny") as chat:
            request = asyncio.create_task(chat.complete(ASK, seed=1))
            await asked.wait()
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
            await asyncio.wait_for(gone.wait(), 60)

    asyncio.run(main())


def choices(api, *texts):
    """Return choices with these texts, by index."""
    found = [api.answer(text)["choices"][0] for text in texts]
    return [{**one, "index": index, "finish_reason": "length"} for index, one in enumerate(found)]


def test_several_answers_with_one_request(api):
    usage = {"prompt_tokens": 90, "completion_tokens": 40}
    body = api.answer(choices=choices(api, "a", "bb", "ccc", "dddd")[::-1], usage=usage)
    left = {"x-ratelimit-remaining-tokens": "129", "x-ratelimit-reset-tokens": "6s"}
    several = reply(200, body, left)
    answers, server = ask(
        api, several, lambda chat: chat.sample(ASK, seed=7, n=4), sampling={"max_tokens": 10}
    )
    (request,) = server.requests
    assert request.json == {"model": "tiny", **api.question, "n": 4, "seed": 7, "max_tokens": 10}
    assert [answer.text for answer in answers] == ["a", "bb", "ccc", "dddd"]
    assert sum(answer.paid.completion_tokens for answer in answers) == 40
    assert [answer.paid.prompt_tokens for answer in answers] == [90, 0, 0, 0]
    assert [answer.usage.prompt_tokens for answer in answers] == [90, 90, 90, 90]
    assert len({answer.response_id for answer in answers}) == 4
    assert {answer.pause for answer in answers} == {6.0}


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_a_server_that_reports_one_of_several_answers_is_paid_for_all(api, limit):
    usage = {"prompt_tokens": 90, "completion_tokens": 10}
    answer = reply(200, api.answer(choices=choices(api, "a", "b"), usage=usage))
    answers, _ = ask(api, answer, lambda chat: chat.sample(ASK, seed=7, n=2), sampling={limit: 10})
    assert [answer.paid.completion_tokens for answer in answers] == [10, 10]
