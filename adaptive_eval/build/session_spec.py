"""From a config and its tasks to the specification of the session and the options of the runner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, Final

from adaptive_eval.build.model_clients import prompt_bound
from adaptive_eval.build.samples_per_prompt import asked_temperature
from adaptive_eval.config import RunConfig
from adaptive_eval.config.decision_config import Decisions, StoppingConfig
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.config.task_config import TaskConfig
from adaptive_eval.core.spec import (
    AllocationSpec,
    BudgetSpec,
    GoalSpec,
    ModelSpec,
    Price,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.engine.clock import Deadlines
from adaptive_eval.tasks.task import Task


def session_spec(
    config: RunConfig,
    tasks: Sequence[Task],
    samples_per_prompt: int,
    own: Mapping[str, Sequence[Task]] = MappingProxyType({}),
) -> SessionSpec:
    """Return the session's view of a config; `samples_per_prompt` is its samples per prompt."""
    stopping = config.stopping
    return SessionSpec(
        models=tuple(_model_spec(model) for model in config.models),
        tasks=tuple(
            TaskSpec(
                task.name,
                tuple(question.id for question in task.questions),
                config.task(task.name).rubric.category_weights,
                _clusters(config, task),
                prompt_bounds=_prompt_bounds(
                    config.task(task.name), [task, *(asked[place] for asked in own.values())]
                ),
                prompt_varies=task.shuffles_options or config.task(task.name).solver is not None,
                calls=solver.calls if (solver := config.task(task.name).solver) is not None else 1,
                budget=BudgetSpec(**config.task(task.name).budget.limits()),
                weight=config.task(task.name).weight,
            )
            for place, task in enumerate(tasks)
        ),
        goal=_goal_spec(config.goal.model_dump()),
        stopping=_stopping_spec(stopping, _max_passes(config)),
        allocation=AllocationSpec(
            config.allocation.models,
            config.allocation.questions,
            samples_per_prompt,
            None if config.allocation.run_ahead == "unlimited" else config.allocation.run_ahead,
        ),
        budget=BudgetSpec(**config.budget.limits()),
        seed=config.seed,
        overall=config.overall,
        usage_on_failure=config.budget.usage_on_failure,
    )


def decided_spec(
    decisions: Decisions,
    names: Sequence[str],
    tasks: tuple[TaskSpec, ...],
    seed: int,
    *,
    capped: bool,
    early_repeats: bool = True,
) -> SessionSpec:
    """Return the session of simulated or recorded models; uncapped, a cap of passes holds if it is named."""
    stopping = decisions.stopping
    limit = stopping.max_passes if capped or "max_passes" in stopping.model_fields_set else None
    return SessionSpec(
        models=tuple(ModelSpec(name) for name in names),
        tasks=tasks,
        goal=_goal_spec(decisions.goal.model_dump()),
        stopping=_stopping_spec(stopping, limit),
        allocation=AllocationSpec(
            decisions.allocation.models, decisions.allocation.questions, early_repeats=early_repeats
        ),
        seed=seed,
    )


def _prompt_bounds(config: TaskConfig, variants: Sequence[Task]) -> tuple[int, ...]:
    """Return the most prompt tokens of a trial of each question, over a task as models are asked it."""
    if config.solver is not None:
        return (config.solver.prompt_tokens,) * len(variants[0].questions)
    by_variant = [[prompt_bound(task.render(question)) for question in task.questions] for task in variants]
    return tuple(map(max, zip(*by_variant, strict=True)))


def deadlines_of(config: RunConfig) -> Deadlines:
    """Return the limits of running time."""
    tasks, models = (
        {one.name: one.budget.wall_clock for one in section if one.budget.wall_clock is not None}
        for section in (config.tasks, config.models)
    )
    return Deadlines(config.budget.wall_clock, tasks, models)


def _clusters(config: RunConfig, task: Task) -> tuple[str, ...] | None:
    """Return the cluster of each question where questions are a sample, and the dataset says it."""
    if config.stopping.target != "population" or "cluster" not in config.task(task.name).fields:
        return None
    return tuple(str(question.fields["cluster"]) for question in task.questions)


def _max_passes(config: RunConfig) -> int | None:
    """Return the cap on passes; a goal that is to spend a budget has none that the config does not name."""
    named = "max_passes" in config.stopping.model_fields_set
    return config.stopping.max_passes if named or config.goal.kind != "budget" else None


def _stopping_spec(stopping: StoppingConfig, max_passes: int | None) -> StoppingSpec:
    """Return the rule; where it is zscore, its z belongs to the confidence: 1.645 at 0.95."""
    z = round(NormalDist().inv_cdf(stopping.confidence), 3)
    return StoppingSpec(**{**stopping.model_dump(), "max_passes": max_passes}, threshold=z)


def _goal_spec(goal: Mapping[str, Any]) -> GoalSpec:
    parts = tuple(_goal_spec(part) for part in goal.get("goals", ()))
    return GoalSpec(**{**goal, "goals": parts})


def _model_spec(model: ModelConfig) -> ModelSpec:
    price = None
    if model.price is not None:
        price = Price(model.price.input, model.price.output, model.price.cached_input)
    limits = BudgetSpec(**model.budget.limits())
    greedy = asked_temperature(model) == 0.0
    return ModelSpec(model.name, model.sampling.token_limit, price, limits, model.deterministic, greedy)


ROUNDS: Final = "rounds"
"""Key of the identity of a run's trials that names the tasks asked in rounds of each model's own."""


def question_policy(
    allocation: AllocationSpec, continued: Mapping[str, str] | None, pilot: int = 0
) -> AllocationSpec:
    """Return how questions are chosen; a run that began along the schedule stays there."""
    along = continued is not None and ROUNDS not in json.loads(continued.get("identity", "{}"))
    if allocation.questions == "auto" and (along or pilot > 1 + allocation.samples_per_prompt):
        return replace(allocation, questions="schedule")
    return allocation
