"""What the cells of a table of outcomes say: numbers, texts, categories, causes."""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

from adaptive_eval.interop.archives import LARGEST_CATEGORY
from adaptive_eval.simulate.recorded import NO_TRIAL
from adaptive_eval.store.codec import moment
from adaptive_eval.trial import DISCARD_CAUSES, DiscardCause


def is_true(values: Mapping[str, Any], column: str) -> bool:
    """Tell whether a row says yes in a column, as our own tables write it."""
    return text_of(values.get(column)) in ("1", "true", "True")


def causes_of(value: Any) -> tuple[DiscardCause, ...]:
    """Return the causes of discarded draws, as our own tables have them."""
    if value:
        causes = tuple((text_of(value) or "").split(","))
    else:
        causes = ()
    for cause in causes:
        if cause not in DISCARD_CAUSES:
            known = ", ".join(DISCARD_CAUSES)
            raise ValueError(f"discarded_cause: {cause!r} is no cause of a discarded draw; these are {known}")
    return cast("tuple[DiscardCause, ...]", causes)


@cache
def listed_numbers(text: str) -> tuple[float, ...]:
    """Return the numbers of a JSON list, as our own tables have weights; none of anything else."""
    try:
        found = json.loads(text)
        numbers = isinstance(found, list) and all(isinstance(one, int | float) for one in found)
        if numbers:
            weights = tuple(map(float, found))
        else:
            weights = ()
    except (OverflowError, RecursionError, ValueError):
        return ()
    return weights if len(set(weights)) > 1 else ()


def category_of(value: Any, key: str) -> int | None:
    """Return a category, None for a trial without an answer."""
    number = _number(value)
    if number == NO_TRIAL:
        return None
    if number is None or not number.is_integer() or not 0 <= number <= LARGEST_CATEGORY:
        raise ValueError(
            f"{key}: {value!r:.60} is not a category (0, 1, 2, …; -1 or empty for a trial without an answer)"
        )
    return int(number)


def counting(value: Any, column: str) -> int | None:
    """Return a number from 0, None if there is none."""
    label = None
    if isinstance(value, str):
        label = _LABEL.fullmatch(value)
    number_text = value
    if label is not None:
        number_text = label[1]
    number = _amount(number_text, column)
    if number is None:
        return None
    if not number.is_integer() or number > _LARGEST_COUNT:
        raise ValueError(f"{column}: {value!r:.60} is not a whole number below 10^15")
    return int(number)


_LARGEST_COUNT = 1e15
_LABEL = re.compile(r"\D*[^\d.+-](\d+)")
"""A number with its name, such as ``run_2``."""


def _amount(value: Any, column: str) -> float | None:
    """Return a finite number from 0, None if there is none."""
    if value is None or value == "":
        return None
    number = _number(value)
    if number is None or not 0.0 <= number < float("inf"):
        raise ValueError(f"{column}: {value!r:.60} is not a number from 0")
    return number


def _time(value: Any, column: str) -> float | None:
    """Return a Unix time in seconds, None if there is none."""
    number = _amount(value, column)
    try:
        if number is None:
            return None
        return moment(number)
    except ValueError as error:
        raise ValueError(f"{column}: {error}; give seconds") from None


def _number(value: Any) -> float | None:
    """Return a number given as a number or as text, or None."""
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return None


def text_of(value: Any) -> str | None:
    """Return a text, None of an empty cell."""
    if value is None or value == "":
        return None
    return str(value)


def name_of(value: Any) -> str | None:
    """Return a name; spaces around it, as aligned tables have them, would make another model of it."""
    if value is None:
        return None
    return str(value).strip()


READ: Mapping[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(
        ("text", "reason", "prompt", "target", "extracted", "finish_reason"), lambda value, _: str(value)
    ),
    "latency": _amount,
    "finished_at": _time,
    **dict.fromkeys(("prompt_tokens", "completion_tokens"), counting),
}
"""How the optional columns are read, by name."""
