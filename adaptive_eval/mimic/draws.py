"""Random numbers that are hashes: the same words give the same numbers in every process and order."""

from __future__ import annotations

import math
import struct
from hashlib import blake2b
from typing import NamedTuple

_DIGEST = 40
_UNPACK = struct.Struct("<5Q").unpack
_UNIT = 2.0**-53


class Toss(NamedTuple):
    """The random draws of one hash."""

    # independent uniform numbers in [0, 1)
    coin: float
    pick: float
    # independent standard normal numbers (Box and Muller 1958)
    normal: float
    other_normal: float
    tail: int  # 64 further random bits


class Stream:
    """Tosses named by words, such as (seed, model, prompt), and then by a number or word each.

    Examples
    --------
    >>> Stream(7, "model", "prompt").toss(3) == Stream(7, "model", "prompt").toss(3)
    True
    >>> Stream("ab", "c").toss(0) == Stream("a", "bc").toss(0)
    False
    """

    __slots__ = ("_hash",)

    def __init__(self, *words: object) -> None:
        self._hash = blake2b(digest_size=_DIGEST)
        for word in words:
            data = str(word).encode("utf-8", "surrogatepass")
            self._hash.update(b"%d:" % len(data) + data)

    def toss(self, word: object) -> Toss:
        """Return the toss that `word` names in this stream."""
        hasher = self._hash.copy()
        hasher.update(str(word).encode("utf-8", "surrogatepass"))
        coin, pick, radius, angle, tail = _UNPACK(hasher.digest())
        # 1 - u is in (0, 1], where the logarithm is finite.
        length = math.sqrt(-2.0 * math.log(1.0 - (radius >> 11) * _UNIT))
        turn = math.tau * ((angle >> 11) * _UNIT)
        return Toss(
            (coin >> 11) * _UNIT,
            (pick >> 11) * _UNIT,
            length * math.cos(turn),
            length * math.sin(turn),
            tail,
        )


def seeded_integer(*words: object) -> int:
    """Return 64 bits hashed from `words`, to seed a generator.

    Examples
    --------
    >>> seeded_integer(7, "a") == seeded_integer(7, "a") != seeded_integer(8, "a")
    True
    """
    return Stream(*words).toss("").tail
