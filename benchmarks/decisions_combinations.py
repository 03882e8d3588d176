"""The table of every combination of rule, family, target, goal, order, policy and ties that is offered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal

import numpy as np
from decisions_options import Options, heading, percent, row

from adaptive_eval.core.spec import (
    AllocationSpec,
    BudgetSpec,
    GoalSpec,
    ModelSpec,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.core.spec_checks import check_spec
from adaptive_eval.errors import UsageError
from adaptive_eval.options.decisions import POLICIES, RULES, QuestionPolicy
from adaptive_eval.simulate import BiasedCoins, GivenChances, Rate, simulate
from adaptive_eval.simulate.coins import ReplicateAnswers
from scorio.arrays import Floats
from scorio.sequential.contrasts import Target
from scorio.sequential.parts import RunSequence

MEAN, MODELS, QUESTIONS, PASSES = 0.6, 4, 40, 8
WIDTH = GoalSpec("width", width=0.1)
GOALS = (
    GoalSpec(),
    GoalSpec("top-k", k=1),
    GoalSpec("baseline", model="m0"),
    GoalSpec("threshold", value=MEAN),
    WIDTH,
    GoalSpec("pairs", pairs=(("m0", "m1"), ("m2", "m3"))),
    GoalSpec("budget"),
    GoalSpec("all", goals=(GoalSpec(), WIDTH)),
)


@dataclass(frozen=True)
class Sampled:
    """Models that are equal on the population of which the questions of each run are a sample."""

    def truth(self, spec: SessionSpec) -> Floats:
        """Return the mean of the population."""
        return np.full(len(spec.models), MEAN)

    def begin(
        self, spec: SessionSpec, run_sequence: RunSequence, seed: np.random.SeedSequence
    ) -> ReplicateAnswers:
        """Draw the questions of one run."""
        questions, answers = seed.spawn(2)
        shape = (len(spec.models), spec.questions)
        p = np.random.default_rng(questions).beta(8 * MEAN, 8 * (1 - MEAN), size=shape)
        return GivenChances(p).begin(spec, run_sequence, answers)


def offered() -> Iterator[SessionSpec]:
    """Yield a session for each combination that is not refused."""
    task = TaskSpec("t", tuple(f"q{number}" for number in range(QUESTIONS)))
    models = tuple(ModelSpec(f"m{number}") for number in range(MODELS))
    orders: tuple[QuestionPolicy, ...] = ("schedule", "rounds")
    families: tuple[Literal["holm", "pair"], ...] = ("holm", "pair")
    ties: tuple[Literal["pair", "family"], ...] = ("pair", "family")
    targets: tuple[Target, ...] = ("benchmark", "population")
    stopping = product(RULES, families, targets, ties)
    for (rule, family, target, tied), goal, order, policy in product(stopping, GOALS, orders, POLICIES):
        limit = MODELS * QUESTIONS * PASSES if goal.kind == "budget" else None
        spec = SessionSpec(
            models,
            (task,),
            goal,
            StoppingSpec(
                rule=rule, family=family, target=target, ties=tied, equivalence=0.1, max_passes=PASSES
            ),
            allocation=AllocationSpec(policy, order),
            budget=BudgetSpec(trials=limit),
        )
        try:
            check_spec(spec)
        except UsageError:
            continue
        yield spec


def wrong(spec: SessionSpec, runs: int, seed: int) -> tuple[int, int, int]:
    """Return runs with a wrong winner, wrong winners, and contrasts of all runs."""
    population = spec.stopping.target == "population"
    answers = Sampled() if population else BiasedCoins((MEAN,) * MODELS)
    result = simulate(spec, answers, runs, seed, in_flight=1, workers=1)
    return result.family_wise.count, int(result.wrong.sum()), result.wrong.size


def combinations(options: Options) -> None:
    """Print how often equal models are called different, by rule and family, over all combinations."""
    specs, runs = list(offered()), options.number(2400, 1)
    heading(f"{len(specs)} combinations, {runs} runs each", "combinations", "a run", "a contrast")
    found = options.run([partial(wrong, spec, runs, options.seed) for spec in specs])
    sums: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    for spec, counts in zip(specs, found, strict=True):
        sums[spec.stopping.rule, spec.stopping.family].append(counts)
    for (rule, family), each in sums.items():
        in_runs, calls, contrasts = np.sum(each, axis=0).tolist()
        shown = percent(Rate(in_runs, runs * len(each))), percent(Rate(calls, contrasts))
        row(f"{rule}, {family}", str(len(each)), *shown)
