"""The config of a stored run, and which of its answers count by it, or may be copies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain

import numpy as np

from adaptive_eval.config import RunConfig, parse_config
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.core.determinism import COPY_READERS
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.core.stored_spec import SESSION, spec_from_json
from adaptive_eval.interop.found import IMPORTED
from adaptive_eval.options.task_options import TaskConfig
from adaptive_eval.store.cells import OutcomeColumns
from adaptive_eval.store.file_errors import decoding
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.run_files import RUN_FILE
from adaptive_eval.trial import SAME_TEXT, DiscardCause, TrialKey


def config_of_file(reader: RunReader) -> RunConfig | None:
    """Return the config that a run file holds; None of an imported run."""
    meta = reader.meta()
    if "config" in meta:
        return written_config(meta)
    return None


def written_config(meta: Mapping[str, str]) -> RunConfig:
    """Return the config in a run's description, without the files that it names."""
    return _parsed(meta["config"], meta.get("source", "config"))


_parsed = lru_cache(maxsize=8)(parse_config)
"""Reads a config from its text; an export asks for that of its run once a model and task."""


def model_section(config: RunConfig | None, name: str) -> ModelConfig | None:
    """Return a model's section of a stored config; None of an imported run."""
    if config is not None:
        sections = config.models
    else:
        sections = ()
    return next((one for one in sections if one.name == name), None)


def task_section(config: RunConfig | None, name: str) -> TaskConfig | None:
    """Return a task's section of a stored config; None of an imported run."""
    if config is not None:
        sections = config.tasks
    else:
        sections = ()
    return next((one for one in sections if one.name == name), None)


def run_rule(reader: RunReader) -> str:
    """Return the rule that a run is decided by."""
    meta = reader.meta()
    if IMPORTED in meta:
        return str(json.loads(meta[IMPORTED]).get("rule", ""))
    config = config_of_file(reader)
    if config is None:
        return ""
    return config.stopping.rule


def session_of_file(reader: RunReader) -> SessionSpec:
    """Return the session that a run file describes, without what was taken from elsewhere."""
    with decoding(reader.directory / RUN_FILE):
        return spec_from_json(reader.meta()[SESSION])


def with_lost_draws(columns: OutcomeColumns, reader: RunReader) -> OutcomeColumns:
    """Return the outcomes of a run, without a category if discarded draws make a trial lost."""
    redrawn = redrawn_causes(reader)
    found = reader.trials(discarded=True)
    return _without(columns, [one.request.key for one in found if set(one.discarded) - redrawn])


def as_counted(columns: OutcomeColumns, reader: RunReader) -> OutcomeColumns:
    """Return the outcomes of a run, without a category if a trial is lost to the rule that decides it."""
    found = with_lost_draws(columns, reader)
    if run_rule(reader) in COPY_READERS:
        return found
    return _without(found, possible_copies(reader))


def _without(columns: OutcomeColumns, lost: Iterable[TrialKey]) -> OutcomeColumns:
    """Return outcomes without the categories of these trials."""
    steps: dict[str, list[int]] = {}
    for key in lost:
        steps.setdefault(key.model, []).append(key.index)
    category = columns.category.copy()
    for model, of_model in steps.items():
        here = columns.model == columns.models.index(model)
        category[here & np.isin(columns.step, of_model)] = -1
    return replace(columns, category=category)


def possible_copies(reader: RunReader) -> set[TrialKey]:
    """Return a run's answers that may be copies of earlier ones.

    There are none if the config of the run takes them for draws of a sure model.
    """
    none = not any(found for _, found in reader.signals_named(SAME_TEXT).values())
    if none or independent_copies(reader):
        return set()
    return {trial.key for trial in chain.from_iterable(reader.logged()) if SAME_TEXT in trial.signals}


def equal_texts(reader: RunReader) -> dict[TrialKey, int]:
    """Return what tells texts apart, from 1, of a run's answers that may be copies of one another."""
    copies = possible_copies(reader)
    if not copies:
        return {}

    def texts() -> Iterator[tuple[TrialKey, tuple[str, str, str, int]]]:
        for trial in chain.from_iterable(reader.logged()):
            if trial.answer is not None:
                yield trial.key, (trial.key.model, trial.task, trial.question, trial.answer + 1)

    doubted = {text for key, text in texts() if key in copies}
    return {key: text[-1] for key, text in texts() if text in doubted}


def independent_copies(reader: RunReader) -> bool:
    """Return whether the config of a run takes answers that may be copies for draws of a sure model."""
    config = config_of_file(reader)
    return config is not None and config.on.copies == "independent"


def redrawn_causes(reader: RunReader) -> frozenset[DiscardCause]:
    """Return the causes of discarded draws for which another draw counts in a run."""
    config = config_of_file(reader)
    meta = reader.meta()
    if config is not None:
        return frozenset(config.on.discarded)
    if SESSION in meta:
        return session_of_file(reader).redrawn
    return frozenset()


def redrawn_trials(reader: RunReader) -> set[TrialKey]:
    """Return the trials of a run in which another draw than the first counts."""
    redrawn = redrawn_causes(reader)
    if not redrawn:
        return set()
    found = reader.trials(discarded=True)
    return {one.request.key for one in found if redrawn.issuperset(one.discarded)}
