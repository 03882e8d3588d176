"""The lossless encoding of text, JSON and numbers in the run file: readable if short, else compressed.

A packed text is a TEXT value if that is exact and short, so that any SQLite tool can read it. It is a
BLOB of compressed UTF-8 (a Zstandard frame, RFC 8878) if it is long, or holds what TEXT cannot keep in
every tool: NUL, and lone surrogates, which arrive when a server's JSON escapes half a character. Each value
is compressed by itself, so that any trial can be read alone.
"""

import json
import math
import operator
import threading
from collections.abc import Iterable, Mapping
from typing import Any, SupportsIndex, TypeAlias

import zstandard

Packed: TypeAlias = str | bytes

COMPRESS_FROM = 512
"""Length in characters from which text is compressed: below it compression costs time and gains little."""

MOST_BYTES = 64 * 2**20
"""Longest text that is unpacked: log-probabilities of 32,000 tokens with 20 alternatives take half of it."""

LEVEL = 3
"""On answers of 4 KB level 6 takes three times as long and saves a twentieth."""


class _Zstandard(threading.local):
    """A compressor and a decompressor for each thread: they are made slowly and cannot be shared."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_here = _Zstandard()


def _is_plain(text: str) -> bool:
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def pack(text: str) -> Packed:
    r"""Return `text` as it is stored.

    Examples
    --------
    >>> pack("42")
    '42'
    >>> len(pack("thinking " * 1000)) < 200
    True
    >>> unpack(pack("half a character: \ud83d"))
    'half a character: \ud83d'
    """
    plain = _is_plain(text)
    if plain and len(text) < COMPRESS_FROM:
        return text
    data = text.encode("utf-8", "surrogatepass")
    packed = _here.compressor.compress(data)
    if plain and len(packed) >= len(data):
        return text
    return packed


def unpack(value: Packed) -> str:
    """Return the text that :func:`pack` was given.

    Examples
    --------
    >>> unpack(pack("x" * 9999)) == "x" * 9999
    True
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, bytes):  # in a damaged file
        raise TypeError(f"{value!r} is no packed text")
    size = zstandard.get_frame_parameters(value).content_size
    if size > MOST_BYTES:  # or unknown: each frame of ours says its size
        raise ValueError(f"a text unpacks to more than {MOST_BYTES:,} bytes")
    return _here.decompressor.decompress(value).decode("utf-8", "surrogatepass")


def packed(values: Iterable[Any]) -> list[Any]:
    """Return values with their texts packed."""
    packed = list(values)
    for place, value in enumerate(packed):
        if isinstance(value, str):
            packed[place] = pack(value)
    return packed


def unpacked(values: Iterable[Any]) -> list[Any]:
    """Return the values that :func:`packed` was given, of which none is of bytes."""
    found = list(values)
    for place, value in enumerate(found):
        if isinstance(value, bytes):
            found[place] = unpack(value)
    return found


def unpack_optional(value: Packed | None) -> str | None:
    """Return ``unpack(value)``, or None for None."""
    if value is None or isinstance(value, str):
        return value
    return unpack(value)


def _plain_json(value: Any) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if getattr(value, "ndim", None) == 0:
        return value.item()
    raise TypeError(f"cannot store {value!r} of type {type(value).__name__}: give JSON-able data")


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain_json)


def dump_json(value: Any) -> str:
    """Return compact JSON text of `value`; any mappings and NumPy's scalars are allowed at any depth.

    Non-ASCII text is kept as it is: escaping would join two lone surrogates into one character on reading.
    Infinities and NaN are written as Python's json writes them.

    Examples
    --------
    >>> dump_json({"has_box": True, "ratio": 0.5})
    '{"has_box":true,"ratio":0.5}'
    """
    return _COMPACT.encode(value)


def load_json(value: Packed) -> Any:
    """Return the data whose packed JSON text `value` is.

    Examples
    --------
    >>> load_json(pack(dump_json([1, None, "a"])))
    [1, None, 'a']
    """
    return parsed(unpack(value))


