"""Recorded outcomes from files and runs: tables, NumPy archives, logs of other tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.engine.independence import ENOUGH, IndependenceAudit, Repeat
from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.detect import open_logs
from adaptive_eval.interop.found import DEFAULT_TASK, Choices, Found, Log, checked, compared
from adaptive_eval.interop.tabular import archive_outcomes
from adaptive_eval.simulate.recorded import NO_TRIAL, RecordedOutcomes


@dataclass(frozen=True, slots=True)
class Trial:
    """One recorded trial."""

    # which cell it belongs to
    model: str
    task: str
    question: str
    number: int  # its place among the trials of its cell; need not be contiguous
    category: int  # category from 0; for a binary rubric 1 is right and 0 is wrong


def read_recorded(paths: Sequence[Path], choices: Choices | None = None) -> RecordedOutcomes:
    r"""Read the outcomes of one or several files or runs as one table.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "outcomes.csv")
    ...     _ = path.write_text("model,question,category\na,q1,1\na,q1,0\nb,q1,1\n")
    ...     recorded = read_recorded([path])
    >>> recorded.models, recorded.counts.tolist()
    (('a', 'b'), [[2], [1]])
    """
    if not paths:
        raise OutcomesError("no file of recorded outcomes is given")
    choices = choices or Choices()
    if choices == Choices() and len(paths) == 1 and paths[0].suffix.lower() == ".npz":
        arrays = archive_outcomes(paths[0])
        if "R" in arrays:
            outcomes, models, questions = arrays["R"]
            kept = _without_copies(outcomes)
            copies = int((outcomes != kept).sum())
            return RecordedOutcomes(
                tuple(models), tuple((DEFAULT_TASK, name) for name in questions), kept, copies
            )
    logs = open_logs(paths, choices, texts=False)
    trials, copies = _trials(logs)
    recorded = tabulate(trials)
    choices.require_renamed(recorded.models)
    return replace(recorded, copies=copies)


def _without_copies(outcomes: NDArray[Any]) -> NDArray[Any]:
    """Return outcomes (models, questions, trials) with the first trials only of models that never vary."""
    repeats = outcomes[:, :, 1:]
    same = ((repeats == outcomes[:, :, :1]) | (repeats == NO_TRIAL)).all(axis=(1, 2))
    same &= (repeats != NO_TRIAL).sum(axis=(1, 2)) >= ENOUGH
    later = np.arange(outcomes.shape[2]) > 0
    return np.where(same[:, None, None] & later, NO_TRIAL, outcomes)


def recorded_weights(paths: Sequence[Path]) -> tuple[float, ...] | None:
    """Return the category weights of runs where all record the same; None otherwise."""
    runs = [path for path in paths if path.is_dir()]
    known = {weights for log in open_logs(runs, Choices(), texts=False) for weights in log.weights.values()}
    return known.pop() if len(known) == 1 else None


def _trials(logs: Iterable[Log]) -> tuple[list[Trial], int]:
    """Return the trials of logs, and how many copies are left out.

    The trials of a log follow those of the logs before, unless their numbers count for all.
    """
    trials: list[tuple[Trial, Repeat]] = []
    following: dict[tuple[str, str, str], int] = {}
    audit = IndependenceAudit({})
    for log in logs:
        first: dict[tuple[str, str, str], int] = {}
        for found in checked(log):
            cell = (found.model, found.task, found.question)
            if found.number is None:
                number = following.get(cell, 0)
            else:
                begin = 0 if log.numbered else first.setdefault(cell, following.get(cell, 0))
                number = begin + found.number
            if not log.numbered or found.number is None:
                following[cell] = max(following.get(cell, 0), number + 1)
            if found.missing is None:
                trials.append((Trial(*cell, number, _category(log, found)), compared(audit, found)))
    # Only the complete logs tell whether a model ever varies.
    copying = {model for model in {trial.model for trial, _ in trials} if audit.suspected(model)}
    kept = [
        trial
        for trial, repeat in trials
        if repeat != "copy" and not (repeat == "same" and trial.model in copying)
    ]
    return kept, len(trials) - len(kept)


def _category(log: Log, found: Found) -> int:
    if found.category is not None:
        return found.category
    if found.score not in (0.0, 1.0):
        raise OutcomesError(
            f"{log.path}: {found.place}: score {found.score} is neither 0 nor 1; `adaptive-eval analyze` "
            "makes a run of such scores, which can be read in its place"
        )
    return int(found.score == 1.0)


def tabulate(trials: Iterable[Trial]) -> RecordedOutcomes:
    """Put single trials into a table, each cell's in the order of their numbers.

    Examples
    --------
    >>> table = tabulate([Trial("a", "t", "q", 7, 0), Trial("a", "t", "q", 2, 1)])
    >>> table.categories.tolist()
    [[[1, 0]]]
    """
    models: dict[str, int] = {}
    questions: dict[tuple[str, str], int] = {}
    cells: dict[tuple[int, int], dict[int, int]] = {}
    for trial in trials:
        model = models.setdefault(trial.model, len(models))
        question = questions.setdefault((trial.task, trial.question), len(questions))
        cell = cells.setdefault((model, question), {})
        if trial.number in cell:
            raise OutcomesError(
                f"trial {trial.number} of model {trial.model!r} on question {trial.question!r} appears twice"
            )
        cell[trial.number] = trial.category
    if not cells:
        raise OutcomesError("there are no recorded outcomes")
    depth = max(len(cell) for cell in cells.values())
    table = np.full((len(models), len(questions), depth), NO_TRIAL, dtype=np.int16)
    for (model, question), cell in cells.items():
        table[model, question, : len(cell)] = [cell[number] for number in sorted(cell)]
    first: dict[str, int] = {}
    for (task, _), number in questions.items():
        first.setdefault(task, number)
    names = sorted(questions, key=lambda name: (first[name[0]], questions[name]))
    return RecordedOutcomes(tuple(models), tuple(names), table[:, [questions[name] for name in names]])


def copies_words(copies: int) -> str:
    """Say that answers were left out as copies."""
    return (
        f"{copies:,} answers are left out: they are copies of earlier ones to the same question, or of a "
        "model whose answers never vary"
    )
