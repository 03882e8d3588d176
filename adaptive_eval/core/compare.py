"""The comparison: the contrasts of a session's goal, on the board of its answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from adaptive_eval.core.goals import BestK, make_goal
from adaptive_eval.core.spec import SessionSpec
from scorio.sequential import parts

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Comparison(parts.Board):
    """All contrasts of a session."""

    def __init__(self, spec: SessionSpec, board: Board) -> None:
        self.spec, self.board = spec, board
        self.goal = goal = make_goal(spec)
        rule, margin = spec.rule(), spec.stopping.equivalence
        levels = spec.levels(rule, goal.hypotheses)
        unit_margin = None if margin is None else margin / spec.scale[1]
        super().__init__(
            board, goal, rule, levels, unit_margin, needed=goal.condition.needed, review=goal.review
        )

    def _members(self) -> list[int]:
        if not self.goal.stops:
            return [model for model in range(len(self.spec.models)) if model not in self._gone]
        return super()._members()

    @property
    def met(self) -> tuple[str, ...]:
        """The parts of the goal that are reached; empty while none is."""
        return self.goal.condition.met(self.known)

    @property
    def good_enough(self) -> list[int]:
        """The models of the best sets that are known within the margin only: no other is better by more."""
        condition = self.goal.condition
        parts_ = getattr(condition, "parts", (condition,))
        sets = [part.good_enough(self.known) for part in parts_ if isinstance(part, BestK)]
        return sorted({model for chosen in sets for model in chosen})
