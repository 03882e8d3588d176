"""Responses in the form of OpenAI's chat API, with made-up but proper log-probabilities.

A chosen token has −0.15 on average in a right answer and −0.4 in a wrong one, so that signals drawn from
them carry information about correctness.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from adaptive_eval import __version__
from adaptive_eval.mimic.prose import tokenize
from adaptive_eval.mimic.requests import ChatRequest, Sample

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
    samples: Sequence[Sample]  # the choices, in order
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

    def _choice(self, index: int, sample: Sample) -> dict[str, Any]:
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


def token_logprobs(sample: Sample, top: int) -> list[dict[str, Any]]:
    """Return the log-probabilities of a sample's tokens, with the `top` likeliest in the place of each.

    Examples
    --------
    >>> (entry,) = token_logprobs(Sample("Yes", 1, "stop", None, True, 0.0, 5), top=3)
    >>> likely = entry["top_logprobs"]
    >>> entry["logprob"] < 0, len(likely), sum(math.exp(one["logprob"]) for one in likely) <= 1
    (True, 3, True)
    """
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
