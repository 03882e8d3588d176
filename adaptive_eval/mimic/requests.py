"""The bodies of completion requests, checked, with the errors that OpenAI's API gives."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

MAX_SAMPLES: Final = 1024
MAX_TOP_LOGPROBS: Final = 20
COMPLETIONS_MAX_TOKENS: Final = 16
"""Tokens that /v1/completions generates where the request sets no limit, as OpenAI and vLLM do."""

_SHOWN: Final = 80  # characters of a wrong value


class ApiError(Exception):
    """An answer that is an error: HTTP status, message, parameter at fault, code and OpenAI's ``type``."""

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

    A conversation (`chat`) has one prompt. `seed` None is a random one, `greedy` is temperature 0,
    `top_logprobs` None is no log-probabilities.
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


_WITHOUT: Final[Mapping[str, Mapping[str, Any]]] = {
    "seed": {"seed": None},
    "n": {"n": 1},
    "max_tokens": {"max_tokens": None},
    "stop": {"stop": ()},
    "logprobs": {"top_logprobs": None},
}


def ignoring(request: AnswerRequest, names: Collection[str], *, cached: bool = False) -> AnswerRequest:
    """Return `request` as read by a server that ignores the parameters `names`, or answers from a cache."""
    changes: dict[str, Any] = {}
    for name in names:
        changes.update(_WITHOUT[name])
    if cached:
        changes["seed"] = 0
    return replace(request, **changes) if changes else request


class _Part(BaseModel):
    type: str = ""
    text: str = ""


class _Message(BaseModel):
    role: str
    content: str | list[_Part] | None = None

    def words(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class _StreamOptions(BaseModel):
    include_usage: bool | None = None


Word: TypeAlias = Annotated[str, Field(min_length=1)]
Top: TypeAlias = Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)]
Limit: TypeAlias = Annotated[int, Field(ge=1, lt=2**31)]


class _Body(BaseModel):
    """The parameters of both routes; unknown ones are ignored, as by vLLM."""

    model_config = ConfigDict(strict=True)

    model: Word
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    n: int | None = Field(default=None, ge=1, le=MAX_SAMPLES)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    max_tokens: Limit | None = None
    stop: Word | list[Word] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


class _Chat(_Body):
    messages: list[_Message] = Field(min_length=1)
    max_completion_tokens: Limit | None = None
    logprobs: bool | None = None
    top_logprobs: Top | None = None


class _Completion(_Body):
    prompt: str | Annotated[list[str], Field(min_length=1)]
    logprobs: Top | None = None
    echo: Any = None
    suffix: Any = None


def parse_request(data: bytes, *, chat: bool) -> AnswerRequest:
    """Parse and check the body of ``/v1/chat/completions`` (`chat`) or ``/v1/completions``.

    Examples
    --------
    >>> request = parse_request(b'{"model": "a", "prompt": "Hi", "seed": 4, "n": 2}', chat=False)
    >>> request.prompts, request.seed, request.n, request.max_tokens
    (('Hi',), 4, 2, 16)
    """
    try:
        body = (_Chat if chat else _Completion).model_validate_json(data)
    except ValidationError as error:
        raise _refusal(error) from None
    for param, wrong in _contradictions(body).items():
        if wrong:
            raise ApiError(400, f"{param} {wrong}.", param=param, code="invalid_value")
    if isinstance(body, _Chat):
        prompts: tuple[str, ...] = ("\n".join(message.words() for message in body.messages),)
        max_tokens = body.max_completion_tokens or body.max_tokens
        top = (body.top_logprobs or 0) if body.logprobs else None
    else:
        assert isinstance(body, _Completion)
        prompts = (body.prompt,) if isinstance(body.prompt, str) else tuple(body.prompt)
        max_tokens, top = body.max_tokens or COMPLETIONS_MAX_TOKENS, body.logprobs
    return AnswerRequest(
        chat=chat,
        model=body.model,
        prompts=prompts,
        n=body.n or 1,
        seed=None if body.seed == -1 else body.seed,
        greedy=body.temperature == 0.0,
        max_tokens=max_tokens,
        stop=(body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ()),
        stream=bool(body.stream),
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
        top_logprobs=top,
    )


def _contradictions(body: _Body) -> dict[str, str | bool | None]:
    """Return, by parameter, its conflict with the others."""
    found: dict[str, str | bool | None] = {
        "n": (body.n or 1) > 1
        and body.temperature == 0
        and "must be 1 with temperature 0, where all samples are the same",
        "stream_options": body.stream_options is not None
        and not body.stream
        and "can only be given with stream true",
    }
    if isinstance(body, _Chat):
        unasked = body.top_logprobs is not None and not body.logprobs
        found["top_logprobs"] = unasked and "can only be given with logprobs true"
    if isinstance(body, _Completion):
        for name in ("echo", "suffix"):
            found[name] = bool(getattr(body, name)) and "is not supported by the mimic server"
    return found


def _refusal(error: ValidationError) -> ApiError:
    """Return the error for the first mistake, with its place as OpenAI names it (``messages[0].content``)."""
    details = error.errors(include_url=False, include_context=False)[0]
    if not details["loc"]:
        return ApiError(400, f"The body is not a JSON object: {details['msg']}")
    # The first part is the field; of the rest only places in a message count, not the names of union options.
    param = str(details["loc"][0])
    if param == "messages":
        rest = [part for part in details["loc"][1:3] if isinstance(part, int) or part == "content"]
        param += "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
    shown = json.dumps(details["input"], default=str)
    shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
    return ApiError(400, f"{param}: {details['msg']}, got {shown}.", param=param, code="invalid_value")
