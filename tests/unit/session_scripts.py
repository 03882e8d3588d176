"""Driving a session with scripted answers, in whatever order and batches a test wants."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache

import numpy as np

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import (
    AllocationSpec,
    BudgetSpec,
    GoalSpec,
    ModelSpec,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.trial import Missing, TrialOutcome, TrialRequest


def make_spec(models=3, questions=30, *, weights=(0.0, 1.0), goal="ranking", seed=5, **parts) -> SessionSpec:
    """Return a spec of models m0, m1, …, or of these names; keywords go to the part that knows them.

    `deterministic` names the models that are said to repeat their answers.
    """
    names = [f"m{number}" for number in range(models)] if isinstance(models, int) else models

    def known(section):
        return {one.name: parts[one.name] for one in fields(section) if one.name in parts}

    most, greedy, same = parts.get("max_tokens"), parts.get("greedy", False), parts.get("deterministic", ())
    asked = tuple(f"q{number}" for number in range(questions))
    return SessionSpec(
        models=tuple(ModelSpec(one, most, greedy=greedy, deterministic=one in same) for one in names),
        tasks=(TaskSpec("t", asked, weights, prompt_bounds=parts.get("prompt_bounds")),),
        goal=GoalSpec(goal, **known(GoalSpec)),
        stopping=StoppingSpec(**known(StoppingSpec)),
        allocation=AllocationSpec(parts.get("policy", "round-robin"), parts.get("rounds", "schedule")),
        budget=BudgetSpec(**known(BudgetSpec)),
        seed=seed,
    )


def coin(means, *, seed=0, spread=0.0) -> Callable[[TrialRequest], int]:
    """Return answers that depend on the trial alone: biased coins with the given means."""

    def answer(request: TrialRequest) -> int:
        model = int(request.key.model[1:])
        chance = means[model]
        if spread:
            chance += spread * np.random.default_rng([seed, 7, int(request.question[1:])]).standard_normal()
        return int(_toss(seed, model, request.key.index) < chance)

    return answer


@cache
def _toss(seed: int, model: int, step: int) -> float:
    return float(np.random.default_rng([seed, model, step]).random())


def drive(
    session: Session, answer, *, slots=8, rng=None, most=10**6, missing=None, log=None, why="scripted"
) -> Session:
    """Run a session to its stop; with `rng`, answers come back in random order and batches.

    What is told is appended to `log`, batch by batch.
    """
    flying: list[TrialRequest] = []
    told = 0
    while session.stopped is None and told < most:
        out = zip(session.spec.models, session.states.in_flight, strict=True)
        flying += session.ask({model.name: slots - number for model, number in out})
        if session.stopped is not None:
            break
        assert flying, "nothing asked, nothing in flight, not stopped"
        count = len(flying)
        if rng is not None:
            rng.shuffle(flying)
            count = int(rng.integers(1, len(flying) + 1))
        batch, flying = flying[:count], flying[count:]
        outcomes = []
        for request in batch:
            lost = missing is not None and missing(request)
            outcomes.append(Missing(request.key, why) if lost else TrialOutcome(request.key, answer(request)))
        session.tell(outcomes)
        if log is not None:
            log.append(outcomes)
        told += len(batch)
    return session


def calls(session: Session) -> list[tuple[object, ...]]:
    """Return the pair decisions as comparable values."""
    return [
        (decision.models, decision.verdict, decision.step, tuple(sorted(decision.evidence.items())))
        for decision in session.decisions
        if decision.kind == "pair"
    ]


def counts_of(chance, questions=30, trials=20, categories=2, seed=0) -> np.ndarray:
    """Return counts of a finished model: `trials` a question, each in the last category by this chance."""
    right = np.random.default_rng(seed).binomial(trials, chance, questions)
    counts = np.zeros((questions, categories), dtype=np.int64)
    counts[:, 0], counts[:, -1] = trials - right, right
    return counts


def spent(session: Session, name: str, owner: str = "") -> tuple[float, float]:
    """Return what is spent and reserved of a budget of the run, or of the model or task `owner`."""
    (line,) = (one for one in session.budget.lines() if (one.name, one.owner) == (name, owner))
    return line.spent, line.reserved
