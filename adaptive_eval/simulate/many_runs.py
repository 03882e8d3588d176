"""Running many replicates, over all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from adaptive_eval.core.board import Board
from adaptive_eval.core.goals import make_goal, sides
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.core.spec_checks import check_spec
from adaptive_eval.errors import UsageError
from adaptive_eval.executors.processes import available_cores, process_pool
from adaptive_eval.simulate.budget_limits import without_budgets
from adaptive_eval.simulate.coins import ENDLESS, Answers, Floats, drawn_from, to_score_units
from adaptive_eval.simulate.lockstep import (
    answers_can_be_shared,
    run_lockstep,
    run_together,
    sequences_in_lockstep,
)
from adaptive_eval.simulate.result import RunOutcome, SimulationResult
from adaptive_eval.simulate.virtual_time import Latency, run_events
from scorio.sequential.parts import RunSequence, unit_scores

Progress = Callable[[int, int], None]
"""Called with the replicates done and their number."""

Workers: TypeAlias = int | Executor | None
"""Processes, or who has them; None: one for each core this process may use."""

T = TypeVar("T")

TASKS_PER_WORKER = 8
"""Pieces of work per process, so that none idles long at the end."""


def simulate(
    spec: SessionSpec,
    answers: Answers,
    replicates: int,
    seed: int,
    in_flight: int = 64,
    latency: Latency | None = None,
    workers: Workers = None,
    progress: Progress | None = None,
) -> SimulationResult:
    """Run a session many times in virtual time against answers whose truth is known.

    Every replicate has its own trial sequence and its own answers. Decisions come from the session's own
    code. The course of each contrast depends on the outcomes alone; `in_flight` and `latency` change costs,
    durations and, with Holm's falling thresholds, at most the step of a call.

    Parameters
    ----------
    spec : SessionSpec
        Models, tasks, goal, rule, allocation and budget; its seed is replaced in every replicate.
    answers : Answers
        :class:`~adaptive_eval.simulate.BiasedCoins`, :class:`~adaptive_eval.simulate.GivenChances`,
        :class:`~adaptive_eval.simulate.RecordedAnswers`, or your own.
    replicates : int
        Number of runs.
    seed : int
        Results depend on it and on nothing else, not on the number of processes.
    in_flight : int
        Most trials in flight, of all models together. With 1, no latency, no budget and a policy that goes by
        turns, a much faster way with the same results is taken.
    latency : Latency, optional
        How long answers take; without it, all trials asked for together are answered together.
    workers : int or Executor, optional
        Processes, or an executor of :mod:`concurrent.futures` that has them, such as
        :class:`~adaptive_eval.executors.ray_cluster.RayPool`. Default: one for each core this process may
        use.
    progress : callable, optional
        Called as ``progress(done, replicates)`` as replicates finish.

    Returns
    -------
    SimulationResult
        Verdicts, trials, time, and the errors that follow.

    Raises
    ------
    UsageError
        If an argument is out of range, the answers do not fit the spec, or nothing bounds a run: tied models
        would never stop.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, StoppingSpec, TaskSpec
    >>> from adaptive_eval.simulate import BiasedCoins
    >>> questions = tuple(f"q{number}" for number in range(30))
    >>> spec = SessionSpec(
    ...     (ModelSpec("good"), ModelSpec("bad")),
    ...     (TaskSpec("t", questions),),
    ...     stopping=StoppingSpec(max_passes=80),
    ... )
    >>> result = simulate(spec, BiasedCoins((0.9, 0.3)), 20, seed=1, in_flight=1, workers=1)
    >>> result.reasons, result.family_wise.count
    ({'resolved': 20}, 0)
    """
    if replicates < 1:
        raise UsageError(f"replicates must be at least 1, got {replicates}")
    if in_flight < 1:
        raise UsageError(f"in_flight must be at least 1, got {in_flight}")
    spec = without_budgets(spec, but_trials=True)
    check_spec(spec)
    if make_goal(spec).first.size == 0:
        raise UsageError(f"the goal ({spec.goal.text}) compares models and there is one; give two or more")
    truth = answers.truth(spec)
    fast = in_flight == 1 and latency is None and sequences_in_lockstep(spec)
    job = _Job(spec, answers, in_flight, latency, fast)
    _check_ends(job, seed)
    runs = map_replicates(job, replicates, seed, workers, progress)
    return collected(spec, truth, runs, fast)


def simulate_margins(
    spec: SessionSpec,
    answers: Answers,
    margins: Sequence[float | None],
    replicates: int,
    seed: int,
    workers: Workers = None,
    progress: Progress | None = None,
) -> list[SimulationResult]:
    """Run a session many times with each of several equivalence margins, as :func:`simulate` does with one.

    Every replicate takes the same answers with all margins, so they are drawn and read once. One trial is in
    flight, and nothing but passes bounds a run. Scores are left out.
    """
    specs = [replace(spec, stopping=replace(spec.stopping, equivalence=margin)) for margin in margins]
    if not (sequences_in_lockstep(spec) and answers_can_be_shared(spec)):
        parts = len(specs)

        def of(number: int) -> Progress | None:
            if progress is None:
                return None
            return lambda done, total: progress((number * total + done) // parts, total)

        return [
            simulate(one, answers, replicates, seed, 1, None, workers, of(number))
            for number, one in enumerate(specs)
        ]
    for one in specs:
        check_spec(one)
    truth = answers.truth(spec)
    _check_ends(_Job(spec, answers, 1, None, fast=True), seed)
    runs = map_replicates(_Together(tuple(specs), answers), replicates, seed, workers, progress)
    return [
        collected(one, truth, list(of_one), True)
        for one, of_one in zip(specs, zip(*runs, strict=True), strict=True)
    ]


@dataclass(frozen=True)
class _Together:
    """One replicate with several margins, as a function of its seed."""

    specs: tuple[SessionSpec, ...]
    answers: Answers

    def __call__(self, seed: np.random.SeedSequence) -> list[RunOutcome]:
        of_sequence, of_answers, _ = seed.spawn(3)
        specs = [_replicated(spec, of_sequence) for spec in self.specs]
        answers, truth = drawn_from(self.answers, specs[0], of_answers)
        board = Board(specs[0])
        stream = answers.begin(specs[0], board.run_sequence, of_answers)
        return [replace(run, truth=truth) for run in run_together(specs, board, stream, scored=False)]


def _replicated(spec: SessionSpec, seed: np.random.SeedSequence) -> SessionSpec:
    """Return the spec of one replicate."""
    return replace(spec, seed=int(seed.generate_state(1, np.uint64)[0] >> 1))


@dataclass(frozen=True)
class _Job:
    """One replicate, as a function of its seed."""

    spec: SessionSpec
    answers: Answers
    in_flight: int
    latency: Latency | None
    fast: bool

    def __call__(self, seed: np.random.SeedSequence) -> RunOutcome:
        of_sequence, of_answers, of_latency = seed.spawn(3)
        spec = _replicated(self.spec, of_sequence)
        answers, truth = drawn_from(self.answers, spec, of_answers)
        if self.fast:
            board = Board(spec)
            run = run_lockstep(spec, board, answers.begin(spec, board.run_sequence, of_answers))
        else:
            session = Session(spec)
            stream = answers.begin(spec, session.board.run_sequence, of_answers)
            rng = np.random.default_rng(of_latency)
            run = run_events(session, stream, self.in_flight, self.latency, rng)
        return replace(run, truth=truth)


def _check_ends(job: _Job, seed: int) -> None:
    """Refuse a spec of which a run may never stop."""
    spec, budget = job.spec, job.spec.budget
    if budget.trials is not None or spec.stopping.max_passes is not None:
        return
    sizes = [len(task.questions) for task in spec.tasks]
    run_sequence = RunSequence(sizes, spec.seed, spec.samples_per_prompt)
    stream = job.answers.begin(spec, run_sequence, np.random.SeedSequence(seed))
    if stream.limit.max() == ENDLESS:
        raise UsageError(
            "nothing bounds a run: tied models would never stop; give max_passes or budget.trials"
        )


def map_replicates(
    job: Callable[[np.random.SeedSequence], T],
    replicates: int,
    seed: int,
    workers: Workers = None,
    progress: Progress | None = None,
) -> list[T]:
    """Return the outcome of every replicate, in order; replicate r has child r of the seed."""
    if isinstance(workers, Executor):
        number = getattr(workers, "workers", available_cores())
    else:
        number = available_cores() if workers is None else workers
    if number < 1:
        raise UsageError(f"workers must be at least 1, got {workers}")
    if seed < 0:
        raise UsageError(f"seed must not be negative, got {seed}")
    seeds = np.random.SeedSequence(seed).spawn(replicates)
    size = max(1, -(-replicates // (number * TASKS_PER_WORKER)))
    pieces = [seeds[start : start + size] for start in range(0, replicates, size)]
    done = 0
    results: list[list[T]] = [[] for _ in pieces]
    for index, outcomes in _run_pieces(
        job, pieces, workers if isinstance(workers, Executor) else min(number, len(pieces))
    ):
        results[index] = outcomes
        done += len(outcomes)
        if progress is not None:
            progress(done, replicates)
    return [outcome for piece in results for outcome in piece]


def _run_pieces(
    job: Callable[[np.random.SeedSequence], T],
    pieces: list[list[np.random.SeedSequence]],
    workers: int | Executor,
) -> Iterator[tuple[int, list[T]]]:
    if workers == 1:
        for index, piece in enumerate(pieces):
            yield index, [job(seed) for seed in piece]
        return
    with process_pool(workers) as pool:
        futures: dict[Future[list[T]], int] = {
            pool.submit(_run_piece, job, piece): index for index, piece in enumerate(pieces)
        }
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            for future in futures:
                future.cancel()


def _run_piece(job: Callable[[np.random.SeedSequence], T], seeds: list[np.random.SeedSequence]) -> list[T]:
    return [job(seed) for seed in seeds]


def collected(spec: SessionSpec, truth: Floats, runs: list[RunOutcome], one_by_one: bool) -> SimulationResult:
    """Return the result of several runs of one spec."""
    goal, (origin, unit) = make_goal(spec), spec.scale
    references = _reference_scores(spec)

    def gap_of(truth: Floats) -> Floats:
        everyone = np.concatenate([truth, references])
        other = np.where(goal.single, origin + unit * goal.value, everyone[goal.second])
        return np.where(goal.measured, np.nan, everyone[goal.first] - other)

    gap, drawn = gap_of(truth), [gap_of(run.truth) for run in runs if run.truth is not None]
    return SimulationResult(
        models=spec.names[: truth.size],
        pairs=tuple(sides(spec, goal, row) for row in range(gap.size)),
        truth=truth,
        gap=gap,
        margin=spec.stopping.equivalence,
        verdict=np.stack([run.verdict for run in runs]),
        decided_at=np.stack([run.decided_at for run in runs]),
        trials=np.stack([run.trials for run in runs]),
        score=to_score_units(spec, np.stack([run.score for run in runs])),
        steps=np.array([run.steps for run in runs]),
        time=np.array([run.time for run in runs]),
        reason=tuple(run.reason for run in runs),
        exhausted=np.stack([run.exhausted for run in runs]),
        one_by_one=one_by_one,
        drawn_gap=np.stack(drawn) if drawn else None,
    )


def _reference_scores(spec: SessionSpec) -> Floats:
    """Return the scores of the references: the means of the trials they have."""
    scores = np.zeros(len(spec.references))
    for row, reference in enumerate(spec.references):
        for task, weight in zip(spec.tasks, spec.task_weights, strict=True):
            counts = reference.counts[task.name]
            asked = counts.sum(axis=1)
            means = counts[asked > 0] @ unit_scores(task.weights) / asked[asked > 0]
            scores[row] += weight * means.mean()
    return to_score_units(spec, scores)
