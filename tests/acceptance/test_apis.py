"""Anthropic's Messages API and OpenAI's Responses API: what goes out, and what is read, in their shapes."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from command_line import ROOT
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from adaptive_eval.endpoints.answer import read_completions
from adaptive_eval.endpoints.apis import AnthropicMessages, OpenAIResponses
from adaptive_eval.endpoints.batch_interfaces import AnthropicBatches, OpenAIBatches
from adaptive_eval.endpoints.batches import Batch, BatchOptions, _unanswered
from adaptive_eval.endpoints.exchange import Exchange
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.endpoints.streaming import Assembly
from adaptive_eval.engine.discards import cause_of
from adaptive_eval.errors import EndpointError, PermanentEndpointError, TransientEndpointError
from adaptive_eval.options.request_options import BatchConfig
from adaptive_eval.trial import Conversation, Message, Usage

CLAUDE = AnthropicMessages("http://127.0.0.1:1/v1", "claude", sampling={"max_completion_tokens": 9})
GPT = OpenAIResponses(
    "http://127.0.0.1:1/v1", "gpt", sampling={"max_tokens": 9, "reasoning_effort": "medium"},
    extra_body={"store": False},
)  # fmt: skip
NO_SECRETS = Redactor([])
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
SHAPES = json.loads((ROOT / "tests" / "data" / "conversations.json").read_text("utf-8"))
SENT = {
    "messages": {
        "model": "claude",
        "system": "Be brief.",
        "messages": SHAPES["messages"]["asked"],
        "tools": [{"name": "weather", "input_schema": PARAMETERS}],
        "max_tokens": 9,
    },
    "responses": {
        "model": "gpt",
        "input": [*SHAPES["responses"]["asked"], {"role": "user", "content": "{input}"}],
        "tools": [{"type": "function", "name": "weather", "parameters": PARAMETERS}],
        "max_output_tokens": 9,
        "reasoning": {"effort": "medium"},
        "store": False,
    },
}


@pytest.mark.parametrize("api", SENT)
def test_a_conversation_goes_out_in_blocks(api):
    tools = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
    talk = Conversation(map(Message.from_mapping, SHAPES[api]["talk"]), {"tools": tools})
    assert (CLAUDE if api == "messages" else GPT).body(talk, seed=7) == SENT[api]
    assert SENT["responses"].keys() <= ResponseCreateParamsBase.__annotations__.keys()


def read(model, body):
    reads = {"text_of": model.text_of, "latency": 0.0, "redact": NO_SECRETS, "tools": True}
    (answer,) = read_completions(model.read(body), **reads)
    return answer


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reason", [None, "max_output_tokens", "content_filter"])
def test_a_response_is_read_whole_or_from_its_last_event(reason, stream):
    """Its shape is that of OpenAI's own client: a thought, and a call, or a text that is cut off."""
    part = {"type": "output_text", "text": "It rains", "annotations": [], "logprobs": []}
    said = {"type": "message", "id": "m", "role": "assistant", "status": "incomplete", "content": [part]}
    called = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": '{"city": "Oslo"}'}
    thought = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "far north"}]}
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "model": "gpt",
        "status": "incomplete" if reason else "completed",
        "incomplete_details": reason and {"reason": reason},
        "output": [thought, said if reason else called],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 36,
            "input_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 0},
            "output_tokens": 87,
            "output_tokens_details": {"reasoning_tokens": 64},
            "total_tokens": 123,
        },
    }
    Response.model_validate(body)
    if stream:
        begun = {"type": "response.created", "response": {**body, "output": []}}
        piece = {"type": "response.output_text.delta", "delta": "It"}
        events = Assembly(NO_SECRETS)
        for event in (begun, piece, {"type": f"response.{body['status']}", "response": body}):
            events.feed(f"data: {json.dumps(event)}")
        body = events.body()
    answer = read(GPT, body)
    finish = {None: "tool_calls", "max_output_tokens": "length", "content_filter": "content_filter"}[reason]
    assert (answer.text, answer.reasoning, answer.finish_reason) == (
        "It rains" if reason else "", "far north", finish,
    )  # fmt: skip
    assert (answer.usage, answer.reasoning_tokens) == (Usage(36, 87, 12), 64)
    assert [call["name"] for call in answer.tool_calls] == ["weather"] * (reason is None)
    if reason:  # without one it was broken off
        with pytest.raises(TransientEndpointError):
            read(GPT, {**body, "incomplete_details": None})


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("new", "new"),
    ],
)
def test_a_message_is_read_from_its_blocks(reason, finish):
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 10,
        "output_tokens": 7,
    }
    content = [
        {"type": "thinking", "thinking": "far north", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}},
    ]
    body = {"id": "msg_1", "model": "claude", "content": content, "stop_reason": reason, "usage": usage}
    answer = read(CLAUDE, body)
    assert (answer.text, answer.reasoning, answer.finish_reason) == ("I look.", "far north", finish)
    assert answer.usage == Usage(35, 7, 10)
    assert [(call["name"], json.loads(call["arguments"])) for call in answer.tool_calls] == [
        ("weather", {"city": "Oslo"})
    ]


