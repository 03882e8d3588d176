"""Requests for chat completions, checked; the samples that answer them; and responses as OpenAI has them.

Log-probabilities are made up, but proper: a chosen token has −0.15 on average in a right answer and −0.4 in
a wrong one, so that signals drawn from them carry information about correctness.
"""

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaptive_eval import __version__
from adaptive_eval.mimic.examinee import Examinee, Reply, SeenPrompt, clip, count_tokens, tokenize


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


Word: TypeAlias = Annotated[str, Field(min_length=1)]
Limit: TypeAlias = Annotated[int, Field(ge=1, lt=2**31)]


class ChatRequest(BaseModel):
    """The body of a request; unknown parameters have no effect, as at vLLM."""

    model_config = ConfigDict(strict=True, frozen=True)

    model: Word
    messages: list[_Message] = Field(min_length=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    n: int = Field(default=1, ge=1, le=1024)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    max_tokens: Limit | None = None
    max_completion_tokens: Limit | None = None
    stop: Word | list[Word] | None = None
    stream: bool | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=20)

    @property
    def prompt(self) -> str:
        """The text of all messages."""
        return "\n".join(message.words() for message in self.messages)

    @property
    def limit(self) -> int | None:
        """Most tokens of a sample, if the request sets a limit."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts at which a sample ends."""
        if isinstance(self.stop, str):
            return (self.stop,)
        return tuple(self.stop or ())


def parse_request(data: Mapping[str, Any]) -> ChatRequest:
    """Check the body of a request.

    Examples
    --------
    >>> request = parse_request({"model": "a", "messages": [{"role": "user", "content": "Hi"}], "seed": 4})
    >>> request.prompt, request.seed, request.n
    ('Hi', 4, 1)
    """
    try:
        request = ChatRequest.model_validate({name: one for name, one in data.items() if one is not None})
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)[0]
        param = str(details["loc"][0])
        raise _invalid(param, f"{param}: {details['msg']}.") from None
    if request.n > 1 and request.temperature == 0:
        raise _invalid("n", "n must be 1 with temperature 0: all samples are the same.")
    if request.top_logprobs is not None and not request.logprobs:
        raise _invalid("top_logprobs", "top_logprobs can only be given with logprobs true.")
    if request.stream:
        raise _invalid("stream", "The mimic server does not stream.")
    return request


def _invalid(param: str, words: str) -> ApiError:
    return ApiError(400, words, param=param, code="invalid_value")


def prompt_tokens(asked: SeenPrompt) -> int:
    """Return the tokens of a prompt with the template of a chat around it."""
    return asked.prompt_tokens + asked.model.tokens.prompt_overhead


def draw_samples(examinee: Examinee, request: ChatRequest, asked: SeenPrompt) -> list[Reply]:
    """Return the samples of a request; sample i has the seed plus i."""
    size = prompt_tokens(asked)
    context = asked.model.context_length
    wanted = request.limit or 1
    if size + wanted > context:
        raise ApiError(
            400,
            f"This model's maximum context length is {context} tokens, but {size} of the prompt "
            f"and {wanted} of the answer were asked for.",
            param="messages",
            code="context_length_exceeded",
        )
    room = request.limit or context - size
    if request.temperature == 0:
        return [_sample(examinee, request, asked, None, room)]
    random_seed = request.seed is None or request.seed == -1
    if random_seed:
        base = random.SystemRandom().getrandbits(62)
    else:
        base = request.seed or 0
    return [_sample(examinee, request, asked, base + index, room) for index in range(request.n)]


def _sample(
    examinee: Examinee, request: ChatRequest, asked: SeenPrompt, seed: int | None, limit: int
) -> Reply:
    reply = examinee.reply(asked, seed)
    letters = None
    if limit == 1:
        letters = asked.letters
    if letters is not None:
        reply = replace(reply, text=reply.answer, tokens=1, finish_reason="length", letters=letters)
    elif reply.tokens > limit:
        text = "".join(tokenize(reply.text)[:limit])
        reply = replace(reply, text=text, tokens=limit, finish_reason="length")
    text, stopped_by = clip(reply.text, request.stops)
    if stopped_by is None:
        return reply
    tokens = count_tokens(reply.text[: len(text) + len(stopped_by)])
    return replace(reply, text=text, tokens=tokens, finish_reason="stop", stop_reason=stopped_by)


