"""Bars made of characters: intervals on a common axis, and progress."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """The range that a column of interval bars shares, in score units."""

    low: float
    high: float

    def cell(self, value: float, width: int) -> int:
        """Return the cell, from 0 to `width` - 1, in which `value` lies."""
        place = (value - self.low) / (self.high - self.low) * width
        return min(width - 1, max(0, int(place)))


def common_axis(values: Iterable[float | None]) -> Axis | None:
    """Return the smallest axis with round ends that holds all `values`; None when there are none.

    Examples
    --------
    >>> common_axis([0.31, 0.86, None])
    Axis(low=0.3, high=0.9)
    >>> common_axis([0.5])
    Axis(low=0.4, high=0.6)
    >>> common_axis([None]) is None
    True
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    low, high = min(known), max(known)
    if high - low < 1e-9 * max(1.0, abs(high)):
        pad = 0.1 * max(1.0, abs(high))
        low, high = low - pad, high + pad
    step = _round_step((high - low) / 8)
    return Axis(_clean(math.floor(low / step + 1e-9) * step), _clean(math.ceil(high / step - 1e-9) * step))


def interval_bar(axis: Axis, low: float | None, point: float | None, high: float | None, width: int) -> str:
    """Draw one interval on `axis`, `width` cells wide; blank where there is no point.

    Examples
    --------
    >>> interval_bar(Axis(0.0, 1.0), 0.2, 0.5, 0.8, 11)
    '  ├──●──┤  '
    >>> interval_bar(Axis(0.0, 1.0), None, 0.5, None, 11)
    '     ●     '
    """
    if point is None or not math.isfinite(point):
        return " " * width
    cells = [" "] * width
    middle = axis.cell(point, width)
    if low is not None and high is not None and math.isfinite(low) and math.isfinite(high):
        left, right = axis.cell(low, width), axis.cell(high, width)
        cells[left : right + 1] = "─" * (right + 1 - left)
        cells[left], cells[right] = "├", "┤"
    cells[middle] = "●"
    return "".join(cells)


def progress_bar(fraction: float, width: int) -> str:
    """Draw a fraction as filled cells; only a whole one fills the bar.

    Examples
    --------
    >>> progress_bar(0.5, 8), progress_bar(0.99, 8), progress_bar(1.0, 8), progress_bar(-3.0, 4)
    ('━━━━····', '━━━━━━━·', '━━━━━━━━', '····')
    """
    known = 0.0 if math.isnan(fraction) else min(1.0, max(0.0, fraction))
    filled = int(known * width + 1e-9)
    return "━" * filled + "·" * (width - filled)


def _round_step(rough: float) -> float:
    scale = 10.0 ** math.floor(math.log10(rough))
    return next(step * scale for step in _STEPS if step * scale >= rough * (1 - 1e-9))


def _clean(value: float) -> float:
    return float(f"{value:.10g}") + 0.0
