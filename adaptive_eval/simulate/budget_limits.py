"""Costs of simulated runs, and the same runs under a limit.

A run's decisions depend on outcomes alone, and models advance together. So the run under a limit is the run
without it, cut at the step where the limit is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.goals import OPEN
from adaptive_eval.core.spec import BudgetSpec, SessionSpec
from adaptive_eval.simulate.result import SimulationResult
from adaptive_eval.stops import StopReason

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Workload:
    """Tokens, dollars and time of one trial of a model.

    Examples
    --------
    >>> Workload(prompt_tokens=200.0, completion_tokens=800.0).tokens
    1000.0
    """

    # expected tokens; None where unknown
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    usd: float | None = None  # expected price of a trial
    # expected time from one trial's start to the next one's, all those in flight taken together: mean
    # latency over concurrency, or more under a rate limit
    seconds: float | None = None
    disk_bytes: float | None = None  # expected bytes of a stored trial
    # price of a trial asked live, and requests of a batch; None where that is unknown or unavailable
    live_usd: float | None = None
    batch_size: int | None = None

    @property
    def tokens(self) -> float | None:
        """Prompt and completion tokens; None where either is unknown."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


def without_budgets(spec: SessionSpec, *, but_trials: bool = False) -> SessionSpec:
    """Return a spec without its budgets, those of models and tasks too, or with those of trials alone.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, TaskSpec
    >>> spec = SessionSpec((ModelSpec("a"),), (TaskSpec("t", ("q",)),), budget=BudgetSpec(9, tokens=100))
    >>> without_budgets(spec).budget.trials, without_budgets(spec, but_trials=True).budget
    (None, BudgetSpec(trials=9, tokens=None, usd=None, wall_clock=None, prompt_tokens=None, \
completion_tokens=None))
    """

    def kept(budget: BudgetSpec) -> BudgetSpec:
        return BudgetSpec(trials=budget.trials if but_trials else None)

    return replace(
        spec,
        models=tuple(replace(model, budget=kept(model.budget)) for model in spec.models),
        tasks=tuple(replace(task, budget=kept(task.budget)) for task in spec.tasks),
        budget=kept(spec.budget),
    )


def cut_at(result: SimulationResult, step: Floats, reason: StopReason = "budget") -> SimulationResult:
    """Return the runs cut at a step each; verdicts that fell later are open again."""
    late = result.decided_at > step[:, None]
    cut = step < result.steps
    return replace(
        result,
        verdict=np.where(late, OPEN, result.verdict).astype(np.int8),
        decided_at=np.where(late, -1, result.decided_at),
        trials=np.minimum(result.trials, np.floor(step)[:, None]).astype(np.int64),
        steps=np.minimum(result.steps, np.floor(step)).astype(np.int64),
        reason=tuple(reason if ended else earlier for ended, earlier in zip(cut, result.reason, strict=True)),
    )


def steps_within(
    trials: NDArray[np.int64], per_trial: Sequence[float], limit: float, *, parallel: bool = False
) -> Floats:
    """Return up to which step each run can go within a limit.

    Examples
    --------
    >>> steps_within(np.array([[10, 4]]), [1.0, 1.0], 11).tolist()
    [7.0]
    >>> steps_within(np.array([[10, 4]]), [1.0, 3.0], 15, parallel=True).tolist()
    [7.0]
    """
    cost = np.asarray(per_trial, dtype=np.float64)
    runs, models = trials.shape
    order = np.argsort(trials, axis=1, kind="stable")
    ends = np.take_along_axis(trials, order, axis=1).astype(np.float64)
    left, step = np.full(runs, float(limit)), np.zeros(runs)
    reached = np.full(runs, np.inf)
    for place in range(models):
        active = cost[order[:, place:]]
        rate = active.max(axis=1) if parallel else active.sum(axis=1)
        needed = (ends[:, place] - step) * rate
        ended = np.isinf(reached) & (needed > left)
        reached[ended] = step[ended] + left[ended] / rate[ended]
        left -= np.where(np.isinf(reached), needed, 0.0)
        step = np.maximum(step, ends[:, place])
    return reached


def cost_of(trials: NDArray[np.int64], per_trial: Sequence[float], *, parallel: bool = False) -> Floats:
    """Return what each run costs in all, shape (R,); see :func:`steps_within`.

    Examples
    --------
    >>> cost_of(np.array([[10, 4]]), [1.0, 3.0]).tolist()
    [22.0]
    >>> cost_of(np.array([[10, 4]]), [1.0, 3.0], parallel=True).tolist()
    [18.0]
    """
    cost = np.asarray(per_trial, dtype=np.float64)
    if not parallel:
        return np.asarray(trials @ cost)
    order = np.argsort(trials, axis=1, kind="stable")
    ends = np.take_along_axis(trials, order, axis=1)
    lengths = np.diff(ends, axis=1, prepend=0)
    dearest = np.maximum.accumulate(cost[order][:, ::-1], axis=1)[:, ::-1]
    return np.asarray((lengths * dearest).sum(axis=1), dtype=np.float64)
