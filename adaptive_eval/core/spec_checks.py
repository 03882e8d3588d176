"""Checks of a session's specification, before any trial.

A config is checked when it is read. These checks are for specifications made by hand, whose mistakes would
otherwise give a meaningless verdict or a run that never ends.
"""

from collections.abc import Iterable, Iterator
from math import inf

import numpy as np

from adaptive_eval.core.budget import Amount, Budget
from adaptive_eval.core.goals import make_goal
from adaptive_eval.core.spec import SessionSpec, TaskSpec
from adaptive_eval.errors import Coded, UsageError
from adaptive_eval.options.decisions import conflicts
from adaptive_eval.options.mistakes import dotted
from scorio.arrays import Bools, Ints
from scorio.sequential.parts import Sample


def check_spec(spec: SessionSpec) -> None:
    """Check that a specification can be run.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, StoppingSpec, TaskSpec
    >>> models, tasks = (ModelSpec("a"),), (TaskSpec("t", ("q",)),)
    >>> check_spec(SessionSpec(models, tasks, stopping=StoppingSpec(equivalence=2.0)))
    Traceback (most recent call last):
        ...
    adaptive_eval.errors.UsageError: stopping.equivalence: 2 must be less than 1: scores go from 0 to 1
    """
    for check in (_names, _tasks, _decisions, _rounds):
        _refuse_first(check(spec))


def check_budgets(spec: SessionSpec) -> None:
    """Check that the budgets of a session can be enforced; a plan does not need this."""
    _refuse_first(_budgets(spec))


def _refuse_first(problems: Iterator[str]) -> None:
    problem = next(problems, None)
    if problem is not None:
        raise UsageError(problem, code="usage/specification")


def spec_warnings(spec: SessionSpec) -> Iterator[Coded]:
    """Yield warnings about scales, prices, and contrasts that a specification can never decide."""
    stopping, goal = spec.stopping, spec.goal
    decidable = decidable_contrasts(spec)
    if spec.goal.kind != "budget" and decidable.size and not decidable.any():
        yield Coded("warning/undecidable", _undecidable(spec))
    else:
        for task in spec.tasks:
            if task.clusters is not None:
                yield from _few_clusters(task.name, task.clusters, 1.0 - stopping.confidence)
    if len(spec.ranges) > 1:
        yield Coded(
            "warning/scales",
            "the tasks' scores have different ranges: overall scores, differences and equivalence go from 0 "
            "(the lowest score of every task) to 1 (the highest)",
        )
    limits = (spec.budget, *(task.budget for task in spec.tasks))
    for model in spec.models:
        if model.price is None and any(budget.usd is not None for budget in (*limits, model.budget)):
            yield Coded(
                "warning/no-price",
                f"{model.name} has no price: its trials count as free under a budget of usd",
            )
    bounded = stopping.max_passes is not None or any(budget.limits() for budget in limits)
    if not bounded and goal.kind == "budget":
        yield Coded(
            "warning/unbounded",
            "the goal budget spends a budget and there is none: the session continues until it is ended",
        )
    elif not bounded and stopping.equivalence is None:
        yield Coded(
            "warning/unbounded",
            "nothing bounds this session: a tie would never stop it; set stopping.equivalence, "
            "stopping.max_passes or a budget",
        )


def decidable_contrasts(spec: SessionSpec) -> Bools:
    """Return which contrasts of a goal some answers could decide: a sample of questions may be too small."""
    goal = make_goal(spec)
    if spec.stopping.target != "population" or spec.stopping.rule != "anytime":
        return np.ones(goal.first.size, dtype=bool)
    sizes = [_sizes(task).astype(np.float64) for task in spec.tasks]
    clustered = any(task.clusters is not None for task in spec.tasks)
    binary = all(len(task.unit_scores) == 2 for task in spec.tasks)
    sample = Sample(sizes, spec.task_weights, clustered, binary, bool(spec.references))
    levels = spec.levels(spec.rule(), goal.hypotheses, goal.claims)
    return np.asarray(sample.decidable(goal, levels, spec.margin) | goal.claimed)


def _sizes(task: TaskSpec) -> Ints:
    """Return the number of questions of each cluster of a task; of each question without clusters."""
    if task.clusters is None:
        names = task.questions
    else:
        names = task.clusters
    return np.asarray(np.unique(names, return_counts=True)[1])


def _undecidable(spec: SessionSpec) -> str:
    number = sum(_sizes(task).size for task in spec.tasks)
    clustered = any(task.clusters is not None for task in spec.tasks)
    kinds = "clusters" if clustered else "questions"
    return (
        f"no answers could decide anything at a confidence of {spec.stopping.confidence:g}: the sample of "
        f"{kinds} is too small ({number}). The run stops after one pass; use more {kinds}, or "
        "stopping.target benchmark, which is about these questions only"
    )


