"""Errors and savings of whole leaderboards: coins, policies, concurrency, recorded outcomes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_eval.core.spec import (
    AllocationSpec,
    BudgetSpec,
    GoalSpec,
    ModelSpec,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.simulate import BiasedCoins, Latency, RecordedAnswers, RecordedOutcomes, simulate
from scorio.rank import kendall_tau_b
from scorio.study import PAPER_MEANS, biased_coins

NEVER = 100_000
"""Passes that no run here comes to: it ends by its verdicts."""

ONE_LOOK = 1.645
"""The paper's z for a ranking confidence of 95 %."""

BOARDS: dict[str, tuple[float, ...]] = {
    "5 models, spaced": (0.3, 0.4, 0.5, 0.6, 0.7),
    "5 models, all tied": (0.5,) * 5,
    "11 models, the paper's": PAPER_MEANS,
    "11 models, all tied": (0.4,) * 11,
    "20 models, spaced": tuple(np.linspace(0.2, 0.8, 20).round(4).tolist()),
    "20 models, 4 groups of ties": tuple(np.repeat([0.3, 0.45, 0.6, 0.75], 5).tolist()),
    "20 models, all tied": (0.6,) * 20,
}


@dataclass(frozen=True, slots=True)
class BoardResult:
    """Sums over the runs of one kind of board."""

    runs: int
    any_wrong: int
    runs_with_wrong_tie: int
    wrong_ties: int
    apart: int
    contrasts: int
    decided: int
    ties: int
    trials: float
    uniform: float | None
    resolved: int
    steps: tuple[tuple[int, ...], ...]
    """Steps of all calls of each run."""
    verdicts: tuple[tuple[int, ...], ...]
    """What is called of each pair of each run; 0 where nothing is."""

    def __add__(self, other: BoardResult) -> BoardResult:
        """Add other runs of the same board."""
        uniform = None if self.uniform is None or other.uniform is None else self.uniform + other.uniform
        sums: dict[str, Any] = {}
        for one in fields(self):
            if one.name != "uniform":
                sums[one.name] = getattr(self, one.name) + getattr(other, one.name)
        return BoardResult(**sums, uniform=uniform)


def board_spec(
    models: int, questions: int, goal: GoalSpec, policy: str, order: str, **stopping: Any
) -> SessionSpec:
    """Return the session of a board of models m0, m1, …."""
    return SessionSpec(
        models=tuple(ModelSpec(f"m{number}") for number in range(models)),
        tasks=(TaskSpec("t", tuple(f"q{number}" for number in range(questions))),),
        goal=goal,
        stopping=replace(StoppingSpec(max_passes=80), **stopping),
        allocation=AllocationSpec(policy, order),  # type: ignore[arg-type]
    )


def board(
    means: tuple[float, ...],
    questions: int,
    runs: int,
    seed: int,
    *,
    goal: GoalSpec | None = None,
    policy: str = "round-robin",
    order: str = "schedule",
    concentration: float = 8.0,
    correlation: float = 0.5,
    in_flight: int = 1,
    latency: Latency | None = None,
    **stopping: Any,
) -> BoardResult:
    """Run a board of coins."""
    spec = board_spec(len(means), questions, goal or GoalSpec(), policy, order, **stopping)
    answers = BiasedCoins(means, concentration, correlation)
    result = simulate(spec, answers, runs, seed, in_flight, latency, workers=1)
    return summed(result)


def summed(result: Any) -> BoardResult:
    """Return the sums of a simulation."""
    return BoardResult(
        runs=result.replicates,
        any_wrong=result.family_wise.count,
        runs_with_wrong_tie=int(result.wrong_tie.any(axis=1).sum()),
        wrong_ties=result.wrong_ties.count,
        apart=result.wrong_ties.total,
        contrasts=result.verdict.size,
        decided=int((np.abs(result.verdict) == 1).sum()),
        ties=int((result.verdict == 2).sum()),
        trials=float(result.total.sum()),
        uniform=float(result.uniform_total.sum()) if result.one_by_one else None,
        resolved=result.reasons.get("resolved", 0),
        steps=tuple(map(tuple, result.decided_at.tolist())),
        verdicts=tuple(map(tuple, result.verdict.tolist())),
    )


