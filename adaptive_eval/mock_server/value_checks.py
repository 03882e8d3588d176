"""Checks of single values; each raises ValueError that names the field, its value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = [
    "check_flag",
    "check_integer",
    "check_name",
    "check_number",
    "check_one_of",
    "check_text",
    "check_tuple",
]


def check_number(name: str, value: object, low: float, high: float = math.inf) -> None:
    """Raise ValueError unless `value` is a finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _between(value, low, high):
        allowed = f"in [{low:g}, {high:g}]" if math.isfinite(high) else f"of at least {low:g}"
        raise ValueError(f"{name}: {value!r} is not a number {allowed}")


def _between(value: float, low: float, high: float) -> bool:
    return math.isfinite(value) and low <= value <= high


def check_integer(name: str, value: object, low: int, high: float = math.inf) -> None:
    """Raise ValueError unless `value` is a whole number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        allowed = f"in [{low}, {high}]" if math.isfinite(high) else f"of at least {low}"
        raise ValueError(f"{name}: {value!r} is not a whole number {allowed}")


def check_flag(name: str, value: object) -> None:
    """Raise ValueError unless `value` is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}: {value!r} is neither true nor false")


def check_tuple(name: str, value: object) -> None:
    """Raise ValueError unless `value` is a tuple."""
    if not isinstance(value, tuple):
        raise ValueError(f"{name}: {value!r} is not a list")


def check_text(name: str, value: object) -> None:
    """Raise ValueError unless `value` is text."""
    if not isinstance(value, str):
        raise ValueError(f"{name}: {value!r} is not text")


def check_name(name: str, value: object, *, show: bool = True) -> None:
    """Raise ValueError unless `value` is a non-empty text; `show` it in the message or not."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name}: {repr(value) if show else 'the value'} is not a non-empty text")


def check_one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    """Raise ValueError unless `value` is one of `allowed`."""
    options = tuple(allowed)
    if value not in options:
        raise ValueError(f"{name}: {value!r} is none of {', '.join(options)}")
