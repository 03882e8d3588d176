"""Pairs of models: the open ones with their progress, a count of the decided ones, and a matrix of all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rich.cells import cell_len
from rich.text import Text

from adaptive_eval.core.results import PairResult
from adaptive_eval.views.bars import progress_bar
from adaptive_eval.views.labels import distinct_labels
from adaptive_eval.views.lines import GAP, GOOD, HEADING, TIED, Column, line, table
from adaptive_eval.views.numbers import decimals_for, fixed, interval, listing, percent, short, signed
from adaptive_eval.views.snapshot import OpenPair, RunView
from adaptive_eval.views.verdicts import (
    is_single,
    is_width,
    of_kind,
    pair_name,
    tie_words,
    tied_groups,
    verdict_words,
)

_PERCENT = 6
_OPEN = {"pair": "open pair", "threshold": "open model", "width": "open score"}
_PAIR_LEAST = 37
_NAME_LEAST, _NAME_MOST = 4, 24
_BAR_LEAST, _BAR_MOST = 6, 24
_MATRIX_MODELS = 3
_MATRIX_LABEL, _MATRIX_LABEL_MOST = 8, 24
_LEGEND = (
    "> separated, row ahead   < row behind   = tied   0-9 open: tenths of the evidence   blank: not asked"
)


def open_pairs(view: RunView, width: int, height: int) -> list[Text]:
    """Draw the open pairs, nearest to a verdict first.

    ``evidence`` is the log-evidence against the value at which a winner is called, ``tie`` how close the pair
    is to being called a tie, ``width`` how near an interval is to the width wanted.
    """
    return table(
        view.open_pairs,
        width,
        height,
        partial(_open_columns, width),
        lambda rest: f"{len(rest)} more open, further from a verdict",
    )


def tally(view: RunView, width: int) -> Text:
    """Return one line that counts the verdicts and names the tied models."""
    still_open, widths = f"{len(view.open_pairs)} open", of_kind(view.results, "width").pairs
    measured = sum(pair.verdict != "open" for pair in widths)
    if is_width(view.results):
        return line(("Models ", HEADING), (f"{measured} measured", GOOD), f"  {still_open}", width=width)
    ties = sum(pair.verdict == "tie" for pair in view.decided_pairs) - measured
    parts: list[str | tuple[str, str]] = [
        ("Models " if is_single(view.results) else "Pairs ", HEADING),
        (f"{len(view.decided_pairs) - ties - measured} separated", GOOD),
        "  ",
        (f"{ties} tied", TIED),
        *(("  ", (f"{measured} measured", GOOD)) if widths else ()),
        f"  {still_open}",
    ]
    names = distinct_labels([model.model for model in view.models], 16)
    groups = [" = ".join(names[model] for model in group) for group in tied_groups(view.results)]
    if groups:
        parts.append(f"   {listing(groups)} {tie_words(view.results.equivalence)}")
    return line(*parts, width=width)


def decided_pairs(view: RunView, width: int, height: int) -> list[Text]:
    """List the decided pairs with the step at which each verdict fell, the latest first."""
    pairs = sorted(view.decided_pairs, key=lambda pair: -(pair.decided_at or 0))
    cols = partial(_decided_columns, width)
    return table(pairs, width, height, cols, lambda rest: f"{len(rest)} decided before")


def _decided_columns(width: int, pairs: Sequence[PairResult]) -> list[Column]:
    decimals = decimals_for(pair.difference for pair in pairs)
    names = _names_of(pairs, max(4, min(24, (width - 44) // 2)))
    steps = ["" if pair.decided_at is None else f"{pair.decided_at:,}" for pair in pairs]
    return [
        Column("decided pair", [_relation(pair, names) for pair in pairs]),
        Column("difference", [signed(pair.difference, decimals) for pair in pairs], "right"),
        Column("verdict", [_verdict(pair) for pair in pairs]),
        Column("trials each", steps, "right"),
    ]


def matrix_height(view: RunView, width: int) -> int:
    """Return the lines that :func:`matrix` takes in `width` cells, 0 where it does not fit."""
    fits = len(view.models) >= _MATRIX_MODELS and _matrix_label(view, width) >= _MATRIX_LABEL
    return len(view.models) + 2 if fits else 0


def matrix(view: RunView, width: int) -> list[Text]:
    """Draw every pair as one character: rows and columns are the leaderboard's lines in its order."""
    if not matrix_height(view, width):
        return []
    models = [model.model for model in view.models]
    cell = _matrix_cell(view)
    names = distinct_labels(models, min(_MATRIX_LABEL_MOST, _matrix_label(view, width)))
    label = max(cell_len(name) for name in names.values())
    numbers = [f"{i:>{cell}}" for i in range(1, len(models) + 1)]
    lines = [line((f"{'pairs':<{cell + label}}", HEADING), *numbers)]
    marks = _marks(view)
    for number, row in zip(numbers, models, strict=True):
        name = names[row] + " " * (label - cell_len(names[row]))
        cells = (_mark("\\" if row == col else marks.get((row, col), " "), cell) for col in models)
        lines.append(line(f"{number[1:]} {name}", *cells))
    return [line(text, width=width) for text in [*lines, Text(_LEGEND)]]


