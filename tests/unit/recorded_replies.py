"""Answers and failures of servers, as clients of every API send, read and bill them, with crossed options."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from course_facts import digest, text, together
from crossed_options import Case, Options, Refused
from recorded_runs import parts_of
from written_answers import (
    CALLS,
    Bill,
    Said,
    chat,
    chat_pieces,
    completions,
    messages,
    plain_pieces,
    response_events,
    responses,
    streamed,
)

from adaptive_eval.endpoints import exchange, openai_endpoint
from adaptive_eval.endpoints.apis import AnthropicMessages, OpenAIChat, OpenAICompletions, OpenAIResponses
from adaptive_eval.endpoints.batches import BatchOptions
from adaptive_eval.errors import EndpointError
from adaptive_eval.options.request_options import BatchConfig
from adaptive_eval.trial import Completion, Conversation, Message

REPLIES: Options = {
    "api": ("chat", "completions", "responses", "messages"),
    "way": ("whole", "streamed", "unstreamed", "line"),
    "n": ("one", "three", "of-two", "of-four"),
    "bill": ("whole", "cached", "none", "apart", "of-one", "zero", "huge"),
    "ended": ("stop", "mixed", "cut", "filtered", "aborted"),
    "limit": ("none", "max_tokens", "completion", "parameters"),
    "context": ("none", "small", "ample"),
    "order": ("back", "forth", "unnamed"),
    "tools": ("none", "offered"),
    "key": ("none", "in-text", "in-thought"),
    "left": ("none", "requests", "tokens", "enough", "anthropic", "date"),
    "fails": (
        "no", "limited", "milliseconds", "on-a-date", "reset", "spent", "server", "gateway", "refused",
        "inside", "page", "other", "no-json",
    ),
    "talk": ("question", "turns"),
    "seed": ("sent", "kept"),
    "effort": ("none", "low"),
}  # fmt: skip
"""The options of requests and answers."""
REPLIES_REFUSED: Refused = (
    ("api", "responses messages", "n", "three of-two of-four"),
    ("api", "responses messages", "ended", "aborted"),
    ("api", "responses messages", "order", "forth unnamed"),
    ("api", "responses messages", "bill", "of-one"),
    ("api", "messages", "way", "streamed unstreamed"),
    ("api", "messages", "effort", "low"),
    ("api", "completions", "effort", "low"),
    ("api", "completions responses", "way", "line"),
    ("api", "completions", "tools", "offered"),
    ("api", "completions", "key", "in-thought"),
    ("way", "line", "n", "three of-two of-four"),
    ("way", "line", "left", "requests tokens enough anthropic date"),
    ("way", "line", "fails", "page no-json"),
    ("way", "streamed", "order", "forth unnamed"),
    ("way", "streamed", "n", "of-four"),
    ("way", "line", "bill", "of-one"),
    ("n", "one", "bill", "of-one"),
)  # fmt: skip
CLIENTS = {
    "chat": (OpenAIChat, chat), "completions": (OpenAICompletions, completions),
    "responses": (OpenAIResponses, responses), "messages": (AnthropicMessages, messages),
}  # fmt: skip
KEY = "sk-12345678"
NOW = 1_700_000_000.0
SAID = (
    (Said("It rains."), Said("It is as dry as ever here.", thought="Far north."), Said("Snow")),
    (Said("", thought="Far in the north it may be, or east."), Said("No."), Said("It rains and rains.")),
    (Said("I look.", calls=CALLS), Said(""), Said(refusal="I cannot help.", thought="Hm.")),
    (Said(calls=CALLS[:1], thought="Oslo?"), Said("It rains, and rains, and it will rain."), Said("Dry")),
)
"""What is said in the answers to four requests; a request for one answer gets the first."""
ENDS = {
    "mixed": ("length", "stop", "length"), "cut": ("length", "max_tokens", "length"),
    "filtered": ("stop", "content_filter", "stop"), "aborted": ("abort", "stop", "error"),
}  # fmt: skip
TURNS = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Oslo?"}]},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c", "content": "rain"},
    {"role": "system", "content": "In English."},
    {"role": "user", "content": "And Rome?"},
)
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Says it."}}]
FAILURES: Mapping[str, tuple[int, Mapping[str, str], Any]] = {
    "limited": (429, {"retry-after": "7", "x-ratelimit-reset-tokens": "90s"}, {"error": "Slow down"}),
    "milliseconds": (503, {"retry-after-ms": "250", "retry-after": "9"}, {"detail": "busy"}),
    "on-a-date": (
        429, {"retry-after": "Tue, 14 Nov 2023 22:14:00 GMT", "date": "Tue, 14 Nov 2023 22:13:30 GMT"}, "",
    ),
    "reset": (
        429,
        {
            "x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "40s",
            "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2s",
        },
        {"error": {"message": "Wait", "details": [{"retryDelay": "12s"}]}},
    ),
    "spent": (429, {"retry-after": "3"}, {"error": {"code": "insufficient_quota", "message": "No credit."}}),
    "server": (500, {}, {"error": {"message": "It broke", "retryDelay": "4s"}}),
    "gateway": (504, {"content-type": "text/html"}, "<html><title>Gateway</title></html>"),
    "refused": (400, {}, {"error": {"message": f"{KEY} is too long: maximum context length is 10 tokens"}}),
    "inside": (200, {}, {"error": {"code": 429, "message": "upstream is busy"}}),
    "page": (200, {"content-type": "text/html"}, "<!doctype html><html><title>Hello</title></html>"),
    "other": (200, {}, {"status": "ok"}), "no-json": (200, {"content-type": "text/plain"}, "It rains"),
}  # fmt: skip
"""Status, headers and body of the answers to the first and the third request."""
LEFT: Mapping[str, Mapping[str, str]] = {
    "requests": {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "12ms"},
    "tokens": {
        "x-ratelimit-remaining-tokens": "40", "x-ratelimit-reset-tokens": "6m0s",
        "x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "7m",
    },
    "enough": {"x-ratelimit-remaining-tokens": "900", "x-ratelimit-reset-tokens": "6m0s"},
    "anthropic": {
        "anthropic-ratelimit-tokens-remaining": "9",
        "anthropic-ratelimit-tokens-reset": "2023-11-14T22:13:50Z",
    },
    "date": {"ratelimit-remaining": "0", "ratelimit-reset": f"{NOW + 11:.0f}"},
}  # fmt: skip
"""Headers about limits, in the answers."""


class Server:
    """Answers in the place of the client's connections."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.turn = 0
        self.sent: list[object] = []

    @asynccontextmanager
    async def send(self, method: str, url: str, data: bytes) -> AsyncIterator[Any]:
        self.sent.append((method, url, json.loads(data)))
        status, headers, body = self.reply()
        kind = {"content-type": "text/event-stream" if self.streams(status) else "application/json"}
        headers = {**kind, **headers}
        yield SimpleNamespace(status=status, headers=headers, content_type=headers["content-type"], body=body)

    def streams(self, status: int) -> bool:
        return self.case["way"] == "streamed" and status == 200

    async def read(self, got: Any) -> bytes:
        return (got.body if isinstance(got.body, str) else json.dumps(got.body)).encode()

    async def lines(self, got: Any) -> AsyncIterator[str]:
        if isinstance(got.body, str):
            yield got.body
        for event in got.body if isinstance(got.body, list) else [got.body]:
            yield f"data: {json.dumps(event)}"
        yield "data: [DONE]"

    def reply(self) -> tuple[int, Mapping[str, str], Any]:
        """Return status, headers and body of an answer."""
        self.turn += 1
        if self.case["fails"] != "no" and self.turn in (1, 3):
            return FAILURES[self.case["fails"]]
        return 200, LEFT.get(self.case["left"], {}), self.answer()

    def answer(self) -> Any:
        """Return the body of an answer, or its events."""
        case = self.case
        said = list(SAID[self.turn % 4][: {"one": 1, "of-two": 2}.get(case["n"], 3)])
        if case["n"] == "of-four":
            said.append(Said("More than was asked for"))
        if case["api"] == "completions":
            said = [Said(one.text) for one in said]
        for place, ended in enumerate(ENDS.get(case["ended"], ())[: len(said)]):
            said[place] = replace(said[place], ended=ended)
        if case["key"] == "in-text":
            said[0] = replace(said[0], text=f"{said[0].text} {KEY}")
        elif case["key"] == "in-thought":
            said[0] = replace(said[0], thought=f"so {KEY[:5]}", text=KEY[5:])
        tokens = sum(len(one.text) + len(one.thought) for one in said)
        bill = {
            "none": None, "cached": Bill(prompt=25, cached=40, answer=tokens),
            "apart": Bill(answer=tokens, apart=True),
            "of-one": Bill(answer=8, thought=3), "zero": Bill(answer=0, thought=0),
            "huge": Bill(answer=2**29, thought=2**28),
        }.get(case["bill"], Bill(prompt=20 + self.turn, answer=tokens, thought=tokens // 2))  # fmt: skip
        if case["way"] == "streamed":
            if case["api"] == "responses":
                return list(response_events(said, bill))
            pieces = chat_pieces if case["api"] == "chat" else plain_pieces
            return list(streamed(pieces, said, bill))
        body = CLIENTS[case["api"]][1](said, bill)
        if case["order"] != "back" and "choices" in body:
            body["choices"].reverse()
            if case["order"] == "unnamed":
                for choice in body["choices"]:
                    del choice["index"]
        return body


def client_of(case: Case) -> Any:
    """Return the client of a case, and the fields that a request has for itself."""
    sampling: dict[str, Any] = {"temperature": 0.5, "stop": ["x"] if case["talk"] == "turns" else "x"}
    limits = {"max_tokens": {"max_tokens": 8}, "completion": {"max_completion_tokens": 12}}
    sampling |= limits.get(case["limit"], {"max_tokens": 8} if case["limit"] == "parameters" else {})
    if case["effort"] == "low":
        sampling["reasoning_effort"] = "low"
    options: dict[str, Any] = {"sampling": sampling, "send_seed": case["seed"] == "sent"}
    if case["way"] in ("streamed", "unstreamed"):
        options["idle_timeout"] = 60.0
    if case["key"] != "none":
        options |= {"api_key_env": "KEY", "environ": {"KEY": KEY}, "headers": {"X-Team": "evals"}}
    if case["way"] == "line":
        options["batch"] = BatchOptions("run", BatchConfig())
    client = CLIENTS[case["api"]][0]("http://here:1/base/v1?team=a", "m", **options)
    client._context = {"small": 30, "ample": 2**29}.get(case["context"])
    return client


def reply_facts(written: Case) -> list[str]:
    """Return what is sent in four requests, and what is read of the answers."""
    case = {name: written.get(name, values[0]) for name, values in REPLIES.items()}
    own = SimpleNamespace(time=lambda: NOW, perf_counter=lambda: 0.0)
    with ExitStack() as stack:
        for module in (exchange, openai_endpoint):
            stack.enter_context(patch.object(module, "time", own))
        return asyncio.run(_replied(case))


async def _replied(case: Case) -> list[str]:
    client, server = client_of(case), Server(case)
    client._exchange._client = server
    if case["way"] == "line":
        client._batches = SimpleNamespace(post=in_batch(client, server))
    talk = [Message.from_mapping(one) for one in (TURNS if case["talk"] == "turns" else TURNS[-1:])]
    asked: Sequence[Message] = talk
    if case["tools"] == "offered":
        asked = Conversation(talk, {"tools": TOOLS})
    parameters = {"max_tokens": 5, "seed": 1} if case["limit"] == "parameters" else None
    n = 1 if case["n"] == "one" else 3
    facts = []
    for turn in range(4):
        try:
            answers = await client.sample(asked, seed=70 + turn, n=n, parameters=parameters)
        except EndpointError as error:
            wait = getattr(error, "retry_after", None)
            known = [type(error).__name__, error.kind, error.status, error.cause, error.billed, wait]
            facts.append(f"{turn} {text(known)} key={KEY in str(error)}")
        else:
            facts.append(f"{turn} {answer_fact(answers)}")
    headers = sorted(client._exchange._all_headers().items())
    facts.append(f"sent {digest(server.sent)} headers {digest(headers)}")
    return facts


def in_batch(client: Any, server: Server) -> Any:
    """Return what posts a request as a line of a batch, and reads the line of its answer."""
    interface = client.batches(client._exchange, BatchOptions("run", BatchConfig()))

    async def post(path: str, body: Mapping[str, Any], seed: int | None) -> tuple[Any, Mapping[str, str]]:
        server.sent.append(interface.line(f"r{seed}", path, body))
        status, _, answer = server.reply()
        line: Any = {"response": {"status_code": status, "body": answer}}
        if client.path == "/messages":
            kinds = {400: "invalid_request_error", 429: "rate_limit_error", 504: "timeout_error"}
            error = {"type": kinds.get(status, "api_error"), "message": "no"}
            line = {"type": "succeeded", "message": answer}
            if status != 200:
                line = {"type": "errored", "error": {"type": "error", "error": error}}
        elif server.case["fails"] == "gateway" and status == 504:
            line = {"response": None, "error": {"code": "batch_expired"}}
        found = interface._answer(line)
        if isinstance(found, EndpointError):
            raise found
        return found, {}

    return post


def answer_fact(answers: Sequence[Completion | None]) -> str:
    """Return what the answers to a request say and have cost."""
    shown, said, figures = [], list[object](), list[float | None]()
    for one in answers:
        if one is None:
            shown.append("none")
            continue
        words, own = parts_of(one.logprobs)
        said.append((one.text, one.reasoning, one.tool_calls, one.model, one.response_id, words))
        figures += [*own, one.pause, one.latency]
        usage, paid = one.usage, one.paid
        ends = [one.finish_reason, one.without_text, one.no_answer, "!" * one.impossible_usage]
        tokens = [usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, one.reasoning_tokens]
        share = [paid.prompt_tokens, paid.completion_tokens, paid.cached_tokens]
        shown.append(f"{'/'.join(map(str, filter(None, ends)))}{text(tokens)}{text(share)}")
    return f"{' '.join(shown)} {digest(said)} {text(together(figures))}"
