"""The fast way: every model that is still needed makes one step, then the pairs are looked at.

This takes its decisions from the same :class:`~adaptive_eval.core.compare.Comparison` as a session, in blocks
of steps and without a request or an outcome as an object. Trials are counted as a session with one trial in
flight would issue them: up to the index after which the model is no longer needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from adaptive_eval.core.compare import Comparison
from adaptive_eval.core.goals import BETTER, OPEN, WORSE, make_goal
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.simulate.coins import Stream
from adaptive_eval.simulate.result import RunOutcome, scores_until
from adaptive_eval.stops import StopReason
from scorio.sequential.parts import STEP_BITS, Fold

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ONE_LOOK = 1.645
"""The paper's z for a ranking confidence of 95 %."""

SHORTEST, LONGEST, LARGEST = 128, 512, 40_000
"""Steps of a block; contrasts times steps of one that is longer. Blocks grow with the trial sequence: a block
costs about the same however long it is, and what lies beyond a decision is drawn in vain."""


def sequences_in_lockstep(spec: SessionSpec) -> bool:
    """Return whether a run is the same in lockstep: it goes by turns, and ends by its verdicts or passes."""
    budgets = [spec.budget, *(model.budget for model in spec.models), *(task.budget for task in spec.tasks)]
    unlimited = not any(budget.limited for budget in budgets)
    unlimited &= not any(model.deterministic for model in spec.models)
    return unlimited and spec.goal.kind != "budget" and spec.allocation.models in ("round-robin", "uniform")


