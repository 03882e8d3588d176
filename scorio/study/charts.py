"""Line charts of the paper's page, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from scorio._arrays import floats
from scorio._named import close_plot, needed, plotting

_SAME_FILE: Mapping[str, Any] = {"svg.hashsalt": "scorio", "svg.fonttype": "none"}
"""Settings with which the same chart gives the same file."""


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Named lines (x, y); NaN is left out, `levels` are dashed, `falling` puts the lowest value on top."""

    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]]
    levels: Sequence[float] = ()
    falling: bool = False

    def save(self, *paths: Path) -> None:
        """Write the chart to files, in the format that the ending of each says; needs matplotlib."""
        axes = plotting(None)
        for number, (name, (x, y)) in enumerate(self.lines.items()):
            axes.plot(x, floats(y), label=name, linestyle="-" if number < 10 else "--")
        for level in self.levels:
            axes.axhline(level, color="#555555", linestyle=":")
        if self.falling:
            axes.invert_yaxis()
        axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        with needed("matplotlib", "save").rc_context(_SAME_FILE):
            for path in paths:
                date = {"Date": None} if path.suffix == ".svg" else {}
                axes.figure.savefig(path, dpi=150, bbox_inches="tight", metadata=date)
        close_plot(axes)
