"""The APIs of models behind HTTP: OpenAI's chats, completions and responses, and Anthropic's messages.

Each puts a question and reads an answer under its own names.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adaptive_eval.endpoints.answer import count_of, dicts_in, plain_text
from adaptive_eval.endpoints.batch_interfaces import AnthropicBatches
from adaptive_eval.endpoints.failures import at
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.trial import Message, fields_of


class OpenAIChat(OpenAIEndpoint):
    """A model that is asked as a chat: the server puts its template around the messages.

    Parameters are those of :class:`~adaptive_eval.endpoints.openai_endpoint.OpenAIEndpoint`.

    Examples
    --------
    >>> chat = OpenAIChat("http://gpu1:8000/v1", "qwen3-4b", sampling={"temperature": 0.6})
    >>> chat.body([Message("user", "What is 2 + 2?")], seed=7)["temperature"]
    0.6
    >>> chat
    OpenAIChat('http://gpu1:8000/v1', 'qwen3-4b')
    """

    path = "/chat/completions"

    def question(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the messages as they are, with the tools that are offered."""
        return {"messages": [message.sent for message in messages], **fields_of(messages)}


class OpenAICompletions(OpenAIEndpoint):
    """A model that continues a prompt. No template of a chat is put around it.

    Parameters are those of :class:`~adaptive_eval.endpoints.openai_endpoint.OpenAIEndpoint`.

    Examples
    --------
    >>> model = OpenAICompletions("http://gpu1:8000/v1", "qwen3-4b-base", sampling={"max_tokens": 64})
    >>> model.body([Message("user", "2 + 2 =")], seed=7)
    {'model': 'qwen3-4b-base', 'prompt': '2 + 2 =', 'seed': 7, 'max_tokens': 64}
    """

    path = "/completions"
    text_of = staticmethod(plain_text)
    logprobs_wanted = 1  # the number of alternatives for each token

    def question(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the messages as one text."""
        return {"prompt": as_prompt(messages)}


def as_prompt(messages: Sequence[Message]) -> str:
    r"""Write a conversation as one text to be continued.

    Examples
    --------
    >>> shot = [Message("user", "Q: 1 + 1?\nA:"), Message("assistant", "2")]
    >>> as_prompt([Message("system", "Sums."), *shot, Message("user", "Q: 2 + 2?\nA:")])
    'Sums.\n\nQ: 1 + 1?\nA: 2\n\nQ: 2 + 2?\nA:'
    """
    text = ""
    for message in messages:
        if message.role == "assistant":
            gap = " "
            if not text or text[-1].isspace():
                gap = ""
        else:
            gap = "\n\n" if text else ""
        text += gap + message.content
    return text


_USAGE = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "total_tokens": "total_tokens",
    "prompt_tokens_details": "input_tokens_details",
    "completion_tokens_details": "output_tokens_details",
}
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}


class OpenAIResponses(OpenAIEndpoint):
    """A model that is asked by the Responses API. It takes no seed.

    Parameters are those of :class:`~adaptive_eval.endpoints.openai_endpoint.OpenAIEndpoint`.

    Examples
    --------
    >>> model = OpenAIResponses("https://api.openai.com/v1", "gpt-5-mini", sampling={"max_tokens": 64})
    >>> model.body([Message("user", "2 + 2?")], seed=7)
    {'model': 'gpt-5-mini', 'input': [{'role': 'user', 'content': '2 + 2?'}], 'max_output_tokens': 64}
    """

    path = "/responses"
    seeds_and_counts = False

    def question(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the messages as items, with the tools that are offered."""
        asked: dict[str, Any] = {"input": [item for message in messages for item in _items(message)]}
        fields = fields_of(messages)
        if "tools" in fields:
            asked["tools"] = [{"type": "function", **tool["function"]} for tool in fields["tools"]]
        return asked

    def renamed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body with the names of this API."""
        body.pop("stream_options", None)
        for name in ("max_tokens", "max_completion_tokens"):
            if name in body:
                body["max_output_tokens"] = body.pop(name)
        if "reasoning_effort" in body:
            effort = {"effort": body.pop("reasoning_effort")}
            body["reasoning"] = {**effort, **body.get("reasoning", {})}
        return body

    def read(self, body: Any) -> Any:
        """Return the body of an answer as a chat would have it."""
        return response_as_chat(body)


def _items(message: Message) -> list[dict[str, Any]]:
    """Return the items of one message: a message, calls of tools, or the result of one."""
    sent = message.sent
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": sent["tool_call_id"], "output": message.content}]
    content = sent.get("content")
    if isinstance(content, list):
        content = [_part(part, message.role) for part in content]
    calls = [
        {"type": "function_call", "call_id": call["id"], **call["function"]}
        for call in sent.get("tool_calls", ())
    ]
    return [*([] if content is None else [{"role": message.role, "content": content}]), *calls]


def _part(part: Mapping[str, Any], role: str) -> dict[str, Any]:
    if part["type"] == "text":
        kind = "input_text"
        if role == "assistant":
            kind = "output_text"
        return {"type": kind, "text": part["text"]}
    image = part["image_url"]  # the only other kind that this API takes
    return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}


def response_as_chat(body: Any) -> Any:
    """Return the body of a response as that of a chat completion; a failed one has no choices.

    Examples
    --------
    >>> said = {"type": "message", "content": [{"type": "output_text", "text": "4"}]}
    >>> chat = response_as_chat({"id": "r", "status": "completed", "output": [said]})
    >>> chat["choices"][0]["message"]["content"], chat["choices"][0]["finish_reason"]
    ('4', 'stop')
    """
    output = at(body, "output")
    if not isinstance(output, list) or body.get("status") in ("failed", "cancelled"):
        return body
    items = [item for item in output if isinstance(item, dict)]
    parts = [part for item in items if item.get("type") == "message" for part in dicts_in(item, "content")]
    thoughts = [item for item in items if item.get("type") == "reasoning"]
    thought = [part for item in thoughts for part in dicts_in(item, "content") or dicts_in(item, "summary")]
    calls = [
        {"id": item.get("call_id"), "function": item} for item in items if item.get("type") == "function_call"
    ]
    content = "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)
    reasoning = "\n\n".join(str(part.get("text", "")) for part in thought)
    message = {"content": content, "reasoning": reasoning, "tool_calls": calls}
    reason = str(at(body, "incomplete_details", "reason") or "")
    ended = "tool_calls" if calls else "stop"
    finish = ended if body.get("status") == "completed" else _INCOMPLETE.get(reason, reason or "abort")
    usage = at(body, "usage")
    return {
        "id": body.get("id"),
        "model": body.get("model"),
        "choices": [{"message": message, "finish_reason": finish}],
        "usage": {ours: at(usage, theirs) for ours, theirs in _USAGE.items()},
    }


_COUNTS = ("cache_read_input_tokens", "input_tokens", "cache_creation_input_tokens", "output_tokens")
_FINISHED = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


class AnthropicMessages(OpenAIEndpoint):
    """A model that is asked by the Messages API. It takes no seed.

    Parameters are those of :class:`~adaptive_eval.endpoints.openai_endpoint.OpenAIEndpoint`.

    Examples
    --------
    >>> url, limit = "https://api.anthropic.com/v1", {"max_tokens": 64, "stop": "x"}
    >>> model = AnthropicMessages(url, "claude-sonnet-4-5", sampling=limit)
    >>> body = model.body([Message("system", "Be brief."), Message("user", "2 + 2?")], seed=7)
    >>> body["system"], body["messages"], body["stop_sequences"]
    ('Be brief.', [{'role': 'user', 'content': '2 + 2?'}], ['x'])
    """

    path = "/messages"
    seeds_and_counts = False
    batches = AnthropicBatches

    @staticmethod
    def credentials(key: str) -> Mapping[str, str]:
        """Return the headers that hold the key, and the version of the API."""
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def serves(self, served: Sequence[str]) -> bool:
        """Return whether the model is listed, as itself or, for an alias, with a date."""
        return any(name == self.model or name.startswith(f"{self.model}-") for name in served)

    def question(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the messages in blocks, those of the system apart, with the tools that are offered."""
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        turns = [_turn(message) for message in messages if message.role != "system"]
        if system:
            told = {"system": system}
        else:
            told = {}
        asked: dict[str, Any] = {"messages": turns, **told}
        fields = fields_of(messages)
        if "tools" in fields:
            asked["tools"] = [_tool(tool["function"]) for tool in fields["tools"]]
        return asked

    def renamed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body with the names of this API."""
        if "max_completion_tokens" in body:
            body["max_tokens"] = body.pop("max_completion_tokens")
        if "stop" in body:
            stop = body.pop("stop")
            body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        return body

    def read(self, body: Any) -> Any:
        """Return the body of an answer as a chat would have it."""
        return message_as_chat(body)


def _turn(message: Message) -> dict[str, Any]:
    sent = message.sent
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": sent["tool_call_id"], "content": message.content}
        return {"role": "user", "content": [result]}
    content = sent.get("content")
    if isinstance(content, list):
        content = list(map(_block, content))
    uses = [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["function"]["name"],
            "input": json.loads(call["function"]["arguments"] or "{}"),
        }
        for call in sent.get("tool_calls", ())
    ]
    if uses:
        if isinstance(content, str) and content:
            said = [{"type": "text", "text": content}]
        else:
            said = content or []
        content = [*said, *uses]
    return {"role": message.role, "content": content}


def _block(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    url = str(part["image_url"]["url"])  # the only other kind that is taken here
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    described = {name: function[name] for name in ("name", "description") if name in function}
    return {**described, "input_schema": function.get("parameters", {"type": "object"})}


def message_as_chat(body: Any) -> Any:
    """Return the body of a message as that of a chat completion.

    Examples
    --------
    >>> said = {"content": [{"type": "text", "text": "4"}], "stop_reason": "end_turn"}
    >>> message_as_chat(said)["choices"][0]["finish_reason"]
    'stop'
    """
    content = at(body, "content")
    if not isinstance(content, list):
        return body
    calls = [
        {"id": block.get("id"), "function": {"name": block.get("name"), "arguments": block.get("input")}}
        for block in content
        if at(block, "type") == "tool_use"
    ]
    reason = body.get("stop_reason")
    finish = None
    if isinstance(reason, str):
        finish = _FINISHED.get(reason, reason)
    cached, asked, written, answered = (count_of(at(body, "usage", name)) for name in _COUNTS)
    return {
        "id": body.get("id"),
        "model": body.get("model"),
        "choices": [{"message": {"content": content, "tool_calls": calls}, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": asked + written + cached,
            "completion_tokens": answered,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }
