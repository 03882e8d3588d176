"""Line charts as SVG, without a plotting package, and as PNG with matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._named import close_plot, plotting

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 170, 30, 45
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f")


def line_chart(
    title: str,
    x_label: str,
    y_label: str,
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    levels: Iterable[float] = (),
    falling: bool = False,
) -> str:
    """Return an SVG of named lines (x, y); NaN is left out, `levels` are dashed, `falling` puts 1 on top."""
    curves = {name: _finite(*xy) for name, xy in lines.items()}
    xs = np.concatenate([x for x, _ in curves.values()])
    ys = np.concatenate([*(y for _, y in curves.values()), np.fromiter(levels, dtype=np.float64)])
    x_ticks, y_ticks = _ticks(xs.min(), xs.max()), _ticks(ys.min(), ys.max())
    span = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def across(value: float) -> float:
        return float(_LEFT + span[0] * (value - x_ticks[0]) / (x_ticks[-1] - x_ticks[0]))

    def down(value: float) -> float:
        share = float((value - y_ticks[0]) / (y_ticks[-1] - y_ticks[0]))
        return _TOP + span[1] * (share if falling else 1.0 - share)

    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>',
        _text(_LEFT, 18, title, size=14),
        _text((_LEFT + right) / 2, _HEIGHT - 8, x_label, anchor="middle"),
        f'<g transform="rotate(-90 14 {(_TOP + bottom) / 2})">'
        f"{_text(14, (_TOP + bottom) / 2, y_label, anchor='middle')}</g>",
    ]
    for tick in x_ticks:
        parts.append(_line(across(tick), bottom, across(tick), bottom + 4))
        parts.append(_text(across(tick), bottom + 17, f"{tick:g}", anchor="middle"))
    for tick in y_ticks:
        parts.append(_line(_LEFT, down(tick), right, down(tick), "#dddddd"))
        parts.append(_text(_LEFT - 6, down(tick) + 4, f"{tick:g}", anchor="end"))
    parts += [_line(_LEFT, down(level), right, down(level), "#555555", dash=True) for level in levels]
    for number, (name, (x, y)) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{across(a):.1f},{down(b):.1f}" for a, b in zip(x, y, strict=True))
        dash = "" if number < len(_COLOURS) else ' stroke-dasharray="5 3"'
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        parts.append(_line(right + 10, _TOP + 16 * number + 6, right + 28, _TOP + 16 * number + 6, colour))
        parts.append(_text(right + 33, _TOP + 16 * number + 10, name))
    return "".join(parts) + "</svg>\n"


def save_png(
    path: Path,
    title: str,
    x_label: str,
    y_label: str,
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    levels: Iterable[float] = (),
    falling: bool = False,
) -> None:
    """Write the chart of :func:`line_chart` as PNG; needs matplotlib."""
    axes = plotting(None)
    for name, (x, y) in lines.items():
        axes.plot(*_finite(x, y), label=name)
    for level in levels:
        axes.axhline(level, color="#555555", linestyle="--")
    if falling:
        axes.invert_yaxis()
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.figure.savefig(path, dpi=150, bbox_inches="tight")
    close_plot(axes)


def _finite(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    xs, ys = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    known = np.isfinite(xs) & np.isfinite(ys)
    return xs[known], ys[known]


def _ticks(low: float, high: float) -> NDArray[np.float64]:
    """Return four to nine round numbers that span low to high."""
    raw = max(high - low, 1e-9) / 5.0
    unit = 10.0 ** np.floor(np.log10(raw))
    step = unit * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= raw)
    first, last = int(np.floor(low / step + 1e-9)), int(np.ceil(high / step - 1e-9))
    return np.asarray(np.round(np.arange(first, max(last, first + 1) + 1) * step, 10))


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#333333", dash: bool = False) -> str:
    dashes = ' stroke-dasharray="4 4"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashes}/>'


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
