"""Facts about a run, other than its trials, that writers of other tools' formats need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adaptive_eval.store.records import TargetLookup


@dataclass(frozen=True)
class RunDescription:
    """Models, categories and targets of a run, made by :mod:`adaptive_eval.build.describe`."""

    models: tuple[str, ...]
    categories: Mapping[str, Sequence[str]]  # the names of each task's categories
    weights: Mapping[str, tuple[float, ...]]  # what they are worth
    target: TargetLookup