class _Watched(Comparison):
    """A comparison that notes up to which step each model was needed."""

    def __init__(self, spec: SessionSpec, board: Board) -> None:
        self.needed_until = np.zeros(len(spec.models), dtype=np.int64)
        super().__init__(spec, board)

    def interval(self, rows: slice | list[int] = slice(None)) -> tuple[Floats, Floats]:
        """Return empty intervals: no decision depends on them, and a simulation shows none."""
        return self.latest.difference[rows], self.latest.difference[rows]

    def note(self) -> None:
        """Note that the models of needed contrasts were needed so far."""
        members, models = self._members(), self.needed_until.size
        steps = -(-(self.fold.now >> STEP_BITS) // models) if self.fold.now > 0 else 0
        self.needed_until[members] = np.maximum(self.needed_until[members], steps)

    def _needed(self, fold: Fold) -> NDArray[np.bool_]:
        if hasattr(self, "fold"):
            self.note()
        return super()._needed(fold)


class _View(Board):
    """A board as one of several runs sees it that take the same answers: with its own progress."""

    def __init__(self, board: Board) -> None:
        self.__dict__.update(board.__dict__)
        self.progress = board.progress.copy()
        self.oldest = 0  # steps before it are no longer read

    def positions(self, models: Ints, start: int, stop: int) -> Ints:
        """Return the positions in a log in which the models take turns."""
        turns = np.arange(start, stop) * len(self.spec.models) + models[:, None] + 1
        return np.where(models[:, None] < len(self.spec.models), turns, 0)

    def steps_at(self, model: int, position: int) -> int:
        """Return how many steps a model had made at a position of that log."""
        return -(-(position - model) // len(self.spec.models))

    def forget(self, before: int) -> None:
        """Note what this run no longer needs; another may still need it."""
        self.oldest = before


class _Run:
    """One run in lockstep on a board that it may share."""

    def __init__(self, spec: SessionSpec, board: Board, stream: Stream) -> None:
        self.spec, self.board, self.stream = spec, board, stream
        self.view = _View(board)
        self.comparison = _Watched(spec, self.view)
        passes = spec.stopping.max_passes
        self.cap = None if passes is None else passes * spec.questions
        self.exhausted = np.zeros(len(spec.models), dtype=bool)

    @property
    def start(self) -> int | None:
        """The step from which the run goes on, or None at its end."""
        if not self.comparison.fold.needed.any():
            return None
        start = int(self.view.progress[np.array(self.comparison.members)].min())
        return None if start == self.cap else start

    def advance(self, start: int) -> None:
        """Take the next block of answers, or drop a model that has no more."""
        comparison, stream, view = self.comparison, self.stream, self.view
        members = np.array(comparison.members)
        rows = members[view.progress[members] == start]
        ended = rows[stream.limit[rows] == start]
        if ended.size:
            comparison.note()
            comparison.lose(int(ended[0]))
            self.exhausted[ended[0]] = True
            return
        stop = _block_end(comparison, rows, start, stream.limit, self.cap)
        done = self.board.progress[rows]
        for begin in np.unique(done[done < stop]).tolist():
            later = rows[done == begin]
            _absorb(self.board, later, begin, stream.take(later, begin, stop))
        view.progress[rows] = stop
        comparison.advance()

    def outcome(self, *, scored: bool) -> RunOutcome:
        """Return what came of the run."""
        comparison = self.comparison
        comparison.note()
        needed = comparison.needed_until
        steps, trials = int(needed.max()), needed.copy()
        if self.spec.allocation.models == "uniform":
            trials = np.minimum(np.full_like(trials, steps), self.stream.limit)
        return RunOutcome(
            comparison.fold.verdict.astype(np.int8),
            comparison.fold.decided_at.copy(),
            trials,
            scores_until(self.spec, self.board, needed) if scored else np.full(trials.size, np.nan),
            steps,
            float(steps),
            _reason(comparison),
            self.exhausted,
        )


def run_together(
    specs: Sequence[SessionSpec], board: Board, stream: Stream, *, scored: bool = True
) -> list[RunOutcome]:
    """Simulate one run by several specs that differ in their margin only: the answers are absorbed once.

    Without `scored`, the outcomes have no scores.
    """
    runs = [_Run(spec, board, stream) for spec in specs]
    active = {number: start for number, run in enumerate(runs) if (start := run.start) is not None}
    while active:
        behind = min(active, key=active.__getitem__)
        runs[behind].advance(active.pop(behind))
        start = runs[behind].start
        if start is not None:
            active[behind] = start
        board.forget(min((runs[number].view.oldest for number in active), default=0))
    return [run.outcome(scored=scored) for run in runs]


def run_fixed(spec: SessionSpec, board: Board, stream: Stream, passes: int) -> RunOutcome:
    """Simulate one run of so many plain passes with one look at the end: z of Bayes@N."""
    models, steps, goal = len(spec.models), passes * spec.questions, make_goal(spec)
    if stream.limit.min() < steps:
        raise UsageError(f"there are fewer than {passes} recorded trials for some model and question")
    rows = np.arange(models)
    for start in range(0, steps, LONGEST):
        stop = min(start + LONGEST, steps)
        _absorb(board, rows, start, stream.take(rows, start, stop))
        board.forget(stop)
    mu, sigma = board.posterior()
    difference = mu[goal.first] - np.where(goal.single, goal.value, mu[goal.second])
    spread = np.hypot(sigma[goal.first], np.where(goal.single, 0.0, sigma[goal.second]))
    called = (np.abs(difference) >= ONE_LOOK * spread) & ~goal.measured
    return RunOutcome(
        np.where(called, np.where(difference > 0, BETTER, WORSE), OPEN).astype(np.int8),
        np.where(called, steps, -1),
        np.full(models, steps),
        mu[:models],
        steps,
        float(steps),
        "max_passes",
        np.zeros(models, dtype=bool),
    )


def _block_end(comparison: Comparison, rows: Ints, start: int, limit: Ints, cap: int | None) -> int:
    """Return how far `rows` can advance at once, within all answers, the trial sequence and the cap."""
    ahead = comparison.board.progress[comparison.members]
    longest = max(LONGEST, LARGEST // comparison.fold.verdict.size)
    stop = min(start + min(max(SHORTEST, start), longest), *limit[rows].tolist(), *ahead[ahead > start])
    if cap is not None:
        stop = min(stop, cap)
    laid_out = comparison.board.run_sequence.laid_out
    return int(min(stop, *map(laid_out, rows.tolist())))


def _absorb(board: Board, rows: Ints, start: int, block: Ints) -> None:
    stop = start + block.shape[1]
    task = board.run_sequence.task(start, stop)
    for index, cells in enumerate(board.cells):
        cells.absorb(rows, block[:, task == index])
    board.progress[rows] = stop


def _reason(comparison: Comparison) -> StopReason:
    if comparison.fold.needed.any():
        return "max_passes"
    if comparison.met:
        return "resolved"
    return "partial" if (comparison.fold.verdict != 0).any() else "endpoints"
