"""From a request to its samples: length limit and stop sequences put on the examinee's replies."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from adaptive_eval.mimic.examinee import Asked, Examinee
from adaptive_eval.mimic.prose import clip, count_tokens, tokenize
from adaptive_eval.mimic.requests import AnswerRequest, ApiError


@dataclass(frozen=True, slots=True)
class Sample:
    """One choice of a response."""

    text: str  # what is sent
    tokens: int  # tokens generated, those of a stop sequence included, as vLLM counts them
    finish_reason: str  # ``stop``, ``length`` or, by a fault, ``abort``
    stop_reason: str | None  # the stop sequence that ended it
    right: bool  # whether the coin fell on the right side
    latency: float  # seconds
    noise: int  # random bits for log-probabilities


def prompt_tokens(request: AnswerRequest, asked: list[Asked]) -> int:
    """Return the prompt tokens of a request: each prompt once, whatever `n`."""
    return sum(_prompt_size(request, one) for one in asked)


def _prompt_size(request: AnswerRequest, asked: Asked) -> int:
    return asked.prompt_tokens + (asked.model.tokens.prompt_overhead if request.chat else 0)


def draw_samples(examinee: Examinee, request: AnswerRequest, asked: list[Asked]) -> list[Sample]:
    """Return the samples of a request, prompt by prompt; sample i of a prompt has the seed plus i."""
    base = random.SystemRandom().getrandbits(62) if request.seed is None else request.seed
    rooms = [_room(request, one) for one in asked]
    return [
        _sample(examinee, request, one, None if request.greedy else base + index, room)
        for one, room in zip(asked, rooms, strict=True)
        for index in range(request.n)
    ]


def _room(request: AnswerRequest, asked: Asked) -> int:
    """Return how many tokens a sample may have."""
    size, context = _prompt_size(request, asked), asked.model.context_length
    wanted = request.max_tokens or 1
    if size + wanted > context:
        raise ApiError(
            400,
            f"This model's maximum context length is {context} tokens, but {size} of the prompt "
            f"and {wanted} of the answer were asked for.",
            param="messages" if request.chat else "prompt",
            code="context_length_exceeded",
        )
    return context - size if request.max_tokens is None else request.max_tokens


def _sample(examinee: Examinee, request: AnswerRequest, asked: Asked, seed: int | None, limit: int) -> Sample:
    reply = examinee.reply(asked, seed)
    text, tokens, finish = reply.text, reply.tokens, "stop"
    if tokens > limit:
        text, tokens, finish = _truncated(text, limit), limit, "length"
    stopped_by = None
    if request.stop:
        whole = text
        text, stopped_by = clip(whole, request.stop)
        if stopped_by is not None:
            tokens, finish = count_tokens(whole[: len(text) + len(stopped_by)]), "stop"
    return Sample(text, tokens, finish, stopped_by, reply.right, reply.latency, reply.noise)


def _truncated(text: str, tokens: int) -> str:
    return "".join(tokenize(text)[:tokens])


def cut_off(sample: Sample, finish_reason: str) -> Sample:
    """Return the first half of `sample`, ended by `finish_reason`.

    Examples
    --------
    >>> whole = Sample("one two three four", 4, "stop", None, True, 0.0, 0)
    >>> cut_off(whole, "abort").text
    'one two'
    """
    half = max(1, count_tokens(sample.text) // 2)
    text = _truncated(sample.text, half)
    return replace(sample, text=text, tokens=half, finish_reason=finish_reason, stop_reason=None)
