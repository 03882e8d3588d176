"""The live view of a run, laid out for the terminal it is drawn on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rich.text import Text

from adaptive_eval.views import pairs, panels
from adaptive_eval.views.leaderboard import leaderboard
from adaptive_eval.views.lines import HEADING, Drawn, line, side_by_side
from adaptive_eval.views.snapshot import RunView


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a view that can be drawn at several heights."""

    draw: Callable[[int], list[Text]]  # height in lines -> at most that many lines
    # (importance, height): the block wants to grow to `height` lines at this importance; lower numbers are
    # served first
    steps: Sequence[tuple[int, int]]
    # whether a height between two steps is of use. A rigid block takes a step whole or not at all.
    elastic: bool = True


def fit(blocks: Sequence[Block], height: int, *, spacing: int | None = None) -> list[Text]:
    """Draw blocks under each other in at most `height` lines.

    Room is given out step by step in order of importance.

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


COMPACT_HEIGHT = 16
"""Lines that the compact view takes at most."""

_TWO_COLUMNS = 150
_GAP = 3
_CURSOR = 1  # the line below a view redrawn in place, which would scroll its first line away
_SPACING = 14
_DECISION_STEPS = ((12, 4), (13, 9), (16, 10_000))


def run_display(view: RunView, *, compact: bool = False, bayes: bool = False) -> Drawn:
    """Return a run drawn to fit the console."""
    most = COMPACT_HEIGHT if compact else 10_000
    return Drawn(lambda width, height: draw(view, width, min(max(1, height - _CURSOR), most), bayes=bayes))


def draw(view: RunView, width: int, height: int, *, bayes: bool = False) -> list[Text]:
    """Draw a run in a given room."""
    if width < _TWO_COLUMNS or not view.models:
        return fit(
            [*_top(view, width), *_middle(view, width, bayes), *_bottom(view, width)],
            height,
            spacing=_SPACING,
        )
    top = fit(_top(view, width), 4)
    left_width = width * 11 // 20
    right_width = width - left_width - _GAP
    body = height - len(top) - 1
    left = fit([_board(view, left_width, bayes), _matrix(view, left_width)], body, spacing=_SPACING)
    right = fit([_open(view, right_width), *_right(view, right_width)], body, spacing=_SPACING)
    return [*top, Text(), *side_by_side(left, right, left_width, _GAP)][:height]


def _top(view: RunView, width: int) -> list[Block]:
    return [
        Block(lambda _: [panels.title_line(view, width)], [(0, 1)]),
        Block(partial(panels.verdict_lines, view, width), [(1, 1), (5, 2)]),
        Block(
            lambda _: [panels.settings_line(view, width)] if view.goal else [], [(10, 1 if view.goal else 0)]
        ),
    ]


def _middle(view: RunView, width: int, bayes: bool) -> list[Block]:
    return [
        _board(view, width, bayes),
        _open(view, width),
        _tally(view, width),
        _outlook(view, width),
    ]


def _bottom(view: RunView, width: int) -> list[Block]:
    return [
        _budgets(view, width),
        _errors(view, width),
        _warnings(view, width),
        _decisions(view, width),
        _endpoints(view, width),
    ]


def _right(view: RunView, width: int) -> list[Block]:
    decided = len(view.decided_pairs)
    return [
        _tally(view, width),
        _outlook(view, width),
        Block(
            partial(pairs.decided_pairs, view, width),
            [(13, min(9, 1 + decided) if decided else 0), (18, 1 + decided if decided else 0)],
        ),
        *_bottom(view, width),
    ]


def _board(view: RunView, width: int, bayes: bool) -> Block:
    rows = len(view.models) + 1 if view.models else 0
    return Block(partial(leaderboard, view, width, bayes=bayes), [(2, min(6, rows)), (9, rows)])


def _open(view: RunView, width: int) -> Block:
    rows = len(view.open_pairs) + 1 if view.open_pairs else 0
    steps = [(3, min(3, rows)), (8, min(4, rows)), (11, min(7, rows)), (15, rows)]
    return Block(partial(pairs.open_pairs, view, width), steps)


def _tally(view: RunView, width: int) -> Block:
    return Block(lambda _: [pairs.tally(view, width)], [(4, 1 if view.results.pairs else 0)])


def _matrix(view: RunView, width: int) -> Block:
    height = pairs.matrix_height(view, width)
    return Block(lambda _: pairs.matrix(view, width), [(12, height)], elastic=False)


def _outlook(view: RunView, width: int) -> Block:
    known = view.outlook is not None
    steps = [(5, 1), (12, len(panels.outlook_lines(view, width, 4)))] if known else [(5, 0)]
    return Block(partial(panels.outlook_lines, view, width), steps)


def _budgets(view: RunView, width: int) -> Block:
    rows = len(view.budgets) + 1 if view.budgets else 1

    def drawn(height: int) -> list[Text]:
        if height < rows or rows == 1:
            return [panels.budget_summary(view, width)]
        return panels.budget_lines(view, width, height)

    return Block(drawn, [(5, 1), (12, rows)], elastic=False)


def _errors(view: RunView, width: int) -> Block:
    """Return the one line that replaces the table of endpoints where there is no room for it."""
    text = panels.endpoint_errors(view, width)
    return Block(lambda _: [text] if text is not None else [], [(6, 0 if text is None else 1)])


def _warnings(view: RunView, width: int) -> Block:
    n = len(view.warnings)
    return Block(partial(panels.warning_lines, view, width), [(6, min(1, n)), (11, min(4, n)), (17, n)])


def _decisions(view: RunView, width: int) -> Block:
    n = len(view.decisions)
    head = line((" trials  decisions, latest first", HEADING), width=width)

    def drawn(height: int) -> list[Text]:
        if height < 3:
            return panels.decision_lines(view, width, height)
        return [head, *panels.decision_lines(view, width, height - 1)]

    return Block(
        drawn, [(7, min(1, n)), *((step, min(most, n + 1)) for step, most in _DECISION_STEPS if n > 1)]
    )


def _endpoints(view: RunView, width: int) -> Block:
    n = len(view.endpoints) if view.state == "running" else 0
    return Block(partial(panels.endpoint_lines, view, width), [(15, n + 1 if n else 0)], elastic=False)
