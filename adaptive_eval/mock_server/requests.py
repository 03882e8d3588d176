"""The bodies of completion requests: parsed and checked by hand, with the errors that OpenAI's API gives."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from adaptive_eval.mock_server.structured_outputs import Format, FormatError, parse_format

__all__ = ["AnswerRequest", "ApiError", "ignoring", "parse_request"]

MAX_SAMPLES: Final = 1024
MAX_TOP_LOGPROBS: Final = 20
COMPLETIONS_MAX_TOKENS: Final = 16
"""What /v1/completions generates where the request names no limit, as OpenAI and vLLM do."""


class ApiError(Exception):
    """An answer that is an error.

    Parameters
    ----------
    status : int
        HTTP status.
    message : str
        For people.
    param : str, optional
        The parameter at fault.
    code : str, optional
        For programs, such as ``model_not_found``.
    kind : str
        What the body calls ``type``.
    headers : mapping, optional
        Headers to send along.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        kind: str = "invalid_request_error",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self._error = {"message": message, "type": kind, "param": param, "code": code}

    def body(self) -> bytes:
        """Return the JSON body: ``{"error": {message, type, param, code}}``."""
        return json.dumps({"error": self._error}).encode()


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """One request for completions, checked.

    Parameters
    ----------
    chat : bool
        Whether it came as a conversation.
    model : str
        The model asked for; not yet known to exist.
    prompts : tuple of str
        The texts; one for a conversation.
    n : int
        Samples for each prompt.
    seed : int or None
        The request's seed; None for a random one.
    greedy : bool
        Temperature 0.
    max_tokens : int or None
        Limit for each sample.
    stop : tuple of str
        Stop sequences.
    stream, include_usage : bool
        Whether to send events, and a last one with the usage.
    top_logprobs : int or None
        Alternatives for each token's log-probabilities; None without log-probabilities.
    format : Format or None
        The structure that the answer must have.
    """

    chat: bool
    model: str
    prompts: tuple[str, ...]
    n: int
    seed: int | None
    greedy: bool
    max_tokens: int | None
    stop: tuple[str, ...]
    stream: bool
    include_usage: bool
    top_logprobs: int | None
    format: Format | None


def ignoring(request: AnswerRequest, names: Collection[str], *, cached: bool = False) -> AnswerRequest:
    """Return `request` as a server reads it that ignores some of its parameters, or answers from a cache.

    Parameters
    ----------
    request : AnswerRequest
        What was asked.
    names : collection of str
        Parameters without effect (:class:`~adaptive_eval.mock_server.mock_spec.ModelSpec`).
    cached : bool
        Whether all requests for the same prompt get the same answers.
    """
    without: dict[str, dict[str, Any]] = {
        "seed": {"seed": None},
        "n": {"n": 1},
        "max_tokens": {"max_tokens": None},
        "stop": {"stop": ()},
        "logprobs": {"top_logprobs": None},
    }
    changes: dict[str, Any] = {}
    for name in names:
        changes.update(without[name])
    if cached:
        changes["seed"] = 0
    return replace(request, **changes) if changes else request


def parse_request(data: bytes, *, chat: bool) -> AnswerRequest:
    """Parse and check a request body. Unknown fields are ignored, as by vLLM.

    Parameters
    ----------
    data : bytes
        The body.
    chat : bool
        For ``/v1/chat/completions`` rather than ``/v1/completions``.

    Raises
    ------
    ApiError
        Status 400, with the parameter at fault.

    Examples
    --------
    >>> request = parse_request(b'{"model": "a", "prompt": "Hi", "seed": 4, "n": 2}', chat=False)
    >>> request.prompts, request.seed, request.n, request.max_tokens
    (('Hi',), 4, 2, 16)
    """
    body = _json_object(data)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise _bad("model", model, "must be the id of a model")
    temperature = _number(body, "temperature", 0.0, 2.0, default=1.0)
    _number(body, "top_p", 0.0, 1.0, default=1.0, above=True)
    _number(body, "presence_penalty", -2.0, 2.0, default=0.0)
    _number(body, "frequency_penalty", -2.0, 2.0, default=0.0)
    n = _integer(body, "n", 1, MAX_SAMPLES) or 1
    if n > 1 and temperature == 0.0:
        raise _bad("n", n, "must be 1 with temperature 0, where all samples are the same")
    seed = _integer(body, "seed", -(2**63), 2**63 - 1)
    stream = _boolean(body, "stream")
    return AnswerRequest(
        chat=chat,
        model=model,
        prompts=(_conversation(body),) if chat else _prompts(body),
        n=n,
        seed=None if seed == -1 else seed,
        greedy=temperature == 0.0,
        max_tokens=_max_tokens(body, chat=chat),
        stop=_stop(body),
        stream=stream,
        include_usage=_include_usage(body, stream=stream),
        top_logprobs=_chat_logprobs(body) if chat else _integer(body, "logprobs", 0, MAX_TOP_LOGPROBS),
        format=_format(body),
    )


