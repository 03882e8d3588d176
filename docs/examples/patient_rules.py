"""A stopping rule and an allocation policy of the user; docs/extending.md says how they are installed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from adaptive_eval.core.allocate import AllocationView
from scorio.arrays import Bools, Floats
from scorio.sequential.parts import Anytime, ContrastBlock


@dataclass(frozen=True)
class Patient(Anytime):
    """As ``anytime``, but without a winner before both models have answered 30 questions.

    A rule is made with the error level and the margin (in unit scores, or None). Calling later than an
    anytime rule may is always valid: its evidence holds at any moment.
    """

    name: ClassVar[str] = "patient"
    promise: ClassVar[str] = "no winner before 30 questions, and from there on what anytime promises"

    def statistic(self, block: ContrastBlock, complete: Bools) -> Floats:
        """Return the log e-value, minus infinity if it is too early."""
        return np.where(block.questions >= 30, super().statistic(block, complete), -np.inf)


class MostWanted:
    """The model in the most open pairs first, one trial for each model at a time."""

    def choose(self, view: AllocationView, free: Mapping[int, int]) -> Iterator[int]:
        """Yield models with a free slot; pairs are read at equal progress, so laggards come first."""
        active = np.flatnonzero(view.active).tolist()
        order = sorted(active, key=lambda model: (view.issued[model], -len(view.partners(model))))
        yield from (model for model in order if free.get(model, 0) > 0)
