"""Forecast of the trials, tokens and USD until the goal is reached, as intervals."""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.account import PICODOLLARS, Account
from adaptive_eval.core.board import Board
from adaptive_eval.core.budget import Budget
from adaptive_eval.core.compare import Comparison
from adaptive_eval.core.goals import AllOf, Condition, sides
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.results import Chance, Forecast, PairForecast, Range
from adaptive_eval.core.spec import SessionSpec
from scorio.sequential.parts import Cells, Outlook, closing_steps, measured_steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PATHS, ENOUGH_PATHS, FEWEST_PATHS = 200, 100, 30
MOMENTS, FEWEST_MOMENTS = 96, 32
WORK = 100_000
"""Moments of paths that are simulated in all, which bounds time and memory whatever the number of pairs."""
HARDEST = 60
"""Pairs of a larger board that are simulated, in addition to the hardest of each model."""
MOST_PAIRS = 200
FACTORS = (1.2, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
"""Multiples of the trials so far at which the chance of an end is looked at."""
FORECAST_RULES = ("anytime", "exact")
"""Rules with a known boundary; a rule from a package has no forecast."""
QUANTILES = (0.1, 0.5, 0.9)
HORIZON_PASSES = 1000
"""Passes up to which a forecast looks where no cap is set."""


def forecast(
    spec: SessionSpec,
    board: Board,
    comparison: Comparison,
    budget: Budget,
    states: ModelStates,
    *,
    ended: bool = False,
) -> Forecast | None:
    """Forecast the rest of a run; None if the goal does not stop or too little is known.

    The forecast is a simulation from the posterior of each open contrast, contrasts taken as independent; it
    is approximate and labelled so wherever it is shown. A model against a number is simulated as a pair would
    be, not by its bets. Of many open contrasts, those are simulated that will take longest: the run ends with
    the last of them.
    """
    rows = np.flatnonzero(comparison.fold.needed)
    open_pairs = rows.size
    known = comparison.latest.questions[rows] >= 2
    goal = comparison.goal
    if not goal.stops or spec.stopping.rule not in FORECAST_RULES or rows.size == 0 or not known.all():
        return None
    # Once the cap has ended the run, the question is what a higher one would bring.
    cap = HORIZON_PASSES if ended else spec.stopping.max_passes or HORIZON_PASSES
    horizon = cap * spec.questions
    rows = _hardest(spec, comparison, rows)
    moments = MOMENTS if rows.size * MOMENTS * ENOUGH_PATHS <= WORK else FEWEST_MOMENTS
    rng = np.random.default_rng((spec.seed, budget.completed))
    paths = min(max(WORK // (rows.size * moments), FEWEST_PATHS), PATHS)
    measured = goal.measured[rows]
    draws = np.empty((rows.size, paths))
    if not measured.all():
        draws[~measured] = closing_steps(
            _outlook(spec, board, comparison, rows[~measured]),
            threshold=comparison.fold.threshold,
            horizon=horizon,
            rng=rng,
            paths=paths,
            moments=moments,
            equivalence=comparison.margin,
            alpha=exp(-comparison.fold.tie_threshold),
        )
    if measured.any():
        widths = rows[measured]
        draws[measured] = measured_steps(
            _outlook(spec, board, comparison, widths),
            comparison.latest.difference[widths],
            goal.width[widths],
            alpha=comparison.alpha,
            horizon=horizon,
            rng=rng,
            paths=paths,
        )
    end = _end(goal.condition, comparison, rows, draws)
    usable = np.minimum(np.minimum(draws, end), horizon)
    more = _more_trials(spec, comparison, states, rows, usable)
    done = np.maximum(np.array(states.issued) - np.array(states.in_flight) - np.array(states.skipped), 1)
    spent = [account.spent for account in budget.models]
    per_trial = (
        np.array([[one.prompt, one.completion, one.usd / PICODOLLARS] for one in spent]) / done[:, None]
    )
    costs = per_trial.T[:, :, None] * more  # (3, L, paths)
    tokens, usd = costs[:2].sum(axis=(0, 1)), costs[2].sum(axis=0)
    within = np.isfinite(end) & _affordable(budget.run, more.sum(axis=0), costs.sum(axis=1))
    for model, account in enumerate(budget.models):
        within &= _affordable(account, more[model], costs[:, model])
    reached = np.where(np.isfinite(end), budget.completed + more.sum(axis=0), np.inf)
    return Forecast(
        open_pairs=open_pairs,
        chances=_chances(reached, budget.completed),
        resolved_within_budget=float(within.mean()),
        trials=_range(more.sum(axis=0)),
        tokens=_range(tokens),
        usd=_range(usd) if budget.priced else None,
        pairs=_of_pairs(spec, comparison, rows, draws, horizon),
    )


def _of_pairs(
    spec: SessionSpec, comparison: Comparison, rows: NDArray[np.int64], draws: Floats, horizon: int
) -> tuple[PairForecast, ...]:
    """Return the forecast of each simulated pair."""
    asked = np.array([len(_asked(spec, comparison, row)) for row in rows.tolist()])
    further = np.maximum(np.minimum(draws, horizon) - comparison.fold.progress[rows, None], 0.0)
    ranges = np.quantile(asked[:, None] * further, QUANTILES, axis=1).T.tolist()
    decided = np.isfinite(draws).mean(axis=1).tolist()
    return tuple(
        PairForecast(*sides(spec, comparison.goal, row), chance, Range(*trials))
        for row, chance, trials in zip(rows.tolist(), decided, ranges, strict=True)
    )


def _hardest(spec: SessionSpec, comparison: Comparison, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the open pairs to simulate: of a large board those that will take longest."""
    if rows.size <= HARDEST:
        return rows
    difference, variance = (
        comparison.latest.difference[rows],
        np.minimum(comparison.latest.variance[rows], 1e6),
    )
    factor = 2.0 * max(comparison.fold.threshold, 1.0) * variance / np.maximum(difference**2, 1e-12)
    if comparison.margin is not None:
        inside = np.maximum(comparison.margin - np.abs(difference), 1e-6)
        factor = np.minimum(factor, -2.0 * np.log(comparison.alpha) * variance / inside**2)
    order = rows[np.argsort(-factor * comparison.fold.progress[rows], kind="stable")]
    first, second = comparison.goal.first, comparison.goal.second
    chosen, left = list(order[:HARDEST]), {*first[rows].tolist(), *second[rows].tolist()}
    for row in order.tolist():
        if not left or len(chosen) == MOST_PAIRS:
            break
        members = {int(first[row]), int(second[row])}
        if members & left:
            chosen.append(row)
            left -= members
    return np.unique(chosen)


def _end(condition: Condition, comparison: Comparison, rows: NDArray[np.int64], draws: Floats) -> Floats:
    """Return the step at which a condition holds, path by path, from those of the contrasts that it needs."""
    if isinstance(condition, AllOf):
        ends = [_end(part, comparison, rows, draws) for part in condition.parts]
        return np.asarray(np.max(ends, axis=0))
    theirs = condition.needed(comparison.fold.verdict, comparison.scores, comparison.lost)[rows]
    return np.asarray(draws[theirs].max(axis=0, initial=0.0))


def _chances(reached: Floats, completed: int) -> tuple[Chance, ...]:
    """Return the chance that the goal is reached by a number of trials, for a few larger numbers."""
    found: list[Chance] = []
    for factor in FACTORS:
        trials = float(f"{factor * max(completed, 1):.2g}")
        chance = float((reached <= trials).mean())
        if chance >= 0.01 and (not found or chance - found[-1].resolved >= 0.15):
            found.append(Chance(trials, chance))
        if chance > 0.95:
            break
    return tuple(found)


def _outlook(spec: SessionSpec, board: Board, comparison: Comparison, rows: NDArray[np.int64]) -> Outlook:
    """Collect the estimates of the open contrasts; several tasks are treated as one."""
    # A contrast of one model has no second: what is held against it has no noise.
    first, second = comparison.goal.first[rows], comparison.goal.second[rows]
    single = comparison.goal.single[rows]
    within, in_rounds = np.zeros((2, len(spec.names) + 1))
    square, known = np.zeros(rows.size), np.zeros(len(spec.names) + 1)
    for weight, cells in zip(spec.task_weights, board.cells, strict=True):
        latest = cells.latest()
        trials = np.maximum(latest.seen[:, 0] + latest.r[:, 0], 1.0)
        known[:-1] += latest.g[:, 0]
        part = weight * np.where(np.isinf(trials), 0.0, latest.g[:, 0]) / trials
        within[:-1] += part
        in_rounds[:-1] += part * cells.variance_by_rounds()
        square += weight * _squares(cells, first, second, single)
    # More trials of others do not make a reference's noise smaller.
    within[len(spec.models) :] = in_rounds[len(spec.models) :] = 0.0
    known[len(spec.models) :] = np.inf
    noise = within[first] + within[second]
    share = np.where(noise > 0.0, (in_rounds[first] + in_rounds[second]) / np.maximum(noise, 1e-12), 1.0)
    until = (1 + spec.samples_per_prompt) * spec.questions
    binary = not single.any() and all(cells.binary for cells in board.cells)
    levels = comparison.fold.levels
    late = np.where(single, levels.tie(0), levels.guard)
    return Outlook.of(
        comparison.latest.difference[rows],
        np.minimum(comparison.latest.variance[rows], 1e6),
        comparison.fold.progress[rows],
        square,
        noise,
        spec.questions,
        rounds=(until, share) if any(spec.own_rounds) else None,
        population=spec.stopping.target == "population",
        known=np.minimum(known[first], known[second]),
        kappa=np.stack([np.where(binary, 0.0, late), late]),
    )


def _squares(cells: Cells, first: Ints, second: Ints, single: NDArray[np.bool_]) -> Floats:
    """Return the mean square of contrasts on single questions; of scores, the variance between them."""
    found, scores = np.zeros(first.size), dict[int, Floats]()
    for model in {*first.tolist(), *second[~single].tolist()}:
        n = cells.counts[model].sum(axis=1)
        scores[model] = np.where(n > 0, cells.counts[model] @ cells.scores / np.maximum(n, 1), np.nan)
    for row, (a, b, alone) in enumerate(zip(first.tolist(), second.tolist(), single.tolist(), strict=True)):
        of_both = scores[a] if alone else scores[a] - scores[b]
        known = of_both[~np.isnan(of_both)]
        if known.size:
            found[row] = known.var() if alone else (known**2).mean()
    return found


def _more_trials(
    spec: SessionSpec, comparison: Comparison, states: ModelStates, rows: NDArray[np.int64], steps: Floats
) -> Floats:
    """Return the trials that each model still needs, path by path; shape (L, paths)."""
    needed = np.zeros((len(spec.models), steps.shape[1]))
    for row, path in zip(rows.tolist(), steps, strict=True):
        for model in _asked(spec, comparison, row):
            needed[model] = np.maximum(needed[model], path)
    needed[[comparison.board.determinism.done(model) for model in range(len(spec.models))]] = 0.0
    return np.asarray(np.maximum(needed - np.array(states.issued)[:, None], 0.0))


def _asked(spec: SessionSpec, comparison: Comparison, row: int) -> list[int]:
    """Return the models of a contrast that are asked: references and numbers are not."""
    members = (int(comparison.goal.first[row]), int(comparison.goal.second[row]))
    return [model for model in members if 0 <= model < len(spec.models)]


def _affordable(account: Account, trials: Floats, costs: Floats) -> NDArray[np.bool_]:
    """Return which paths stay within the limits of an account."""
    within = np.ones(trials.size, dtype=bool)
    further = {
        "trials": trials,
        "tokens": costs[0] + costs[1],
        "prompt_tokens": costs[0],
        "completion_tokens": costs[1],
        "usd": costs[2],
    }
    for line in account.lines():
        if line.limit is not None:
            within &= line.spent + line.reserved + further[line.name] <= line.limit
    return within


def _range(values: Floats) -> Range:
    low, median, high = np.quantile(np.minimum(values, 1e15), QUANTILES)
    return Range(float(low), float(median), float(high))
