"""From the state of a session to its results, without side effects."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import SessionAnswers, SessionContrasts
from adaptive_eval.core.budget import Budget
from adaptive_eval.core.discarded import discard_warnings
from adaptive_eval.core.goals import Goal, claimed_margin, contrast_kind, rank_ranges, sides
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.plugins import package_of
from adaptive_eval.core.references import reference_warnings
from adaptive_eval.core.results import (
    ModelResult,
    ModelState,
    PairResult,
    Results,
    RulePlugin,
    StopVerdict,
    TaskResult,
    TaskScore,
    Verdict,
)
from adaptive_eval.core.spec import GoalSpec, SessionSpec
from adaptive_eval.core.spec_checks import spec_warnings
from adaptive_eval.errors import Coded
from adaptive_eval.options.decisions import RULE_GROUP
from scorio.arrays import Bools, Floats, Ints
from scorio.sequential.parts import ContrastBlock, VerdictCode

Waiting: TypeAlias = Mapping[int, Sequence[int]]
"""Models, each with those that hold it back."""

VERDICTS: Mapping[int, Verdict] = {
    VerdictCode.OPEN: "open",
    VerdictCode.BETTER: "better",
    VerdictCode.WORSE: "worse",
    VerdictCode.TIE: "tie",
}


def results(
    comparison: SessionContrasts,
    budget: Budget,
    states: ModelStates,
    waiting: Waiting,
    stopped: StopVerdict | None,
) -> Results:
    """Return the results that follow from the parts of a session."""
    spec = comparison.spec
    of_rule = Coded("warning/rule", comparison.rule.warning)
    texts = (of_rule, *reference_warnings(spec), *spec_warnings(spec), *discard_warnings(comparison, states))
    warnings = [text for text in texts if text]
    warnings.extend(budget.warnings())
    family = "top-set"
    if not spec.of_a_set:
        family = spec.stopping.family
    prior = None
    if spec.prior is not None:
        prior = spec.prior.source
    fixed_passes = None
    if stopped is not None:
        fixed_passes = comparison.fixed_passes(FIXED_POWER)
    return Results(
        goal=spec.goal.text,
        rule=spec.stopping.rule,
        rule_plugin=_plugin(comparison),
        top_k=best_k(spec.goal),
        tasks=_tasks(comparison),
        confidence=spec.stopping.confidence,
        family=family,
        equivalence=spec.stopping.equivalence,
        questions=spec.questions,
        models=_models(comparison, budget, states, waiting),
        pairs=_pairs(comparison),
        budgets=budget.lines(),
        trials=budget.completed,
        stop=stopped,
        warnings=tuple(warnings),
        prior=prior,
        ties=spec.stopping.ties,
        in_rounds=spec.tasks_in_rounds,
        fixed_passes=fixed_passes,
        spend=spec.spend,
        pass_cost=_pass_cost(comparison, budget),
        scale=(spec.scale[0], sum(spec.scale)),
        target=spec.stopping.target,
    )


def best_k(goal: GoalSpec) -> int | None:
    """Return the k of a goal that asks for the best k, and for no ranking that would say more."""
    leaves = goal.goals or (goal,)
    if any(one.kind in ("ranking", "budget") for one in leaves):
        return None
    return max((one.k for one in leaves if one.kind == "top-k"), default=None)


def _tasks(comparison: SessionContrasts) -> tuple[TaskResult, ...]:
    spec = comparison.spec
    if len(spec.tasks) == 1:
        return ()
    found = []
    for number, (task, weight) in enumerate(zip(spec.tasks, spec.task_weights, strict=True)):
        estimate = comparison.answers.task_scores(number)
        origin = min(task.weights)
        unit = max(task.weights) - min(task.weights)
        known = estimate.questions[:, 0] > 0
        ends = [shown_where(known, origin + unit * end) for end in _score_interval(comparison, estimate)]
        low, score, high = (end.tolist() for end in ends)
        scores = tuple(map(TaskScore, spec.names, score, low, high))
        found.append(TaskResult(task.name, len(task.questions), weight, scores))
    return tuple(found)


def _score_interval(
    comparison: SessionContrasts, estimate: ContrastBlock, measured: Bools | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return lower ends, scores and upper ends; each lost answer may be anything from 0 to 1.

    `measured` are the models whose scores are measured to a width.
    """
    score = estimate.difference[:, 0]
    variance = estimate.variance[:, 0]
    intervals = comparison.intervals
    radius = intervals.of_scores(variance)
    if measured is not None and measured.any():
        radius = np.where(measured, intervals.of_scores(variance, measured=True), radius)
    radius = radius + estimate.slack[:, 0]
    return np.clip(score - radius, 0.0, 1.0), score, np.clip(score + radius, 0.0, 1.0)


