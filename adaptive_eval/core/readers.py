"""Readers: the estimates of all contrasts of a session on one task, for every kind of contrast."""

from __future__ import annotations

from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.goals import Goal
from adaptive_eval.core.spec import SessionSpec
from scorio.sequential.cells import Cells, PathBlock
from scorio.sequential.contrasts import ContrastBlock, Target, score_block
from scorio.sequential.fold import Levels
from scorio.sequential.pairs import ClusterSums, PairReader
from scorio.sequential.reference import ReferenceReader

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Spread = tuple[NDArray[np.float64], NDArray[np.float64]]


class ContrastReader(Protocol):
    """Reads contrasts on one task along the trial sequence."""

    def read(self, rows: Ints, stop: int) -> ContrastBlock:
        """Read contrasts at equal progress, up to index `stop` of the task's trial sequence."""


def contrast_reader(
    spec: SessionSpec,
    cells: Cells,
    task: int,
    goal: Goal,
    margin: float | None,
    levels: Levels,
) -> ContrastReader:
    """Return the reader of all contrasts of a session on one task, called at these levels."""
    target, clusters = spec.stopping.target, spec.tasks[task].clusters
    asked, first, second = len(spec.models), goal.first, goal.second
    single = goal.single
    stored = ~single & ((first >= asked) | (second >= asked))
    pairs = ~single & ~stored
    parts: list[tuple[Bools, ContrastReader]] = []
    if pairs.any():
        pair_reader = PairReader(cells, first[pairs], second[pairs], target, clusters, margin, levels.guard)
        parts.append((pairs, pair_reader))
    if stored.any():
        live, reference = np.minimum(first, second)[stored], np.maximum(first, second)[stored]
        sign = np.where(first[stored] < asked, 1, -1)
        reader = ReferenceReader(cells, live, reference, sign, target, clusters, margin, levels.guard)
        parts.append((stored, reader))
    if single.any():
        values, guard = goal.value[single], levels.tie(0)  # their winners are called by bets
        score_reader = _ScoreReader(cells, first[single], values, target, margin, clusters, guard)
        parts.append((single, score_reader))
    return parts[0][1] if len(parts) == 1 else _SideBySide(parts)


class _ScoreReader:
    """Reads models' own scores minus the number that each is compared with."""

    def __init__(
        self,
        cells: Cells,
        models: Ints,
        values: NDArray[np.float64],
        target: Target,
        margin: float | None,
        clusters: tuple[str, ...] | None,
        guard: float,
    ) -> None:
        self._cells = cells
        self._guard = guard
        self._models = models
        self._clusters: ClusterSums | None = None
        if clusters is not None:
            self._clusters = ClusterSums(np.array(clusters), len(clusters), models.size, centred=True)
        self._values = values
        self._target: Target = target
        self._margin = margin
        self._progress = np.zeros(models.size, dtype=np.int64)

    def read(self, rows: Ints, stop: int) -> ContrastBlock:
        """Read scores at equal progress, up to index `stop` of the task's trial sequence."""
        start = int(self._progress[rows[0]])
        path = self._cells.path(self._models[rows], start, stop)
        self._progress[rows] = stop
        spread = self._spread(self._clusters, rows, start, path) if self._clusters is not None else None
        weight = self._cells.repeat_weight
        sequence = self._cells.sequence
        own = sequence.shared is not None and stop > sequence.shared
        asked = sequence.questions if own else sequence.asked_by(start, stop)
        block = score_block(path, sequence.questions, self._target, spread, weight, asked, self._guard)
        return block.less(self._values[rows, None], self._margin)

    def _spread(self, clusters: ClusterSums, rows: Ints, start: int, path: PathBlock) -> Spread:
        """Return the spread over clusters after each step; within a round as the round began."""
        sequence, squares, sizes = self._cells.sequence, [], []
        for begin, end in self._cells.pieces(start, start + path.fresh.shape[1]):
            here = slice(begin - start, end - start)
            if sequence.shared is None or end <= sequence.shared:
                fresh = path.fresh[:, here]
                change = path.after[:, here] - np.where(fresh, 0.0, path.before[:, here])
                square, size = clusters.add(rows, sequence.question(begin, end), change, fresh)
            else:
                assert self._cells.rounds is not None
                begun, models = self._cells.rounds.begun(begin), self._models[rows]
                spread = clusters.of(begun.estimate(models), begun.known(models))
                square, size = (np.repeat(one[:, None], end - begin, axis=1) for one in spread)
            squares.append(square)
            sizes.append(size)
        return np.concatenate(squares, axis=1), np.concatenate(sizes, axis=1)


class _SideBySide:
    """Reads each kind of contrast with its reader."""

    def __init__(self, parts: list[tuple[Bools, ContrastReader]]) -> None:
        self._readers = [reader for _, reader in parts]
        masks = np.array([mask for mask, _ in parts], dtype=bool)
        self._kind = masks.argmax(axis=0) if parts else np.zeros(0, dtype=np.int64)
        self._place = (masks.cumsum(axis=1) - 1).max(axis=0, where=masks, initial=0) if parts else self._kind

    def read(self, rows: Ints, stop: int) -> ContrastBlock:
        """Read contrasts at equal progress, up to index `stop` of the task's trial sequence."""
        kind, place = self._kind[rows], self._place[rows]
        there = [number for number in range(len(self._readers)) if (kind == number).any()]
        blocks = [self._readers[number].read(place[kind == number], stop) for number in there]
        if len(blocks) == 1:
            return blocks[0]
        order = np.argsort(kind, kind="stable")
        return reduce(ContrastBlock.joined, blocks).take(np.argsort(order, kind="stable"))
