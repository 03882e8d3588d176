"""JSON that every reader accepts."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def picked(source: object, keys: str, **others: Any) -> dict[str, Any]:
    """Return the fields of `source` named by `keys`, in their order; `others` take their places.

    Examples
    --------
    >>> from adaptive_eval.core.results import TaskScore
    >>> picked(TaskScore("a", 0.5, 0.4, 0.6), "model rank score_low", rank=1)
    {'model': 'a', 'rank': 1, 'score_low': 0.4}
    """
    found = {}
    for key in keys.split():
        found[key] = others[key] if key in others else getattr(source, key)
    return found


def json_text(data: Any, indent: int | None = None) -> str:
    r"""Return `data` as strict JSON in ASCII, with null for every number that JSON has no word for.

    Examples
    --------
    >>> json_text({"threshold": float("inf"), "models": ("\u202eoak",)})
    '{"threshold": null, "models": ["\\u202eoak"]}'
    """
    return json.dumps(_finite(data), indent=indent, allow_nan=False)


def json_lines(data: Mapping[str, Any]) -> str:
    """Return an object as strict JSON with a key on each line, and of its lists an item on each line.

    Examples
    --------
    >>> print(json_lines({"name": "demo", "models": [{"model": "oak"}, {"model": "elm"}]}))
    {"name": "demo",
    "models": [
    {"model": "oak"},
    {"model": "elm"}]}
    """
    parts = []
    for key, value in data.items():
        text = json_text(value)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(json_text(one) for one in value) + "]"
        parts.append(f"{json.dumps(key)}: {text}")
    return "{" + ",\n".join(parts) + "}"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(map(_finite, value))
    return value
