"""Forecast of the trials, tokens and USD until the goal is reached, as intervals."""

from collections.abc import Callable
from itertools import starmap
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import SessionContrasts
from adaptive_eval.core.budget import PICODOLLARS, Account, Budget
from adaptive_eval.core.foresight import READ_TOGETHER
from adaptive_eval.core.goals import AllOf, BestK, Condition, claimed_margin, contrast_kind, sides
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.results import Chance, PairForecast, Range, RunForecast, StopVerdict
from scorio.arrays import Bools, Floats, Ints
from scorio.sequential.parts import QUANTILES, simulate_board

PATHS = 100
LIKELY = 0.8
"""The least chance that the goal is reached with which a budget is advised."""
FORECAST_RULES = ("anytime", "exact")
"""Rules with a known boundary; a rule from a package has no forecast."""
HORIZON_PASSES = 1000
"""Passes up to which a forecast looks where no cap is set."""


class Forecasts:
    """The last forecast of a run, kept until the number of trials has grown by a twentieth."""

    def __init__(self, comparison: SessionContrasts, budget: Budget, states: ModelStates) -> None:
        self._known = comparison, budget, states
        self._last: RunForecast | None = None
        self.due = 0
        self._ended = False

    def now(self, stopped: StopVerdict | None) -> RunForecast | None:
        """Return the forecast of the rest of the run, or None if there is none (yet)."""
        if stopped is not None and stopped.reason not in ("budget", "max_passes"):
            return None
        comparison, budget, states = self._known
        ended = stopped is not None
        if budget.completed >= self.due or ended is not self._ended:
            self.due = budget.completed + max(budget.completed // 20, 10)
            self._ended = ended
            self._last = forecast(comparison, budget, states, ended=ended)
        return self._last


def forecast(
    comparison: SessionContrasts, budget: Budget, states: ModelStates, *, ended: bool = False
) -> RunForecast | None:
    """Forecast the rest of a run; None if the goal does not stop or too little is known.

    The board is simulated from the posterior of its scores (:mod:`scorio.sequential.outlook`); that is
    approximate, and labelled so wherever it is shown. A model against a number is simulated as a pair would
    be, not by its bets.
    """
    spec = comparison.spec
    fold = comparison.fold
    goal = comparison.contrasts
    if not goal.stops or spec.stopping.rule not in FORECAST_RULES:
        return None
    if not comparison.decidable[fold.needed].any():
        return None
    latest = comparison.latest
    known = (latest.questions[fold.needed] >= 1) & (latest.trials[fold.needed] >= 2.0)
    if not known.all() or _repeats_are_copies(comparison, states):
        return None
    rows = _hardest(comparison, np.flatnonzero(fold.undecided & ~fold.lost))
    if not fold.needed[rows].any():
        return None
    # Once the cap has ended the run, the question is what a higher one would bring.
    cap = HORIZON_PASSES if ended else spec.stopping.max_passes or HORIZON_PASSES
    rng = np.random.default_rng((spec.seed, budget.completed))
    needed = _needed(goal.condition, fold.verdict.size, rows)
    horizon = cap * spec.questions
    calls = simulate_board(comparison, rows, needed, horizon=horizon, rng=rng, paths=PATHS)
    unasked = _unasked(comparison, states, calls.until)  # (L, paths)
    more = unasked + np.array(states.in_flight)[:, None]
    done = np.maximum(np.array(states.issued) - np.array(states.in_flight) - np.array(states.skipped), 1)
    spent = [account.spent for account in budget.models]
    per_trial = (
        np.array([[one.prompt, one.completion, one.usd / PICODOLLARS] for one in spent]) / done[:, None]
    )
    costs = per_trial.T[:, :, None] * more  # (3, L, paths)
    tokens = costs[:2].sum(axis=(0, 1))
    usd = costs[2].sum(axis=0)
    # A budget has reserved the cost of the trials in flight already.
    unreserved = per_trial.T[:, :, None] * unasked
    within = calls.done & _affordable(budget.run, unasked.sum(axis=0), unreserved.sum(axis=1))
    for model, account in enumerate(budget.models):
        within &= _affordable(account, unasked[model], unreserved[:, model])
    reached = np.where(calls.done, budget.completed + more.sum(axis=0), np.inf)
    cost = None
    if budget.priced:
        cost = range_of(usd)
    return RunForecast(
        open_pairs=int(fold.needed.sum()),
        chances=_chances(reached),
        resolved_within_budget=float(within.mean()),
        trials=range_of(more.sum(axis=0)),
        tokens=range_of(tokens),
        usd=cost,
        pairs=_of_pairs(comparison, rows, calls.steps.T, horizon),
    )


def _repeats_are_copies(comparison: SessionContrasts, states: ModelStates) -> bool:
    """Return whether most repeated answers of a needed model are or may be copies; further ones may be, too.

    How soon they would decide depends on which texts come, of which nothing is known.
    """
    board = comparison.answers
    repeats = board.trial_counts() - board.seen()
    for model in comparison.members:
        if states.copies[model] > 0 and repeats[model] == 0:
            return True
        new = board.new_repeats(model)
        copies = repeats[model] - new
        if copies > new:
            return True
    return False


def _of_pairs(
    comparison: SessionContrasts, rows: Ints, steps: Floats, horizon: int
) -> tuple[PairForecast, ...]:
    """Return the forecast, up to a step, of each simulated pair that is needed now."""
    spec = comparison.spec
    rows, steps = rows[comparison.fold.needed[rows]], steps[comparison.fold.needed[rows]]
    goal = comparison.contrasts
    models = len(spec.models)
    asked = np.zeros(rows.size)  # models of each that are asked: references and numbers are not
    for side in (goal.first[rows], goal.second[rows]):
        asked += (side >= 0) & (side < models)
    further = np.maximum(np.minimum(steps, horizon) - comparison.fold.progress[rows, None], 0.0)
    ranges = np.quantile(asked[:, None] * further, QUANTILES, axis=1).T.tolist()
    decided = np.isfinite(steps).mean(axis=1).tolist()
    return tuple(
        PairForecast(
            *sides(spec, goal, row),
            chance,
            Range(*trials),
            contrast_kind(goal, row),
            claimed_margin(spec, goal, row),
        )
        for row, chance, trials in zip(rows.tolist(), decided, ranges, strict=True)
    )


def _hardest(comparison: SessionContrasts, rows: Ints) -> Ints:
    """Return the open pairs to simulate: of a large board those that will take longest, as it seems now."""
    most = READ_TOGETHER // PATHS
    if rows.size <= most:
        return rows
    size = np.abs(comparison.latest.difference[rows])
    margin = comparison.margin or 0.0
    distance = np.maximum(size, margin - size)
    goal = comparison.contrasts
    of_claims = np.abs(comparison.latest.difference[rows] + goal.claim[rows])
    distance = np.where(goal.claimed[rows], of_claims, distance)
    variance = np.minimum(comparison.latest.variance[rows], 1e6)
    easier = distance**2 / (variance * np.maximum(comparison.fold.progress[rows], 1))
    easier[~comparison.fold.needed[rows]] = np.inf
    return np.sort(rows[np.argsort(easier, kind="stable")[:most]])


def _needed(condition: Condition, contrasts: int, rows: Ints) -> Callable[[Bools, Floats, Bools], Bools]:
    """Return which open contrasts of `rows` a condition needs, path by path."""
    if isinstance(condition, AllOf):
        parts = [_needed(part, contrasts, rows) for part in condition.parts]
        return lambda *now: np.logical_or.reduce([part(*now) for part in parts])
    theirs = np.zeros(contrasts, dtype=bool)
    theirs[condition.rows] = True
    if not isinstance(condition, BestK):
        return lambda open_, scores, enough: open_ & theirs[rows]
    first, second = np.zeros((2, contrasts), dtype=np.int64)
    first[condition.rows], second[condition.rows] = condition.first, condition.second
    first = first[rows]
    second = second[rows]
    k = condition.k

    def across(open_: Bools, scores: Floats, enough: Bools) -> Bools:
        """Return the pairs across the cut; what follows from other winners is not left out."""
        best = np.argsort(-scores, axis=1)[:, :k]
        top = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(top, best, True, axis=1)
        best_first, best_second = top[:, first], top[:, second]
        settled = np.where(best_first, enough[0], enough[1])
        return np.asarray(open_ & theirs[rows] & (best_first != best_second) & ~settled)

    return across


def _chances(reached: Floats) -> tuple[Chance, ...]:
    """Return numbers of trials by which the goal is reached with low, even and good chances.

    They are rounded up to two digits. One that no number reaches is left out.
    """
    found: dict[float, float] = {}
    for trials in np.quantile(reached, (*QUANTILES[:-1], LIKELY), method="higher").tolist():
        if isfinite(trials):
            digit = 10.0 ** (floor(log10(trials)) - 1)
            rounded = ceil(trials / digit) * digit
            found[rounded] = float((reached <= rounded).mean())
    return tuple(starmap(Chance, found.items()))


def _unasked(comparison: SessionContrasts, states: ModelStates, until: Floats) -> Floats:
    """Return the trials that each model needs in addition to those in flight, path by path; (L, paths)."""
    models = range(len(comparison.spec.models))
    needed = until[:, : len(models)].T.copy()
    needed[[comparison.answers.determinism.done(model) for model in models]] = 0.0
    return np.asarray(np.maximum(needed - np.array(states.issued)[:, None], 0.0))


def _affordable(account: Account, trials: Floats, costs: Floats) -> Bools:
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


def range_of(values: NDArray[Any]) -> Range:
    """Return the median of values and the 80 % interval around it."""
    low, median, high = np.quantile(np.minimum(values, 1e15), QUANTILES).tolist()
    return Range(low, median, high)
