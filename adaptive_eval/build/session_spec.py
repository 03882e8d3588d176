"""From a config and its tasks to the specification of the session and the options of the runner."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, Final

from adaptive_eval.build.model_clients import asked_temperature, prompt_bound
from adaptive_eval.config import RunConfig
from adaptive_eval.config.model import MOST_SAMPLES, ModelConfig
from adaptive_eval.core.spec import AllocationSpec, GoalSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.engine.clock import Deadlines
from adaptive_eval.options.decisions import DEFAULT_PASSES, Decisions
from adaptive_eval.options.task_options import TaskConfig
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import estimated_tokens


def session_spec(
    config: RunConfig,
    tasks: Sequence[Task],
    samples_per_prompt: int,
    own: Mapping[str, Sequence[Task]] = MappingProxyType({}),
) -> SessionSpec:
    """Return the session's view of a config; `samples_per_prompt` is its samples per prompt."""
    variants = list(zip(tasks, *own.values(), strict=True))
    asked = tuple(_task_spec(config, of_task) for of_task in variants)
    return _session_of(config, asked, samples_per_prompt)


def as_configured(config: RunConfig, spec: SessionSpec) -> SessionSpec:
    """Return a stored session with all that its config says; what datasets and earlier runs gave it stays."""
    tasks = []
    for task in spec.tasks:
        section = config.task(task.name)
        weights = section.rubric.category_weights
        calls = _calls(section)
        tasks.append(
            replace(task, weights=weights, budget=section.budget, weight=section.weight, calls=calls)
        )
    made = _session_of(config, tuple(tasks), spec.samples_per_prompt)
    if config.allocation.questions == "auto":
        made = replace(made, allocation=replace(made.allocation, questions=spec.allocation.questions))
    return replace(made, references=spec.references, prior=spec.prior, labels=spec.labels)


def _session_of(config: RunConfig, tasks: tuple[TaskSpec, ...], samples_per_prompt: int) -> SessionSpec:
    return SessionSpec(
        models=tuple(map(_model_spec, config.models)),
        tasks=tasks,
        goal=config.goal,
        stopping=_capped(config.stopping, config.goal),
        allocation=config.allocation,
        spend=config.spend,
        budget=config.budget,
        seed=config.seed,
        overall=config.overall,
        usage_on_failure=config.budget.usage_on_failure,
        samples_per_prompt=samples_per_prompt,
        independent_copies=config.on.copies == "independent",
        redrawn=frozenset(config.on.discarded),
    )


def _task_spec(config: RunConfig, variants: Sequence[Task]) -> TaskSpec:
    task = variants[0]
    section = config.task(task.name)
    return TaskSpec(
        task.name,
        tuple(question.id for question in task.questions),
        section.rubric.category_weights,
        _clusters(config, task),
        prompt_bounds=_prompt_bounds(section, variants),
        prompt_varies=task.shuffles_options or section.solver is not None,
        calls=_calls(section),
        budget=section.budget,
        weight=section.weight,
    )


def decided_spec(
    decisions: Decisions,
    names: Sequence[str],
    tasks: tuple[TaskSpec, ...],
    seed: int,
    *,
    capped: bool,
    early_repeats: bool,
) -> SessionSpec:
    """Return the session of simulated or recorded models; uncapped, a cap of passes holds if it is named."""
    if capped:
        stopping = _capped(decisions.stopping, GoalSpec())
    else:
        stopping = decisions.stopping
    return SessionSpec(
        models=tuple(map(ModelSpec, names)),
        tasks=tasks,
        goal=decisions.goal,
        stopping=stopping,
        allocation=decisions.allocation,
        spend=decisions.spend,
        seed=seed,
        independent_copies=decisions.on.copies == "independent",
        early_repeats=early_repeats,
    )


def _prompt_bounds(config: TaskConfig, variants: Sequence[Task]) -> tuple[int, ...]:
    """Return the most prompt tokens of a trial of each question, over a task as models are asked it."""
    if config.solver is not None:
        return (config.solver.prompt_tokens,) * len(variants[0].questions)
    calls = _calls(config)
    bounds = [0] * len(variants[0].questions)
    for task in variants:
        asked = map(task.render, task.questions)
        bounds = [max(bound, calls * prompt_bound(one)) for bound, one in zip(bounds, asked, strict=True)]
    return tuple(bounds)


def _calls(config: TaskConfig) -> int:
    """Return the most requests of one trial."""
    if config.solver is not None:
        return config.solver.calls
    if config.answers is None:
        return 1
    return config.answers.k


def deadlines_of(config: RunConfig) -> Deadlines:
    """Return the limits of running time."""

    def own(section: Sequence[TaskConfig | ModelConfig]) -> dict[str, float]:
        return {one.name: one.budget.wall_clock for one in section if one.budget.wall_clock is not None}

    return Deadlines(config.budget.wall_clock, own(config.tasks), own(config.models))


def _clusters(config: RunConfig, task: Task) -> tuple[str, ...] | None:
    """Return the cluster of each question if questions are a sample, and the dataset says it."""
    if config.stopping.target != "population" or "cluster" not in config.task(task.name).fields:
        return None
    return tuple(str(question.fields["cluster"]) for question in task.questions)


