"""The evidence of decisions, as data; :mod:`adaptive_eval.views` makes sentences of it."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from adaptive_eval.core.board import Comparison
from adaptive_eval.core.budget import Account, Budget
from adaptive_eval.core.goals import OPEN, TIE, sides
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.results import Decision
from adaptive_eval.core.spec import SessionSpec
from scorio.sequential.parts import Call, confidence_radius

_VERDICTS = {1: "better", -1: "worse", TIE: "tie"}


def pair_decision(spec: SessionSpec, comparison: Comparison, call: Call) -> Decision:
    """Return the decision that a call of one contrast is."""
    goal, (origin, unit), row = comparison.contrasts, spec.scale, call.event.contrast
    first, second = sides(spec, goal, row)
    low, high = (unit * min(max(end, -1.0), 1.0) for end in (call.low, call.high))
    evidence: dict[str, Any] = {
        "difference": unit * call.difference,
        "low": low,
        "high": high,
        "statistic": call.statistic,
        "threshold": call.event.threshold,
        "questions": float(call.questions),
        "kind": "threshold" if goal.single[row] else "pair",
    }
    if goal.measured[row]:
        evidence["kind"] = "width"
    elif call.event.verdict == TIE:
        evidence["equivalence"] = spec.stopping.equivalence
    if goal.single[row]:
        evidence["against"] = second
        evidence["score"] = origin + unit * (float(goal.value[row]) + call.difference)
    else:
        references = [name for name in (first, second) if name in spec.names[len(spec.models) :]]
        if references:
            evidence["reference"] = references[0]
    if comparison.exact(row):
        low, high = population_interval(spec, comparison, row)
        evidence |= {"exact": True, "population_low": low, "population_high": high}
    models = (first,) if goal.single[row] else (first, second)
    return Decision(
        "pair", models, _VERDICTS[call.event.verdict], call.event.step, call.event.position, evidence=evidence
    )


def population_interval(spec: SessionSpec, comparison: Comparison, row: int) -> tuple[float, float]:
    """Return the interval of a known difference or score for questions like these, in score units.

    What is known of these questions is a sample then: V = (Σ d² + κ)/M², for a score (Σ (y − ȳ)² + κ)/M².
    """
    goal, (origin, unit), variance = comparison.contrasts, spec.scale, 0.0
    for weight, cells in zip(spec.task_weights, comparison.answers.cells, strict=True):
        first = cells.noise(int(goal.first[row]))[0]
        gap = first - first.mean() if goal.single[row] else first - cells.noise(int(goal.second[row]))[0]
        variance += weight**2 * (float(gap @ gap) - log(comparison.alpha)) / gap.size**2
    radius = float(confidence_radius(variance, comparison.alpha))
    middle, least = float(comparison.latest.difference[row]), 0.0 if goal.measured[row] else -1.0
    shift = origin if goal.measured[row] else 0.0
    low, high = (shift + unit * min(max(middle + sign * radius, least), 1.0) for sign in (-1, 1))
    return low, high


_CLAIMS = ("not_worse", "not_better")
"""What a model is found to be, by more than the margin, where it is good enough and where the other is."""


def retirement(spec: SessionSpec, comparison: Comparison, model: int, trials: int) -> Decision:
    """Return the decision that a model needs no more trials."""
    goal, names = comparison.contrasts, spec.names
    evidence: dict[str, Any] = {"separated": [], "tied": [], "lost": []}
    last, fold = 0, comparison.fold
    for row in np.flatnonzero((goal.first == model) | (goal.second == model)).tolist():
        last = max(last, int(fold.decided_at[row]))
        if goal.single[row]:
            continue
        is_first = bool(goal.first[row] == model)
        other = names[int(goal.second[row] if is_first else goal.first[row])]
        if comparison.lost[row]:
            evidence["lost"].append(other)
        elif fold.verdict[row] != OPEN:
            evidence["tied" if fold.verdict[row] == TIE else "separated"].append(other)
        else:
            for side, kind in enumerate(_CLAIMS if is_first else _CLAIMS[::-1]):
                if fold.enough_at[side, row] >= 0:
                    last = max(last, int(fold.enough_at[side, row]))
                    evidence.setdefault(kind, []).append(other)
                    evidence["within"] = spec.stopping.equivalence
    step = last or comparison.reached
    if comparison.answers.determinism.done(model):
        evidence |= {"exact": True, "questions": spec.questions}
    return Decision("retired", (names[model],), "retired", step, trials, evidence=evidence)


def resolved_evidence(comparison: Comparison) -> dict[str, Any]:
    """Return which goals are met, and how many contrasts got a winner or a tie."""
    goal, decided, tied = comparison.contrasts, comparison.fold.verdict != 0, comparison.fold.verdict == TIE
    pairs, models = ~goal.single, goal.single & ~goal.measured
    chosen = [comparison.spec.names[model] for model in comparison.good_enough]
    claim = {"good_enough": chosen, "within": comparison.spec.stopping.equivalence} if chosen else {}
    return claim | {
        "goals": list(comparison.met),
        "pairs": int((decided & pairs).sum()),
        "tied_pairs": int((tied & pairs).sum()),
        "models": int((decided & models).sum()),
        "tied_models": int((tied & models).sum()),
        "measured": int((decided & goal.measured).sum()),
    }


def partial_evidence(spec: SessionSpec, comparison: Comparison, states: ModelStates) -> dict[str, Any]:
    """Return how many pairs stay open, and the models that have stopped."""
    names = {model: spec.names[model] for model in states.stopped}
    return {
        "open": int(comparison.lost.sum()),
        "silent": [name for model, name in names.items() if model not in states.spent],
        "spent": [name for model, name in names.items() if model in states.spent],
    }


def lost_evidence(spec: SessionSpec, comparison: Comparison) -> dict[str, Any]:
    """Return how many pairs stay open because answers are lost, and how many of each model are."""
    board = comparison.answers
    lost = {name: board.missing(model) for model, name in enumerate(spec.names)}
    return {
        "open": int(comparison.fold.needed.sum()),
        "lost": {name: number for name, number in lost.items() if number},
    }


def stopped_models(spec: SessionSpec, budget: Budget, states: ModelStates) -> dict[str, Any]:
    """Return why each stopped model has stopped: the words of its endpoint, or what its budget has used."""
    return {
        spec.names[model]: why or account_evidence(spec, budget.models[model])["used"]
        for model, why in states.stopped.items()
    }


def account_evidence(spec: SessionSpec, account: Account) -> dict[str, Any]:
    """Return the owner of the spent budget, and amounts and limits by name."""
    return {
        "scope": account.scope,
        "owner": account.owner,
        "used": {line.name: [line.spent, line.limit] for line in account.lines() if line.limit is not None},
        "is_goal": spec.goal.kind == "budget",
    }
