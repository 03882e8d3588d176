"""Sharing a terminal's height among blocks: what is kept small and what is dropped when there is no room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

__all__ = ["Block", "fit"]


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a view that can be drawn at several heights.

    Parameters
    ----------
    draw : callable
        Height in lines -> at most that many lines.
    steps : sequence of (int, int)
        (importance, height): the block wants to grow to `height` lines at this importance; lower numbers are
        served first.
    elastic : bool
        Whether a height between two steps is of use. A rigid block takes a step whole or not at all.
    """

    draw: Callable[[int], list[Text]]
    steps: Sequence[tuple[int, int]]
    elastic: bool = True


def fit(blocks: Sequence[Block], height: int, *, spacing: int | None = None) -> list[Text]:
    """Draw blocks under each other in at most `height` lines.

    Room is given out step by step in order of importance.

    Parameters
    ----------
    blocks : sequence of Block
        In the order in which they stand.
    height : int
        Lines there are.
    spacing : int, optional
        The importance of a blank line between any two blocks; by default there is none.

    Returns
    -------
    list of rich.text.Text
        The lines.

    Examples
    --------
    >>> def rows(n, word):
    ...     return [Text(word)] * n
    >>> blocks = [
    ...     Block(lambda h: rows(h, "a"), [(0, 1), (2, 9)]),
    ...     Block(lambda h: rows(h, "b"), [(1, 2)]),
    ... ]
    >>> [text.plain for text in fit(blocks, 5)]
    ['a', 'a', 'a', 'b', 'b']
    """
    heights = [0] * len(blocks)
    spaced = False
    order = sorted((step, i) for i, block in enumerate(blocks) for step in block.steps)
    for (importance, wanted), i in order:
        if spacing is not None and importance > spacing and not spaced:
            spaced = _used(heights, spaced=True) <= height
        more = wanted - heights[i]
        if more <= 0:
            continue
        opening = 1 if spaced and heights[i] == 0 else 0
        left = height - _used(heights, spaced=spaced) - opening
        if left >= more or (blocks[i].elastic and left > 0):
            heights[i] += min(more, left)
    if spacing is not None and not spaced:
        spaced = _used(heights, spaced=True) <= height
    drawn = [block.draw(h)[:h] for block, h in zip(blocks, heights, strict=True) if h > 0]
    result: list[Text] = []
    for lines in filter(None, drawn):
        if spaced and result:
            result.append(Text())
        result.extend(lines)
    return result


def _used(heights: Sequence[int], *, spaced: bool) -> int:
    gaps = max(0, sum(height > 0 for height in heights) - 1) if spaced else 0
    return sum(heights) + gaps
