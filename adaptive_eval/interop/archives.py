"""NumPy archives of trials: models x questions x trials, or counts of each category."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.found import DEFAULT_TASK, Found, Log, Piece, ReadingOptions, reading
from adaptive_eval.simulate.recorded import NO_TRIAL
from adaptive_eval.tasks.rows import opened
from adaptive_eval.tasks.unpacking import require_bounded, require_bounded_zip

LARGEST_CATEGORY = int(np.iinfo(np.int16).max)


def archive_log(path: Path, choices: ReadingOptions) -> Log:
    """Return the log in a NumPy archive: ``R``, models x questions x trials, or such an array a task."""
    return Log(path, "NumPy archive", lambda: _archive_pieces(path, choices), numbered=True)


def _archive_pieces(path: Path, choices: ReadingOptions) -> Iterator[Piece]:
    for task, (outcomes, models, questions) in archive_outcomes(path).items():
        for row, name in enumerate(models):
            model = choices.named(name, path)
            for column, question in enumerate(questions):
                for number, category in enumerate(outcomes[row, column].tolist()):
                    if category != NO_TRIAL:
                        named = choices.task or (DEFAULT_TASK if task == "R" else task)
                        yield Found(
                            model, named, question, f"{task}[{row}, {column}, {number}]", number, category
                        )


Outcomes: TypeAlias = tuple[np.ndarray[Any, np.dtype[np.int16]], list[str], list[str]]
"""Categories (models, questions, trials), the missing ones of a cell at its end, and the names."""


def archive_outcomes(path: Path) -> dict[str, Outcomes]:
    """Return the outcomes in a NumPy archive by the names of the arrays: ``R``, or one for each task.

    The trials of an archive of ``counts`` (models x questions x categories) get an arbitrary, fixed order.
    """
    with reading(path, "a NumPy archive"), opened(path):
        require_bounded_zip(path)
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    require_bounded(path, 8 * sum(one.size for one in arrays.values()))  # sorted by numbers of 8 bytes
    models = arrays.pop("models", None)
    questions = arrays.pop("questions", None)
    if "counts" in arrays:
        arrays = {"R": _trials_of_counts(path, arrays["counts"])}
    if "R" in arrays:
        tasks = {"R": arrays["R"]}
    else:
        tasks = {key: one for key, one in arrays.items() if one.ndim == 3}
    if not tasks:
        raise OutcomesError(
            f"{path}: there is no array R (models x questions x trials) in it, nor one for each task"
        )
    return {key: _outcomes(path, key, one, models, questions) for key, one in tasks.items()}


def _trials_of_counts(path: Path, counts: Any) -> np.ndarray[Any, np.dtype[np.int16]]:
    if counts.ndim != 3 or not np.issubdtype(counts.dtype, np.integer) or counts.min(initial=0) < 0:
        raise OutcomesError(
            f"{path}: counts must hold whole numbers from 0 in shape (models, questions, categories), got "
            f"{counts.dtype} in shape {counts.shape}"
        )
    trials = counts.sum(axis=2)
    longest = counts.sum(axis=2, dtype=float).max(initial=0.0)
    require_bounded(path, int(trials.size * longest) * 8)
    outcomes = np.full((*trials.shape, int(trials.max(initial=0))), NO_TRIAL, dtype=np.int16)
    rng = np.random.default_rng(0)
    for cell in np.ndindex(trials.shape):
        outcomes[cell][: trials[cell]] = rng.permutation(np.repeat(np.arange(counts.shape[2]), counts[cell]))
    return outcomes


def _outcomes(path: Path, key: str, outcomes: Any, models: Any, questions: Any) -> Outcomes:
    if outcomes.ndim != 3 or not (np.issubdtype(outcomes.dtype, np.integer) or outcomes.dtype == bool):
        raise OutcomesError(
            f"{path}: {key} must hold whole numbers in shape (models, questions, trials), got "
            f"{outcomes.dtype} in shape {outcomes.shape}"
        )
    if outcomes.size and not (int(outcomes.min()) >= NO_TRIAL and int(outcomes.max()) <= LARGEST_CATEGORY):
        raise OutcomesError(
            f"{path}: {key} must hold categories from 0, or -1 if there is no trial; it has values from "
            f"{outcomes.min()} to {outcomes.max()}"
        )
    outcomes = outcomes.astype(np.int16)
    last = np.argsort(outcomes == NO_TRIAL, axis=2, kind="stable")
    return (
        np.take_along_axis(outcomes, last, axis=2),
        _names(path, "models", models, outcomes.shape[0], "model"),
        _names(path, "questions", questions if key == "R" else None, outcomes.shape[1], "q"),
    )


def _names(path: Path, key: str, given: Any, number: int, prefix: str) -> list[str]:
    if given is None:
        return [f"{prefix}{index + 1}" for index in range(number)]
    names = [str(name).strip() for name in np.asarray(given).ravel()]
    if len(names) != number:
        raise OutcomesError(f"{path}: {key} has {len(names)} names, R has {number} {key}")
    for name, times in Counter(names).items():
        if times > 1:
            raise OutcomesError(f"{path}: {key}: {name!r} appears twice")
    return names
