"""Results as text, as an HTML table for notebooks, as a plot, and as columns and data frames."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from itertools import chain
from typing import Any

from adaptive_eval.errors import library

_LONGEST = 60
"""Characters of a model's name that a table shows."""


class ResultsTable:
    """Mixin of results: a short table of the models as text, as HTML and as a plot."""

    __slots__ = ()

    models: tuple[Any, ...]
    pairs: tuple[Any, ...]
    trials: int
    confidence: float

    def __repr__(self) -> str:
        """Return the table as text."""
        rows = [_head(self.confidence), *map(_cells, self._ordered())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
            cells[1] = row[1].ljust(widths[1])
            lines.append("  ".join(cells))
        return "\n".join([*lines, self._counts()])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Return the table for a notebook, with the intervals drawn on one axis."""
        low, high = self._axis()
        heads = _tagged("th", (*_head(self.confidence), f"{low:.2f} to {high:.2f}"))
        rows = ""
        for line in self._ordered():
            rows += f"<tr>{_tagged('td', _cells(line))}<td>{_bar(line, low, high)}</td></tr>"
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return f"{table}<p>{escape(self._counts())}</p>"

    def plot(self, axes: Any = None) -> Any:
        """Draw scores with their intervals, the best on top.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw. Default: new ones.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        UsageError
            If matplotlib is not installed.
        """
        if axes is None:
            axes = library("matplotlib.pyplot", "plot", "matplotlib").subplots()[1]
        known = [line for line in self._ordered() if line.score is not None]
        scores = [line.score for line in known]
        reach = [(line.score - line.score_low, line.score_high - line.score) for line in known]
        errors = list(zip(*reach, strict=True))
        axes.errorbar(scores, range(len(known)), xerr=errors, fmt="o", capsize=3)
        axes.set_yticks(range(len(known)), [line.model[:_LONGEST] for line in known])
        axes.invert_yaxis()
        axes.set_xlabel(f"score, with {100 * self.confidence:g} % anytime interval")
        return axes

    def _ordered(self) -> Sequence[Any]:
        return sorted(self.models, key=lambda line: line.rank)

    def _counts(self) -> str:
        still_open = sum(pair.verdict == "open" and pair.needed for pair in self.pairs)
        decided = sum(pair.verdict != "open" for pair in self.pairs)
        rest = ""
        if still_open:
            rest = f", {still_open:,} open"
        return f"{self.trials:,} trials; {decided:,} of {len(self.pairs):,} comparisons decided" + rest

    def _axis(self) -> tuple[float, float]:
        ends = [
            end for line in self.models for end in (line.score_low, line.score_high) if end is not None
        ] or [0.0, 1.0]
        return min(ends), max(*ends, min(ends) + 1e-9)


def _head(confidence: float) -> tuple[str, ...]:
    return ("rank", "model", "score", f"{100 * confidence:g} % interval", "trials", "missing")


def _tagged(tag: str, cells: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)


def _cells(line: Any) -> tuple[str, ...]:
    rank = f"{line.rank_low}"
    score = "–"
    interval = "–"
    missing = f"{line.missing:,}"
    if line.rank_low != line.rank_high:
        rank += f"–{line.rank_high}"
    if line.score is not None:
        score = f"{line.score:.3f}"
        interval = f"[{line.score_low:.3f}, {line.score_high:.3f}]"
    if line.copies:
        missing += f" ({line.copies:,} copies)"
    name = ""
    for letter in line.model[:_LONGEST]:
        if letter.isprintable():
            name += letter
        else:
            name += "�"
    return rank, name, score, interval, f"{line.trials:,}", missing


def _bar(line: Any, low: float, high: float) -> str:
    if line.score is None:
        return ""
    left, middle, right = (
        f"{(end - low) / (high - low):.1%}" for end in (line.score_low, line.score, line.score_high)
    )
    return (  # pages of docs scale an image to its column unless its style says how wide it is
        '<svg style="width:10em;max-width:none;height:1em;overflow:visible" role="img" aria-label="interval">'
        f'<line x1="{left}" x2="{right}" y1="50%" y2="50%" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{middle}" cy="50%" r="4" fill="currentColor"/></svg>'
    )


Columns = dict[str, list[Any]]


def columns_of(rows: Iterable[Any]) -> Columns:
    """Return dataclass objects of one kind as columns, one field a column.

    A field that holds a mapping becomes one column for each of its keys, ``field.key``, None if an object
    lacks it.

    Examples
    --------
    >>> from adaptive_eval.core.results import StopVerdict
    >>> columns_of([StopVerdict("resolved", "goal reached")])
    {'reason': ['resolved'], 'text': ['goal reached']}
    """
    flat = list(map(_flat, rows))
    columns: Columns = {}
    for name in dict.fromkeys(chain.from_iterable(flat)):
        columns[name] = [row.get(name) for row in flat]
    return columns


def frame_of(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return columns as a ``pandas.DataFrame``."""
    return library("pandas", "to_frame (unlike to_columns)", "pandas").DataFrame(dict(columns))


def _flat(row: Any) -> dict[str, Any]:
    if not is_dataclass(row):
        raise TypeError(f"rows must be dataclass objects, got {row!r}")
    found: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if is_dataclass(value):
            value = _flat(value)
        if isinstance(value, Mapping):
            found |= {f"{field.name}.{key}": one for key, one in value.items()}
        else:
            found[field.name] = value
    return found
