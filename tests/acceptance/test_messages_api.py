"""Anthropic's Messages API: the documented config against the mimic server, and every shape of the API."""

import json

import pytest
from command_line import ROOT

from adaptive_eval.endpoints.answer import read_completions
from adaptive_eval.endpoints.apis import AnthropicMessages
from adaptive_eval.endpoints.batch_interfaces import AnthropicBatches, OpenAIBatches
from adaptive_eval.endpoints.batches import BatchOptions
from adaptive_eval.endpoints.exchange import Exchange
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.errors import EndpointError
from adaptive_eval.trial import Conversation, Message, Usage

MODEL = AnthropicMessages("http://127.0.0.1:1/v1", "claude", sampling={"max_completion_tokens": 9})
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
SHAPES = json.loads((ROOT / "tests" / "data" / "conversations.json").read_text("utf-8"))["messages"]
TALK, ASKED = SHAPES["talk"], SHAPES["asked"]


def test_a_conversation_goes_out_in_blocks():
    tools = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
    body = MODEL.body(Conversation(map(Message.of, TALK), {"tools": tools}), seed=7)
    assert body == {
        "model": "claude",
        "system": "Be brief.",
        "messages": ASKED,
        "tools": [{"name": "weather", "input_schema": PARAMETERS}],
        "max_tokens": 9,
    }


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
def test_an_answer_is_read_from_its_blocks(reason, finish):
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
    (answer,) = read_completions(
        MODEL.read(body), text_of=MODEL.text_of, latency=0.0, redact=Redactor([]), tools=True
    )
    assert (answer.text, answer.reasoning, answer.finish_reason) == ("I look.", "far north", finish)
    assert answer.usage == Usage(35, 7, 10)
    assert [(call["name"], json.loads(call["arguments"])) for call in answer.tool_calls] == [
        ("weather", {"city": "Oslo"})
    ]


@pytest.mark.parametrize(
    ("kind", "line", "retried"),
    [
        (OpenAIBatches, {"response": None, "error": {"code": "batch_expired"}}, True),
        (OpenAIBatches, {"response": {"status_code": 400, "body": {}}}, False),
        (OpenAIBatches, {"response": None, "error": None}, True),
        (AnthropicBatches, {"type": "canceled"}, True),
        (AnthropicBatches, {"type": "expired"}, True),
        (AnthropicBatches, {"type": "errored", "error": {"error": {"type": "overloaded_error"}}}, True),
        (AnthropicBatches, {"type": "errored", "error": {"error": {"type": "api_error"}}}, True),
        (AnthropicBatches, {"type": "errored", "error": {"type": "invalid_request_error"}}, False),
        (AnthropicBatches, None, True),
    ],
)
def test_a_request_without_an_answer_is_asked_again_where_that_helps(kind, line, retried):
    exchange = Exchange("http://127.0.0.1:1/v1", {}, None, {}, 1.0, 1.0, None, 1, 1)
    error = kind(exchange, BatchOptions("run"))._answer(line)
    assert isinstance(error, EndpointError)
    assert (type(error).__name__ == "TransientEndpointError") is retried
