"""The largest sensible number of every setting, so that a slip of the keyboard is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from adaptive_eval.config.codes import out_of_range
from adaptive_eval.config.document import Place

_LARGEST: Mapping[str, int] = {
    "max_tokens": 2**31 - 1,
    "max_completion_tokens": 2**31 - 1,
    "limit": 10**9,
    "max_passes": 10**6,
    "depth": 10**6,
    "completion_median": 10**7,
    "prompt_overhead": 10**7,
    "seed": 2**63 - 1,
    "shuffle": 2**63 - 1,
}
_OTHERWISE = 10**15
_FREE = ("extra_body",)  # what only the server understands


def check_numbers(config: Mapping[str, Any], path: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yield the place of every number that is too large, and its bound.

    Examples
    --------
    >>> list(check_numbers({"tasks": ({"limit": 10**20},)}))
    [(('tasks', 0, 'limit'), '1e+20 is too large; it must be at most 1,000,000,000')]
    """
    for key, value in config.items():
        most = _LARGEST.get(key, _OTHERWISE)
        items = enumerate(value) if isinstance(value, tuple) else ((None, value),)
        for place, item in items:
            here: Place = (*path, key) if place is None else (*path, key, place)
            if isinstance(item, Mapping) and key not in _FREE:
                yield from check_numbers(item, here)
            elif _is_beyond(item, most):
                yield here, out_of_range(f"{_in_short(item)} is too large; it must be at most {most:,}")


def _is_beyond(value: Any, most: int) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False  # the grammar refuses it
    return isinstance(value, int | float) and abs(value) > most


def _in_short(value: float) -> str:
    try:
        return f"{value:.4g}"
    except OverflowError:  # no float is so large
        return f"a number of {int(abs(int(value)).bit_length() * math.log10(2)):,} digits"
