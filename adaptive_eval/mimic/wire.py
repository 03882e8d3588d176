"""Responses in the form of OpenAI's API: JSON bodies, server-sent events and log-probabilities.

Log-probabilities are made up, but proper: a chosen token has −0.15 on average in a right answer and −0.4 in
a wrong one, so that signals drawn from them carry information about correctness.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple

from adaptive_eval import __version__
from adaptive_eval.mimic.prose import tokenize
from adaptive_eval.mimic.requests import AnswerRequest
from adaptive_eval.mimic.sampling import Sample


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes of a response and the second after the request at which they are due."""

    due: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """A response to be worded."""

    request: AnswerRequest  # what was asked
    samples: Sequence[Sample]  # the choices, in order
    prompt_tokens: int
    id: str  # A random name
    created: int  # unix time in seconds

    @property
    def completion_tokens(self) -> int:
        """Tokens of all samples."""
        return sum(sample.tokens for sample in self.samples)

    @property
    def usage(self) -> dict[str, int]:
        """The usage as it is reported: the prompt once, the samples summed."""
        completion = self.completion_tokens
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
        }

    def frames(self) -> list[Frame]:
        """Return the whole response: one frame, or one for each event of a stream."""
        if self.request.stream:
            return list(self._events())
        kind = "chat.completion" if self.request.chat else "text_completion"
        body = self._envelope(kind, [self._choice(index) for index in range(len(self.samples))])
        body["usage"] = self.usage
        latest = max(sample.latency for sample in self.samples)
        return [Frame(latest, json.dumps(body, separators=(",", ":")).encode())]

    def _envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"{'chatcmpl' if self.request.chat else 'cmpl'}-{self.id}",
            "object": kind,
            "created": self.created,
            "model": self.request.model,
            "system_fingerprint": f"mimic-{__version__}",
            "choices": choices,
        }

    def _choice(self, index: int) -> dict[str, Any]:
        sample = self.samples[index]
        ending = {"finish_reason": sample.finish_reason, "stop_reason": sample.stop_reason}
        logprobs = self._logprobs(self._entries(sample))
        if self.request.chat:
            message = {"role": "assistant", "content": sample.text, "refusal": None}
            return {"index": index, "message": message, "logprobs": logprobs, **ending}
        return {"index": index, "text": sample.text, "logprobs": logprobs, **ending}

    def _entries(self, sample: Sample) -> list[TokenLogprob] | None:
        top = self.request.top_logprobs
        if top is None:
            return None
        tokens = tokenize(sample.text)
        return token_logprobs(tokens, top, sample.noise, right=sample.right)

    def _logprobs(self, entries: Sequence[TokenLogprob] | None, offset: int = 0) -> dict[str, Any] | None:
        if entries is None:
            return None
        return chat_logprobs(entries) if self.request.chat else completion_logprobs(entries, offset)

    def _events(self) -> Iterator[Frame]:
        """Yield the events by due time: tokens are spread evenly over their sample's latency."""
        if self.request.chat:
            for index in range(len(self.samples)):
                yield self._event(0.0, index, {"role": "assistant", "content": ""})
        pieces = [piece for index in range(len(self.samples)) for piece in self._pieces(index)]
        yield from sorted(pieces, key=lambda frame: frame.due)
        end = max(sample.latency for sample in self.samples)
        if self.request.include_usage:
            body = self._envelope(self._chunk, [])
            body["usage"] = self.usage
            yield Frame(end, _event_bytes(body))
        yield Frame(end, b"data: [DONE]\n\n")

    def _pieces(self, index: int) -> Iterator[Frame]:
        sample = self.samples[index]
        tokens = tokenize(sample.text)
        entries = self._entries(sample)
        offset = 0
        for number, token in enumerate(tokens):
            # The quotient first: it ends at exactly 1, so no rounding puts the last token behind the finish.
            due = sample.latency * ((number + 1) / len(tokens))
            logprobs = self._logprobs(entries[number : number + 1] if entries else None, offset)
            yield self._event(due, index, {"content": token}, logprobs=logprobs)
            offset += len(token)
        yield self._event(sample.latency, index, {}, finish=sample.finish_reason)

    def _event(
        self,
        due: float,
        index: int,
        delta: dict[str, str],
        *,
        logprobs: dict[str, Any] | None = None,
        finish: str | None = None,
    ) -> Frame:
        said = {"delta": delta} if self.request.chat else {"text": delta.get("content", "")}
        choice = {"index": index, **said, "logprobs": logprobs, "finish_reason": finish}
        body = self._envelope(self._chunk, [choice])
        if self.request.include_usage:
            body["usage"] = None
        return Frame(due, _event_bytes(body))

    @property
    def _chunk(self) -> str:
        return "chat.completion.chunk" if self.request.chat else "text_completion"


def _event_bytes(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


_MEAN_RIGHT: Final = -0.15
_MEAN_WRONG: Final = -0.4
_OTHERS: Final = (
    *(" the", " a", " so", " is", " we", " of", " to", " and", " in", " it", " that"),
    *(" as", " for", " on", " with", " by", " at", " an", " or", " be", " then"),
)


class TokenLogprob(NamedTuple):
    """One token with its log-probability and the most likely tokens in its place, best first."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...]


def token_logprobs(tokens: Sequence[str], top: int, noise: int, *, right: bool) -> list[TokenLogprob]:
    """Return log-probabilities for `tokens`.

    Examples
    --------
    >>> entry = token_logprobs(["Yes"], top=3, noise=5, right=True)[0]
    >>> entry.logprob < 0, len(entry.top), sum(math.exp(value) for _, value in entry.top) <= 1
    (True, 3, True)
    """
    rng = random.Random(noise)
    mean = _MEAN_RIGHT if right else _MEAN_WRONG
    result = []
    for token in tokens:
        logprob = mean * -math.log(1.0 - rng.random())
        result.append(TokenLogprob(token, logprob, _alternatives(token, logprob, top, rng)))
    return result


def _alternatives(token: str, logprob: float, top: int, rng: random.Random) -> tuple[tuple[str, float], ...]:
    if top == 0:
        return ()
    rest = max(-math.expm1(logprob), 1e-12)
    start = rng.randrange(len(_OTHERS))
    candidates = (*_OTHERS[start:], *_OTHERS[:start])
    others = [other for other in candidates if other != token][: top - 1]
    entries = [(other, math.log(rest) - (k + 1) * math.log(2.0)) for k, other in enumerate(others)]
    return tuple(sorted([(token, logprob), *entries], key=lambda entry: -entry[1]))


def chat_logprobs(entries: Sequence[TokenLogprob]) -> dict[str, Any]:
    """Return `entries` as the ``logprobs`` of a chat choice."""
    content = [
        {
            **_chat_entry(entry.token, entry.logprob),
            "top_logprobs": [_chat_entry(*other) for other in entry.top],
        }
        for entry in entries
    ]
    return {"content": content, "refusal": None}


def _chat_entry(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode("utf-8", "surrogatepass"))}


def completion_logprobs(entries: Sequence[TokenLogprob], offset: int = 0) -> dict[str, Any]:
    """Return `entries` as the ``logprobs`` of a text choice; `offset` characters come before them."""
    offsets = list(accumulate((len(entry.token) for entry in entries), initial=offset))
    return {
        "tokens": [entry.token for entry in entries],
        "token_logprobs": [entry.logprob for entry in entries],
        "top_logprobs": [dict(entry.top) for entry in entries],
        "text_offset": offsets[:-1],
    }
