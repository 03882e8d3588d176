"""What writers of other tools' formats need to know of a run besides its trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from adaptive_eval.store.records import TrialRecord

__all__ = ["RunDescription"]


@dataclass(frozen=True)
class RunDescription:
    """Models, categories and targets of a run; :func:`adaptive_eval.build.describe.describe_run` makes one.

    Parameters
    ----------
    models : tuple of str
        Its models.
    categories : mapping of str to sequence of str
        The names of each task's categories.
    weights : mapping of str to tuple of float
        What they are worth.
    target : callable
        Returns the reference answer of a trial, None where it is not known.
    """

    models: tuple[str, ...]
    categories: Mapping[str, Sequence[str]]
    weights: Mapping[str, tuple[float, ...]]
    target: Callable[[TrialRecord], str | None]
