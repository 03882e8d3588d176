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
    return text if plain and len(packed) >= len(data) else packed


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


def unpack_optional(value: Packed | None) -> str | None:
    """Return ``unpack(value)``, or None for None."""
    return value if value is None or isinstance(value, str) else unpack(value)


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
    return json.loads(unpack(value), parse_int=_bounded)


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