@pytest.mark.parametrize(
    ("kind", "line", "retried", "cause"),
    [
        (OpenAIBatches, {"response": None, "error": {"code": "batch_expired"}}, True, None),
        (OpenAIBatches, {"response": {"status_code": 400, "body": {}}}, False, "server"),
        (OpenAIBatches, {"response": {"status_code": 429, "body": {}}}, True, None),
        (OpenAIBatches, {"response": None, "error": None}, True, "server"),
        (AnthropicBatches, {"type": "canceled"}, True, None),
        (AnthropicBatches, {"type": "expired"}, True, None),
        (AnthropicBatches, {"type": "errored", "error": {"error": {"type": "overloaded_error"}}}, True,
         "server"),
        (AnthropicBatches, {"type": "errored", "error": {"error": {"type": "api_error"}}}, True, "server"),
        (AnthropicBatches, {"type": "errored", "error": {"type": "invalid_request_error"}}, False, "server"),
        (AnthropicBatches, None, True, "server"),
    ],
)  # fmt: skip
def test_a_request_without_an_answer_is_asked_again_where_that_helps(kind, line, retried, cause):
    """It has given up a draw unless it was not carried out; of batches a status says nothing about time."""
    exchange = Exchange("http://127.0.0.1:1/v1", {}, None, {}, 1.0, 1.0, None, 1, 1)
    error = kind(exchange, BatchOptions("run", BatchConfig()))._answer(line)
    assert isinstance(error, EndpointError)
    assert (type(error).__name__ == "TransientEndpointError") is retried
    assert cause_of(error.kind, error.status, 0.0, fastest=0.0) == cause


@pytest.mark.parametrize("status", ["expired", "cancelled", "completed"])
def test_a_request_without_a_line_in_its_batch_may_have_begun(status):
    error = _unanswered(Batch("b", status, under_way=False))
    assert (error.kind, cause_of(error.kind, error.status, 0.0, fastest=0.0)) == ("malformed", "server")


def test_a_batch_has_all_its_files_and_a_run_finds_its_own_among_those_of_others(tmp_path):
    """Of OpenAI's on every page; of Anthropic's by its notes, also where it was killed while it sent one."""

    async def lines(file):
        return [{"custom_id": file, "response": {"status_code": 200, "body": file}}]

    async def seen(name):
        if name == "forgotten":
            raise PermanentEndpointError("results are kept for a month", kind="not_found", status=404)
        return {"id": name, "processing_status": name}

    async def page(ask):
        start = int(ask.keywords["after"] or -1) + 1
        return SimpleNamespace(data=account[start : start + 100], has_more=start < 150)

    async def got(path):
        name = path.removesuffix("/results").rpartition("/")[2]
        if path.endswith("/results"):
            return json.dumps({"custom_id": name, "result": {"type": "succeeded", "message": name}}).encode()
        sent = [{"id": name, "request_counts": {"processing": 1}} for name in ("ended", "in_progress")]
        return json.dumps({"data": sent}).encode()

    labels = [{"adaptive-eval": label} for label in ("another", "run")]
    account = [SimpleNamespace(id=str(n), status="completed", metadata=labels[n % 2]) for n in range(250)]
    others = {"label": "another", "asked": ["q"]}
    notes = []
    for name in ("forgotten", "first", "second"):
        notes += [{"asked": [name]}, {"asked": [name], "batch": name}]
    notes += [others, {**others, "batch": "ended"}, {"asked": ["q"]}]
    (tmp_path / "notes").write_text('{"label": "run", "asked": ["cut o', "utf-8")

    async def main():
        exchange = Exchange("http://127.0.0.1:1/v1", {}, None, {}, 1.0, 1.0, None, 1, 1)
        exchange.call, exchange.get = page, got
        options = BatchOptions("run", BatchConfig(), notes=tmp_path / "notes")
        files, lists = (kind(exchange, options) for kind in (OpenAIBatches, AnthropicBatches))
        files._lines, lists._get = lines, seen
        for note in notes:
            lists._note(note)
        both = SimpleNamespace(output_file_id="good", error_file_id="bad")
        assert await files.answers(Batch("b", "ended", False, body=both)) == {"good": "good", "bad": "bad"}
        assert [batch.name for batch in await files.own()] == [str(number) for number in range(1, 250, 2)]
        own = [(batch.name, batch.body) for batch in await lists.own()]
        assert own == [("in_progress", ["q"]), ("second", ["second"]), ("first", ["first"])]
        assert await lists.answers(Batch("a,b", "ended", False)) == {"a": "a", "b": "b"}
        for names, under_way in (("ended,in_progress", True), ("ended", False)):
            assert (await lists.look(Batch(names, "", True))).under_way is under_way

    asyncio.run(main())
