"""Outcomes by question and model, counted as the log grows."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adaptive_eval.store.cells import OutcomeCells, mean_and_spread
from adaptive_eval.store.reader import RunReader

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """The models' results on one question."""

    number: int  # its place among the run's questions
    # which one
    task: str
    question: str
    # stored trials of all models; those of them without an answer
    trials: int
    missing: int
    # mean over the models asked of their mean category; for a right-or-wrong rubric their fraction correct
    mean: float | None
    # standard deviation over the models asked of (sum + 1)/(n + 2), for a right-or-wrong rubric only: means
    # shrunk towards ½, so that a question asked once does not look like one on which models differ
    spread: float | None


class Tally:
    """Counts of stored trials, all arrays of shape (models, questions) as the run file numbers them."""

    def __init__(self) -> None:
        self.models: tuple[str, ...] = ()
        self.questions: tuple[tuple[str, str], ...] = ()
        self.end = 0
        self.stored: Integers = np.zeros((0, 0), dtype=np.int64)
        self.scored: Integers = self.stored
        self.category_sum: Integers = self.stored
        self.truncated: Integers = self.stored
        self.highest_category = -1
        self.missing: Counter[tuple[int, str]] = Counter()

    def catch_up(self, reader: RunReader) -> bool:
        """Count the trials stored since the last time; return whether there were any."""
        cells = reader.cells(since=self.end)
        grown = cells.end > self.end
        self._add(cells)
        return grown

    def _add(self, cells: OutcomeCells) -> None:
        self.models, self.questions, self.end = cells.models, cells.questions, cells.end
        shape = len(cells.models), len(cells.questions)
        where = cells.model, cells.question
        for name in ("stored", "scored", "category_sum", "truncated"):
            before: Integers = getattr(self, name)
            grown = np.zeros(shape, dtype=np.int64)
            grown[: before.shape[0], : before.shape[1]] = before
            grown[where] += getattr(cells, name)
            setattr(self, name, grown)
        self.highest_category = max(self.highest_category, int(cells.category_max.max(initial=-1)))
        self.missing.update(cells.missing)

    @property
    def binary(self) -> bool:
        """Whether every answer so far is in category 0 or 1."""
        return self.highest_category <= 1

    def copy(self) -> Tally:
        """Return these counts as they are now; the arrays are replaced by later ones and never changed."""
        other = copy(self)
        other.missing = self.missing.copy()
        return other

    def row(self, model: str) -> int | None:
        """Return the number of a model, None where it has no trial yet."""
        return self.models.index(model) if model in self.models else None

    def missing_reasons(self, model: str) -> dict[str, int]:
        """Return how many trials of a model have no answer, by reason."""
        row = self.row(model)
        return {reason: n for (of, reason), n in self.missing.items() if of == row}

    def truncated_answers(self, model: str) -> int:
        """Return how many answers of a model were cut off at the token limit."""
        row = self.row(model)
        return 0 if row is None else int(self.truncated[row].sum())

    def means(self) -> npt.NDArray[np.float64]:
        """Return the mean category of each cell, NaN without an answer; shape (models, questions)."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.category_sum / self.scored)

    def question_lines(self) -> list[QuestionLine]:
        """Return a line for every question asked, in the order in which they were first asked."""
        asking: Integers = self.scored.sum(axis=0)
        mean, spread = mean_and_spread(self.scored, self.category_sum)
        asked, missing = self.stored.sum(axis=0), (self.stored - self.scored).sum(axis=0)
        return [
            QuestionLine(
                number=q,
                task=task,
                question=question,
                trials=int(asked[q]),
                missing=int(missing[q]),
                mean=float(mean[q]) if asking[q] else None,
                spread=float(spread[q]) if asking[q] and self.binary else None,
            )
            for q, (task, question) in enumerate(self.questions)
            if asked[q]
        ]
