"""Log-probabilities of an answer's tokens: made up, but proper, and lower where the answer is wrong.

The mean of a chosen token's log-probability is −0.15 in a right answer and −0.4 in a wrong one, so that
signals drawn from them carry information about correctness, as those of real models do.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

__all__ = ["TokenLogprob", "chat_logprobs", "completion_logprobs", "token_logprobs"]

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


def token_logprobs(
    tokens: Sequence[str],
    top: int,
    noise: int,
    *,
    right: bool,
    labels: Sequence[str] = (),
    even: bool = False,
) -> list[TokenLogprob]:
    """Return log-probabilities for `tokens`.

    Parameters
    ----------
    tokens : sequence of str
        The answer's tokens.
    top : int
        How many alternatives to give for each, 0 to 20, the chosen token among them.
    noise : int
        Random bits of the sample: the same bits give the same numbers.
    right : bool
        Whether the answer is right.
    labels : sequence of str
        Tokens that are likelier than any other beside the chosen one.
    even : bool
        Whether all `labels` are equally likely.

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
        if even:
            share = math.log(1.0 / (len(labels) + 1))
            result.append(TokenLogprob(token, share, tuple((label, share) for label in labels[:top])))
            continue
        logprob = mean * -math.log(1.0 - rng.random())
        result.append(TokenLogprob(token, logprob, _alternatives(token, logprob, top, rng, labels)))
    return result


def _alternatives(
    token: str, logprob: float, top: int, rng: random.Random, labels: Sequence[str]
) -> tuple[tuple[str, float], ...]:
    if top == 0:
        return ()
    rest = max(-math.expm1(logprob), 1e-12)
    start = rng.randrange(len(_OTHERS))
    candidates = (*labels, *_OTHERS[start:], *_OTHERS[:start])
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