def parsed(text: str) -> Any:
    """Return stored JSON text as data; ValueError if it is none, or a number of it has too many digits."""
    return json.loads(text, parse_int=_bounded)


_LARGEST = 2**63 - 1
_LATEST = 253_402_300_799.0  # the last second of the year 9999


def _bounded(digits: str) -> int:
    """Return a whole number that arithmetic with floats can take; ValueError for one that is longer."""
    if len(digits) > len(str(-_LARGEST)):
        raise ValueError(f"a number of {len(digits):,} digits is stored")
    return int(digits)


def moment(stored: Any) -> float:
    """Return a stored Unix time; ValueError or TypeError if it is in no year from 1970 to 9999."""
    if not isinstance(stored, int | float):
        raise TypeError(f"{stored!r:.40} is no time")
    if not 0.0 <= stored <= _LATEST:
        raise ValueError(f"{stored:g} is no Unix time up to the year 9999")
    return stored


def whole(field: str, value: SupportsIndex) -> int:
    """Return `value` as an int that SQLite can hold.

    NumPy's integers are converted: SQLite would store them as bytes.

    Examples
    --------
    >>> whole("step", 3)
    3
    """
    try:
        # True would be read back as 1
        number = value if type(value) is int else int(operator.index(value))
    except TypeError:
        number = -1
    if not 0 <= number <= _LARGEST:
        raise ValueError(f"{field} is {value!r}: give an integer from 0 to 2**63 - 1")
    return number


def real(field: str, value: float) -> float:
    """Return `value` as a finite float.

    Examples
    --------
    >>> real("latency", 2)
    2.0
    """
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{field} is {value!r}: give a finite number of seconds")
    return number + 0.0  # -0.0 would be read back as 0.0


Shape: TypeAlias = Any
"""The structure that stored JSON must have: a type, or made of shapes. It is checked once, at reading.

``[shape]`` is a list, ``{name: shape}`` an object with these names and any others (a name ending with ``?``
may be left out), ``{...: shape}`` an object with any names, and a tuple holds alternatives. ``float`` is any
finite number, ``object`` anything, None null.
"""


def read_shaped(text: str, shape: Shape) -> Any:
    """Return stored JSON text as data; ValueError, naming the place, if it does not have the shape."""
    data = parsed(text)
    wrong = misfit(data, shape)
    if wrong is not None:
        raise ValueError(wrong)
    return data


def misfit(data: Any, shape: Shape) -> str | None:
    """Return what of `data` does not have the shape, in words; None where all of it does.

    Examples
    --------
    >>> misfit({"a": [1, "x"]}, {"a": [int], "b?": str})
    "a: 1: it holds 'x'"
    >>> misfit({"a": 1}, {...: float}), misfit(float("nan"), float)
    (None, 'it holds nan')
    """
    parts: Iterable[tuple[Any, Any]]
    of_each: Any
    if isinstance(shape, list) and isinstance(data, list):
        parts = enumerate(data)
        of_each = {...: shape[0]}
    elif isinstance(shape, dict) and isinstance(data, dict):
        parts, of_each = data.items(), shape
        for name in shape:
            if name is not ... and name not in data and not name.endswith("?"):
                return f"it lacks {name!r}"
    else:
        if _is_of(data, shape):
            return None
        return f"it holds {data!r:.40}"
    others = of_each.get(..., object)
    for place, value in parts:
        wrong = misfit(value, of_each.get(place, of_each.get(f"{place}?", others)))
        if wrong is not None:
            return f"{place!s:.40}: {wrong}"
    return None


def _is_of(data: Any, shape: Shape) -> bool:
    """Tell whether data have a shape that is no list and no object of shapes."""
    if isinstance(shape, tuple):
        return any(misfit(data, one) is None for one in shape)
    if shape is float:
        return isinstance(data, int | float) and not isinstance(data, bool) and math.isfinite(data)
    if shape is int:
        return isinstance(data, int) and not isinstance(data, bool)
    if isinstance(shape, type):
        return isinstance(data, shape)
    return shape is None and data is None
