"""Recorded outcomes from files and runs: tables, NumPy archives, logs of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.detect import open_logs
from adaptive_eval.interop.found import DEFAULT_TASK, Choices
from adaptive_eval.interop.gather import Gatherer
from adaptive_eval.interop.tabular import archive_outcomes
from adaptive_eval.simulate.recorded import NO_TRIAL, RecordedOutcomes


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
            names = tuple((DEFAULT_TASK, name) for name in questions)
            return RecordedOutcomes(tuple(models), names, outcomes)
    with TemporaryDirectory(prefix="adaptive-eval-") as folder:
        gatherer = Gatherer(Path(folder))
        try:
            for log in open_logs(paths, choices, texts=False):
                gatherer.add(log)
            recorded = _tabulated(gatherer)
        finally:
            gatherer.close()
    choices.require_renamed(recorded.models)
    return recorded


def recorded_weights(paths: Sequence[Path]) -> tuple[float, ...] | None:
    """Return the category weights of runs where all record the same; None otherwise."""
    runs = [path for path in paths if path.is_dir()]
    known = {weights for log in open_logs(runs, Choices(), texts=False) for weights in log.weights.values()}
    return known.pop() if len(known) == 1 else None


def _tabulated(gatherer: Gatherer) -> RecordedOutcomes:
    """Return the answers of logs as a table, those without a score and copies left out."""
    gathered, (cells, categories) = gatherer.gathered(), gatherer.answers()
    between = [score for scores in gathered.scores.values() for score in scores if score not in (0.0, 1.0)]
    if between:
        raise OutcomesError(
            f"score {between[0]} is neither 0 nor 1; `adaptive-eval analyze --write RUN` makes a run of such "
            "scores, which can be read in its place"
        )
    questions = [(task, question) for task, ids in gathered.tasks.items() for question in ids]
    depth = int(cells.repeat.max(initial=-1)) + 1
    table = np.full((len(gathered.models), len(questions), depth), NO_TRIAL, dtype=np.int16)
    table[cells.model, cells.question, cells.repeat] = categories
    models, asked = (table != NO_TRIAL).any(axis=(1, 2)), (table != NO_TRIAL).any(axis=(0, 2))
    return RecordedOutcomes(
        tuple(compress(gathered.models, models)),
        tuple(compress(questions, asked)),
        table[models][:, asked],
        gathered.copies,
    )


def copies_words(copies: int) -> str:
    """Say that answers were left out as copies."""
    return f"{copies:,} answers are left out: they are copies of earlier ones to the same question"
