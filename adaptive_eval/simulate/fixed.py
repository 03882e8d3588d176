"""Runs of fixed length: the same number of trials for every model, one look at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from adaptive_eval.core.goals import BETTER, OPEN, WORSE, Goal, make_goal
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.simulate.coins import Answers, Stream, asked, drawn_from
from adaptive_eval.simulate.many_runs import Progress, Workers, collected, map_replicates
from adaptive_eval.simulate.result import RunOutcome, SimulationResult
from scorio.sequential.parts import RunSequence

ONE_LOOK = 1.645
"""The paper's z for a ranking confidence of 95 %."""

PIECE = 4096
"""Steps drawn at once."""


def simulate_fixed(
    spec: SessionSpec,
    answers: Answers,
    passes: int,
    replicates: int,
    seed: int,
    threshold: float = ONE_LOOK,
    workers: Workers = None,
    progress: Progress | None = None,
) -> SimulationResult:
    """Simulate runs in which everyone answers every question `passes` times, with one look at the end.

    A pair gets a winner where z = |μ − μ'| / √(σ² + σ'²) of Bayes@N reaches `threshold`: the paper's rule
    [1]_, for the one look it is meant for.

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski, Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
       Language Model Evaluation. arXiv:2510.04265.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, TaskSpec
    >>> from adaptive_eval.simulate import BiasedCoins
    >>> questions = tuple(f"q{number}" for number in range(30))
    >>> spec = SessionSpec((ModelSpec("good"), ModelSpec("bad")), (TaskSpec("t", questions),))
    >>> result = simulate_fixed(spec, BiasedCoins((0.9, 0.3)), 10, replicates=5, seed=1, workers=1)
    >>> result.total.tolist(), result.share("decided")
    ([600, 600, 600, 600, 600], 1.0)
    """
    if passes < 1:
        raise UsageError(f"passes must be at least 1, got {passes}")
    if replicates < 1:
        raise UsageError(f"replicates must be at least 1, got {replicates}")
    truth = answers.truth(spec)
    job = _FixedJob(spec, answers, passes, threshold)
    return collected(spec, truth, map_replicates(job, replicates, seed, workers, progress), one_by_one=False)


@dataclass(frozen=True)
class _FixedJob:
    """One replicate, as a function of its seed."""

    spec: SessionSpec
    answers: Answers
    passes: int
    threshold: float

    def __call__(self, seed: np.random.SeedSequence) -> RunOutcome:
        of_sequence, of_answers, _ = seed.spawn(3)
        spec = replace(self.spec, seed=int(of_sequence.generate_state(1, np.uint64)[0] >> 1))
        run_sequence = _whole_passes(spec, self.passes)
        answers, truth = drawn_from(self.answers, spec, of_answers)
        stream = answers.begin(spec, run_sequence, of_answers)
        steps = self.passes * spec.questions
        if stream.limit.min() < steps:
            raise UsageError(
                f"there are fewer than {self.passes} recorded trials for some model and question"
            )
        board = Board(spec)
        for cells, counts in zip(board.cells, _counts(spec, run_sequence, stream, steps), strict=True):
            cells.counts[: len(counts)] = counts
        mu, sigma = board.posterior()
        goal = make_goal(spec)
        verdict = _verdicts(goal, mu, sigma, self.threshold)
        models = len(spec.models)
        return RunOutcome(
            verdict,
            np.where(verdict == OPEN, -1, steps),
            np.full(models, steps),
            mu[:models],
            steps,
            float(steps),
            "max_passes",
            np.zeros(models, dtype=bool),
            truth,
        )


def _whole_passes(spec: SessionSpec, passes: int) -> RunSequence:
    """Return a trial sequence of plain passes, without early repeats."""
    run_sequence = RunSequence([len(task.questions) for task in spec.tasks], spec.seed)
    for sequence in run_sequence.sequences:
        sequence.end_passes()
        sequence.extend(np.tile(np.arange(sequence.questions), passes))
    return run_sequence


def _counts(
    spec: SessionSpec, run_sequence: RunSequence, stream: Stream, steps: int
) -> list[NDArray[np.int64]]:
    """Return the category counts of every task, each of shape (L, M, C + 1)."""
    models = len(spec.models)
    most = max(len(task.weights) for task in spec.tasks)
    flat = np.zeros(models * spec.questions * most, dtype=np.int64)
    rows = np.arange(models)
    for start in range(0, steps, PIECE):
        stop = min(start + PIECE, steps)
        questions = asked(run_sequence, np.zeros(1, dtype=np.int64), start, stop)[0][0]
        categories = stream.take(rows, start, stop)
        cells = (rows[:, None] * spec.questions + questions) * most + categories
        flat += np.bincount(cells.ravel(), minlength=flat.size)
    counts = flat.reshape(models, spec.questions, most)
    ends = np.cumsum([len(task.questions) for task in spec.tasks])[:-1]
    parts = np.split(counts, ends, axis=1)
    return [part[:, :, : len(task.weights)] for part, task in zip(parts, spec.tasks, strict=True)]


def _verdicts(
    goal: Goal, mu: NDArray[np.float64], sigma: NDArray[np.float64], threshold: float
) -> NDArray[np.int8]:
    single = goal.single
    difference = mu[goal.first] - np.where(single, goal.value, mu[goal.second])
    spread = np.hypot(sigma[goal.first], np.where(single, 0.0, sigma[goal.second]))
    called = (np.abs(difference) >= threshold * spread) & ~goal.measured
    return np.where(called, np.where(difference > 0, BETTER, WORSE), OPEN).astype(np.int8)
