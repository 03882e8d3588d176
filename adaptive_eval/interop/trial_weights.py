"""What each trial weighs in the score that ranks, so that the score can be computed again from an export."""

import json
from collections.abc import Mapping

import numpy as np

from adaptive_eval.core.results import Results, from_json
from adaptive_eval.interop.stored_config import as_counted
from adaptive_eval.store.cells import OutcomeColumns
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import RIGHT_OR_WRONG, STEPS, ScoreRange
from scorio.sequential.parts import trial_weights, unit_scores

Weights = Mapping[tuple[str, int], float]
"""The weight of a trial by model and step: the sum of weight times score of a model is its score.

Of tasks with different ranges the score is from 0 to 1: their lowest scores are to be taken from the scores.
"""


def weights_of_run(
    reader: RunReader, worth: Mapping[str, tuple[float, ...]], results: Results | None
) -> Weights:
    """Return the weight of every trial in the scores of the results; 0 of one that is in none.

    `worth` is what the categories of each task are worth; without `results` the latest stored ones count.
    """
    latest = reader.latest_snapshot()
    if latest is None:
        return {}
    results = results or from_json(latest.results)
    columns = as_counted(reader.outcomes(), reader)
    samples = int(json.loads(reader.meta().get("identity", "{}")).get("samples_per_request", 1))
    found: dict[tuple[str, int], float] = {}
    for line in results.models:
        if line.model in columns.models:
            rows = np.flatnonzero(columns.model == columns.models.index(line.model))
            rows = rows[np.argsort(columns.step[rows], kind="stable")]
            counted = rows[: line.counted_steps]
            for task, share in _shares(results, columns, worth).items():
                for row, weight in _of_task(columns, counted, task, worth, results, samples):
                    found[line.model, int(columns.step[row])] = share * weight
    return found


def _shares(
    results: Results, columns: OutcomeColumns, worth: Mapping[str, tuple[float, ...]]
) -> Mapping[str, float]:
    """Return the weight of each task, for one unit of its scores."""
    if not results.tasks:
        return {task: 1.0 for task, _ in columns.questions}
    shares = {task.task: task.weight for task in results.tasks}
    ends = {(min(weights), max(weights)) for weights in worth.values()}
    if len(ends) > 1:
        for task, weights in worth.items():
            shares[task] /= max(weights) - min(weights)
    return shares


def _of_task(
    columns: OutcomeColumns,
    counted: np.ndarray[tuple[int], np.dtype[np.int64]],
    task: str,
    worth: Mapping[str, tuple[float, ...]],
    results: Results,
    samples: int,
) -> list[tuple[int, float]]:
    """Return the counted trials of one model on one task with their weights in its mean score there."""
    place = {question: number for number, question in enumerate(columns.questions) if question[0] == task}
    numbers = {number: local for local, number in enumerate(place.values())}
    rows = [row for row in counted.tolist() if int(columns.question[row]) in numbers]
    sizes = {one.task: one.questions for one in results.tasks}
    size = sizes.get(task, results.questions)
    questions = np.array([numbers[int(columns.question[row])] for row in rows], np.int64)
    values = worth.get(task, RIGHT_OR_WRONG)
    if isinstance(values, ScoreRange):
        steps = np.arange(STEPS + 1) / STEPS
    else:
        steps = unit_scores(values)
    samples_per_prompt = None
    if task in (results.in_rounds or ()):
        samples_per_prompt = samples
    weights = trial_weights(
        questions,
        columns.category[np.array(rows, np.int64)],
        steps,
        max(size, len(numbers)),
        samples_per_prompt=samples_per_prompt,
        numbers=isinstance(values, ScoreRange),
    )
    return list(zip(rows, weights.tolist(), strict=True))
