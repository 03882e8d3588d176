"""Which rows and columns of a table say what an answer is worth, where several might."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.column_maps import COLUMNS, find
from adaptive_eval.interop.found import ReadingOptions, chosen_metric
from adaptive_eval.interop.headings import (
    Headings,
    holds_verdicts,
    listed,
    metric_column,
    outside,
    read_headings,
    verdict_of,
)
from adaptive_eval.tasks.rows import Row


def chosen_rows(
    path: Path, rows: Iterator[Mapping[str, Any]], choices: ReadingOptions
) -> tuple[str, str] | None:
    """Return the column that names the metric of each row, and the metric that is read; None without several.

    A table has several if an answer has rows of different ones.
    """
    first = next(rows, {})
    column = metric_column(first, choices.columns)
    if column is None:
        return None
    columns = {**read_headings([first], choices.columns, None, named=True).columns, **choices.columns}
    answer = [columns.get(ours, ours) for ours in ("model", "task", "question", "trial")]
    metric_of: dict[tuple[str, ...], str] = {}
    metrics: dict[str, bool] = {}
    has_several = False
    for row in chain([first], rows):
        metric = str(row.get(column))
        metrics[metric] = True
        has_several |= metric_of.setdefault(tuple(str(find(row, one)[1]) for one in answer), metric) != metric
    if not has_several:
        return None
    return column, chosen_metric(path, choices.metric, metrics)


def of_metric(
    rows: Iterable[Row | tuple[int, str]], only: tuple[str, str] | None
) -> Iterator[Row | tuple[int, str]]:
    """Yield the rows of one metric, if the column of metrics and one of them are given."""
    for row in rows:
        if only is None or not isinstance(row, Row) or str(row.values.get(only[0])) == only[1]:
            yield row


def require_plain_category(
    path: Path, rows: Sequence[Mapping[str, Any]], choices: ReadingOptions, found: Headings
) -> None:
    """Refuse a table whose column category may hold subjects by number: other columns say something else."""
    columns = {ours: found.columns.get(ours, ours) for ours in ("category", "task", "model", "question")}
    if columns["category"] not in rows[0]:
        return
    for ours in ("correct", "score"):
        other = found.columns.get(ours, ours)
        worth: dict[tuple[str, str], Any] = {}
        for row in rows:
            category, said = row.get(columns["category"]), verdict_of(row.get(other), choices.range)
            if category is None or said is None:
                continue
            if worth.setdefault((str(row.get(columns["task"])), str(category)), said) != said:
                raise OutcomesError(
                    f"{path}: {columns['category']!r} and {other!r} do not say the same of an answer; say "
                    f"which one does: --map category={columns['category']} or --map {ours}={other}",
                    code="outcomes/columns",
                )
    if columns["model"] in rows[0] or choices.model is not None:
        return
    known = {*COLUMNS, *found.columns.values()}
    models = [name for name in rows[0] if name not in known and holds_verdicts(rows, name, choices.range)]
    if len(models) > 1:
        raise OutcomesError(
            f"{path}: either {columns['category']!r} says what an answer is worth, and then --map "
            f"category={columns['category']} says so, or {listed(models)} are models, and then leave it out",
            code="outcomes/columns",
        )


def require_range(path: Path, rows: Sequence[Mapping[str, Any]], name: str) -> None:
    """Refuse scores of another range than 0 to 1 that is not given."""
    ends = outside(rows, name)
    if ends is not None:
        raise OutcomesError(
            f"{path}: the scores in {name!r} go from {ends[0]:g} to {ends[1]:g}, and a score is from 0 to 1. "
            "If they have another range, say it, such as --range 1,10 or --range 0,100"
        )
