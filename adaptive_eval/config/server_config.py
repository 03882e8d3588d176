"""The ``servers`` section: limits that all models on a server share; and what goes wrong with limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adaptive_eval.options.mistakes import (
    Place,
    did_you_mean,
    out_of_range,
    shown,
    twice,
    unheld,
    unknown_name,
)


def check_limits(
    models: Mapping[int, Mapping[str, Any]], servers: Mapping[int, Mapping[str, Any]]
) -> Iterator[tuple[Place, str]]:
    """Yield the place and the words of every mistake in limits of models and servers.

    Examples
    --------
    >>> models = {0: {"name": "a", "endpoints": ("http://gpu1/v1",)}}
    >>> list(check_limits(models, {0: {"url": "http://gpu2/v1"}}))
    [(('servers', 0, 'url'), "no model has 'http://gpu2/v1' among its endpoints; did you mean \
'http://gpu1/v1'?")]
    """
    used: dict[str, list[int]] = {}
    found = [place for place, model in models.items() if isinstance(model.get("endpoints"), dict)]
    for place, model in models.items():
        for url in _urls(model.get("endpoints")):
            used.setdefault(url, []).append(place)
        yield from _room(model, model.get("rate_limit"), ("models", place, "rate_limit"))
        if place in found:
            each = model["endpoints"].get("each")
            limit = each.get("rate_limit") if isinstance(each, dict) else None
            yield from _room(model, limit, ("models", place, "endpoints", "each", "rate_limit"))
    seen: dict[str, int] = {}
    for place, server in servers.items():
        written = server.get("url")
        if not isinstance(written, str):
            continue
        url = written.rstrip("/")
        if url in seen:
            yield ("servers", place, "url"), twice(f"{shown(url)} is also the server of servers[{seen[url]}]")
        elif url not in used and not found:
            words = f"no model has {shown(url)} among its endpoints{did_you_mean(url, used)}"
            yield ("servers", place, "url"), unknown_name(words)
        seen.setdefault(url, place)
        for position in dict.fromkeys([*used.get(url, ()), *found]):
            limit, here = server.get("rate_limit"), ("servers", place, "rate_limit")
            yield from _room(models[position], limit, here)


def _urls(value: Any) -> list[str]:
    return [url.rstrip("/") for url in value if isinstance(url, str)] if isinstance(value, tuple) else []


def _room(model: Mapping[str, Any], limit: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield what keeps a limit of tokens from being held for `model`."""
    sampling = model.get("sampling", {})
    if not isinstance(limit, dict) or not isinstance(sampling, dict):
        return
    tokens = limit.get("tokens_per_minute")
    longest = sampling.get("max_tokens", sampling.get("max_completion_tokens"))
    place = (*place, "tokens_per_minute")
    if tokens is None:
        return
    if longest is None:
        words = (
            f"can only be held when the longest answer is known: give the model {shown(model.get('name'))}"
        )
        yield place, unheld(f"{words} max_tokens")
    elif isinstance(tokens, int) and isinstance(longest, int) and longest >= tokens:
        words = f"{tokens} is less than one answer may take (max_tokens {longest}) with its question"
        yield place, out_of_range(words)
