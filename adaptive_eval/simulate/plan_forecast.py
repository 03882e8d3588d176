"""Forecasts a run before it is paid for: trials, tokens, USD, hours, errors, per policy and margin."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from adaptive_eval.core.forecast import range_of
from adaptive_eval.core.goals import make_goal
from adaptive_eval.core.results import Range
from adaptive_eval.core.spec import AllocationSpec, SessionSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.simulate.coins import AnswerSource
from adaptive_eval.simulate.many_runs import Simulator, without_budgets
from adaptive_eval.simulate.result import Rate, SimulationResult
from adaptive_eval.stops import StopReason
from scorio.arrays import Floats, Ints
from scorio.sequential.parts import VerdictCode

SHARES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
"""Budgets of the budget table, as shares of the median number of trials without one."""

CHANCE = 0.9
"""The least chance that the goal is reached with which a plan names a budget."""
CHANCE_CONFIDENCE = 0.95
"""One-sided confidence of that chance, since the simulated runs are a sample."""

MOST = 200
"""Replicates of a row at most, where trials bound them."""
TRIALS = 240_000
"""Simulated trials of a plan, if no number of replicates is asked for: some 3 CPU seconds."""
SHARES_OF_TRIALS = 3
"""Shares of what is simulated: two for the margins, and one for equal models."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Tokens, dollars and time of one trial of a model.

    Examples
    --------
    >>> Workload(prompt_tokens=200.0, completion_tokens=800.0).tokens
    1000.0
    """

    # expected tokens; None where unknown
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    usd: float | None = None  # expected price of a trial
    # expected time from one trial's start to the next one's, all those in flight taken together: mean
    # latency over concurrency, or more under a rate limit
    seconds: float | None = None
    disk_bytes: float | None = None  # expected bytes of a stored trial
    least_usd: float | None = None  # price of a trial if answers of unknown length were empty

    @property
    def tokens(self) -> float | None:
        """Prompt and completion tokens; None if either is unknown."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One way to run the config, and its figures."""

    policy: str  # which models get trials
    margin: float | None  # equivalence margin
    trials: Range  # trials of a run
    # expected tokens, price and duration; None where they are unknown
    tokens: Range | None
    usd: Range | None
    hours: Range | None
    resolved: Rate  # runs that reach the goal within passes and budget
    # shares of contrasts that get a winner, a tie, no verdict
    winners: float
    ties: float
    open: float
    # runs with any wrong winner; wrong ties among pairs the margin or more apart
    any_wrong: Rate
    wrong_ties: Rate
    disk_bytes: Range | None = None  # expected size of the run file; None where it is unknown
    least_usd: Range | None = None  # price if answers of unknown length were empty
    held: float = 0.0  # share of contrasts whose first model is better, or whose claim holds
    runs: int = 0  # simulated runs behind these figures
    # 95 % interval of the median of `trials`, for so many runs; None for fewer than six
    median_trials: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All figures of a run, together."""

    truth: tuple[float, ...]  # assumed scores of the models
    rows: tuple[PlanRow, ...]  # policies and margins, with the budget in force
    # for the config's own policy and margin: a budget in trials, the runs resolved within it, the share of
    # contrasts decided
    budgets: tuple[tuple[float, Rate, float], ...]
    # the least budget in trials that reaches the goal with the chance :data:`CHANCE`; None if none does
    safe_budget: float | None
    # the config's own policy and margin if all models were equally good: the worst case for errors
    all_equal: PlanRow | None


@dataclass(frozen=True)
class Assumptions:
    """What a plan rests on."""

    answers: AnswerSource
    workload: Sequence[Workload]  # of each model
    equal: AnswerSource | None = None  # those of models that are equally good
    sources: tuple[str, ...] = ()  # where they are from, in words
    # seconds that a trial of each model takes of servers that have a limit, 0 if it may go elsewhere; those
    # of the models in flight together add up
    servers: tuple[tuple[float, ...], ...] = ()


Table = Literal["rows", "budgets", "safe_budget", "all_equal"]
"""The parts of a :class:`Plan`; the safe budget comes with the share of runs that no budget ends."""


class Figure(NamedTuple):
    """A row of a plan: the table that it belongs to, and the row."""

    table: Table
    row: Any


def collect(spec: SessionSpec, assumed: Assumptions, found: Iterable[Figure]) -> Plan:
    """Return the plan that has these figures."""
    tables: dict[Table, list[Any]] = {}
    for table, row in found:
        tables.setdefault(table, []).append(row)
    (worst,) = tables.get("all_equal", [None])
    ((safe, _),) = tables["safe_budget"]
    return Plan(
        truth=tuple(assumed.answers.truth(spec).tolist()),
        rows=tuple(tables["rows"]),
        budgets=tuple(tables["budgets"]),
        safe_budget=safe,
        all_equal=worst,
    )


def figures(
    spec: SessionSpec,
    assumed: Assumptions,
    margins: Sequence[float | None],
    simulator: Simulator,
) -> Iterator[Figure]:
    """Simulate a run with several margins, under its own limits; yield each figure as it is known.

    The first of the `margins` is the run's own.
    """
    workload, answers = assumed.workload, assumed.answers
    if len(workload) != len(spec.models):
        raise UsageError(f"workload is given for {len(workload)} models, the run has {len(spec.models)}")
    if not margins:
        raise UsageError("margins must name at least one margin, None for none")
    work = _Work(spec, assumed, simulator)
    own = margins[0]
    policy = spec.allocation.models
    if policy not in ("round-robin", "uniform"):
        found = simulator.run(spec.with_margin(own), answers, policy)
        yield Figure("rows", work.row(policy, own, found))
    count = len(margins)
    by_margin = work.unlimited(answers, margins, f"{count} margin{'s' * (count > 1)}")
    for margin, whole in zip(margins, by_margin, strict=True):
        yield Figure("rows", work.row("round-robin", margin, work.limited(whole)))
        yield Figure("rows", work.row("uniform", margin, work.limited(whole.uniform)))
    for budget in _budget_table(by_margin[0]):
        yield Figure("budgets", budget)
    yield Figure("safe_budget", (safe_budget(by_margin[0]), _resolved(by_margin[0])))
    if assumed.equal is not None:
        (equal,) = work.unlimited(assumed.equal, margins[:1], "all equal", work.passes())
        yield Figure("all_equal", work.row("round-robin", own, work.limited(equal)))


@dataclass(frozen=True)
class _Work:
    """The inputs that every way of running it shares."""

    spec: SessionSpec
    assumed: Assumptions
    simulator: Simulator

    def unlimited(
        self, answers: AnswerSource, margins: Sequence[float | None], label: str, passes: int | None = None
    ) -> list[SimulationResult]:
        """Simulate round-robin without a budget, with each margin, for at most `passes`."""
        in_turn = AllocationSpec("round-robin", self.spec.allocation.questions)
        spec = replace(without_budgets(self.spec), allocation=in_turn)
        if passes is not None and passes < (spec.stopping.max_passes or np.inf):
            spec = replace(spec, stopping=replace(spec.stopping, max_passes=passes))
        return self.simulator.margins(spec, answers, margins, label)

    def limited(self, result: SimulationResult) -> SimulationResult:
        """Return the runs under the spec's budget."""
        step = np.full(result.replicates, np.inf)
        for taken, limit in self._limits():
            step = np.minimum(step, steps_within(result.trials, taken, limit))
        return cut_at(result, step)

    def passes(self) -> int | None:
        """Return passes within which every run reaches a limit of the spec; None if there is no limit."""
        goal = make_goal(self.spec)
        # An open pair of two models needs both; models compared with a number or a reference need one.
        last = np.maximum(goal.first, goal.second)  # references come after the models
        pairs = ~(goal.single | goal.measured) & (last < len(self.spec.models))
        least = 2 if pairs.all() else 1
        steps = []
        for taken, limit in self._limits():
            together = combinations(range(len(self.spec.models)), least)
            rate = min(float(taken[:, list(models)].sum(axis=1).max()) for models in together)
            if rate > 0:
                steps.append(limit / rate)
        if steps:
            return int(min(steps) // self.spec.questions) + 1
        return None

    def _limits(self) -> Iterable[tuple[Floats, float]]:
        """Yield what a trial of each model takes, as :func:`steps_within` has it, and the limit."""
        budget = self.spec.budget
        if budget.trials is not None:
            yield np.ones((1, len(self.spec.models))), float(budget.trials)
        for name in ("tokens", "prompt_tokens", "completion_tokens", "usd", "wall_clock"):
            limit = getattr(budget, name)
            cost = name
            if name == "wall_clock":
                cost = "seconds"
            taken = self._known(cost)
            if limit is not None and taken is not None:
                yield taken, float(limit)

    def _known(self, name: str) -> Floats | None:
        """Return a quantity of all models, as :func:`steps_within` has it, or None if one is unknown."""
        values = [getattr(work, name) for work in self.assumed.workload]
        if None in values:
            return None
        if name != "seconds":
            return np.array([values], dtype=np.float64)
        shared = np.array(self.assumed.servers, dtype=np.float64).reshape(-1, len(values))
        return np.concatenate([np.diag(values), shared])

    def row(self, policy: str, margin: float | None, result: SimulationResult) -> PlanRow:
        """Return the figures of the runs of one way."""

        def spread(name: str, unit: float = 1.0) -> Range | None:
            taken = self._known(name)
            if taken is None:
                return None
            return range_of(cost_of(result.trials, taken) / unit)

        wrong = 0.0
        if result.pairs:
            wrong = float((result.verdict == VerdictCode.BETTER).mean())
        return PlanRow(
            policy,
            margin,
            range_of(result.total),
            spread("tokens"),
            spread("usd"),
            spread("seconds", 3600.0),
            _resolved(result),
            result.share("decided"),
            result.share("tie"),
            result.share("open"),
            result.family_wise,
            result.wrong_ties,
            spread("disk_bytes"),
            spread("least_usd"),
            wrong,
            result.replicates,
            median_interval(result.total),
        )


def _resolved(result: SimulationResult) -> Rate:
    """Return the share of the runs that reach the goal."""
    return Rate(result.reasons.get("resolved", 0), result.replicates)


def median_interval(values: Ints, confidence: float = 0.95) -> tuple[float, float] | None:
    """Return the interval of a median between two of the values, by the sign test; None for too few.

    Examples
    --------
    >>> median_interval(np.arange(1, 21)), median_interval(np.arange(5))
    ((6.0, 15.0), None)
    """
    count = values.size
    places = np.arange(count // 2)
    below = bdtr(places, count, 0.5)  # the chance that no more than so many values are below the median
    outside = np.flatnonzero(below <= (1.0 - confidence) / 2.0)
    if not outside.size:
        return None
    place = int(outside[-1])
    ordered = np.sort(values)
    return float(ordered[place]), float(ordered[count - 1 - place])


def _budget_table(result: SimulationResult) -> tuple[tuple[float, Rate, float], ...]:
    """Return what budgets in trials around the median decide."""
    median = float(np.median(result.total))
    table = []
    for share in SHARES:
        budget = _round_number(share * median)
        step = steps_within(result.trials, np.ones((1, result.trials.shape[1])), budget)
        cut = cut_at(result, step)
        resolved = Rate(cut.reasons.get("resolved", 0), cut.replicates)
        table.append((budget, resolved, 1.0 - cut.share("open")))
    return tuple(table)


def safe_budget(result: SimulationResult) -> float | None:
    """Return the least budget in trials that reaches the goal with the chance :data:`CHANCE`.

    It is the trials of that run, in order of size, up to which so many runs have reached the goal that the
    exact one-sided limit of their share is the chance. None if too few runs reach the goal.
    """
    resolved = [reason == "resolved" for reason in result.reason]
    needed = np.sort(result.total[resolved])
    for place, trials in enumerate(needed.tolist()):
        if is_safe(Rate(place + 1, result.replicates)):
            return _rounded_up(trials)
    return None


def is_safe(reached: Rate) -> bool:
    """Return whether the goal is reached with the chance :data:`CHANCE`, by a one-sided limit."""
    low, _ = reached.interval(2.0 * CHANCE_CONFIDENCE - 1.0)
    return low >= CHANCE


def _rounded_up(trials: float) -> float:
    """Return the next number with two significant digits.

    Examples
    --------
    >>> _rounded_up(3410.0), _rounded_up(3400.0), _rounded_up(7.0)
    (3500.0, 3400.0, 7.0)
    """
    step = 10.0 ** max(len(str(int(trials))) - 2, 0)
    return float(np.ceil(trials / step) * step)


def _round_number(value: float) -> float:
    """Return `value` with two significant digits."""
    return float(f"{max(value, 1.0):.1e}")


def cut_at(result: SimulationResult, step: Floats) -> SimulationResult:
    """Return the runs cut by a budget at a step each; verdicts that fell later are open again."""
    late = result.decided_at > step[:, None]
    reasons: list[StopReason] = []
    for is_cut, earlier in zip(step < result.steps, result.reason, strict=True):
        if is_cut:
            reasons.append("budget")
        else:
            reasons.append(earlier)
    return replace(
        result,
        verdict=np.where(late, VerdictCode.OPEN, result.verdict).astype(np.int8),
        decided_at=np.where(late, -1, result.decided_at),
        trials=np.minimum(result.trials, np.floor(step)[:, None]).astype(np.int64),
        steps=np.minimum(result.steps, np.floor(step)).astype(np.int64),
        reason=tuple(reasons),
    )


def steps_within(trials: Ints, taken: ArrayLike, limit: float) -> Floats:
    """Return up to which step each run can go within a limit.

    `taken` is what a trial of each model takes of several things, shape (C, L): of each thing what all models
    take adds up, and the run takes the largest sum. Of time, models that run side by side have a thing each.

    Examples
    --------
    >>> steps_within(np.array([[10, 4]]), [[1.0, 1.0]], 11).tolist()
    [7.0]
    >>> steps_within(np.array([[10, 4]]), [[1.0, 0.0], [0.0, 3.0]], 15).tolist()
    [7.0]
    """
    lengths, rates = _pieces(trials, taken)
    needed = lengths * rates
    left = limit - np.cumsum(needed, axis=1) + needed  # before each piece
    ended = needed > left
    first = ended.argmax(axis=1)
    runs = np.arange(len(trials))
    begun = np.cumsum(lengths, axis=1) - lengths
    with np.errstate(divide="ignore", invalid="ignore"):
        reached = begun[runs, first] + left[runs, first] / rates[runs, first]
    return np.where(ended.any(axis=1), reached, np.inf)


def cost_of(trials: Ints, taken: ArrayLike) -> Floats:
    """Return what each run costs in all, shape (R,); see :func:`steps_within`.

    Examples
    --------
    >>> cost_of(np.array([[10, 4]]), [[1.0, 3.0]]).tolist()
    [22.0]
    >>> cost_of(np.array([[10, 4]]), [[1.0, 0.0], [0.0, 3.0]]).tolist()
    [18.0]
    """
    lengths, rates = _pieces(trials, taken)
    return np.asarray((lengths * rates).sum(axis=1), dtype=np.float64)


def _pieces(trials: Ints, taken: ArrayLike) -> tuple[Ints, Floats]:
    """Return the steps between the ends of models, and what one of them takes, shape (R, L) each."""
    order = np.argsort(trials, axis=1, kind="stable")
    lengths = np.diff(np.take_along_axis(trials, order, axis=1), axis=1, prepend=0)
    each = np.asarray(taken, dtype=np.float64)[:, order]
    together = np.cumsum(each[:, :, ::-1], axis=2)[:, :, ::-1]
    return lengths, together.max(axis=0)
