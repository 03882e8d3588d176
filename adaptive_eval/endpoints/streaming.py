"""Assemble the events of a streamed answer into the body of an unstreamed one."""

import json
from typing import Any

from adaptive_eval.endpoints.answer import index_of, reasoning_of, text_of_parts
from adaptive_eval.endpoints.failures import at, from_answer, malformed
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.errors import TransientEndpointError

STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
"""Fields of a request for a stream; without the second, no usage would be reported."""

_DATA = "data:"
_DONE = "[DONE]"
_LAST = ("response.completed", "response.incomplete", "response.failed")
_OF_BODY = ("id", "model", "prompt_logprobs")


class Assembly:
    """Turns the lines of an event stream into the body of the same answer without streaming.

    Examples
    --------
    >>> assembly = Assembly(Redactor([]))
    >>> assembly.feed('data: {"choices": [{"index": 0, "delta": {"content": "4"}}]}')
    >>> assembly.feed('data: {"choices": [{"index": 0, "delta": {"content": "2"}, "finish_reason": "stop"}]}')
    >>> assembly.feed("data: [DONE]")
    >>> assembly.body()["choices"][0]["message"]["content"]
    '42'
    """

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._body: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._done = False
        self._response: dict[str, Any] | None = None  # of the Responses API, whose last event has it whole

    def feed(self, line: str) -> None:
        """Take one line; those that hold no data (comments, names of events) are passed over."""
        if not line.startswith(_DATA):
            return
        data = line[len(_DATA) :].strip()
        if data == _DONE:
            self._done = True
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise malformed("an event of the stream is no JSON:", data, redact=self._redact) from None
        failure = from_answer(event, redact=self._redact)
        if failure is not None:
            raise failure
        kind = at(event, "type")
        response = at(event, "response")
        if kind == "error":
            raise malformed("the stream holds an error:", str(event.get("message")), redact=self._redact)
        if isinstance(response, dict):
            self._response = response
            self._done = kind in _LAST
        elif isinstance(event, dict):
            self._take(event)

    def body(self) -> dict[str, Any]:
        """Return the body of the whole answer."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        if not self._done and not (choices and all(choice.get("finish_reason") for choice in choices)):
            raise TransientEndpointError("the stream ended in the middle of the answer", kind="dropped")
        if self._response is None:
            return {**self._body, "choices": choices}
        return self._response

    def _take(self, event: dict[str, Any]) -> None:
        for name in _OF_BODY:
            if event.get(name) is not None:
                self._body.setdefault(name, event[name])
        if event.get("usage") is not None:
            self._body["usage"] = event["usage"]
        choices = event.get("choices")
        indices = set()
        for part in choices if isinstance(choices, list) else ():
            if isinstance(part, dict):
                index = index_of(part, 0, self._redact)
                choice = self._choices.setdefault(index, {"index": index})
                if index in indices or (choice.get("finish_reason") and _says_something(part)):
                    raise malformed(f"the stream repeats choice {index}", redact=self._redact)
                indices.add(index)
                self._join(choice, part)

    def _join(self, whole: dict[str, Any], part: dict[str, Any]) -> None:
        """Add a part to a choice."""
        if part.get("finish_reason") is not None:
            whole["finish_reason"] = part["finish_reason"]
        if isinstance(part.get("text"), str):
            whole["text"] = whole.get("text", "") + part["text"]
        delta = part.get("delta")
        if isinstance(delta, dict):
            message = whole.setdefault("message", {})
            _join_calls(message, delta.get("tool_calls"))
            thought = reasoning_of(delta)
            if thought:
                message["reasoning"] = message.get("reasoning", "") + thought
            for name in ("content", "refusal"):
                said = text_of_parts(delta[name]) if isinstance(delta.get(name), list) else delta.get(name)
                if isinstance(said, str):
                    message[name] = (message.get(name) or "") + said
        logprobs = part.get("logprobs")
        if isinstance(logprobs, dict):
            joined = whole.setdefault("logprobs", {})
            for name, values in logprobs.items():
                if isinstance(values, list) and isinstance(joined.get(name), list):
                    joined[name] += values
                elif joined.get(name) is None:
                    joined[name] = values


def _says_something(part: dict[str, Any]) -> bool:
    """Return whether a part of a choice holds text, reasoning or calls of tools."""
    delta = part.get("delta")
    said = [part.get("text")]
    if isinstance(delta, dict):
        said += [delta.get("content"), delta.get("refusal"), delta.get("tool_calls"), reasoning_of(delta)]
    return any(said)


def _join_calls(message: dict[str, Any], parts: Any) -> None:
    """Add parts of calls of tools to a message; the arguments arrive piece by piece."""
    for part in parts if isinstance(parts, list) else ():
        function = at(part, "function")
        if not isinstance(function, dict):
            continue
        calls = message.setdefault("tool_calls", [])
        place, call_id, name = part.get("index"), part.get("id"), function.get("name")
        if type(place) is not int or not 0 <= place < len(calls) or _is_another(calls[place], call_id, name):
            place = len(calls)
            calls.append({"id": call_id, "function": {"name": name, "arguments": ""}})
        if isinstance(function.get("arguments"), str):
            calls[place]["function"]["arguments"] += function["arguments"]


def _is_another(call: dict[str, Any], call_id: Any, name: Any) -> bool:
    """Tell whether a part begins a call of its own under a number that is taken, as gateways send them."""
    return bool(name and call_id) and call_id != call["id"]
