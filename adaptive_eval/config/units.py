"""Counts and durations as people write them: ``50M``, ``2k``, ``2h``, ``1h30m``."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

__all__ = ["parse_count", "parse_duration", "parse_seconds"]

_COUNT = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s?([kKMBG]?)", re.ASCII)
_FACTOR = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s?(d|h|min|m|s)", re.ASCII)
_SECONDS = {"d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1}
_LARGEST = 10**15


def parse_count(value: Any) -> int:
    """Read a positive whole number, with ``k``, ``M`` or ``B`` for thousand, million, (short) billion.

    Parameters
    ----------
    value : int or str
        Such as ``20000``, ``"2k"``, ``"1.5M"``, ``"3B"``.

    Returns
    -------
    int
        The count, at least 1.

    Raises
    ------
    ValueError
        When it cannot be read, is not whole, or is not positive.

    Examples
    --------
    >>> parse_count("50M"), parse_count("1.5k"), parse_count(20)
    (50000000, 1500, 20)
    """
    if isinstance(value, str):
        match = _COUNT.fullmatch(value.strip())
        if match is None or len(value) > 30:
            raise ValueError(f"{value[:40]!r} is not a count; write a number such as 20000, 2k, 50M or 1B")
        exact = Fraction(match[1].replace("_", "")) * _FACTOR[match[2]]
    elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST:
        exact = Fraction(value)
    else:
        raise ValueError(f"{value!r} is not a count; write a number such as 20000, 2k, 50M or 1B")
    if exact.denominator != 1 or not 1 <= exact <= _LARGEST:
        raise ValueError(f"{value!r} is not a whole number from 1 to 10^15")
    return int(exact)


def parse_duration(value: Any) -> float:
    """Read a duration with its unit into seconds.

    Parameters
    ----------
    value : str
        Such as ``"2h"``, ``"30m"``, ``"90s"``, ``"1h30m"``, ``"2d"``. A bare number is refused: its unit
        would be a guess.

    Returns
    -------
    float
        Seconds, positive.

    Raises
    ------
    ValueError
        When it cannot be read or is not positive.

    Examples
    --------
    >>> parse_duration("1h30m"), parse_duration("90s"), parse_duration("1.5h")
    (5400.0, 90.0, 5400.0)
    """
    advice = "write it with its unit, such as 2h, 30m, 90s or 1h30m"
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"{value!r} has no unit; {advice}")
    text = value.strip() if isinstance(value, str) else ""
    parts = list(_PART.finditer(text)) if len(text) <= 40 else []
    if not parts or _PART.sub("", text).strip():
        raise ValueError(f"{str(value)[:40]!r} is not a duration; {advice}")
    units = [{"min": "m"}.get(part[2], part[2]) for part in parts]
    if units != sorted(set(units), key="dhms".index):
        raise ValueError(f"{value!r} repeats a unit or has them out of order; {advice}")
    seconds = float(sum(Fraction(part[1]) * _SECONDS[part[2]] for part in parts))
    if not 0 < seconds <= _LARGEST:
        raise ValueError(f"{value!r} must be longer than nothing; {advice}")
    return seconds


def parse_seconds(value: Any) -> Any:
    """Read a duration where seconds are meant: one with its unit, or a bare number, which is left as it is.

    Examples
    --------
    >>> parse_seconds("5m"), parse_seconds(2.5)
    (300.0, 2.5)
    """
    return parse_duration(value) if isinstance(value, str) else value
