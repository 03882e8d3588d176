"""The tables of ``adaptive-eval plan``: of a config, and of a rule on coins or recorded outcomes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import click
import numpy as np

from adaptive_eval.cli.simulating import GrowingTable, per_cent, print_table
from adaptive_eval.core.results import Range
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.simulate.assumptions import sole_kind
from adaptive_eval.simulate.plan_forecast import (
    CHANCE,
    CHANCE_CONFIDENCE,
    Assumptions,
    Figure,
    PlanRow,
)
from adaptive_eval.simulate.result import Rate, SimulationResult
from adaptive_eval.store.run_files import free_bytes, in_words
from adaptive_eval.views.numbers import duration, short, usd
from adaptive_eval.views.verdicts import questions_words

WIDTHS = {
    "trials": 24,
    "80 % of runs": 14,
    "time": 10,
    "disk": 7,
    "goal reached": 14,
    "any wrong": 17,
}
"""Characters of columns whose first cell may be much shorter than others, by head."""

DISPENSABLE = ("disk", "runs", "any wrong", "80 % of runs", "time", "tokens", "USD")
"""Columns that a narrow terminal does without, the first ones first."""

RUNS = "runs"
"""The default folder of runs."""


def show_plan(spec: SessionSpec, assumed: Assumptions, found: Iterable[Figure], runs: str) -> None:
    """Print what the run takes, by policy, margin and budget: each row as soon as it is known.

    `runs` says how many simulated runs a row has.
    """
    names = [model.name for model in spec.models]
    truth = assumed.answers.truth(spec).tolist()
    scores = ", ".join(f"{name} {score:.3g}" for name, score in zip(names, truth, strict=True))
    asked = questions_words(spec.tasks_in_rounds, len(spec.tasks))
    click.echo(f"{spec.goal.text}: {len(names)} models, {spec.questions} questions ({asked}), {runs}")
    click.echo(f"assumed scores: {scores}")
    for line in assumed.sources:
        click.echo(f"  {line}")
    click.echo("Brackets hold 95 % intervals for the number of simulated runs.")
    click.echo()
    for table, of_table in groupby(found, key=lambda figure: figure.table):
        rows = (figure.row for figure in of_table)
        if table == "rows":
            _show_rows(rows, sole_kind(spec))
        elif table == "budgets":
            _show_budgets(rows, spec)
        elif table == "safe_budget":
            click.echo(_safe_words(*next(rows)))
        else:
            click.echo(_worst_case(next(rows), sole_kind(spec)))


def _show_rows(rows: Iterable[PlanRow], kind: str) -> None:
    table = GrowingTable("Ways to run it, under the config's limits (medians)", WIDTHS, DISPENSABLE)
    shown = []
    for row in rows:
        table.add(_cells(row, kind))
        shown.append(row)
    table.end()
    _show_price_range(shown[0])
    _show_room(shown)


def _show_budgets(rows: Iterable[tuple[float, Rate, float]], spec: SessionSpec) -> None:
    nouns = {"threshold": "models decided", "width": "scores measured", "mixed": "decided"}
    noun = {**nouns, "not-worse": "claims decided"}.get(sole_kind(spec), "pairs decided")
    table = GrowingTable("What a budget in trials decides, with the config's margin", WIDTHS)
    for budget, reached, decided in rows:
        table.add(
            {
                "budget (trials)": f"{budget:,.0f}",
                "goal reached": _rate(reached, 0),
                noun: _whole(decided),
            }
        )
    table.end()
    if any(goal.kind == "top-k" for goal in (spec.goal, *spec.goal.parts)):
        click.echo("What the goal does not need stays open.")
    if any(budget.limited for budget in spec.own_budgets):
        click.echo("Budgets of single models and tasks are left out of these figures.")


def _safe_words(budget: float | None, reached: Rate) -> str:
    """Return the budget that reaches the goal with a good chance, or that none does."""
    chance = f"{CHANCE:.0%}"
    replicates = reached.total
    basis = f"by {replicates} simulated runs, with {CHANCE_CONFIDENCE:.0%} confidence"
    more = max(200, 5 * replicates)
    if budget is not None:
        return f"budget.trials={budget:.0f} reaches the goal with a chance of at least {chance} ({basis})."
    if reached.interval()[1] >= CHANCE:
        return (
            f"{replicates} runs are too few for a budget with a chance of {chance}; take --replicates {more}."
        )
    return (
        f"No budget within the passes reaches the goal with a chance of at least {chance} ({basis}). "
        "Raise stopping.max_passes, take more questions, or a wider margin."
    )


def _worst_case(worst: PlanRow, kind: str) -> str:
    """Return what goes wrong if no verdict is right; each side of a claim may err in the whole level."""
    rest = f"{worst.trials.median:,.0f} trials, goal reached in {per_cent(worst.resolved.share)}"
    rest += f" ({worst.runs} runs)."
    if kind == "not-worse":
        held = per_cent(worst.held, 1)
        failed = per_cent(worst.winners - worst.held, 1)
        return f"If all models were worse by exactly the margin: {held} of claims hold, {failed} fail, {rest}"
    cases = {"threshold": ("exactly at the threshold", "model called")}
    case, error = cases.get(kind, ("equally good", "winner"))
    return f"If all models were {case}: any wrong {error} in {worst.any_wrong} of runs, {rest}"


def _cells(row: PlanRow, kind: str) -> dict[str, str]:
    """Return the figures of a way to run it, by the heads of their columns."""
    shares = "/".join(map(_whole, [row.winners, row.ties, row.open]))
    verdicts = "won/tied/open"
    if kind == "threshold":
        verdicts = "called/tied/open"
    if kind == "not-worse":
        verdicts = "holds/fails/open"
        shares = "/".join(map(_whole, [row.held, row.winners - row.held, row.open]))
    if kind == "width":
        verdicts = "measured/open"
        shares = "/".join(map(_whole, [row.ties, row.open]))
    margin = "none"
    if row.margin is not None:
        margin = f"{row.margin:g}"
    cells = {
        "<policy": row.policy,
        "margin": margin,
        "runs": str(row.runs),
        "trials": _trials(row),
        "80 % of runs": f"{row.trials.low:,.0f}–{row.trials.high:,.0f}",
        "tokens": _median(row.tokens, short),
        "USD": _median(row.usd, usd),
        "time": _median(row.hours, _duration),
        "disk": _median(row.disk_bytes, in_words),
        "goal reached": _rate(row.resolved, 0),
        verdicts: shares,
    }
    if kind != "width":
        cells["any wrong"] = _rate(row.any_wrong, 1)
    return cells


def _show_price_range(row: PlanRow) -> None:
    """Say that USD is an upper bound, if answers of unknown length are priced at the longest one allowed."""
    least, most = row.least_usd, row.usd
    if least is None or most is None or least.median >= most.median:
        return
    click.echo(
        "USD is an upper bound: answers of unknown length are priced at their limit. "
        f"{row.policy}: {usd(least.median)} (empty answers) to {usd(most.median)} (longest answers); "
        "give --answer-tokens, or --from with an earlier run."
    )


def _show_room(rows: Sequence[PlanRow]) -> None:
    largest = max((row.disk_bytes.high for row in rows if row.disk_bytes is not None), default=None)
    free = free_bytes(RUNS)
    if largest is not None and largest > free:
        click.echo(
            f"The largest of these takes about {in_words(largest)} on the disk; {in_words(free)} are free."
        )


def _median(spread: Range | None, write: Callable[[float], str]) -> str:
    if spread is None:
        return "–"
    return write(spread.median)


def _trials(row: PlanRow) -> str:
    """Return the median of the trials, with its interval."""
    interval = row.median_trials
    if interval is None or interval[0] == interval[1]:
        return f"{row.trials.median:,.0f}"
    low, high = interval
    return f"{row.trials.median:,.0f} [{low:,.0f}, {high:,.0f}]"


def _rate(rate: Rate, decimals: int) -> str:
    """Return a share with its interval, in per cent."""
    low, high = rate.interval()
    ends = f"{100 * low:.{decimals}f}, {100 * high:.{decimals}f}"
    return f"{rate.share:.{decimals}%} [{ends}]"


def _whole(share: float) -> str:
    return f"{share:.0%}"


def _duration(hours: float) -> str:
    return duration(3600.0 * hours)


WORST_PAIRS = 5
"""Pairs listed that were called wrongly."""


def show_result(spec: SessionSpec, result: SimulationResult, others: Mapping[str, float]) -> None:
    """Print a simulation's results as tables."""
    stopping = spec.stopping
    margin = "no margin"
    if stopping.equivalence is not None:
        margin = f"margin {stopping.equivalence:g}"
    asked = questions_words(spec.tasks_in_rounds, len(spec.tasks))
    click.echo(
        f"{spec.goal.text}: {len(spec.models)} models, {spec.questions} questions ({asked}), "
        f"rule {stopping.rule} at {stopping.confidence:g}, family {stopping.family}, {margin}, "
        f"{spec.allocation.models}"
    )
    for line in Session(spec).results().warnings:
        click.echo(f"warning: {line}")
    click.echo()
    print_table(("<", "<"), _summary(result, others))
    print_table(
        ("<model", "true score", "mean trials", "most trials"),
        [
            (row["model"], f"{row['truth']:.4g}", f"{row['mean_trials']:,.0f}", f"{row['most_trials']:,}")
            for row in result.to_rows("models")
        ],
    )
    shown = []
    for row in sorted(result.to_rows("pairs"), key=lambda row: -row["wrong"])[:WORST_PAIRS]:
        if row["wrong"]:
            shares = (per_cent(row[key], 1) for key in ("wrong", "tie", "open"))
            shown.append((row["first"], row["second"], f"{row['gap']:+.4g}", *shares))
    if shown:
        print_table(("<most often called wrongly", "<", "true gap", "wrong", "tie", "open"), shown)