def _json_object(data: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(data)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ApiError(400, f"The body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ApiError(400, "The body must be a JSON object.")
    return body


def _bad(param: str, value: object, rule: str) -> ApiError:
    shown = json.dumps(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return ApiError(400, f"{param} {rule}, got {shown}.", param=param, code="invalid_value")


def _number(
    body: Mapping[str, Any], name: str, low: float, high: float, *, default: float, above: bool = False
) -> float:
    value = body.get(name)
    if value is None:
        return default
    good = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    if not good or (above and value == low):
        raise _bad(name, value, f"must be a number in {'(' if above else '['}{low:g}, {high:g}]")
    return float(value)


def _integer(body: Mapping[str, Any], name: str, low: int, high: int) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _bad(name, value, f"must be a whole number from {low} to {high}")
    return value


def _boolean(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise _bad(name, value, "must be true or false")
    return value


def _conversation(body: Mapping[str, Any]) -> str:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _bad("messages", messages, "must be a list with at least one message")
    return "\n".join(_message(message, f"messages[{index}]") for index, message in enumerate(messages))


def _message(message: object, place: str) -> str:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise _bad(place, message, "must be an object with a role and content")
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return "".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    raise _bad(f"{place}.content", content, "must be text or a list of parts")


def _prompts(body: Mapping[str, Any]) -> tuple[str, ...]:
    if body.get("echo") or body.get("suffix"):
        raise ApiError(400, "echo and suffix are not supported by a mimic.", param="echo")
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return (prompt,)
    if isinstance(prompt, list) and prompt and all(isinstance(item, str) for item in prompt):
        return tuple(prompt)
    raise _bad("prompt", prompt, "must be a text or a list of texts (a mimic takes no token ids)")


def _max_tokens(body: Mapping[str, Any], *, chat: bool) -> int | None:
    limit = _integer(body, "max_tokens", 1, 2**31 - 1)
    if chat:
        newer = _integer(body, "max_completion_tokens", 1, 2**31 - 1)
        return limit if newer is None else newer
    return COMPLETIONS_MAX_TOKENS if limit is None else limit


def _stop(body: Mapping[str, Any]) -> tuple[str, ...]:
    stop = body.get("stop")
    words = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        raise _bad("stop", stop, "must be a non-empty text or a list of them")
    return tuple(words)


def _include_usage(body: Mapping[str, Any], *, stream: bool) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not stream:
        raise _bad("stream_options", options, "can only be given with stream true")
    if not isinstance(options, dict):
        raise _bad("stream_options", options, "must be an object")
    return _boolean(options, "include_usage")


def _chat_logprobs(body: Mapping[str, Any]) -> int | None:
    wanted = _boolean(body, "logprobs")
    top = _integer(body, "top_logprobs", 0, MAX_TOP_LOGPROBS)
    if top is not None and not wanted:
        raise _bad("top_logprobs", top, "can only be given with logprobs true")
    return (top or 0) if wanted else None


def _format(body: Mapping[str, Any]) -> Format | None:
    try:
        return parse_format(body.get("structured_outputs"), body.get("response_format"))
    except FormatError as error:
        raise ApiError(400, str(error), param=error.param, code="invalid_value") from None
