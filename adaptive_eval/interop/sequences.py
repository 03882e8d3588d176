"""The places of recorded trials in the trial sequences of their models."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adaptive_eval.errors import OutcomesError
from adaptive_eval.simulate.coins import asked
from scorio.sequential.parts import RunSequence

Ints = npt.NDArray[np.int64]

MISSING_TRIAL = -1
"""Row of an index that has no recorded trial."""

LONGEST = 20_000_000
"""Trials that a model's trial sequence may have."""


@dataclass(frozen=True)
class TrialCells:
    """The cell of every trial, sorted by model, question and place within the cell; arrays of shape (n,)."""

    rows: Ints  # what :meth:`Gatherer.trials` looks up
    # numbers of model and question; questions are counted over all tasks
    model: Ints
    question: Ints
    repeat: Ints  # how many trials of the cell come before


def random_order(model: Ints, question: Ints) -> Ints:
    """Return places of trials sorted by model and question, those of a cell in random order."""
    return np.lexsort((np.random.default_rng(0).random(model.size), question, model))


@dataclass(frozen=True)
class TrialSequences:
    """The trial sequences of all models; arrays of shape (n,), sorted by index and model."""

    # the trial's row number; :data:`MISSING_TRIAL` where an index before the model's last has none
    row: Ints
    # whose index it is
    model: Ints
    index: Ints
    ends: Ints  # trials of each model's sequence


def sequences_of(cells: TrialCells, models: int, run_sequence: RunSequence) -> TrialSequences:
    """Place recorded trials in the trial sequence: trial r of a cell where it is asked for the r-th time.

    Examples
    --------
    >>> zeros = np.zeros(3, dtype=np.int64)
    >>> cells = TrialCells(np.arange(3), zeros, np.array([0, 0, 1]), np.array([0, 1, 0]))
    >>> sequences = sequences_of(cells, 1, RunSequence([2], seed=None))
    >>> sequences.row.tolist(), sequences.ends.tolist()
    ([0, 2, 1], [3])
    """
    index = _indices(cells, run_sequence)
    ends = np.zeros(models, dtype=np.int64)
    np.maximum.at(ends, cells.model, index + 1)
    rows = [cells.rows]
    owners = [cells.model]
    indices = [index]
    for model, end in enumerate(ends.tolist()):
        there = np.zeros(end, dtype=bool)
        there[index[cells.model == model]] = True
        gaps = np.flatnonzero(~there)
        rows.append(np.full(gaps.size, MISSING_TRIAL))
        owners.append(np.full(gaps.size, model))
        indices.append(gaps)
    row, owner, place = (np.concatenate(parts).astype(np.int64) for parts in (rows, owners, indices))
    order = np.lexsort((owner, place))
    return TrialSequences(row[order], owner[order], place[order], ends)


def _indices(cells: TrialCells, run_sequence: RunSequence) -> Ints:
    """Return the index of each trial."""
    depth = np.zeros(run_sequence.questions, dtype=np.int64)
    np.maximum.at(depth, cells.question, cells.repeat + 1)
    first = np.cumsum(depth) - depth
    index_of = np.zeros(int(depth.sum()), dtype=np.int64)
    start, left = 0, index_of.size
    while left:
        stop = start + max(2 * run_sequence.questions, 4096)
        if stop > LONGEST:
            raise OutcomesError(
                f"one question has {int(depth.max()):,} trials of a model, most far fewer: a sequence "
                f"along all {run_sequence.questions:,} questions would have more than {LONGEST:,} trials. "
                "Leave the surplus out"
            )
        question, repeat = (
            of_all[0] for of_all in asked(run_sequence, np.zeros(1, dtype=np.int64), start, stop)
        )
        wanted = np.flatnonzero(repeat < depth[question])
        index_of[first[question[wanted]] + repeat[wanted]] = start + wanted
        left -= wanted.size
        start = stop
    return np.asarray(index_of[first[cells.question] + cells.repeat])


def first_indices(
    questions: Sequence[str], depth: int, run_sequence: RunSequence
) -> dict[tuple[str, int], int]:
    """Return the index of each repeat, counted from 1, of each question.

    Examples
    --------
    >>> first_indices(("a", "b"), 2, RunSequence([2], seed=None))
    {('a', 1): 0, ('a', 2): 2, ('b', 1): 1, ('b', 2): 3}
    """
    question = np.repeat(np.arange(len(questions)), depth)
    repeat = np.tile(np.arange(depth), len(questions))
    indices = _indices(TrialCells(question, np.zeros_like(question), question, repeat), run_sequence)
    places = zip(question.tolist(), repeat.tolist(), indices.tolist(), strict=True)
    return {(questions[place], number + 1): index for place, number, index in places}