def ranking_tau(
    means: tuple[float, ...], questions: int, passes: int, runs: int, seed: int, policy: str
) -> float:
    """Return the mean Kendall τ-b between truth and final scores of runs that spend a fixed budget."""
    spec = board_spec(len(means), questions, GoalSpec("budget"), policy, "schedule", max_passes=None)
    spec = replace(spec, budget=BudgetSpec(trials=passes * questions * len(means)))
    result = simulate(spec, BiasedCoins(means, correlation=0.5), runs, seed, in_flight=32, workers=1)
    return float(np.mean([kendall_tau_b(result.truth, score) for score in result.score]))


def random_board(models: int, questions: int, runs: int, seed: int, **parts: Any) -> BoardResult:
    """Run boards whose means are drawn anew, uniformly from 0.2 to 0.8; "best" names the best model."""
    total: BoardResult | None = None
    for child in np.random.SeedSequence(seed).spawn(runs):
        rng = np.random.default_rng(child)
        means = np.sort(rng.uniform(0.2, 0.8, models))
        result = board(tuple(means.tolist()), questions, 1, int(rng.integers(2**31)), **parts)
        total = result if total is None else total + result
    assert total is not None
    return total


def fixed_board(
    means: tuple[float, ...], questions: int, passes: int, runs: int, seed: int
) -> tuple[int, int]:
    """Return the runs of fixed length with any wrong winner at one look, and their number.

    A pair gets a winner if |μ - μ'| / √(σ² + σ'²) of Bayes@N reaches the paper's z.
    """
    truth, wrong = np.array(means), 0
    for child in np.random.SeedSequence(seed).spawn(runs):
        drawn, asked = child.spawn(2)
        chances = biased_coins(means, questions, seed=drawn, correlation=0.5).p
        right = np.random.default_rng(asked).binomial(passes, chances)
        share = (right + 1) / (passes + 2)
        variance = (share * (1.0 - share) / (passes + 3)).sum(axis=1) / questions**2
        mu = share.mean(axis=1)
        difference = mu[:, None] - mu
        called = difference >= ONE_LOOK * np.sqrt(variance[:, None] + variance)
        wrong += bool((called & (truth[:, None] <= truth)).any())
    return wrong, runs


# ---------------------------------------------------------------------- recorded outcomes


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Sums over replays of recorded outcomes."""

    runs: int
    contrasts: int
    wrong: int
    decided: int
    ties: int
    trials: float
    recorded: float
    passes_to_call: tuple[float, ...]


def replay(path: Path, models: tuple[str, ...], runs: int, seed: int, **stopping: Any) -> ReplayResult:
    """Replay some models of a file in shuffled order."""
    recorded = read_recorded([path]).only(models)
    result = simulate(_replay_spec(recorded, **stopping), RecordedAnswers(recorded), runs, seed, 1, workers=1)
    won = np.abs(result.verdict) == 1
    return ReplayResult(
        runs=runs,
        contrasts=result.verdict.size,
        wrong=int(result.wrong.sum()),
        decided=int(won.sum()),
        ties=int((result.verdict == 2).sum()),
        trials=float(result.total.sum()),
        recorded=float(recorded.trials * runs),
        passes_to_call=tuple((result.decided_at[won] / len(recorded.questions)).tolist()),
    )


def _replay_spec(recorded: RecordedOutcomes, **stopping: Any) -> SessionSpec:
    return SessionSpec(
        models=tuple(ModelSpec(name) for name in recorded.models),
        tasks=recorded.task_specs(),
        stopping=replace(StoppingSpec(), **stopping),
    )


def replay_means(path: Path) -> dict[str, float]:
    """Return the all-trial mean of every model of a file that solves at least 5 %, worst first."""
    recorded = read_recorded([path])
    means = np.nanmean(recorded.scores(), axis=1)
    order = np.argsort(means)
    return {recorded.models[row]: float(means[row]) for row in order.tolist() if means[row] >= 0.05}
