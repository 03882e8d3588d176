"""Decisions in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from adaptive_eval.core.account import Account
from adaptive_eval.core.compare import Call, Comparison
from adaptive_eval.core.goals import sides
from adaptive_eval.core.results import Decision
from adaptive_eval.core.spec import SessionSpec

__all__ = [
    "budget_spent",
    "explanation",
    "own_budget_spent",
    "own_budgets_spent",
    "pair_decision",
    "partial",
    "pass_cap",
    "resolved",
    "retirement",
    "unusable",
]

_VERDICTS = {1: "better", -1: "worse", 2: "tie"}


def pair_decision(spec: SessionSpec, comparison: Comparison, call: Call, trials: int) -> Decision:
    """Describe the call of one contrast."""
    first, second = sides(spec, comparison.goal, call.contrast)
    single, unit = bool(comparison.goal.single[call.contrast]), spec.scale[1]
    low, high = (unit * min(max(end, -1.0), 1.0) for end in (call.low, call.high))
    alone = _asked_alone(spec, comparison, call.contrast)
    whose = f" of {alone}" if alone else "" if single else " each"
    after = f"after {call.step:,} trials{whose}"
    evidence = {
        "difference": unit * call.difference,
        "low": low,
        "high": high,
        "statistic": call.statistic,
        "threshold": call.threshold,
        "questions": float(call.questions),
    }
    if single:
        models: tuple[str, ...] = (first,)
        text = _single_text(spec, comparison, call, after)
    else:
        models = (first, second)
        span = f"{unit * call.difference:+.3f} [{low:+.3f}, {high:+.3f}]"
        if call.verdict == 2:
            text = f"{first} and {second} tied within ±{spec.stopping.equivalence:g}: {span} {after}"
        else:
            winner, loser = (first, second) if call.verdict == 1 else (second, first)
            text = f"{winner} separated from {loser}: {first} − {second} = {span} {after}"
    return Decision("pair", models, _VERDICTS[call.verdict], call.step, trials, text, evidence)


def _asked_alone(spec: SessionSpec, comparison: Comparison, row: int) -> str | None:
    """Return the model that is asked in a contrast with a reference; None for any other contrast."""
    members = (int(comparison.goal.first[row]), int(comparison.goal.second[row]))
    return spec.names[min(members)] if max(members) >= len(spec.models) else None


def _single_text(spec: SessionSpec, comparison: Comparison, call: Call, after: str) -> str:
    goal, (origin, unit) = comparison.goal, spec.scale
    model, value = sides(spec, goal, call.contrast)
    score = origin + unit * (float(goal.value[call.contrast]) + call.difference)
    if goal.measured[call.contrast]:
        return f"{model} measured: {score:.3f} ± {unit * (call.high - call.low) / 2.0:.3f} {after}"
    side = {1: "above", -1: "below", 2: "within the margin of"}[call.verdict]
    return f"{model} is {side} {value}: {score:.3f} {after}"


def explanation(spec: SessionSpec, comparison: Comparison, row: int) -> str:
    """Say where one contrast stands, with the numbers behind it."""
    goal, unit = comparison.goal, spec.scale[1]
    first, other = sides(spec, goal, row)
    if comparison.questions[row] == 0:
        whose = "" if goal.single[row] else " by both"
        return f"{first} and {other}: no question has been answered{whose} yet."
    if goal.measured[row]:
        return _measurement(spec, comparison, row)
    difference = unit * float(comparison.difference[row])
    low, high = (unit * min(max(float(end[0]), -1.0), 1.0) for end in comparison.interval([row]))
    decided = int(comparison.decided_at[row])
    steps = decided if decided >= 0 else int(comparison.progress[row])
    verdicts = {
        1: f"{first} separated from {other}",
        -1: f"{other} separated from {first}",
        2: "a practical tie",
    }
    verdict = verdicts.get(int(comparison.verdict[row]), "open")
    statistic = max(float(comparison.statistic[row]), 0.0)
    scale = "z" if comparison.rule.fixed_threshold is not None else "ln e-value"
    questions = int(comparison.questions[row])
    whose = first if goal.single[row] else _asked_alone(spec, comparison, row) or "each"
    lines = [
        f"{first} − {other}: {verdict}.",
        f"Difference {difference:+.4f}, {spec.stopping.confidence:.0%} confidence sequence "
        f"[{low:+.4f}, {high:+.4f}], after {steps:,} trials of {whose} on {questions:,} questions.",
        f"Evidence ({scale}): peak {statistic:.3f}, a winner is called at {comparison.threshold:.3f} now.",
    ]
    if spec.stopping.equivalence is not None and comparison.rule.fixed_threshold is None:
        lines.append(f"Tied when the difference is surely smaller than {spec.stopping.equivalence:g}.")
    family = "" if scale == "z" else f"; family {spec.stopping.family}: {comparison.family.promise}"
    lines.append(f"Rule {spec.stopping.rule}: {comparison.rule.promise}{family}.")
    return "\n".join(lines)


def _measurement(spec: SessionSpec, comparison: Comparison, row: int) -> str:
    """Say how well one model's score is known, and how well it is to be known."""
    (origin, unit), (model, wanted) = spec.scale, sides(spec, comparison.goal, row)
    low, high = (origin + unit * min(max(float(end[0]), 0.0), 1.0) for end in comparison.interval([row]))
    decided = int(comparison.decided_at[row])
    steps = decided if decided >= 0 else int(comparison.progress[row])
    return (
        f"{model} to a {wanted}: {'measured' if decided >= 0 else 'open'}.\n"
        f"Score {origin + unit * float(comparison.difference[row]):.4f}, {spec.stopping.confidence:.0%} "
        f"confidence sequence [{low:.4f}, {high:.4f}], after {steps:,} trials of {model} on "
        f"{int(comparison.questions[row]):,} questions.\n"
        "The interval holds at whatever moment one looks; it is this model's alone."
    )