def cut_off(sample: Reply, finish_reason: str) -> Reply:
    """Return the first half of `sample`, ended by `finish_reason`.

    Examples
    --------
    >>> whole = Reply("one two three four", 4)
    >>> cut_off(whole, "abort").text
    'one two'
    """
    half = max(1, count_tokens(sample.text) // 2)
    text = "".join(tokenize(sample.text)[:half])
    return replace(sample, text=text, tokens=half, finish_reason=finish_reason, stop_reason=None)


_MEAN_RIGHT: Final = -0.15
_MEAN_WRONG: Final = -0.4
_OTHERS: Final = (
    *(" the", " a", " so", " is", " we", " of", " to", " and", " in", " it", " that"),
    *(" as", " for", " on", " with", " by", " at", " an", " or", " be", " then"),
)


@dataclass(frozen=True, slots=True)
class Response:
    """A response to be worded."""

    request: ChatRequest  # what was asked
    samples: Sequence[Reply]  # the choices, in order
    prompt_tokens: int
    id: str  # a random name
    created: int  # Unix time in seconds

    @property
    def completion_tokens(self) -> int:
        """Tokens of all samples."""
        return sum(sample.tokens for sample in self.samples)

    @property
    def latency(self) -> float:
        """Seconds until it is due."""
        return max(sample.latency for sample in self.samples)

    def data(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        completion = self.completion_tokens
        return {
            "id": f"chatcmpl-{self.id}",
            "object": "chat.completion",
            "created": self.created,
            "model": self.request.model,
            "system_fingerprint": f"mimic-{__version__}",
            "choices": [self._choice(index, sample) for index, sample in enumerate(self.samples)],
            "usage": {
                "prompt_tokens": self.prompt_tokens,
                "completion_tokens": completion,
                "total_tokens": self.prompt_tokens + completion,
            },
        }

    def body(self) -> bytes:
        """Return its bytes."""
        return json.dumps(self.data(), separators=(",", ":")).encode()

    def _choice(self, index: int, sample: Reply) -> dict[str, Any]:
        logprobs = None
        if self.request.logprobs:
            logprobs = {"content": token_logprobs(sample, self.request.top_logprobs or 0), "refusal": None}
        return {
            "index": index,
            "message": {"role": "assistant", "content": sample.text, "refusal": None},
            "logprobs": logprobs,
            "finish_reason": sample.finish_reason,
            "stop_reason": sample.stop_reason,
        }


def token_logprobs(sample: Reply, top: int) -> list[dict[str, Any]]:
    """Return the log-probabilities of a sample's tokens, with the `top` likeliest in the place of each.

    Examples
    --------
    >>> (entry,) = token_logprobs(Reply("Yes", 1, noise=5), top=3)
    >>> likely = entry["top_logprobs"]
    >>> entry["logprob"] < 0, len(likely), sum(math.exp(one["logprob"]) for one in likely) <= 1
    (True, 3, True)
    """
    if sample.letters is not None:
        listed = [_entry(letter, math.log(chance)) for letter, chance in sample.letters.items()]
        listed.sort(key=lambda entry: -float(entry["logprob"]))
        own = next(entry for entry in listed if entry["token"] == sample.text)
        return [{**own, "top_logprobs": listed[:top]}]
    rng = random.Random(sample.noise)
    mean = _MEAN_RIGHT if sample.right else _MEAN_WRONG
    found = []
    for token in tokenize(sample.text):
        logprob = mean * -math.log(1.0 - rng.random())
        found.append({**_entry(token, logprob), "top_logprobs": _alternatives(token, logprob, top, rng)})
    return found


def _alternatives(token: str, logprob: float, top: int, rng: random.Random) -> list[dict[str, Any]]:
    if top == 0:
        return []
    rest = math.log(max(-math.expm1(logprob), 1e-12))
    others = [word for word in _OTHERS if word != token]
    chosen = rng.sample(others, top - 1)
    entries = [_entry(other, rest - (k + 1) * math.log(2.0)) for k, other in enumerate(chosen)]
    return sorted([_entry(token, logprob), *entries], key=lambda entry: -float(entry["logprob"]))


def _entry(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode("utf-8", "surrogatepass"))}
