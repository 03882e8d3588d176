"""Decisions, and why a session stops, with their evidence: data, of which views make sentences."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adaptive_eval.core.board import SessionContrasts
from adaptive_eval.core.budget import Account, Budget
from adaptive_eval.core.discarded import discards_of, open_for_good
from adaptive_eval.core.foresight import too_noisy
from adaptive_eval.core.goals import contrast_kind, sides
from adaptive_eval.core.issuing import Issuer
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.overview import VERDICTS, population_interval, shown_ends
from adaptive_eval.core.references import lost_of
from adaptive_eval.core.results import Decision, StopVerdict
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


def stop_decision(comparison: SessionContrasts, verdict: StopVerdict, trials: int) -> Decision:
    """Return the decision that the session stops."""
    read = comparison.fold.progress
    if not read.size:
        read = comparison.answers.progress[: len(comparison.spec.models)]  # that of a reference has no end
    return Decision("stop", (), verdict.reason, int(read.max()), trials, verdict.text, verdict.evidence)


class StopVerdicts:
    """Says why a session stops, once it does."""

    def __init__(
        self, spec: SessionSpec, comparison: SessionContrasts, budget: Budget, states: ModelStates
    ) -> None:
        self._spec = spec
        self._comparison = comparison
        self._budget = budget
        self._states = states

    def stays_open(self) -> StopVerdict | None:
        """Return why what is needed stays open whatever is asked; None if it may be decided."""
        comparison = self._comparison
        needed, run = comparison.fold.needed, self._budget.run
        if comparison.latest.slack[needed].all() and open_for_good(comparison, run)[needed].all():
            return StopVerdict("lost", evidence=lost_evidence(comparison, self._states))
        noisy = () if comparison.hopeless else too_noisy(comparison)
        if not comparison.hopeless and not noisy:
            return None
        evidence = _partial_evidence(comparison, self._states)
        evidence["open"] += int(needed.sum())
        if noisy:
            evidence["noisy"] = noisy
        else:
            evidence["sample"] = True
        return StopVerdict("partial", evidence=evidence)

    def conclusion(self) -> StopVerdict:
        """Return the verdict once no open contrast can be decided."""
        comparison, states = self._comparison, self._states
        ending = comparison.ending if comparison.contrasts.stops else None
        if ending == "resolved":
            return StopVerdict("resolved", evidence=_resolved_evidence(comparison))
        if ending == "partial":
            return StopVerdict("partial", evidence=_partial_evidence(comparison, states))
        stopped = self._stopped_models()
        if states.stopped.keys() <= states.spent:
            is_goal = self._spec.goal.kind == "budget"
            grounds = {"scope": "models", "owner": "", "models": stopped, "is_goal": is_goal}
            return StopVerdict("budget", evidence=grounds)
        if states.unusable:
            return StopVerdict("unusable", evidence={"cause": "models", "models": stopped})
        return StopVerdict("endpoints", evidence={"models": stopped})

    def without_work(self, issuer: Issuer) -> StopVerdict | None:
        """Return the verdict if nothing can be issued any more; None if only free slots are lacking."""
        spec, stopped = self._spec, self._states.stopped
        exhausted = issuer.exhausted()
        if len(stopped) == len(spec.models):
            return self.conclusion()
        if exhausted is not None:
            return StopVerdict("budget", evidence=account_evidence(spec, exhausted))
        if not issuer.capped():
            return None
        done = self._comparison.answers.determinism.done
        known = [one.name for number, one in enumerate(spec.models) if done(number)]
        whole = all(done(model) for model in self._comparison.members if model not in stopped)
        passes = {"passes": spec.stopping.max_passes} if not whole else {}
        return StopVerdict("max_passes", evidence={**passes, "known": known})

    def _stopped_models(self) -> dict[str, Any]:
        """Return why each stopped model has: the words of its endpoint, or what its budget has used."""
        spec, models = self._spec, self._budget.models
        return {
            spec.names[model]: why or account_evidence(spec, models[model])["used"]
            for model, why in self._states.stopped.items()
        }


def account_evidence(spec: SessionSpec, account: Account) -> dict[str, Any]:
    """Return the owner of the spent budget, and amounts and limits by name."""
    return {
        "scope": account.scope,
        "owner": account.owner,
        "used": {line.name: [line.spent, line.limit] for line in account.lines() if line.limit is not None},
        "is_goal": spec.goal.kind == "budget",
    }


def _resolved_evidence(comparison: SessionContrasts) -> dict[str, Any]:
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


def _partial_evidence(comparison: SessionContrasts, states: ModelStates) -> dict[str, Any]:
    """Return how many pairs and models stay open, and the models that have stopped."""
    names = comparison.spec.names
    unusable = states.unusable - states.spent
    found: dict[str, Any] = _open(comparison, comparison.lost) | {"silent": [], "spent": []}
    stopped = sorted(states.stopped)  # a replay stops them in another order
    for model in stopped:
        if model not in unusable:
            why = "silent"
            if model in states.spent:
                why = "spent"
            found[why].append(names[model])
    if unusable:
        found["unusable"] = [names[model] for model in stopped if model in unusable]
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
