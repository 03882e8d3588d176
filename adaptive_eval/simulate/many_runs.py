"""Running many replicates, over all cores."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.goals import make_goal, sides
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, SessionSpec
from adaptive_eval.core.spec_checks import check_spec
from adaptive_eval.errors import UsageError
from adaptive_eval.executors.processes import available_cores, process_pool
from adaptive_eval.simulate.coins import ENDLESS, AnswerSource, drawn_from, to_score_units
from adaptive_eval.simulate.drivers import (
    Latency,
    run_events,
    run_together,
    sequences_in_lockstep,
)
from adaptive_eval.simulate.result import RunOutcome, SimulationResult
from scorio.arrays import Floats

Report: TypeAlias = Callable[[str, int, int], None]
"""Called with what is simulated, the replicates done and their number."""

Workers: TypeAlias = int | Executor | None
"""Processes, or who has them; None: one for each core this process may use."""

TASKS_PER_WORKER = 8
"""Pieces of work per process, so that none idles long at the end."""

FEWEST = 6
"""Replicates at least where trials bound them: fewer give no 95 % interval of a median."""

TRIALS_KEPT = 20_000
"""Simulated trials after which memory is freed: the boards of runs refer to themselves."""


def simulate(
    spec: SessionSpec,
    answers: AnswerSource,
    replicates: int,
    seed: int,
    in_flight: int = 64,
    latency: Latency | None = None,
    workers: Workers = None,
    progress: Callable[[int, int], None] | None = None,
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
        If an argument is out of range, the answers do not fit the spec, nothing bounds a run (tied models
        would never stop), or a process ends: so it does where a script calls this while it is imported.

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
    report = None if progress is None else lambda _, done, total: progress(done, total)
    return Simulator(replicates, seed, workers, report).run(spec, answers, "", in_flight, latency)


@dataclass(frozen=True)
class Simulator:
    """Simulates many runs: how many, from which seed, by whom, and who is told how far they are.

    With `trials`, there are as many replicates as take about so many trials: from :data:`FEWEST` to
    `replicates`, by the trials of the first ones.
    """

    replicates: int
    seed: int
    workers: Workers = None
    report: Report | None = None
    trials: int | None = None

    def __post_init__(self) -> None:
        if self.replicates < 1:
            raise UsageError(f"replicates must be at least 1, got {self.replicates}")
        if self.seed < 0:
            raise UsageError(f"seed must not be negative, got {self.seed}")

    def run(
        self,
        spec: SessionSpec,
        answers: AnswerSource,
        label: str = "",
        in_flight: int = 1,
        latency: Latency | None = None,
    ) -> SimulationResult:
        """Run a session; see :func:`simulate`. Its progress is told under the name `label`."""
        if in_flight < 1:
            raise UsageError(f"in_flight must be at least 1, got {in_flight}")
        spec = without_budgets(spec, but_trials=True)
        check_spec(spec)
        if make_goal(spec).first.size == 0:
            raise UsageError(
                f"the goal ({spec.goal.text}) compares models and there is one; give two or more"
            )
        fast = in_flight == 1 and latency is None and sequences_in_lockstep(spec)
        return self._results(_Job((spec,), answers, in_flight, latency, fast), label)[0]

    def margins(
        self, spec: SessionSpec, answers: AnswerSource, margins: Sequence[float | None], label: str = ""
    ) -> list[SimulationResult]:
        """Run a session with each of several margins of ties and claims, as :meth:`run` does with one.

        Every replicate takes the same answers with all margins, so they are drawn and read once, if the rule
        does not ask for answers by the margin. One trial is in flight, and nothing but passes bounds a run.
        Scores are left out.
        """
        specs = list(map(spec.with_margin, margins))
        if not sequences_in_lockstep(spec) or spec.stopping.rule == "exact":
            return [self.run(one, answers, label) for one in specs]
        for one in specs:
            check_spec(one)
        return self._results(_Job(tuple(specs), answers), label)

    def _results(self, job: _Job, label: str) -> list[SimulationResult]:
        """Return the runs of each of the job's specs."""
        spec = job.specs[0]
        runs = list[list[RunOutcome]]()
        truth = job.answers.truth(spec)
        _check_ends(spec, job.answers, self.seed)
        seeds = np.random.SeedSequence(self.seed).spawn(self.replicates)
        chosen = self.replicates if self.trials is None else min(FEWEST, self.replicates)
        while len(runs) < chosen:
            for done in self._done(job, seeds[len(runs) : chosen]):
                runs += done
                if self.report is not None:
                    self.report(label, len(runs), chosen)
            chosen = self._chosen(runs)
        pairs = zip(job.specs, zip(*runs, strict=True), strict=True)
        return [collected(one, truth, list(of_one), job.fast) for one, of_one in pairs]

    def _chosen(self, runs: list[list[RunOutcome]]) -> int:
        """Return how many replicates there are, once the first ones are simulated."""
        if self.trials is None:
            return self.replicates
        each = list(map(_most_trials, runs[:FEWEST]))
        affordable = int(self.trials / max(float(np.mean(each)), 1.0))
        return min(max(affordable, FEWEST), self.replicates)

    def _done(self, job: _Job, seeds: Sequence[np.random.SeedSequence]) -> Iterator[list[list[RunOutcome]]]:
        """Yield the replicates of these seeds in order, some at a time."""
        workers = self.workers
        if isinstance(workers, Executor):
            number = getattr(workers, "workers", available_cores())
        else:
            number = workers
            if workers is None:
                number = available_cores()
        if number < 1:
            raise UsageError(f"workers must be at least 1, got {workers}")
        size = max(1, -(-len(seeds) // (number * TASKS_PER_WORKER)))
        pieces = [seeds[start : start + size] for start in range(0, len(seeds), size)]
        pool = workers if isinstance(workers, Executor) else min(number, len(pieces))
        if pool == 1:
            yield from map(job.each, pieces)
            return
        with process_pool(pool) as executor:
            try:
                yield from executor.map(job.each, pieces)
            except BrokenExecutor as error:
                raise UsageError(_ENDED) from error


_ENDED = (
    'a process that simulates has ended: a script calls simulate below `if __name__ == "__main__":`, since '
    "each process imports it again; workers=1 needs no other process, and less memory"
)


def without_budgets(spec: SessionSpec, *, but_trials: bool = False) -> SessionSpec:
    """Return a spec without its budgets, those of models and tasks too, or with those of trials alone."""

    def kept(budget: BudgetSpec) -> BudgetSpec:
        trials = None
        if but_trials:
            trials = budget.trials
        return BudgetSpec(trials=trials)

    models = [replace(model, budget=kept(model.budget)) for model in spec.models]
    tasks = [replace(task, budget=kept(task.budget)) for task in spec.tasks]
    return replace(spec, models=tuple(models), tasks=tuple(tasks), budget=kept(spec.budget))


@dataclass(frozen=True)
class _Job:
    """One replicate of specs that differ in their margin only, as a function of its seed."""

    specs: tuple[SessionSpec, ...]
    answers: AnswerSource
    in_flight: int = 1
    latency: Latency | None = None
    fast: bool = True

    def __call__(self, seed: np.random.SeedSequence) -> list[RunOutcome]:
        of_sequence, of_answers, of_latency = seed.spawn(3)
        drawn_seed = int(of_sequence.generate_state(1, np.uint64)[0]) >> 1
        specs = [replace(spec, seed=drawn_seed) for spec in self.specs]
        answers, truth = drawn_from(self.answers, specs[0], of_answers)
        if self.fast:
            board = SessionAnswers(specs[0])
            stream = answers.begin(specs[0], board.run_sequence, of_answers)
            runs = run_together(specs, board, stream, scored=len(specs) == 1)
        else:
            session = Session(specs[0])
            stream = answers.begin(specs[0], session.board.run_sequence, of_answers)
            rng = np.random.default_rng(of_latency)
            runs = [run_events(session, stream, self.in_flight, self.latency, rng)]
        return [replace(run, truth=truth) for run in runs]

    def each(self, seeds: Sequence[np.random.SeedSequence]) -> list[list[RunOutcome]]:
        """Return the runs of several replicates."""
        found = list[list[RunOutcome]]()
        kept = 0
        for seed in seeds:
            found.append(self(seed))
            kept += sum(int(run.trials.sum()) for run in found[-1])
            if kept >= TRIALS_KEPT:
                gc.collect()
                kept = 0
        return found


def _check_ends(spec: SessionSpec, answers: AnswerSource, seed: int) -> None:
    """Refuse a spec of which a run may never stop."""
    if spec.budget.trials is not None or spec.stopping.max_passes is not None:
        return
    stream = answers.begin(spec, SessionAnswers(spec).run_sequence, np.random.SeedSequence(seed))
    if stream.limit.max() == ENDLESS:
        raise UsageError(
            "nothing bounds a run: tied models would never stop; give max_passes or budget.trials"
        )


def collected(spec: SessionSpec, truth: Floats, runs: list[RunOutcome], one_by_one: bool) -> SimulationResult:
    """Return the result of several runs of one spec."""
    goal = make_goal(spec)
    (origin, unit) = spec.scale
    references = to_score_units(spec, SessionAnswers(spec).scores().difference[truth.size :, 0])

    def gap_of(truth: Floats) -> Floats:
        everyone = np.concatenate([truth, references])
        other = np.where(goal.single, origin + unit * goal.value, everyone[goal.second])
        beyond = np.where(goal.claimed, unit * goal.claim, 0.0)
        return np.where(goal.measured, np.nan, everyone[goal.first] - other + beyond)

    gap = gap_of(truth)
    drawn = [gap_of(run.truth) for run in runs if run.truth is not None]
    pairs = [sides(spec, goal, row) for row in range(gap.size)]
    stacked: dict[str, Any] = {}
    for name in ("verdict", "decided_at", "trials", "score", "steps", "time", "exhausted", "limit"):
        stacked[name] = np.stack([getattr(run, name) for run in runs])
    stacked["score"] = to_score_units(spec, stacked["score"])
    drawn_gap = np.stack(drawn) if drawn else None
    return SimulationResult(
        models=spec.names[: truth.size],
        pairs=tuple(pairs),
        truth=truth,
        gap=gap,
        margin=spec.stopping.equivalence,
        reason=tuple(run.reason for run in runs),
        one_by_one=one_by_one,
        drawn_gap=drawn_gap,
        **stacked,
    )


def _most_trials(runs: list[RunOutcome]) -> int:
    return max(int(run.trials.sum()) for run in runs)
