"""Decisions, each with its evidence, which is data; :mod:`adaptive_eval.views` makes sentences of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adaptive_eval.core.board import SessionContrasts
from adaptive_eval.core.budget import Account, Budget
from adaptive_eval.core.discarded import discards_of
from adaptive_eval.core.goals import contrast_kind, sides
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.overview import VERDICTS, population_interval, shown_ends
from adaptive_eval.core.references import lost_of
from adaptive_eval.core.results import Decision
from adaptive_eval.core.spec import SessionSpec
from scorio.arrays import Bools
from scorio.sequential.parts import Call, VerdictCode


def pair_decision(comparison: SessionContrasts, call: Call) -> Decision:
    """Return the decision that a call of one contrast is."""
    spec = comparison.spec
    goal = comparison.contrasts
    row = call.event.contrast
    origin, unit = spec.scale
    first, second = sides(spec, goal, row)
    low, high = (shown_ends(comparison, row, end) for end in (call.low, call.high))
    # Evidence is guarded down to the strictest level that the run reads; what is known needs no guard.
    if comparison.exact[row]:
        most = np.inf
    else:
        most = comparison.most_evidence
    evidence: dict[str, Any] = {
        "difference": unit * call.difference,
        "low": low,
        "high": high,
        "statistic": min(call.statistic, most),
        "threshold": call.event.threshold,
        "questions": float(call.questions),
        "kind": contrast_kind(goal, row),
    }
    if call.statistic > most:
        evidence["statistic_beyond"] = True  # the guard holds no further
    if goal.claimed[row]:
        evidence["margin"] = unit * float(goal.claim[row])
    elif not goal.measured[row] and call.event.verdict == VerdictCode.TIE:
        evidence["equivalence"] = spec.stopping.equivalence
    if goal.single[row]:
        evidence["against"] = second
        evidence["score"] = origin + unit * (float(goal.value[row]) + call.difference)
    else:
        references = [name for name in (first, second) if name in spec.names[len(spec.models) :]]
        if references:
            evidence["reference"] = references[0]
    if comparison.exact[row]:
        evidence |= {"exact": True, **population_interval(comparison, row)}
    models = (first,) if goal.single[row] else (first, second)
    return Decision(
        "pair", models, VERDICTS[call.event.verdict], call.event.step, call.event.position, evidence=evidence
    )


_CLAIMS = ("not_worse", "not_better")
"""What a model is found to be, by more than the margin, where it is good enough and where the other is."""
_FAILED = ("worse", "better")
"""What the first model, and the second, is found to be by more than the margin where a claim fails."""


def retirement(comparison: SessionContrasts, model: int, trials: int) -> Decision:
    """Return the decision that a model needs no more trials."""
    spec, goal = comparison.spec, comparison.contrasts
    names = spec.names
    evidence: dict[str, Any] = {"separated": [], "tied": [], "lost": []}
    last, fold = 0, comparison.fold
    for row in np.flatnonzero((goal.first == model) | (goal.second == model)).tolist():
        last = max(last, int(fold.decided_at[row]))
        if goal.single[row]:
            continue
        is_first = bool(goal.first[row] == model)
        if is_first:
            second = goal.second[row]
        else:
            second = goal.first[row]
        other = names[int(second)]
        if comparison.lost[row]:
            last = max(last, int(fold.progress[row]))
            evidence["lost"].append(other)
        elif goal.claimed[row] and not fold.undecided[row]:
            found = _FAILED
            if fold.verdict[row] == VerdictCode.BETTER:
                found = _CLAIMS
            if is_first:
                role = found[0]
            else:
                role = found[1]
            evidence.setdefault(role, []).append(other)
            evidence["within"] = spec.scale[1] * float(goal.claim[row])
        elif not fold.undecided[row]:
            called = "separated"
            if fold.verdict[row] == VerdictCode.TIE:
                called = "tied"
            evidence[called].append(other)
        else:
            kinds = _CLAIMS
            if not is_first:
                kinds = _CLAIMS[::-1]
            for side, kind in enumerate(kinds):
                if fold.enough_at[side, row] >= 0:
                    last = max(last, int(fold.enough_at[side, row]))
                    evidence.setdefault(kind, []).append(other)
                    evidence["within"] = spec.stopping.equivalence
    step = last or comparison.reached
    if comparison.answers.determinism.done(model):
        evidence |= {"exact": True, "questions": spec.questions}
    return Decision("retired", (names[model],), "retired", step, trials, evidence=evidence)


def resolved_evidence(comparison: SessionContrasts) -> dict[str, Any]:
    """Return which goals are met, and how many contrasts got a winner or a tie."""
    goal, fold = comparison.contrasts, comparison.fold
    decided = ~fold.undecided
    tied = fold.verdict == VerdictCode.TIE
    pairs = ~goal.single & ~goal.claimed
    models = goal.single & ~goal.measured
    chosen = [comparison.spec.names[model] for model in comparison.good_enough]
    if chosen:
        claim = {"good_enough": chosen, "within": comparison.spec.stopping.equivalence}
    else:
        claim = {}
    return claim | {
        "goals": list(comparison.met),
        "pairs": int((decided & pairs).sum()),
        "tied_pairs": int((tied & pairs).sum()),
        "models": int((decided & models).sum()),
        "tied_models": int((tied & models).sum()),
        "measured": int((decided & goal.measured).sum()),
        "held": int((goal.claimed & (fold.verdict == VerdictCode.BETTER)).sum()),
        "failed": int((goal.claimed & (fold.verdict == VerdictCode.WORSE)).sum()),
    }


def partial_evidence(comparison: SessionContrasts, states: ModelStates) -> dict[str, Any]:
    """Return how many pairs and models stay open, and the models that have stopped."""
    names = comparison.spec.names
    unusable = states.unusable - states.spent
    found: dict[str, Any] = _open(comparison, comparison.lost) | {"silent": [], "spent": []}
    for model in states.stopped:
        if model not in unusable:
            why = "silent"
            if model in states.spent:
                why = "spent"
            found[why].append(names[model])
    if unusable:
        found["unusable"] = [names[model] for model in states.stopped if model in unusable]
    return found


def lost_evidence(comparison: SessionContrasts, states: ModelStates) -> dict[str, Any]:
    """Return what stays open because answers are lost, how many of each model are, and why."""
    spec, board = comparison.spec, comparison.answers
    lost = {model.name: board.missing(row) for row, model in enumerate(spec.models)}
    lost |= {reference.name: lost_of(reference) for reference in spec.references}
    discarded = dict(zip(spec.names, states.discarded, strict=False))
    return _open(comparison, comparison.fold.needed) | {
        "lost": _some(lost),
        "discarded": discards_of(spec, states),
        "discarded_trials": _some(discarded),
        "redrawn": sorted(spec.redrawn),
    }


def _open(comparison: SessionContrasts, rows: Bools) -> dict[str, Any]:
    """Return how many of the contrasts in `rows` are between two models, and how many are of one alone."""
    single = comparison.contrasts.single
    return {"open": int((rows & ~single).sum()), "open_models": int((rows & single).sum())}


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number}


def stopped_models(budget: Budget, states: ModelStates) -> dict[str, Any]:
    """Return why each stopped model has stopped: the words of its endpoint, or what its budget has used."""
    return {
        budget.spec.names[model]: why or account_evidence(budget.spec, budget.models[model])["used"]
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
