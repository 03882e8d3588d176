"""Checks of a session's specification, before any trial.

A config is checked when it is read. These checks are for specifications made by hand, whose mistakes would
otherwise give a meaningless verdict or a run that never ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from math import inf
from typing import get_args

import numpy as np

from adaptive_eval.core.spec import BudgetSpec, GoalKind, GoalSpec, QuestionPolicy, SessionSpec
from adaptive_eval.errors import Coded, UsageError
from scorio.sequential.parts import MIN_QUESTIONS

FAMILIES = ("holm", "pair")


def check_spec(spec: SessionSpec) -> None:
    """Check that a specification can be run.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, StoppingSpec, TaskSpec
    >>> models, tasks = (ModelSpec("a"),), (TaskSpec("t", ("q",)),)
    >>> check_spec(SessionSpec(models, tasks, stopping=StoppingSpec(confidence=2.0)))
    Traceback (most recent call last):
        ...
    adaptive_eval.errors.UsageError: stopping.confidence: 2.0 must lie between 0.5 and 1
    """
    for check in (_names, _tasks, _goal, _stopping, _allocation):
        _refuse_first(check(spec))


def check_budgets(spec: SessionSpec) -> None:
    """Check that the budgets of a session can be enforced; a plan does not need this."""
    _refuse_first(_budgets(spec))


def _refuse_first(problems: Iterator[str]) -> None:
    problem = next(problems, None)
    if problem is not None:
        raise UsageError(problem, code="usage/specification")


def spec_warnings(spec: SessionSpec) -> Iterator[Coded]:
    """Yield warnings about contrasts that a specification can never decide."""
    stopping, goal = spec.stopping, spec.goal
    reading = stopping.rule == "anytime"
    for task in spec.tasks:
        size = len(task.questions)
        if reading and size < MIN_QUESTIONS:
            yield Coded(
                "warning/few-questions",
                f"task {task.name} has {size} question{'' if size == 1 else 's'}: the rule {stopping.rule} "
                f"decides nothing before {MIN_QUESTIONS} different questions of every task are answered; the "
                "rule exact can call a winner on fewer",
            )
        if task.clusters is not None and len(set(task.clusters)) == 1 and size > 1:
            yield Coded(
                "warning/one-cluster",
                f"all questions of task {task.name} are in one cluster: nothing can be said about a "
                "population of clusters from one of it",
            )
    limits = (spec.budget, *(task.budget for task in spec.tasks))
    for model in spec.models:
        if model.price is None and any(budget.usd is not None for budget in (*limits, model.budget)):
            yield Coded(
                "warning/no-price",
                f"{model.name} has no price: its trials count as free under a budget of usd",
            )
    if spec.allocation.questions == "rounds" and not any(spec.own_rounds):
        yield Coded(
            "warning/rounds-unused",
            "allocation.questions: rounds is not used where a model is held against a number; schedule is",
        )
    bounded = stopping.max_passes is not None or any(_limits(budget) for budget in limits)
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


def _names(spec: SessionSpec) -> Iterator[str]:
    for section, names in (
        ("models", [one.name for one in spec.models]),
        ("tasks", [t.name for t in spec.tasks]),
    ):
        if not names:
            yield f"{section}: there is none; give at least one"
        yield from (f"{section}: {name!r} appears twice" for name in _doubled(names))


def _tasks(spec: SessionSpec) -> Iterator[str]:
    for task in spec.tasks:
        place, size = f"task {task.name!r}", len(task.questions)
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


def _goal(spec: SessionSpec) -> Iterator[str]:
    known = get_args(GoalKind)
    for goal in spec.goal.parts:
        if goal.kind not in known:
            yield f"goal: {goal.kind!r} is not one of {', '.join(known)}"
        yield from _GOALS.get(goal.kind, _nothing)(goal, spec)


def _top(goal: GoalSpec, spec: SessionSpec) -> Iterator[str]:
    count = len(spec.names)
    if goal.k < 1 or (goal.k >= count and count > 1):
        yield f"goal top-k: k must be at least 1 and less than the number of models ({count}), got {goal.k}"


def _baseline(goal: GoalSpec, spec: SessionSpec) -> Iterator[str]:
    if goal.model not in spec.names:
        yield f"goal baseline: {goal.model!r} is no model of this session ({', '.join(spec.names)})"


def _pairs(goal: GoalSpec, spec: SessionSpec) -> Iterator[str]:
    if not goal.pairs:
        yield "goal pairs: there is no pair; give at least one"
    for pair in goal.pairs:
        for name in pair:
            if name not in spec.names:
                yield f"goal pairs: {name!r} is no model of this session ({', '.join(spec.names)})"
        if len(set(pair)) != 2:
            yield f"goal pairs: a pair is two different models, got {pair!r}"


def _width(goal: GoalSpec, spec: SessionSpec) -> Iterator[str]:
    if not goal.width > 0.0:
        yield f"goal width: the width must be more than 0, got {goal.width}"


def _nothing(goal: GoalSpec, spec: SessionSpec) -> Iterator[str]:
    yield from ()


_GOALS = {"top-k": _top, "baseline": _baseline, "pairs": _pairs, "width": _width}


def _stopping(spec: SessionSpec) -> Iterator[str]:
    stopping, margin = spec.stopping, spec.stopping.equivalence
    if not 0.5 < stopping.confidence < 1.0:
        yield f"stopping.confidence: {stopping.confidence} must lie between 0.5 and 1"
    if stopping.family not in FAMILIES:
        yield f"stopping.family: {stopping.family!r} is not one of {', '.join(FAMILIES)}"
    if stopping.ties not in ("pair", "family"):
        yield f"stopping.ties: {stopping.ties!r} is neither 'pair' nor 'family'"
    if stopping.ties == "family" and (stopping.family == "pair" or stopping.rule == "zscore"):
        yield (
            "stopping.ties: 'family' needs an error rate of all pairs together (stopping.family holm, "
            f"any rule but zscore), got family {stopping.family!r} and rule {stopping.rule!r}"
        )
    if stopping.target not in ("benchmark", "population"):
        yield f"stopping.target: {stopping.target!r} is neither 'benchmark' nor 'population'"
    if not stopping.threshold > 0.0:
        yield f"stopping.threshold: {stopping.threshold} must be more than 0"
    if stopping.max_passes is not None and stopping.max_passes < 1:
        yield f"stopping.max_passes: {stopping.max_passes} must be at least 1"
    if margin is None or not all(np.ptp(task.weights) > 0.0 for task in spec.tasks):
        return  # weights that rank nothing are refused where scores are made of them
    origin, unit = spec.scale
    if not 0.0 < margin < unit:
        yield (
            f"stopping.equivalence: {margin:g} must be more than 0 and less than {unit:g}: scores go from "
            f"{origin:g} to {origin + unit:g}"
        )


def _allocation(spec: SessionSpec) -> Iterator[str]:
    questions, rule = spec.allocation.questions, spec.stopping.rule
    if questions not in get_args(QuestionPolicy):
        yield f"allocation.questions: {questions!r} is not one of schedule, rounds, auto"
    if spec.allocation.samples_per_prompt < 1:
        yield f"allocation.samples_per_prompt: must be at least 1, got {spec.allocation.samples_per_prompt}"
    if spec.allocation.models == "top-two" and spec.goal.kind != "budget":
        yield (
            "allocation.models: top-two buys the best order for a fixed budget and takes up to fourteen "
            f"times the trials to decide pairs; use round-robin; got the goal {spec.goal.kind}"
        )
    if rule == "exact" and len(spec.tasks) > 1:
        yield "stopping.rule: exact is for one task and there are several; use anytime"
    in_a_row = any(spec.own_rounds) or spec.allocation.samples_per_prompt > 1
    if spec.greedy and in_a_row:
        name = spec.models[spec.greedy[0]].name
        yield (
            f"models[{name}]: at temperature 0 its noise is measured by later passes over the questions, so "
            "use allocation.questions: schedule and samples_per_request: 1, or vouch for the model with "
            "deterministic: true"
        )
    if any(spec.own_rounds) and any(goal.kind == "threshold" for goal in spec.goal.parts):
        yield (
            "allocation.questions: a model is held against a number by bets, which need passes that ask all "
            "questions equally often, and rounds ask some more often; use schedule or auto"
        )
    if any(spec.own_rounds) and rule in ("exact", "zscore"):
        # After two passes no pass is complete any more: what is read there favours the questions asked often.
        yield (
            f"stopping.rule: {rule} reads passes that ask every question equally often, and rounds ask some "
            "more often; use allocation.questions: schedule, or the rule anytime"
        )


def _budgets(spec: SessionSpec) -> Iterator[str]:
    shared = [
        ("budget", spec.budget),
        *((f"budget of task {task.name!r}", task.budget) for task in spec.tasks),
    ]
    for model in spec.models:
        for place, budget in (*shared, (f"budget of model {model.name!r}", model.budget)):
            limits = _limits(budget)
            yield from (
                f"{place}: {name} must not be negative, got {v}" for name, v in limits.items() if not v >= 0
            )
            if limits.keys() & {"tokens", "completion_tokens", "usd"} and model.max_tokens is None:
                yield (
                    f"{place}: tokens can only be held when the longest answer is known; "
                    f"{model.name!r} has no max_tokens"
                )


def _limits(budget: BudgetSpec) -> Mapping[str, float]:
    limits = {field.name: getattr(budget, field.name) for field in fields(budget)}
    return {name: limit for name, limit in limits.items() if limit is not None}


def _doubled(names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)
