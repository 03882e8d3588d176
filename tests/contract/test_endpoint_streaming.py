"""Answers that arrive piece by piece, and the largest size that an answer may have."""

import asyncio
import gzip
import json
import tracemalloc
import zlib

import pytest
from scripted_http import Request, asked, completion, reply
from whole_mimic import WholeMimic

from adaptive_eval.endpoints import transport
from adaptive_eval.endpoints.apis import OpenAIChat, OpenAICompletions
from adaptive_eval.endpoints.batches import BatchOptions
from adaptive_eval.endpoints.transport import LEAST_BODY, body_limit
from adaptive_eval.errors import EndpointError, PermanentEndpointError, TransientEndpointError
from adaptive_eval.mimic.mimic_spec import FaultSpec, KnownQuestion, LatencySpec, MimicModelSpec, MimicSpec
from adaptive_eval.options.request_options import BatchConfig
from adaptive_eval.trial import Conversation, Message, Usage

QUESTION = "A farmer has 3 cows and buys 4 more. How many has he now?"
ASK = [Message("user", QUESTION)]


@pytest.fixture(scope="module")
def mimic():
    def model(name, *, latency=None, **fault):
        quirks = {} if latency is None else {"latency": latency}
        return MimicModelSpec(name=name, mean=0.5, faults=(FaultSpec(**fault),) if fault else (), **quirks)

    spec = MimicSpec(
        models=(
            model("calm"),
            model("hung", kind="hang", after=0.5),
            model("slow", latency=LatencySpec(median=3.0, sigma=0.0)),
            model("cut", kind="drop", after=0.5, latency=LatencySpec(median=0.02)),
            model("odd", kind="malformed"),
            model("aborted", kind="cut_off", finish_reason="abort"),
            model("closed", kind="status", status=401),
            model("busy", kind="status", status=429, retry_after=3.0),
        ),
        questions=(KnownQuestion(id="cows", question=QUESTION, target="7"),),
        seed=3,
    )
    with WholeMimic(spec) as process:
        yield process


def ask(url, model="calm", api=OpenAIChat, *, seed=5, n=1, **options):
    async def main():
        async with api(url, model, **options) as endpoint:
            return await endpoint.sample(ASK, seed=seed, n=n)

    return asyncio.run(main())


def failure(url, model, *, idle_timeout=60.0, **options):
    with pytest.raises(EndpointError) as caught:
        ask(url, model, idle_timeout=idle_timeout, **options)
    return caught.value


@pytest.mark.parametrize(
    ("api", "sampling"),
    [
        (OpenAIChat, {"max_tokens": 400}),
        (OpenAIChat, {"max_tokens": 5, "temperature": 0.7}),
        (OpenAIChat, {"max_tokens": 400, "logprobs": True, "top_logprobs": 2}),
        (OpenAICompletions, {"max_tokens": 400}),
        (OpenAICompletions, {"max_tokens": 400, "logprobs": 1}),
    ],
)
@pytest.mark.parametrize("n", [1, 3])
def test_the_same_answer_as_whole(mimic, api, sampling, n):
    whole = ask(mimic.base_url, api=api, sampling=sampling, n=n)
    streamed = ask(mimic.base_url, api=api, sampling=sampling, n=n, idle_timeout=60.0)
    assert len(whole) == len(streamed) == n
    for one, other in zip(whole, streamed, strict=True):
        assert one.text
        assert (one.text, one.finish_reason, one.model) == (other.text, other.finish_reason, other.model)
        assert one.usage == other.usage != Usage()
        assert one.logprobs == other.logprobs


def test_a_generation_that_hangs_is_noticed_by_its_silence(mimic):
    error = failure(mimic.base_url, "hung", idle_timeout=2.0, total_timeout=3600.0)
    assert (type(error), error.kind, error.billed) == (TransientEndpointError, "timeout", True)
    assert str(error).endswith("silent for 2 s")


@pytest.mark.slow
def test_an_answer_that_takes_long_and_goes_on_is_waited_for(mimic):
    """Three seconds of generation, a token at a time, and never so long a silence."""
    (answer,) = ask(mimic.base_url, "slow", idle_timeout=2.8)
    assert answer.finish_reason == "stop"
    assert answer.latency >= 2.9