def _matrix_cell(view: RunView) -> int:
    return len(str(len(view.models))) + 1


def _matrix_label(view: RunView, width: int) -> int:
    return width - (len(view.models) + 1) * _matrix_cell(view)


def _open_columns(width: int, rows: Sequence[OpenPair]) -> list[Column]:
    decimals = decimals_for(
        value for row in rows for value in (row.pair.difference, row.pair.low, row.pair.high)
    )
    kinds = {row.pair.kind for row in rows}
    heading = _OPEN[kinds.pop()] if len(kinds) == 1 else "open"
    widths = [row.pair.kind == "width" for row in rows]
    differences = Column(
        "score" if all(widths) else "difference",
        [
            fixed(row.pair.difference, decimals) if all(widths) else signed(row.pair.difference, decimals)
            for row in rows
        ],
        "right",
    )
    bounds = Column(
        "interval",
        [interval(row.pair.low, row.pair.high, decimals, sign=not all(widths)) for row in rows],
        "right",
    )
    steps = Column("trials each", [short(row.pair.trials) for row in rows], "right")
    has_tie = all(widths) or any(row.tie is not None for row in rows)
    wanted = max(cell_len(heading), *(_width_of(row.pair, _NAME_MOST) for row in rows))
    bars = has_tie + (not all(widths))
    spare = width - (differences.width + GAP) - bars * (GAP + _PERCENT + _BAR_LEAST)
    least = min(wanted, _PAIR_LEAST, max(cell_len(heading), spare))
    spare -= least
    extra = []
    for column in (bounds, steps):
        if spare >= column.width + GAP:
            spare -= column.width + GAP
            extra.append(column)
    pair_width = least + max(0, min(spare, wanted - least))
    spare -= pair_width - least
    bar = min(_BAR_MOST, _BAR_LEAST + max(0, spare) // bars)
    names = _fitting_names([row.pair for row in rows], pair_width)
    cols = [
        Column(heading, [_relation(row.pair, names) for row in rows]),
        differences,
        *(column for column in extra if column is bounds),
    ]
    if not all(widths):
        evidence = [None if width else row.progress for row, width in zip(rows, widths, strict=True)]
        cols.append(Column("evidence", [_progress(value, bar) for value in evidence]))
    if has_tie:
        title = "width" if all(widths) else "tie or width" if any(widths) else "tie"
        cols.append(Column(title, [_progress(row.tie, bar) for row in rows]))
    return cols + [column for column in extra if column is steps]


def _progress(fraction: float | None, bar: int) -> str:
    if fraction is None:
        return ""
    return f"{progress_bar(fraction, bar)} {percent(fraction):>5}"


def _relation(pair: PairResult, names: dict[str, str]) -> str:
    if pair.kind == "width":
        return pair_name(pair, names)
    sign = {"better": ">", "worse": "<", "tie": "=", "open": "?"}[pair.verdict]
    return f"{names[pair.first]} {sign} {names[pair.second]}"


def _verdict(pair: PairResult) -> Text:
    words = verdict_words(pair.verdict, kind=pair.kind)
    return Text(words, style=TIED if words == "tied" else GOOD)


def _names_of(pairs: Sequence[PairResult], width: int) -> dict[str, str]:
    models = dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second))
    return dict(distinct_labels(models, width))


def _fitting_names(pairs: Sequence[PairResult], width: int) -> dict[str, str]:
    """Return the longest names with which every pair fits: a short one leaves its room to the other."""
    for most in range(_NAME_MOST, _NAME_LEAST, -1):
        names = _names_of(pairs, most)
        if all(cell_len(_relation(pair, names)) <= width for pair in pairs):
            return names
    return _names_of(pairs, _NAME_LEAST)


def _width_of(pair: PairResult, most: int) -> int:
    names = _names_of([pair], most)
    return Text(_relation(pair, names)).cell_len


def _marks(view: RunView) -> dict[tuple[str, str], str]:
    marks: dict[tuple[str, str], str] = {}
    for pair in view.decided_pairs:
        tie = pair.verdict == "tie"
        marks[pair.first, pair.second] = "=" if tie else ">"
        marks[pair.second, pair.first] = "=" if tie else "<"
    for row in view.open_pairs:
        tenths = str(min(9, int(row.progress * 10)))
        marks[row.pair.first, row.pair.second] = marks[row.pair.second, row.pair.first] = tenths
    return marks


def _mark(mark: str, width: int) -> tuple[str, str]:
    return mark.rjust(width), GOOD if mark in "<>" else TIED if mark == "=" else ""
