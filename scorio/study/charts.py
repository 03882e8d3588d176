"""Line charts as SVG text, without a library, or as PNG with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._named import close_plot, plotting

Floats = NDArray[np.float64]

_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 470, 30, 355
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f")


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Named lines (x, y); NaN is left out, `levels` are dashed, `falling` puts the lowest value on top."""

    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]]
    levels: Sequence[float] = ()
    falling: bool = False

    def svg(self) -> str:
        """Return the chart as SVG text, made without a library."""
        curves = {name: _finite(*xy) for name, xy in self.lines.items()}
        xs = np.concatenate([x for x, _ in curves.values()])
        ys = np.concatenate([*(y for _, y in curves.values()), self.levels])
        x_ticks, y_ticks = _ticks(xs.min(), xs.max()), _ticks(ys.min(), ys.max())
        ends = (_TOP, _BOTTOM) if self.falling else (_BOTTOM, _TOP)

        def across(values: Sequence[float] | Floats) -> Floats:
            return np.interp(values, x_ticks[[0, -1]], (_LEFT, _RIGHT))

        def up(values: Sequence[float] | Floats) -> Floats:
            return np.interp(values, y_ticks[[0, -1]], ends)

        middle = (_TOP + _BOTTOM) / 2
        parts = [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400" font-family="sans-serif" '
            'font-size="12"><rect width="100%" height="100%" fill="white"/>',
            _text(_LEFT, 18, self.title, style='font-size="14"'),
            _text((_LEFT + _RIGHT) / 2, 392, self.x_label, "middle"),
            _text(14, middle, self.y_label, "middle", f'transform="rotate(-90 14 {middle})"'),
        ]
        for tick, x in zip(x_ticks, across(x_ticks), strict=True):
            parts += [_line(x, _BOTTOM, x, _BOTTOM + 4), _text(x, _BOTTOM + 17, f"{tick:g}", "middle")]
        for tick, y in zip(y_ticks, up(y_ticks), strict=True):
            parts += [_line(_LEFT, y, _RIGHT, y, "#dddddd"), _text(_LEFT - 6, y + 4, f"{tick:g}", "end")]
        for y in up(np.asarray(self.levels)):
            parts.append(_line(_LEFT, y, _RIGHT, y, "#555555", "4 4"))
        for number, (name, (xs, ys)) in enumerate(curves.items()):
            colour = _COLOURS[number % len(_COLOURS)]
            dash = "none" if number < len(_COLOURS) else "5 3"
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across(xs), up(ys), strict=True))
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6" '
                f'stroke-dasharray="{dash}"/>'
            )
            y = _TOP + 16 * number + 6
            parts += [_line(_RIGHT + 10, y, _RIGHT + 28, y, colour, dash), _text(_RIGHT + 33, y + 4, name)]
        return "".join(parts) + "</svg>\n"

    def save_png(self, path: Path) -> None:
        """Write the chart as PNG; needs matplotlib."""
        axes = plotting(None)
        for name, (x, y) in self.lines.items():
            axes.plot(*_finite(x, y), label=name)
        for level in self.levels:
            axes.axhline(level, color="#555555", linestyle="--")
        if self.falling:
            axes.invert_yaxis()
        axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        axes.figure.savefig(path, dpi=150, bbox_inches="tight")
        close_plot(axes)


def _finite(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    xs, ys = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    known = np.isfinite(xs) & np.isfinite(ys)
    return xs[known], ys[known]


def _ticks(low: float, high: float) -> Floats:
    """Return four to nine round numbers that span low to high."""
    raw = max(high - low, 1e-9) / 5.0
    unit = 10.0 ** np.floor(np.log10(raw))
    step = unit * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= raw)
    first, last = int(np.floor(low / step + 1e-9)), int(np.ceil(high / step - 1e-9))
    return np.asarray(np.round(np.arange(first, max(last, first + 1) + 1) * step, 10))


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#333333", dash: str = "none") -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-dasharray="{dash}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {style}>{escape(text)}</text>'
