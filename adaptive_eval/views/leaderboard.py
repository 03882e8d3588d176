"""The leaderboard: rank interval, score with its anytime interval on a common axis, trials, cost, state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rich.cells import cell_len
from rich.text import Text

from adaptive_eval.core.results import ModelResult
from adaptive_eval.views.bars import Axis, common_axis, interval_bar
from adaptive_eval.views.labels import distinct_labels
from adaptive_eval.views.lines import BAD, GAP, GOOD, HEADING, Column, table
from adaptive_eval.views.missing import often_without_answer
from adaptive_eval.views.numbers import (
    decimals_for,
    fixed,
    interval,
    listing,
    short,
    usd,
)
from adaptive_eval.views.phrases import bayes_words
from adaptive_eval.views.ranks import standings
from adaptive_eval.views.snapshot import RunView
from adaptive_eval.views.verdicts import state_word

_LABEL_LEAST, _LABEL_MOST = 18, 48
_BAR_LEAST, _BAR_GOOD, _BAR_MOST = 14, 28, 60


@dataclass(frozen=True, slots=True)
class _Optional:
    """A column that is shown where there is room.

    `place` says after which fixed column it is shown, `bar` how wide the interval bars should be before it is
    shown.
    """

    column: Column
    place: int
    bar: int = _BAR_LEAST


def leaderboard(view: RunView, width: int, height: int, *, bayes: bool = False) -> list[Text]:
    """Draw the leaderboard.

    Columns are dropped from the least needed on as `width` shrinks (rank, model, score, trials and state
    stay), rows from the lowest rank on as `height` does; the last line then says what is missing.
    """
    cols = partial(_columns, view, width, bayes)
    return table(view.models, width, height, cols, partial(_below_words, view))


def _columns(view: RunView, width: int, bayes: bool, rows: Sequence[ModelResult]) -> list[Column]:
    decimals = decimals_for(value for row in view.models for value in (row.low, row.score, row.high))
    running = view.state == "running"
    standing = standings(view.results)
    places = [standing.of[row.model] for row in rows]
    rank = Column(standing.head, places, "right" if standing.ranked else "left")
    score = Column("score", [Text(fixed(row.score, decimals), style=HEADING) for row in rows], "right")
    trials = Column("trials", [_trials(row.trials) for row in rows], "right")
    state = Column("state", [_state(state_word(row, view.results, running=running)) for row in rows])
    shown = [row.model for row in rows]
    wanted = max(
        cell_len("model"), *(cell_len(name) for name in distinct_labels(shown, _LABEL_MOST).values())
    )
    least = min(wanted, _LABEL_LEAST)
    spare = width - sum(col.width + GAP for col in (rank, score, trials, state)) - least
    axis = common_axis(value for row in view.models for value in (row.low, row.score, row.high))
    if spare < _BAR_LEAST + GAP:
        axis = None
    spare -= _BAR_LEAST + GAP if axis is not None else 0
    extra: list[_Optional] = []
    for optional in _optional(rows, decimals, bayes):
        if spare >= optional.column.width + GAP + optional.bar - _BAR_LEAST:
            spare -= optional.column.width + GAP
            extra.append(optional)
    label = max(4, min(wanted, least + spare))
    names = distinct_labels(shown, label)
    cols = [rank, Column("model", [names[row.model] for row in rows]), score, *_at(extra, 0)]
    if axis is not None:
        cols.append(_bar_column(axis, rows, min(_BAR_MOST, _BAR_LEAST + least + spare - label), decimals))
    return [*cols, *_at(extra, 1), trials, *_at(extra, 2), state]


def _optional(rows: Sequence[ModelResult], decimals: int, bayes: bool) -> list[_Optional]:
    """Return the columns beyond the fixed ones, most needed first."""
    tokens = [short(row.prompt_tokens + row.completion_tokens) for row in rows]
    found = [_Optional(Column("tokens", tokens, "right"), 2)]
    if any(row.missing for row in rows):
        found.append(_Optional(Column("missing", [str(row.missing) for row in rows], "right"), 2))
    if often_without_answer(rows):
        empty = [str(row.no_answer) for row in rows]
        found.insert(0, _Optional(Column("no answer", empty, "right"), 2))
    if bayes:
        found.insert(
            0, _Optional(Column("Bayes@N", [bayes_words(row, decimals) for row in rows], "right"), 1)
        )
    if any(row.low is not None for row in rows):
        intervals = [interval(row.low, row.high, decimals) for row in rows]
        found.append(_Optional(Column("interval", intervals, "right"), 0, _BAR_GOOD))
    if any(row.usd is not None for row in rows):
        found.append(_Optional(Column("cost", [usd(row.usd) for row in rows], "right"), 2, _BAR_GOOD))
    return found


def _bar_column(axis: Axis, rows: Sequence[ModelResult], width: int, decimals: int) -> Column:
    low, high = fixed(axis.low, max(1, decimals - 1)), fixed(axis.high, max(1, decimals - 1))
    header = low + " " * max(1, width - len(low) - len(high)) + high
    return Column(header, [interval_bar(axis, row.low, row.score, row.high, width) for row in rows])


def _at(extra: Sequence[_Optional], place: int) -> list[Column]:
    return [optional.column for optional in extra if optional.place == place]


def _trials(n: int) -> str:
    return f"{n:,}" if n < 1_000_000 else short(n)


def _state(word: str) -> Text:
    return Text(word, style={"stopped": BAD, "active": GOOD}.get(word, ""))


def _below_words(view: RunView, rest: Sequence[ModelResult]) -> str:
    running = view.state == "running"
    counts = Counter(state_word(row, view.results, running=running) for row in rest)
    return f"{len(rest)} more below ({listing([f'{n} {state}' for state, n in counts.items()])})"