def retirement(spec: SessionSpec, comparison: Comparison, model: int, trials: int) -> Decision:
    """Describe that a model needs no more trials, and which calls made it so."""
    goal, names, name = comparison.goal, spec.names, spec.names[model]
    separated: list[str] = []
    tied: list[str] = []
    lost: list[str] = []
    last = 0
    for row in np.flatnonzero((goal.first == model) | (goal.second == model)).tolist():
        last = max(last, int(comparison.decided_at[row]))
        if goal.single[row] or (comparison.verdict[row] == 0 and not comparison.lost[row]):
            continue
        other = int(goal.second[row] if goal.first[row] == model else goal.first[row])
        if comparison.lost[row]:
            lost.append(names[other])
            continue
        (tied if comparison.verdict[row] == 2 else separated).append(names[other])
    parts = []
    if separated:
        parts.append(f"separated from {_and(separated)}")
    if tied:
        parts.append(f"tied with {_and(tied)}")
    if lost:
        whose = "pair" if len(lost) == 1 else "pairs"
        parts.append(f"its open {whose} with {_and(lost)} cannot be decided any more")
    step = last or comparison.frontier
    reason = "; ".join(parts) or "no open pair needs it"
    text = f"{name} retired after {step:,} trials: {reason}"
    return Decision("retired", (name,), "retired", step, trials, text, {})


def resolved(spec: SessionSpec, comparison: Comparison) -> str:
    """Say that the goal is reached."""
    if spec.goal.kind == "width":
        return f"every model's interval is no wider than {spec.goal.width:g}"
    text = f"goal reached: {'; '.join(comparison.met)}" if spec.goal.goals else "goal reached"
    return ": ".join([text, *_counts(comparison)])


def _counts(comparison: Comparison) -> list[str]:
    """Return in words how many contrasts got a winner or a tie; nothing where none could."""
    goal, decided = comparison.goal, comparison.verdict != 0
    counted = []
    for noun, rows in (("pair", ~goal.single), ("model", goal.single & ~goal.measured)):
        if not rows.any():
            continue
        calls, ties = int((decided & rows).sum()), int((rows & (comparison.verdict == 2)).sum())
        text = f"{calls} {noun}{'' if calls == 1 else 's'} decided"
        counted.append(f"{text}, {ties} of them tied" if ties else text)
    return ["; ".join(counted)] if counted else []


def partial(spec: SessionSpec, comparison: Comparison, notes: Mapping[int, str], spent: set[int]) -> str:
    """Say that what can be decided is decided, and why the rest cannot be."""
    lost = int(comparison.lost.sum())
    silent = [spec.names[model] for model in notes if model not in spent]
    ended = [spec.names[model] for model in notes if model in spent]
    reasons = [f"{_and(silent)} stopped answering"] if silent else []
    if ended:
        reasons.append(f"the {'budget' if len(ended) == 1 else 'budgets'} of {_and(ended)} ended")
    stay = "pair stays" if lost == 1 else "pairs stay"
    return f"decided as far as possible: {lost} {stay} open because {' and '.join(reasons)}"


def unusable(spec: SessionSpec, notes: Mapping[int, str]) -> str:
    """Say that no endpoint is left to decide anything with."""
    reasons = "; ".join(f"{spec.names[model]}: {reason}" for model, reason in notes.items())
    return f"no pair can be decided with the endpoints that answer ({reasons})"


def budget_spent(spec: SessionSpec, account: Account) -> str:
    """Say that a budget ended the run; to spend it may have been the goal."""
    whose = "" if account.scope == "run" else f" of {account.scope} {account.owner}"
    ended = "is spent" if spec.goal.kind == "budget" else "ended before the goal was reached"
    return f"budget{whose} {ended}: {_used(account)}; the next trial might exceed it"


def own_budget_spent(account: Account) -> str:
    """Say that a model's own budget has ended."""
    return f"its budget ended: {_used(account)}; its next trial might exceed it"


def own_budgets_spent(spec: SessionSpec, notes: Mapping[int, str]) -> str:
    """Say that the budgets of all models ended: before any pair was decided, unless the goal was to spend."""
    reasons = "; ".join(f"{spec.names[model]}: {reason}" for model, reason in notes.items())
    before = "" if spec.goal.kind == "budget" else " before a pair was decided"
    return f"the budgets of models ended{before} ({reasons})"


def _used(account: Account) -> str:
    parts = []
    for line in account.lines():
        if line.limit is not None:
            words = f"{_amount(line.name, line.spent)} of {_amount(line.name, line.limit)} "
            parts.append(words + line.name.replace("_", " "))
    return ", ".join(parts)


def _amount(budget: str, value: float) -> str:
    return f"{value:,.2f}" if budget == "usd" else f"{value:,.0f}"


def pass_cap(spec: SessionSpec) -> str:
    """Say that every model has walked as far as allowed."""
    passes = spec.stopping.max_passes
    return f"every model still needed has done {passes} pass{'' if passes == 1 else 'es'} (max_passes)"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