def _few_clusters(task: str, clusters: tuple[str, ...], alpha: float) -> Iterator[Coded]:
    """Warn of clusters so few that even scores without spread would have intervals as wide as all scores."""
    sizes = np.unique(clusters, return_counts=True)[1]
    sample = Sample.from_sizes(sizes)
    if sample.least_radius(alpha) >= 1.0:
        yield Coded(
            "warning/few-clusters",
            f"the {sizes.size} clusters of task {task} count as {sample.worth[0]:.1f} of equal sizes: at a "
            f"confidence of {1.0 - alpha:g} so few say little about a population of clusters; "
            "intervals hold all scores, and only large differences are decided",
        )


def _names(spec: SessionSpec) -> Iterator[str]:
    for section in ("models", "tasks"):
        names = [one.name for one in getattr(spec, section)]
        if not names:
            yield f"{section}: there is none; give at least one"
        yield from (f"{section}: {name!r} appears twice" for name in _doubled(names))


def _tasks(spec: SessionSpec) -> Iterator[str]:
    for task in spec.tasks:
        place = f"task {task.name!r}"
        size = len(task.questions)
        if size == 0:
            yield f"{place}: there are no questions"
        yield from (f"{place}: question {name!r} appears twice" for name in _doubled(task.questions))
        if not 0.0 < task.weight < inf:
            yield f"{place}: the weight must be more than 0 and finite, got {task.weight}"
        if task.calls < 1:
            yield f"{place}: calls must be at least 1, got {task.calls}"
        if task.prompt_bounds is not None and len(task.prompt_bounds) != size:
            entries = len(task.prompt_bounds)
            yield f"{place}: prompt_bounds must have one entry a question ({size}), got {entries}"
        if task.clusters is None:
            continue
        if len(task.clusters) != size:
            yield f"{place}: clusters must have one entry a question ({size}), got {len(task.clusters)}"
        if spec.stopping.target != "population":
            yield f"{place}: clusters need stopping.target 'population', got {spec.stopping.target!r}"
    if spec.overall not in ("macro", "pooled"):
        yield f"overall: {spec.overall!r} is neither 'macro' nor 'pooled'"


def _decisions(spec: SessionSpec) -> Iterator[str]:
    references = [one.name for one in spec.references]
    models = [model.name for model in spec.models]
    for place, words in conflicts(spec, models, references, [task.weights for task in spec.tasks]):
        yield f"{dotted(place)}: {words}"


def _rounds(spec: SessionSpec) -> Iterator[str]:
    if spec.samples_per_prompt < 1:
        yield f"samples_per_prompt: must be at least 1, got {spec.samples_per_prompt}"
    if spec.greedy and (any(spec.own_rounds) or spec.samples_per_prompt > 1):
        name = spec.models[spec.greedy[0]].name
        yield (
            f"models[{name}]: at temperature 0 its noise is measured by later passes over the questions, so "
            "use allocation.questions: schedule and samples_per_request: 1, or vouch for the model with "
            "deterministic: true"
        )


def _budgets(spec: SessionSpec) -> Iterator[str]:
    shared = [
        ("budget", spec.budget),
        *((f"budget of task {task.name!r}", task.budget) for task in spec.tasks),
    ]
    for model in spec.models:
        for place, budget in (*shared, (f"budget of model {model.name!r}", model.budget)):
            if budget.limits().keys() & {"tokens", "completion_tokens", "usd"} and model.max_tokens is None:
                yield (
                    f"{place}: tokens can only be held when the longest answer is known; "
                    f"{model.name!r} has no max_tokens"
                )
    yield from _too_small(spec)


def _too_small(spec: SessionSpec) -> Iterator[str]:
    """Refuse limits that pay no trial of a model: the run would end before it begins."""
    budget = Budget(spec)
    for row, model in enumerate(spec.models):
        cheapest = [_cheapest(budget, row, number) for number in range(len(spec.tasks))]
        accounts = [("budget", budget.run, cheapest)]
        accounts.append((f"budget of model {model.name!r}", budget.models[row], cheapest))
        for task, account, amount in zip(spec.tasks, budget.tasks, cheapest, strict=True):
            accounts.append((f"budget of task {task.name!r}", account, [amount]))
        for place, account, amounts in accounts:
            for name, (limit, least) in account.unaffordable(amounts).items():
                yield (
                    f"{place}: {name} {limit:g} pays no trial of model {model.name!r}: its cheapest may take "
                    f"{least:g}, the prompt and max_tokens included; raise the limit or lower max_tokens"
                )


def _cheapest(budget: Budget, model: int, task: int) -> Amount:
    """Return the worst case of the trial of a task that has the shortest prompt."""
    bounds = budget.spec.tasks[task].prompt_bounds
    question = 0
    if bounds is not None:
        question = min(range(len(bounds)), key=bounds.__getitem__)
    return budget.worst_case(model, task, question)


def _doubled(names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)
