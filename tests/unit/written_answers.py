"""Answers as each API writes them: whole or in pieces, alone or several, with every usage."""

import itertools
import json
from dataclasses import dataclass, replace

from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.endpoints.streaming import Assembly
from adaptive_eval.trial import Usage


@dataclass(frozen=True)
class Said:
    """What a model has said, whatever the API."""

    text: str = ""
    thought: str = ""
    refusal: str = ""
    calls: tuple = ()  # id, name and arguments of each
    ended: str = "stop"


CALLS = (("c1", "weather", {"city": "Oslo"}), ("c2", "now", {}))
KINDS = {
    "text": Said("It rains."),
    "thought": Said("It rains.", thought="Far north."),
    "thought alone": Said(thought="Far north.", ended="length"),
    "refusal": Said(refusal="I cannot help."),
    "calls": Said(calls=CALLS, ended="tool_calls"),
    "text and calls": Said("I look.", thought="Far north.", calls=CALLS, ended="tool_calls"),
    "nothing": Said(),
    "cut off": Said("It ra", ended="length"),
    "calls, cut off": Said(calls=CALLS[:1], ended="length"),
    "filtered": Said(ended="content_filter"),
}
OF_TEXT = ("text", "nothing", "cut off", "filtered")
"""What a continuation can hold."""


@dataclass(frozen=True)
class Bill:
    """The tokens of a request, as they are reported."""

    prompt: int = 30
    cached: int = 10
    answer: int = 20
    thought: int = 8
    apart: bool = False  # the thought's tokens come on top of the answer's


BILLS = {
    "whole": Bill(),
    "no details": Bill(cached=0, thought=0),
    "thought apart": Bill(answer=12, apart=True),
    "without the answer": Bill(answer=0, thought=0),
    "more thought than answer": Bill(answer=5),
    "missing": None,
}


def says_something(said):
    return said.text or said.refusal or said.thought or said.calls


def paid(bill, said):
    """Return the tokens that a bill says, and those of reasoning."""
    if bill is None or (not bill.answer and any(map(says_something, said))):
        return Usage(), 0
    if bill.apart:
        return Usage(bill.prompt, bill.answer + bill.thought, bill.cached), bill.thought
    return Usage(bill.prompt, bill.answer, bill.cached), min(bill.thought, bill.answer)


# ------------------------------------------------------------------ what servers write


def of_chat(bill):
    if bill is None:
        return None
    return {
        "prompt_tokens": bill.prompt,
        "completion_tokens": bill.answer,
        "total_tokens": bill.prompt + bill.answer + bill.thought * bill.apart,
        "prompt_tokens_details": {"cached_tokens": bill.cached},
        "completion_tokens_details": {"reasoning_tokens": bill.thought},
    }


def tool_calls(said):
    return [
        {"id": name, "type": "function", "function": {"name": function, "arguments": json.dumps(arguments)}}
        for name, function, arguments in said.calls
    ]


def entry(token):
    return {"token": token, "logprob": -0.5}


def logprobs(said):
    return {
        "content": list(map(entry, said.text)) or None,
        "refusal": list(map(entry, said.refusal)) or None,
    }


def chat_choice(index, said):
    message = {"role": "assistant", "content": said.text or None, "refusal": said.refusal or None}
    if said.calls:
        message["tool_calls"] = tool_calls(said)
    if not (said.refusal or said.calls):
        message["content"] = said.text
    if said.thought:
        message["reasoning"] = said.thought
    return {"index": index, "message": message, "finish_reason": said.ended, "logprobs": logprobs(said)}


def chat(said, bill):
    choices = [chat_choice(index, one) for index, one in enumerate(said)]
    return {"id": "r", "model": "m-1", "choices": choices[::-1], "usage": of_chat(bill)}


def plain_logprobs(text):
    return {"tokens": list(text), "token_logprobs": [-0.5] * len(text)}


def completions(said, bill):
    choices = [
        {"index": index, "text": one.text, "finish_reason": one.ended, "logprobs": plain_logprobs(one.text)}
        for index, one in enumerate(said)
    ]
    return {"id": "r", "model": "m-1", "choices": choices[::-1], "usage": of_chat(bill)}