def _summary(result: SimulationResult, others: Mapping[str, float]) -> list[tuple[str, str]]:
    total = float(result.total.mean())
    tied = "pairs tied"
    if np.isnan(result.gap).any():
        tied = "pairs tied, or scores measured"
    reasons = ", ".join(f"{per_cent(n / result.replicates, 1)} {why}" for why, n in result.reasons.items())
    rows = [
        ("runs", f"{result.replicates:,}: {reasons}"),
        ("any wrong winner in a run", str(result.family_wise)),
        ("wrong winners among pairs", str(result.wrong_calls)),
        ("wrong ties among pairs a margin apart", str(result.wrong_ties)),
        ("pairs with a winner", per_cent(result.share("decided"), 1)),
        (tied, per_cent(result.share("tie"), 1)),
        ("pairs undecided", per_cent(result.share("open"), 1)),
        (
            "trials of a run",
            f"{total:,.0f} on average; 80 % of runs "
            f"{result.trials_quantile(0.1):,.0f} to {result.trials_quantile(0.9):,.0f}",
        ),
        ("time", f"{result.time.mean():,.1f} on average (seconds, or rounds of answers without a latency)"),
    ]
    for name, value in others.items():
        rows.append((f"against {name}", f"{value:,.0f} trials: {total / value:.2f} of them"))
    if result.exhausted.any():
        share = result.exhausted.any(axis=1).mean()
        rows.append(
            ("recorded trials ran out", f"in {per_cent(share, 1)} of runs, for a model that was still needed")
        )
    return rows


def result_data(spec: SessionSpec, result: SimulationResult, others: Mapping[str, float]) -> dict[str, Any]:
    """Return a simulation's results as JSON-able data."""

    def rate(value: Rate) -> dict[str, Any]:
        low, high = value.interval()
        return {"count": value.count, "total": value.total, "low": low, "high": high}

    return {
        "goal": spec.goal.text,
        "rule": spec.stopping.rule,
        "policy": spec.allocation.models,
        "replicates": result.replicates,
        "reasons": result.reasons,
        "any_wrong_winner": rate(result.family_wise),
        "wrong_winners": rate(result.wrong_calls),
        "wrong_ties": rate(result.wrong_ties),
        "decided": result.share("decided"),
        "tied": result.share("tie"),
        "undecided": result.share("open"),
        "mean_trials": float(result.total.mean()),
        "mean_time": float(result.time.mean()),
        "compared": dict(others),
        "models": result.to_rows("models"),
        "pairs": result.to_rows("pairs"),
    }
