"""The limit on run-ahead: how far trials may be issued beyond a model's common prefix."""

from __future__ import annotations

from collections.abc import Mapping
from operator import sub

from adaptive_eval.core.board import Board
from adaptive_eval.core.compare import Comparison
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.spec import SessionSpec

RUN_AHEAD, WITH_FEW_IN_FLIGHT = 128, 512
"""Least run-ahead where it is ``auto``: with many trials in flight, and with few. Measured with
``benchmarks/run_ahead.py``: with fewer a run takes longer, with more it issues more trials."""


class RunAhead:
    """Holds back trials that would run too far ahead of a model's common prefix.

    Only the prefix counts: while a slow answer is awaited, the trials issued beyond it decide nothing.
    """

    def __init__(self, spec: SessionSpec, board: Board, comparison: Comparison, states: ModelStates) -> None:
        self._board = board
        self._comparison = comparison
        self._states = states
        limit = spec.allocation.run_ahead if comparison.goal.stops else "unlimited"
        self._automatic = limit == "auto"
        self.least = limit if isinstance(limit, int) else RUN_AHEAD if limit == "auto" else None
        """Run-ahead that every model may have, whatever is in flight; None without a limit."""

    @property
    def furthest(self) -> int:
        """The run-ahead of the model that has most."""
        most: int = max(map(sub, self._states.issued, self._board.complete))
        return most

    def within(self, free: dict[int, int], capacity: int | Mapping[int, int]) -> dict[int, int]:
        """Return the free slots without those that would run too far ahead; `capacity` is all there are."""
        if self.least is None or self.furthest + max(free.values(), default=0) <= self.least:
            return free
        complete, issued, in_flight = self._board.complete, self._states.issued, self._states.in_flight
        common = isinstance(capacity, int)  # the slots of all models together
        few, share = self._few_and_share(capacity) if self._automatic else (0, 0)
        within = {}
        for model, slots in free.items():
            most = self.least
            if self._automatic:
                window = in_flight[model] + slots
                least = few if common else max(few, window + RUN_AHEAD // 4)
                most = max(least, share if common else min(share, 4 * window))
            room = most - (issued[model] - complete[model])
            within[model] = slots if slots <= room else max(0, room)
        return within

    def _few_and_share(self, capacity: int | Mapping[int, int]) -> tuple[int, int]:
        """Return the least run-ahead and each needed model's share: in all two flights, half of the trials.

        So what a run spends beyond the common prefixes stays in proportion to what it needs, and the models
        that are needed longest, which take most of the time, may run furthest ahead.
        """
        states, done = self._states, sum(self._board.complete[: len(self._states.issued)])
        flight = sum(states.in_flight) + (capacity if isinstance(capacity, int) else sum(capacity.values()))
        share = (2 * flight + done // 2) // max(1, len(self._comparison.members))
        return max(RUN_AHEAD, WITH_FEW_IN_FLIGHT - flight), share