def responses(said, bill):
    (one,) = said
    output = []
    if one.thought:
        part = {"type": "summary_text", "text": one.thought}
        output.append({"type": "reasoning", "content": [], "summary": [part]})
    for kind, text in (("output_text", one.text), ("refusal", one.refusal)):
        if text:
            key = kind.removeprefix("output_")
            output.append({"type": "message", "content": [{"type": kind, key: text}]})
    for name, function, arguments in one.calls:
        called = {"call_id": name, "name": function, "arguments": json.dumps(arguments)}
        output.append({"type": "function_call", "id": "fc", **called})
    body = {"id": "r", "model": "m-1", "status": "completed", "output": output, "usage": None}
    if one.ended in ("length", "content_filter"):
        reason = {"length": "max_output_tokens"}.get(one.ended, one.ended)
        body |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
    if bill is not None:
        body["usage"] = {
            "input_tokens": bill.prompt,
            "output_tokens": bill.answer,
            "total_tokens": bill.prompt + bill.answer + bill.thought * bill.apart,
            "input_tokens_details": {"cached_tokens": bill.cached},
            "output_tokens_details": {"reasoning_tokens": bill.thought},
        }
    return body


def messages(said, bill):
    """Return a message; a part of its prompt was read from the cache, and a part written into it."""
    (one,) = said
    content = []
    if one.thought:
        content.append({"type": "thinking", "thinking": one.thought, "signature": "s"})
    if one.text or one.refusal:
        content.append({"type": "text", "text": one.text or one.refusal})
    for name, function, arguments in one.calls:
        content.append({"type": "tool_use", "id": name, "name": function, "input": arguments})
    ended = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}.get(one.ended, "refusal")
    body = {"id": "r", "model": "m-1", "content": content, "stop_reason": ended}
    if bill is not None:
        written = (bill.prompt - bill.cached) // 2
        body["usage"] = {
            "input_tokens": bill.prompt - bill.cached - written,
            "cache_read_input_tokens": bill.cached,
            "cache_creation_input_tokens": written,
            "output_tokens": bill.answer,
        }
    return body


# ------------------------------------------------------------------ the same in pieces


def delta(index, ended=None, logprobs=None, **said):
    return {"index": index, "delta": said, "finish_reason": ended, "logprobs": logprobs}


def chat_pieces(index, said):
    """Yield the parts of a streamed choice: empty texts first, as servers begin, and a word at a time."""
    yield delta(
        index, role="assistant", content="", refusal=None, logprobs={"content": None, "refusal": None}
    )
    for letter in said.thought:
        yield delta(index, reasoning=letter)
    for name in ("content", "refusal"):
        for letter in said.text if name == "content" else said.refusal:
            yield delta(index, **{name: letter}, logprobs={name: [entry(letter)]})
    for place, call in enumerate(tool_calls(said)):
        arguments = call["function"]["arguments"]
        begun = {**call["function"], "arguments": ""}
        yield delta(index, tool_calls=[{"index": place, **call, "function": begun}])
        for letter in arguments:
            yield delta(index, tool_calls=[{"index": place, "function": {"arguments": letter}}])
    yield delta(index, said.ended)
    yield delta(index, content="")  # some repeat an empty part after the end


def plain_pieces(index, said):
    for letter in said.text:
        yield {"index": index, "text": letter, "finish_reason": None, "logprobs": plain_logprobs(letter)}
    yield {"index": index, "text": "", "finish_reason": said.ended, "logprobs": plain_logprobs("")}


def streamed(pieces, said, bill):
    """Yield the events of a stream that gives the choices in turns, and the usage so far with each."""
    rows = [pieces(index, one) for index, one in enumerate(said)]
    so_far = None if bill is None else replace(bill, answer=1, thought=0)
    for turn in itertools.zip_longest(*rows):
        for part in filter(None, reversed(turn)):
            yield {"id": "r", "model": "m-1", "choices": [part], "usage": of_chat(so_far)}
    yield {"id": "r", "model": "m-1", "choices": [], "usage": of_chat(bill)}


def response_events(said, bill):
    whole = responses(said, bill)
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    yield {"type": "response.output_text.delta", "delta": "It"}
    yield {"type": f"response.{whole['status']}", "response": whole}


def assembled(events):
    assembly = Assembly(Redactor([]))
    for event in events:
        assembly.feed(f"data: {json.dumps(event)}")
    assembly.feed("data: [DONE]")
    return assembly.body()
