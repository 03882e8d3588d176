"""The evidence of contrasts at indices that are read but not folded yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Counts = NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A rule's statistics along a part of the trial sequence; arrays of shape (contrasts, indices).

    `statistic` is the running peak where the family counts peaks, and `sign` the sign of the difference at
    it; `tie` is the log e-value of a practical tie. `difference`, `variance`, `guarded` and `questions`
    are the estimates of the step itself.
    """

    statistic: Floats
    sign: NDArray[np.int8]
    tie: Floats
    difference: Floats
    variance: Floats
    guarded: Floats
    questions: Counts


_EMPTY: dict[str, tuple[type[np.generic], float]] = {
    "statistic": (np.float64, -np.inf),
    "sign": (np.int8, 0),
    "tie": (np.float64, -np.inf),
    "difference": (np.float64, 0.0),
    "variance": (np.float64, np.inf),
    "guarded": (np.float64, np.inf),
    "questions": (np.int32, 0),
}


class EvidenceWindow:
    """A sliding table (steps x contrasts) of :class:`Evidence`.

    Indices before :attr:`base` are dropped. A contrast that is read late, behind the base, keeps its peak; a
    tie there counts from the base on.
    """

    def __init__(self, contrasts: int) -> None:
        self.base = 0
        self._table: dict[str, NDArray[Any]] = {
            name: np.full((64, contrasts), empty, dtype=kind) for name, (kind, empty) in _EMPTY.items()
        }
        self._late_tie = np.full(contrasts, -np.inf)

    def write(self, rows: Ints, start: int, evidence: Evidence) -> None:
        """Store evidence of `rows` whose first column is step `start`."""
        stop = start + evidence.tie.shape[1]
        behind = max(min(self.base, stop) - start, 0)
        tie = evidence.tie[:, behind:]
        if behind:
            late = evidence.tie[:, :behind].max(axis=1)
            self._late_tie[rows] = np.maximum(self._late_tie[rows], late)
        if start + behind == stop:
            return
        if (self._late_tie[rows] > tie[:, 0]).any():
            tie = tie.copy()
            tie[:, 0] = np.maximum(tie[:, 0], self._late_tie[rows])
        self._late_tie[rows] = -np.inf
        self._reserve(stop - self.base)
        steps = slice(start + behind - self.base, stop - self.base)
        all_between = rows[-1] - rows[0] == rows.size - 1 and (np.diff(rows) == 1).all()
        contrasts = slice(int(rows[0]), int(rows[-1]) + 1) if all_between else rows  # three times as fast
        for name, table in self._table.items():
            values = tie if name == "tie" else getattr(evidence, name)[:, behind:]
            table[steps, contrasts] = values.T

    def read(self, rows: Ints, start: int, stop: int) -> tuple[Floats, Floats]:
        """Return statistic and evidence of a tie of `rows` at steps ``start .. stop-1``."""
        steps = slice(start - self.base, stop - self.base)
        return self._table["statistic"][steps, rows].T, self._table["tie"][steps, rows].T

    def at(self, row: int, step: int) -> Evidence:
        """Return the evidence of one contrast at one step, as arrays of shape (1, 1)."""
        place = step - self.base
        return Evidence(*(self._table[name][place : place + 1, row : row + 1] for name in _EMPTY))

    def forget(self, before: int) -> None:
        """Drop steps before `before`, in large pieces."""
        width = len(self._table["tie"])
        shift = before - self.base
        if shift < max(64, width // 2):
            return
        kept = max(width - shift, 0)
        for name, table in self._table.items():
            table[:kept] = table[shift:].copy()
            table[kept:] = _EMPTY[name][1]
        self.base = before

    def _reserve(self, width: int) -> None:
        have = len(self._table["tie"])
        if width <= have:
            return
        pad = ((0, width + width // 4 - have), (0, 0))
        for name, table in self._table.items():
            self._table[name] = np.pad(table, pad, constant_values=_EMPTY[name][1])
