"""What a server says at no cost: its models with the length of each context, and how busy it is."""

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adaptive_eval.endpoints.failures import at
from adaptive_eval.endpoints.redaction import shorten
from adaptive_eval.errors import EndpointError, PermanentEndpointError

_LISTED = 10


@dataclass(frozen=True, slots=True)
class Probe:
    """An endpoint's description of itself before a run."""

    models: tuple[str, ...]  # ids the server lists; empty where it does not list any
    latency: float  # seconds the server took to answer
    note: str = ""  # A remark for the person who runs `validate`; empty where all is well
    # tokens that prompt and answer may have together, where the server tells
    context_length: int | None = None


def model_ids(body: Any) -> tuple[str, ...]:
    """Return the ids in the answer to ``GET /models``; none if it has another form.

    Examples
    --------
    >>> model_ids({"object": "list", "data": [{"id": "tiny"}, {"id": "tiny-lora"}]})
    ('tiny', 'tiny-lora')
    """
    listed = at(body, "data")
    if not isinstance(listed, list):
        return ()
    ids = (at(entry, "id") for entry in listed)
    return tuple(shorten(name, 200) for name in ids if isinstance(name, str))


def context_length(body: Any, model: str) -> int | None:
    """Return the context length of a listed model, by the names in use (vLLM, gateways, llama.cpp).

    Examples
    --------
    >>> context_length({"data": [{"id": "tiny", "max_model_len": 512}]}, "tiny")
    512
    """
    for card in [card for card in body["data"] if at(card, "id") == model]:
        places = list(map(card.get, ("max_model_len", "context_length", "context_window")))
        for value in (*places, at(card, "meta", "n_ctx")):
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def not_served(url: str, model: str, served: Sequence[str]) -> str:
    """Say that `model` is not among those served, and which was probably meant.

    Examples
    --------
    >>> not_served("http://h/v1", "tyny", ["tiny", "large"])
    "http://h/v1 does not serve 'tyny'. Did you mean 'tiny'? It serves: tiny, large."
    """
    near = difflib.get_close_matches(model, served, n=1)
    hint = ""
    if near:
        hint = f" Did you mean {near[0]!r}?"
    more = ""
    if len(served) > _LISTED:
        more = f" and {len(served) - _LISTED} more"
    return f"{url} does not serve {model!r}.{hint} It serves: {', '.join(served[:_LISTED])}{more}."


PATIENCE = 5.0
"""Seconds within which a server that is there says so."""


async def is_there(get: Callable[[str], Awaitable[object]], root: str) -> bool:
    """Ask a server whether it is there: its ``/health`` if it has one, as vLLM does, else its models.

    Examples
    --------
    >>> async def get(path):
    ...     print(path)
    >>> asyncio.run(is_there(get, "http://gpu1:8000"))
    http://gpu1:8000/health
    True
    """
    for path in (f"{root}/health", "/models"):
        try:
            async with asyncio.timeout(PATIENCE):
                await get(path)
        except PermanentEndpointError as error:
            if error.status is None:
                return False
        except EndpointError as error:
            return error.status == 429
        except TimeoutError:
            return False
        else:
            return True
    return True