@pytest.mark.parametrize(
    ("model", "kind", "status", "wait"),
    [
        ("cut", "dropped", None, None),
        ("odd", "malformed", None, None),
        ("aborted", "aborted", None, None),
        ("closed", "auth", 401, None),
        ("busy", "rate_limit", 429, 3.0),
    ],
)
def test_an_answer_that_breaks_off_and_a_status_are_as_without_a_stream(mimic, model, kind, status, wait):
    error = failure(mimic.base_url, model)
    assert isinstance(error, PermanentEndpointError) == (kind == "auth")
    assert (error.kind, error.status, getattr(error, "retry_after", None)) == (kind, status, wait)


def events(*datas, done=True, **headers):
    text = "".join(f"data: {json.dumps(data)}\n\n" for data in datas) + ("data: [DONE]\n\n" if done else "")
    return reply(200, text, {"content-type": "text/event-stream", **headers})


def streamed(handler, question=ASK, **options):
    """Ask a server with `handler`; return the answer or the error, and the request it saw."""
    answer, server = asked(
        handler, lambda chat: chat.complete(question, seed=7), idle_timeout=60.0, **options
    )
    return answer, server.requests[0].json


def chunk(content=None, finish=None, **more):
    delta = {} if content is None else {"content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "model": "tiny", "choices": [choice], **more}


def calling(index, **function):
    named = {"id": f"c{index}"} if "name" in function else {}
    call = {"index": index, "type": "function", **named, "function": function}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def test_calls_of_tools_arrive_in_pieces():
    pieces = [
        calling(0, name="add", arguments=""),
        calling(0, arguments='{"a"'),
        calling(0, arguments=": 2}"),
        calling(1, name="now", arguments="{}"),
    ]
    offered = Conversation(ASK, {"tools": [{"type": "function", "function": {"name": "add"}}]})
    answer, request = streamed(events(*pieces, chunk(finish="tool_calls")), offered)
    assert request["tools"] == offered.fields["tools"]
    assert request["stream"] is True
    assert request["stream_options"] == {"include_usage": True}
    assert answer.tool_calls == (
        {"id": "c0", "name": "add", "arguments": '{"a": 2}'},
        {"id": "c1", "name": "now", "arguments": "{}"},
    )
    assert answer.no_answer is None
    unasked, _ = streamed(events(*pieces, chunk(finish="tool_calls")))
    assert (unasked.tool_calls, unasked.no_answer) == ((), "tool_calls")


def test_calls_of_tools_take_turns_or_share_a_number():
    """Arguments go to their call. Gateways number all calls 0; servers repeat ids, or make up new ones."""
    offered = Conversation(ASK, {"tools": [{"type": "function", "function": {"name": "add"}}]})
    turns = [calling(number, name=name, arguments="") for number, name in enumerate(("add", "now"))]
    turns += [calling(number, arguments=text) for text in ('{"a"', ": 2}") for number in (0, 1)]
    for place, piece in enumerate(turns[2:]):
        piece["choices"][0]["delta"]["tool_calls"][0]["id"] = f"made-up-{place}"
    answer, _ = streamed(events(*turns, chunk(finish="tool_calls")), offered)
    assert [call["arguments"] for call in answer.tool_calls] == ['{"a": 2}'] * 2
    alike = [calling(number, name="add", arguments="{}") for number in (0, 1)]
    for piece in alike:
        piece["choices"][0]["delta"]["tool_calls"][0]["index"] = 0
    answer, _ = streamed(events(*alike, chunk(finish="tool_calls")), offered)
    assert [(call["id"], call["arguments"]) for call in answer.tool_calls] == [("c0", "{}"), ("c1", "{}")]
    repeated = [calling(0, name="add", arguments=text) for text in ('{"a"', ": 2}")]
    answer, _ = streamed(events(*repeated, chunk(finish="tool_calls")), offered)
    assert [call["arguments"] for call in answer.tool_calls] == ['{"a": 2}']


@pytest.mark.parametrize("done", [True, False])
def test_usage_that_grows_is_the_last_one_and_the_last_word_may_be_missing(done):
    usages = [{"prompt_tokens": 9, "completion_tokens": count} for count in (1, 2)]
    pieces = [chunk("4", usage=usages[0]), chunk("2", "stop", usage=usages[1])]
    left = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6s"}
    answer, _ = streamed(events(*pieces, done=done, **left))
    assert (answer.text, answer.usage, answer.pause) == ("42", Usage(9, 2), 6.0)


OF_TWO = {"choices": [{"index": 0, "finish_reason": "stop"}, {"index": 1, "delta": {"content": "5"}}]}


@pytest.mark.parametrize(
    ("then", "kind", "status", "words"),
    [
        ((), "dropped", None, "the stream ended in the middle of the answer"),
        ((OF_TWO,), "dropped", None, "the stream ended in the middle of the answer"),
        (({"error": {"code": 503, "message": "engine died"}},), "server", 503, "engine died"),
        (({"error": {"code": 500, "message": "bad key sk-very-secret"}},), "server", 500, "key [redacted]"),
    ],
)
def test_an_answer_that_ends_in_the_middle(then, kind, status, words):
    key = {"api_key_env": "KEY", "environ": {"KEY": "sk-very-secret"}}
    error, _ = streamed(events(chunk("4"), *then, done=False), **key)
    assert (type(error), error.kind, error.status) == (TransientEndpointError, kind, status)
    assert words in str(error)


@pytest.mark.parametrize("event", [[1, 2], "text", None, {"choices": "none"}, {"choices": [7]}])
def test_events_of_any_shape_are_survived(event):
    answer, _ = streamed(events(event, chunk("4", "stop")))
    assert answer.text == "4"


@pytest.mark.parametrize("before", [None, "", "event: message\n", ": a comment\n\n"])
def test_an_answer_that_is_not_streamed_is_read_whole_and_a_stream_that_is_called_json_as_one(before):
    choice = {"message": {"content": "42"}, "delta": {"content": "42"}, "finish_reason": "stop"}
    whole = json.dumps({"choices": [choice]})
    said = whole if before is None else f"{before}data: {whole}\n\n"
    answer, _ = streamed(reply(200, said, {"content-type": "application/json; charset=utf-8"}))
    assert (answer.text, answer.finish_reason) == ("42", "stop")


# A response has a largest size, decompressed: whatever a server sends, and whatever was asked.


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


def too_large(handler, ask=lambda chat: chat.complete(ASK, seed=1), **options) -> EndpointError:
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
    error = too_large(reply(status, bomb(), {"content-encoding": "gzip"}))
    assert (error.kind, error.billed) == ("too_large", True)
    assert f"{LEAST_BODY:,}" in str(error)


@pytest.mark.parametrize("idle", [None, 60.0])
def test_an_endless_body_ends_at_the_limit(idle):
    error = too_large(endless, idle_timeout=idle, total_timeout=60.0)
    assert error.kind == "too_large"


def test_a_model_list_and_the_servers_own_word_on_its_health_are_bounded_too():
    assert too_large(endless, OpenAIChat.probe).kind == "too_large"
    assert asked(endless, OpenAIChat.alive)[0] is False


def test_the_limit_can_be_chosen_and_follows_what_was_asked_for():
    long = completion("x" * 20_000)
    assert too_large(reply(200, long), most_bytes=10_000).kind == "too_large"
    packed = gzip.compress(json.dumps(long).encode())
    assert too_large(reply(200, packed, {"content-encoding": "gzip"}), most_bytes=10_000).kind == "too_large"
    asked = {"max_tokens": 2**18}
    assert body_limit({"max_tokens": 16}) == LEAST_BODY
    assert body_limit(asked, n=4) == 4 * body_limit(asked)
    assert body_limit({**asked, "logprobs": True, "top_logprobs": 20}) > 10 * body_limit(asked)
    assert body_limit(asked, stream=True) > body_limit(asked)
    # a refused flag asks for nothing
    assert body_limit({**asked, "logprobs": False}) == body_limit(asked)


BATCHED = {"batch": BatchOptions("run", BatchConfig()), "concurrency": 2}


@pytest.mark.parametrize("more", [{}, {"most_answers": 2}, {"idle_timeout": 60.0}, BATCHED])
def test_several_answers_and_streams_may_be_longer(monkeypatch, more):
    monkeypatch.setattr(transport, "LEAST_BODY", 1)
    body = reply(200, "x" * 100_000)
    answer, _ = asked(body, lambda chat: chat._exchange.get("/file"), sampling={"max_tokens": 1024}, **more)
    if more:
        assert len(answer) == 100_000
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
    assert too_large(reply(200, body, {"content-encoding": encoding})).kind == "malformed"
