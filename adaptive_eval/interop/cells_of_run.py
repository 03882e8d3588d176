"""What formats of other tools need of a run: facts about it, and its trials by model, task and question."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from adaptive_eval.interop.found import Choices
from adaptive_eval.interop.gather import Gathered, Gatherer
from adaptive_eval.interop.imported_runs import run_log
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup


@dataclass(frozen=True)
class RunDescription:
    """Models, categories and targets of a run, made by :mod:`adaptive_eval.build.describe`."""

    models: tuple[str, ...]
    categories: Mapping[str, Sequence[str]]  # the names of each task's categories
    weights: Mapping[str, tuple[float, ...]]  # what they are worth
    target: TargetLookup


@dataclass(frozen=True)
class Cell:
    """All trials of one model on one question."""

    question: str  # its id
    place: int  # its place among the task's questions
    # as :meth:`adaptive_eval.interop.gather.Gatherer.trials` returns them, in order
    trials: list[dict[str, Any]]


class CellsOfRun:
    """The gathered trials; see :func:`cells_of_run`."""

    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer
        self.gathered: Gathered = gatherer.gathered()
        self._cells = gatherer.cells()

    def of(self, model: str, task: str) -> Iterator[Cell]:
        """Yield the questions of a task that a model was asked, with its trials."""
        first = 0
        for name, questions in self.gathered.tasks.items():
            if name == task:
                break
            first += len(questions)
        ids = self.gathered.tasks[task]
        cells = self._cells
        mine = cells.model == self.gathered.models.index(model)
        mine &= (cells.question >= first) & (cells.question < first + len(ids))
        pairs = zip(cells.question[mine].tolist(), cells.rows[mine].tolist(), strict=True)
        for question, rows in groupby(sorted(pairs, key=lambda pair: pair[0]), key=lambda pair: pair[0]):
            trials = self._gatherer.trials([row for _, row in rows])
            yield Cell(ids[question - first], question - first, trials)


@contextmanager
def cells_of_run(reader: RunReader) -> Iterator[CellsOfRun]:
    """Gather the trials of a run in a temporary file, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="adaptive-eval-") as folder:
        gatherer = Gatherer(Path(folder))
        try:
            gatherer.add(run_log(reader.directory, Choices(), texts=True))
            yield CellsOfRun(gatherer)
        finally:
            gatherer.close()
