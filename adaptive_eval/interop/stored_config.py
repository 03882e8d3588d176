"""The config of a stored run, and which of its answers count by it, or may be copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from adaptive_eval.config import RunConfig, parse_config
from adaptive_eval.store.cells import OutcomeColumns
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import LoggedTrial
from adaptive_eval.trial import SAME_TEXT, DiscardCause, TrialKey


def config_of_file(reader: RunReader) -> RunConfig | None:
    """Return the config that a run file holds; None of an imported run."""
    meta = reader.meta()
    return parse_config(meta["config"], meta.get("source", "config")) if "config" in meta else None


def with_lost_draws(columns: OutcomeColumns, reader: RunReader) -> OutcomeColumns:
    """Return the outcomes of a run, without a category if discarded draws make a trial lost."""
    redrawn = redrawn_causes(reader)
    lost: dict[str, list[int]] = {}
    for record in reader.trials(discarded=True):
        if set(record.discarded) - redrawn:
            lost.setdefault(record.request.key.model, []).append(record.request.key.index)
    category = columns.category.copy()
    for model, steps in lost.items():
        of_model = columns.model == columns.models.index(model)
        category[of_model & np.isin(columns.step, steps)] = -1
    return replace(columns, category=category)


def equal_texts(reader: RunReader) -> dict[TrialKey, int]:
    """Return what tells texts apart, from 1, of a run's answers that may be copies of one another.

    There are none if the config of the run takes them for draws of a sure model.
    """
    none = not any(found for _, found in reader.signals_named(SAME_TEXT).values())
    if none or independent_copies(reader):
        return {}

    def texts() -> Iterator[tuple[LoggedTrial, tuple[str, str, str, int]]]:
        for trial in chain.from_iterable(reader.logged()):
            if trial.answer is not None:
                yield trial, (trial.key.model, trial.task, trial.question, trial.answer + 1)

    doubted = {text for trial, text in texts() if SAME_TEXT in trial.signals}
    return {trial.key: text[-1] for trial, text in texts() if text in doubted}


def independent_copies(reader: RunReader) -> bool:
    """Return whether the config of a run takes answers that may be copies for draws of a sure model."""
    config = config_of_file(reader)
    return config is not None and config.on.copies == "independent"


def redrawn_causes(reader: RunReader) -> frozenset[DiscardCause]:
    """Return the causes of discarded draws for which another draw counts in a run."""
    config = config_of_file(reader)
    return frozenset() if config is None else frozenset(config.on.discarded)


def redrawn_trials(reader: RunReader) -> set[TrialKey]:
    """Return the trials of a run in which another draw than the first counts."""
    redrawn = redrawn_causes(reader)
    if not redrawn:
        return set()
    found = reader.trials(discarded=True)
    return {one.request.key for one in found if redrawn.issuperset(one.discarded)}