def _within_verdicts(comparison: SessionContrasts, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return intervals of scores within those at which the scores were measured or called by bets."""
    goal = comparison.contrasts
    verdict = comparison.fold.verdict
    margin = comparison.margin or 0.0
    least_of, most_of = comparison.interval()
    for row in np.flatnonzero(goal.measured & (verdict == VerdictCode.TIE)).tolist():
        model = goal.first[row]
        if low[model] < most_of[row] and high[model] > least_of[row]:
            low[model] = max(low[model], least_of[row])
            high[model] = min(high[model], most_of[row])
    for row in np.flatnonzero(comparison.courses.bets & (verdict != VerdictCode.OPEN)).tolist():
        model = goal.first[row]
        beyond = 0.0
        if verdict[row] == VerdictCode.TIE:
            beyond = margin
        least, most = goal.value[row] - beyond, goal.value[row] + beyond
        if verdict[row] != VerdictCode.WORSE and high[model] > least:
            low[model] = max(low[model], least)
        if verdict[row] != VerdictCode.BETTER and low[model] < most:
            high[model] = min(high[model], most)
    return low, high


def _plugin(comparison: SessionContrasts) -> RulePlugin | None:
    name = comparison.spec.stopping.rule
    rule = comparison.rule
    if not comparison.spec.stopping.own_rule:
        return None
    return RulePlugin(package_of(RULE_GROUP, name), rule.promise, rule.fixed_threshold is None)


def _models(
    comparison: SessionContrasts, budget: Budget, states: ModelStates, waiting: Waiting
) -> tuple[ModelResult, ...]:
    spec, board = comparison.spec, comparison.answers
    origin, unit = spec.scale
    estimate = board.scores()
    measured = np.isin(np.arange(len(spec.names)), comparison.contrasts.first[comparison.contrasts.measured])
    low, score, high = _score_interval(comparison, estimate, measured)
    low, high = _within_verdicts(comparison, low, high)
    mu, sigma = board.posterior()
    trials = board.trial_counts()
    seen = board.seen()
    known = (estimate.questions[:, 0] > 0) & (trials > 0)
    ranks = positions(np.where(known, score, -np.inf))
    intervals = rank_ranges(comparison.contrasts, comparison.fold.verdict, len(spec.names))
    shown = {
        name: origin + unit * of
        for name, of in (("score", score), ("score_low", low), ("score_high", high), ("bayes_mu", mu))
    }
    shown["bayes_sigma"] = unit * sigma
    columns = {name: shown_where(known & np.isfinite(values), values) for name, values in shown.items()}
    values = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rows = []
    for model, name in enumerate(spec.names):
        line = ModelResult(
            model=name,
            trials=int(trials[model]),
            questions=int(seen[model]),
            rank=ranks[model],
            rank_low=intervals[model][0],
            rank_high=intervals[model][1],
            waits_for=tuple(spec.names[other] for other in waiting.get(model, ())),
            **values[model],
            **_with_missing(board, model, float(score[model])),
            **_counts_and_cost(budget, states, model),
        )
        rows.append(line)
    return tuple(rows)


def shown_where(known: Bools, values: NDArray[Any]) -> NDArray[Any]:
    """Return values as Python's objects, None if nothing is known."""
    return np.where(known, values.astype(object), np.array(None))


FIXED_POWER = 0.9
"""Chance with which a run of fixed length is to find what was found here."""


def _pass_cost(comparison: SessionContrasts, budget: Budget) -> float | None:
    """Return what one trial of every question of every model costs, if the run decides by it."""
    answers = comparison.answers
    asked = np.arange(len(comparison.spec.models))
    if answers.costs is None:
        return None
    return budget.in_units(sum(float(cells.cost(asked).sum()) for cells in answers.cells))


def _with_missing(board: SessionAnswers, model: int, score: float) -> dict[str, Any]:
    """Return the score if all missing answers were the worst, and the best, possible.

    The unit `score` moves as far as the mean of the plain question means does: own rounds weigh the trials of
    a question otherwise, so that their score need not lie between the two ends of that mean.
    """
    if not any(cells.lost[model].any() for cells in board.cells):
        return {}
    origin, unit = board.spec.scale
    fall = rise = 0.0
    for weight, cells in zip(board.spec.task_weights, board.cells, strict=True):
        missing = cells.lost[model]
        answered, total = cells.counts[model].sum(axis=1), cells.counts[model] @ cells.scale.levels
        mean = _mean_of_means(total, answered)
        fall += weight * (mean - _mean_of_means(total, answered + missing))
        rise += weight * (_mean_of_means(total + missing, answered + missing) - mean)
    worst = max(score - fall, 0.0)
    best = min(score + rise, 1.0)
    return {"score_if_missing_wrong": origin + unit * worst, "score_if_missing_right": origin + unit * best}


def _mean_of_means(total: Floats, trials: NDArray[np.integer]) -> float:
    seen = trials > 0
    if seen.any():
        return float((total[seen] / trials[seen]).mean())
    return 0.0


def _counts_and_cost(budget: Budget, states: ModelStates, model: int) -> dict[str, Any]:
    """Return a model's trials and cost; nothing for a reference."""
    spec = budget.spec
    if model >= len(spec.models):
        source = spec.references[model - len(spec.models)].source
        none = dict.fromkeys(("issued", "missing", "after_stop", "prompt_tokens", "completion_tokens"), 0)
        return {**none, "state": "reference", "usd": None, "note": source}
    usd = None
    if budget.priced:
        usd = budget.usd(model)
    return {
        "state": _state(states, model),
        "issued": states.issued[model] - states.skipped[model],
        "missing": states.missing[model],
        "copies": states.copies[model],
        "discarded_trials": states.discarded[model],
        "redrawn_trials": states.redrawn[model],
        "after_stop": states.after_stop[model],
        "prompt_tokens": budget.models[model].spent.prompt,
        "completion_tokens": budget.models[model].spent.completion,
        "usd": usd,
        "note": states.stopped.get(model, ""),
    }


def _state(states: ModelStates, model: int) -> ModelState:
    if model in states.stopped:
        return "stopped"
    if states.retired[model]:
        return "retired"
    return "active"


def positions(score: Floats) -> list[int]:
    """Competition ranks by score, best first; equal scores share a position."""
    return [1 + int((score > value).sum()) for value in score]


def _pairs(comparison: SessionContrasts) -> tuple[PairResult, ...]:
    spec, goal = comparison.spec, comparison.contrasts
    origin, unit = spec.scale
    fold, latest = comparison.fold, comparison.latest
    shift = np.where(goal.measured, origin, 0.0)
    lows, highs = (np.array(shown_ends(comparison, slice(None), ends)) for ends in comparison.interval())
    near = _tie_margins(comparison)
    read = latest.questions > 0
    called = fold.decided_at >= 0
    # Evidence is guarded down to the strictest level that the run reads; what is known needs no guard.
    most = np.where(comparison.exact, np.inf, comparison.most_evidence)
    needed = fold.needed | ~fold.undecided | comparison.lost | (not goal.stops)
    columns = {
        "difference": shown_where(read, shift + unit * latest.difference),
        "difference_low": shown_where(read, lows),
        "difference_high": shown_where(read, highs),
        "evidence": np.clip(latest.statistic, 0.0, most),
        "evidence_beyond": latest.statistic > most,
        "tie_margin": shown_where(read & ~np.isnan(near), near),
        "trials_each": np.where(called, fold.decided_at, fold.progress),
        "questions": latest.questions,
        "decided_at": shown_where(called, fold.decided_at),
        "needed": needed,
        "exact": comparison.exact,
        "threshold": fold.thresholds(np.arange(goal.first.size), latest.sign),
    }
    rows = pair_results(spec, goal, fold.verdict, columns)
    for row in np.flatnonzero(comparison.exact).tolist():
        low, high = population_interval(comparison, row).values()
        rows[row] = replace(rows[row], population_low=low, population_high=high)
    return tuple(rows)


def pair_results(
    spec: SessionSpec, goal: Goal, verdict: Ints, columns: Mapping[str, NDArray[Any]]
) -> list[PairResult]:
    """Return the results of all contrasts; `columns` has what differs by rule, by the name of the field."""
    names, verdicts = spec.names, verdict.tolist()
    first = goal.first.tolist()
    second = goal.second.tolist()
    single = goal.single.tolist()
    rows = []
    for row, values in enumerate(zip(*(column.tolist() for column in columns.values()), strict=True)):
        if single[row]:
            pair = sides(spec, goal, row)
        else:
            pair = (names[first[row]], names[second[row]])
        found: dict[str, Any] = dict(zip(columns, values, strict=True))
        found["verdict"] = VERDICTS[verdicts[row]]
        found["kind"] = contrast_kind(goal, row)
        found["margin"] = claimed_margin(spec, goal, row)
        rows.append(PairResult(*pair, **found))
    return rows


def _tie_margins(comparison: SessionContrasts) -> Floats:
    """Each contrast's progress to a tie: the share of the evidence that it needs, 1 if a tie is called.

    For a width goal, the share of the precision reached: (wanted width / present width)². NaN if neither
    applies.
    """
    goal = comparison.contrasts
    margin = comparison.margin
    stopping = comparison.spec.stopping
    near = comparison.progress_to_widths
    if margin is None or stopping.rule == "zscore" or stopping.own_rule:
        return np.asarray(near)
    return np.where(goal.measured, near, np.where(goal.claimed, np.nan, comparison.progress_to_ties(margin)))


def shown_ends(comparison: SessionContrasts, rows: int | slice, ends: Floats | float) -> Any:
    """Return ends of intervals in score units, as far as they are possible.

    A measured contrast is a score, which has an origin; any other is a difference.
    """
    goal = comparison.contrasts
    (origin, unit) = comparison.spec.scale
    shift, value = np.where(goal.measured[rows], origin, 0.0), goal.value[rows]
    least = np.where(goal.single[rows], -value, -1.0)
    return (shift + unit * np.clip(ends, least, 1.0 - value)).tolist()


def population_interval(comparison: SessionContrasts, row: int) -> dict[str, float]:
    """Return the interval of a known difference or score for questions like these, in score units."""
    low, high = (shown_ends(comparison, row, end) for end in comparison.population_interval(row))
    return {"population_low": low, "population_high": high}
