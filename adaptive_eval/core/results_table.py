"""Results as text, as an HTML table for notebooks, and as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from adaptive_eval.library import library

_WIDTH = 160
"""Pixels of an interval in a notebook."""

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
        lines = [
            "  ".join(
                cell.ljust(width) if place == 1 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([*lines, self._counts()])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Return the table for a notebook, with the intervals drawn on one axis."""
        low, high = self._axis()
        heads = "".join(
            f"<th>{escape(head)}</th>" for head in (*_head(self.confidence), f"{low:.2f} to {high:.2f}")
        )
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(line))
            + f"<td>{_bar(line, low, high)}</td></tr>"
            for line in self._ordered()
        )
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
        axes.errorbar(
            scores,
            range(len(known)),
            xerr=[
                [line.score - line.low for line in known],
                [line.high - line.score for line in known],
            ],
            fmt="o",
            capsize=3,
        )
        axes.set_yticks(range(len(known)), [line.model[:_LONGEST] for line in known])
        axes.invert_yaxis()
        axes.set_xlabel(f"score, with {100 * self.confidence:g} % anytime interval")
        return axes

    def _ordered(self) -> Sequence[Any]:
        return sorted(self.models, key=lambda line: line.rank)

    def _counts(self) -> str:
        still_open = sum(pair.verdict == "open" and pair.needed for pair in self.pairs)
        decided = sum(pair.verdict != "open" for pair in self.pairs)
        return f"{self.trials:,} trials; {decided:,} of {len(self.pairs):,} comparisons decided" + (
            f", {still_open:,} open" if still_open else ""
        )

    def _axis(self) -> tuple[float, float]:
        ends = [end for line in self.models for end in (line.low, line.high) if end is not None] or [0.0, 1.0]
        return min(ends), max(*ends, min(ends) + 1e-9)


def _head(confidence: float) -> tuple[str, ...]:
    return ("rank", "model", "score", f"{100 * confidence:g} % interval", "trials", "missing")


def _cells(line: Any) -> tuple[str, ...]:
    same = line.rank_low == line.rank_high
    known = line.score is not None
    return (
        f"{line.rank_low}" if same else f"{line.rank_low}–{line.rank_high}",
        "".join(one if one.isprintable() else "�" for one in line.model[:_LONGEST]),
        f"{line.score:.3f}" if known else "–",
        f"[{line.low:.3f}, {line.high:.3f}]" if known else "–",
        f"{line.trials:,}",
        f"{line.missing:,}" + (f" ({line.copies:,} copies)" if line.copies else ""),
    )


def _bar(line: Any, low: float, high: float) -> str:
    if line.score is None:
        return ""
    left, middle, right = (
        (_WIDTH - 10) * (end - low) / (high - low) + 5 for end in (line.low, line.score, line.high)
    )
    return (
        # In style too, since pages of docs scale every image to its column.
        f'<svg viewBox="0 0 {_WIDTH} 12" style="width:{_WIDTH}px;max-width:none;height:12px" role="img" '
        'aria-label="interval">'
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="6" y2="6" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{middle:.1f}" cy="6" r="4" fill="currentColor"/></svg>'
    )
