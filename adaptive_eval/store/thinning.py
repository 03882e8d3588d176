"""Which snapshots are kept: all recent ones, then ever fewer; the first and the latest always."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

__all__ = ["KEEP_ALL", "expired_by", "spread"]

KEEP_ALL = 128
"""How many of the latest snapshots are all kept."""


def expired_by(newest: int) -> Iterator[int]:
    """Yield the numbers of the snapshots to delete when number `newest` (from 0) is stored.

    Snapshot s = 2^z · odd lives until number s + KEEP_ALL · 2^z is stored, and number 0 for ever. So among
    those of age a (in snapshots) every 2^z-th is kept with 2^z ≤ 2 a / KEEP_ALL: the spacing is below 2 % of
    the age, and n snapshots leave about KEEP_ALL · (1 + ½ log₂(n / KEEP_ALL)).

    Examples
    --------
    >>> list(expired_by(127)), list(expired_by(128)), list(expired_by(129)), list(expired_by(258))
    ([], [], [1], [2])
    """
    span = KEEP_ALL
    while newest > span:
        candidate = newest - span
        if candidate & -candidate == span // KEEP_ALL:
            yield candidate
        span *= 2


def spread(snapshots: Sequence[tuple[int, int]], most: int) -> list[int]:
    """Return which of these snapshots to look at where about `most` are enough.

    They are spread evenly over the square root of the trials, in which a run's intervals narrow; of several
    with the same trials the latest counts.

    Examples
    --------
    >>> spread([(number, 10 * number) for number in range(101)], 5)
    [0, 6, 25, 56, 100]
    """
    if len(snapshots) <= most:
        return [number for number, _ in snapshots]
    first, last = math.sqrt(snapshots[0][1]), math.sqrt(snapshots[-1][1])
    width = (last - first) / (most - 1) or 1.0
    nearest: dict[int, tuple[float, int]] = {}
    for number, trials in snapshots:
        place = (math.sqrt(trials) - first) / width
        slot = round(place)
        distance = abs(place - slot)
        if slot not in nearest or distance <= nearest[slot][0]:
            nearest[slot] = (distance, number)
    return sorted({snapshots[0][0], snapshots[-1][0], *(number for _, number in nearest.values())})
