"""A mimic that also streams and continues prompts (``POST /v1/completions``), answered by the same coins."""

import json
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from itertools import accumulate
from typing import Any

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from adaptive_eval.mimic.delivery import ServedRequest
from adaptive_eval.mimic.examinee import tokenize
from adaptive_eval.mimic.mimic_spec import FaultSpec, MimicSpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.mimic.requests import Response
from adaptive_eval.mimic.routes import Completions, MimicServer, application
from adaptive_eval.mimic.serving import main

Data = dict[str, Any]
_ASKED: ContextVar[Data] = ContextVar("the body of the request")


class WholeMimic(MimicProcess):
    """The server in a process of its own."""

    program = (__file__,)


def create_app(spec: MimicSpec) -> Starlette:
    return application(WholeServer(spec).routes())


class WholeServer(MimicServer):
    def routes(self) -> list[BaseRoute]:
        route = Completions(self)
        return [*super().routes(), Route("/v1/completions", route, methods=["POST"])]

    async def answer(self, exchange: ServedRequest, data: bytes) -> None:
        asked = json.loads(data)
        _ASKED.set(asked)
        chat = {name: value for name, value in asked.items() if name not in ("stream", "prompt")}
        if "prompt" in asked:
            chat["messages"] = [{"role": "user", "content": asked["prompt"]}]
            chat.setdefault("max_tokens", 16)
            if "logprobs" in asked:
                chat |= {"logprobs": True, "top_logprobs": asked["logprobs"]}
        await super().answer(exchange, json.dumps(chat).encode())

    async def send(self, exchange: ServedRequest, response: Response, fault: FaultSpec | None) -> bool:
        asked, body = _ASKED.get(), response.data()
        texts = [choice["message"]["content"] for choice in body["choices"]]
        if "prompt" in asked:
            body = _continued(body)
        if not asked.get("stream"):
            return await exchange.deliver(json.dumps(body).encode(), response.latency, fault)
        events = [data for text, choice in zip(texts, body["choices"], strict=True)
                  for data in _events(text, choice, body)]  # fmt: skip
        return await _streamed(exchange, [*events, {**body, "choices": []}], response.latency, fault)


def _continued(body: Data) -> Data:
    """Return the answer to a chat as one that continues a prompt."""
    choices = []
    for choice in body["choices"]:
        text = choice.pop("message")["content"]
        entries = (choice["logprobs"] or {}).get("content")
        if entries is not None:
            tokens = [entry["token"] for entry in entries]
            likely = [{one["token"]: one["logprob"] for one in entry["top_logprobs"]} for entry in entries]
            choice["logprobs"] = {
                "tokens": tokens,
                "token_logprobs": [entry["logprob"] for entry in entries],
                "top_logprobs": likely,
                "text_offset": list(accumulate(map(len, tokens), initial=0))[:-1],
            }
        choices.append({**choice, "text": text})
    return {**body, "choices": choices}


def _events(text: str, choice: Data, body: Data) -> Iterator[Data]:
    """Yield the events of one choice: a token each, and its end."""
    common = {name: value for name, value in body.items() if name not in ("choices", "usage")}
    for number, token in enumerate(tokenize(text)):
        said: Data = {"delta": {"content": token}} if "message" in choice else {"text": token}
        lists = (choice["logprobs"] or {}).items()
        of_token = {name: values and values[number : number + 1] for name, values in lists}
        part = {"index": choice["index"], **said, "logprobs": of_token or None, "finish_reason": None}
        yield {**common, "choices": [part]}
    last = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
    yield {**common, "choices": [last]}


async def _streamed(
    exchange: ServedRequest, events: list[Data], latency: float, fault: FaultSpec | None
) -> bool:
    """Send events evenly over the latency, with what a fault does to them."""
    frames = [b"data: %s\n\n" % json.dumps(event).encode() for event in events] + [b"data: [DONE]\n\n"]
    half = len(frames) // 2
    if fault is not None and fault.kind == "malformed":
        frames[half] = frames[half][: len(frames[half]) // 2] + b"\n\n"
    stops = fault is not None and fault.kind in ("drop", "hang")
    await exchange.start(200, {"content-type": "text/event-stream"})
    for number, frame in enumerate(frames):
        if await exchange.left_before(latency * number / len(frames)):
            return False
        if stops and number == half and fault is not None and not await exchange.survives(fault):
            return False
        await exchange.send(frame, more=number + 1 < len(frames))
    return True


if __name__ == "__main__":
    sys.exit(main(create_app))