def _capped(stopping: StoppingSpec, goal: GoalSpec) -> StoppingSpec:
    """Return the rule with its cap on passes; a goal that is to spend a budget has none that is not named."""
    if stopping.max_passes is not None or goal.kind == "budget":
        return stopping
    return replace(stopping, max_passes=DEFAULT_PASSES)


def _model_spec(model: ModelConfig) -> ModelSpec:
    return ModelSpec(
        model.name,
        model.sampling.token_limit,
        model.price,
        model.budget,
        model.deterministic,
        greedy=asked_temperature(model) == 0.0,
    )


ROUNDS: Final = "rounds"
"""Key of the identity of a run's trials that names the tasks asked in rounds of each model's own."""


WIDE: Final = 0.6
"""Trials of each model in flight, for each question, from which on rounds wait long for slow answers and save
few trials (docs/measurements.md, "What do slow answers cost?")."""


def rounds_identity(spec: SessionSpec) -> dict[str, Any]:
    """Return what the identity of a run's trials says of rounds; nothing if there are none."""
    if not spec.tasks_in_rounds:
        return {}
    found: dict[str, Any] = {ROUNDS: list(spec.tasks_in_rounds)}
    if spec.by_cost:
        prices = {model.name: asdict(model.price) for model in spec.models if model.price}
        found["spend"] = {spec.spend: prices if spec.spend == "usd" else {}}
    return found


def worth_of(spec: SessionSpec) -> dict[str, dict[str, Any]]:
    """Return what a category of each task is worth, and its share of the overall score; it may change."""
    weighted = zip(spec.tasks, spec.task_weights, strict=True)
    return {task.name: {"share": round(share, 4), "worths": list(task.weights)} for task, share in weighted}


def question_policy(
    spec: SessionSpec, models: Sequence[ModelConfig], continued: Mapping[str, str] | None
) -> AllocationSpec:
    """Return how questions are chosen; a run that is continued stays with the schedule, or with rounds."""
    if spec.allocation.questions != "auto":
        return spec.allocation
    if continued is None:
        if _is_wide(spec, models):
            return replace(spec.allocation, questions="schedule")
        return spec.allocation
    begun = json.loads(continued.get("identity", "{}")).get(ROUNDS, [])
    if begun == []:
        return replace(spec.allocation, questions="schedule")
    if spec.spend == "time" and begun == [task.name for task in spec.tasks]:
        return replace(spec.allocation, questions="rounds")
    return spec.allocation


def _is_wide(spec: SessionSpec, models: Sequence[ModelConfig]) -> bool:
    """Return whether so many trials are in flight, by the config, that rounds would wait long."""
    known = [model.concurrency for model in models if model.concurrency != "auto"]
    return spec.spend == "trials" and sum(known) >= WIDE * spec.questions * len(models)


PROMPT_WEIGHT = 0.25
"""A prompt token costs a quarter of an answer token: so providers price them; to own servers it is less."""

ASSUMED_ANSWER = 1000.0
"""Tokens of an answer where no longest one is given."""

_PASSES = 8.0
"""Passes after which decisions are taken to fall."""


def further_answers(number: int, passes: float) -> float:
    """Return the share of further answers that a decision takes if a question is asked `number` in a row.

    Examples
    --------
    >>> [round(further_answers(number, passes), 2) for passes in (10, 4) for number in (1, 4, 8)]
    [0.0, 0.03, 0.11, 0.0, 0.17, 0.68]
    """
    if number > 1:
        return 0.17 * (number / passes) ** 2
    return 0.0


def best_samples_per_prompt(prompt: float, answer: float) -> int:
    """Return how many answers with one request cost least, all that a decision takes together.

    Examples
    --------
    >>> [best_samples_per_prompt(*tokens) for tokens in ((100.0, 4096.0), (300.0, 200.0), (700.0, 64.0))]
    [1, 4, 8]
    """

    def cost(number: int) -> float:
        return (PROMPT_WEIGHT * prompt / number + answer) * (1.0 + further_answers(number, _PASSES))

    return min(range(1, MOST_SAMPLES + 1), key=cost)


def samples_per_prompt_of(config: RunConfig, tasks: Sequence[Task]) -> int:
    """Return the samples per prompt that the models' requests can ask for.

    It is the largest number that a model has. If a model has ``auto`` and none a number above 1,
    it follows from the prompts and longest answers of these models, which cannot change between sessions of a
    run: it orders the questions. At temperature 0 answers of one request would agree with each other: 1.
    """
    written = config.samples_written
    asking = [model for model in config.models if model.samples_per_request == "auto"]
    greedy = any(asked_temperature(model) == 0.0 for model in config.models)
    if written > 1 or not asking or greedy:
        return written
    lengths = [
        (estimated_tokens(task.render(question)), task.shuffles_options)
        for task in tasks
        for question in task.questions
    ]
    shared = sum(tokens for tokens, alone in lengths if not alone) / len(lengths)
    own = sum(tokens for tokens, alone in lengths if alone) / len(lengths)
    longest = [model.sampling.token_limit or ASSUMED_ANSWER for model in asking]
    return best_samples_per_prompt(shared, sum(longest) / len(longest) + PROMPT_WEIGHT * own)
