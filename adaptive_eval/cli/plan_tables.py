"""The tables of ``adaptive-eval plan`` for a config."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from adaptive_eval.cli.simulating import per_cent, print_table

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.cli.planning import Assumptions
    from adaptive_eval.core.spec import SessionSpec
    from adaptive_eval.simulate.plan_forecast import Plan, PlanRow, Spread

RUNS = "runs"
"""The default folder of runs."""


def show_plan(spec: SessionSpec, assumed: Assumptions, planned: Plan, replicates: int) -> None:
    """Print what the run takes, by policy, margin and budget."""
    from adaptive_eval.simulate.assumptions import sole_kind

    names = [model.name for model in spec.models]
    scores = ", ".join(f"{name} {score:.3g}" for name, score in zip(names, planned.truth, strict=True))
    from adaptive_eval.views.verdicts import questions_words

    asked = questions_words(spec.tasks_in_rounds, len(spec.tasks))
    click.echo(
        f"{spec.goal.text}: {len(names)} models, {spec.questions} questions ({asked}), "
        f"{replicates} simulated runs"
    )
    click.echo(f"assumed scores: {scores}")
    for line in assumed.sources:
        click.echo(f"  {line}")
    click.echo()
    kind = sole_kind(spec)
    verdicts, noun = {
        "threshold": ("called/tied/open", "models decided"),
        "width": ("measured/open", "scores measured"),
        "mixed": ("won/tied/open", "decided"),
    }.get(kind, ("won/tied/open", "pairs decided"))
    if planned.gaps:
        between = {"threshold": "each model and the threshold", "baseline": "each model and the baseline"}
        print_table(
            ("gap", "trials", "80 % of runs", "goal reached", verdicts),
            [_gap_row(gap, row) for gap, row in planned.gaps],
            title=f"What the run takes by the gap between {between.get(kind, 'neighbouring models')} "
            "(share of the range of scores)",
        )
    wrong = () if kind == "width" else ("any wrong",)
    print_table(
        ("<policy", "margin", "trials", "80 % of runs", "tokens", "USD", "time", "disk", "goal reached",
         verdicts, *wrong),
        [_row(row, kind) for row in planned.rows],
        title="Ways to run it, under the config's limits (medians)",
    )  # fmt: skip
    print_table(
        ("budget (trials)", "goal reached", noun),
        [
            (f"{budget:,.0f}", f"{resolved.share:.0%}", f"{decided:.0%}")
            for budget, resolved, decided in planned.budgets
        ],
        title="What a budget in trials decides, with the config's margin",
    )
    if any(goal.kind == "top-k" for goal in (spec.goal, *spec.goal.parts)):
        click.echo("What the goal does not need stays open.")
    own = [model.budget for model in spec.models] + [task.budget for task in spec.tasks]
    if any(budget.limited for budget in own):
        click.echo("Budgets of single models and tasks are left out of these figures.")
    _show_room(planned)
    worst = planned.all_equal
    if worst is not None:
        case, error = (
            ("exactly at the threshold", "model called")
            if kind == "threshold"
            else ("equally good", "winner")
        )
        click.echo(
            f"If all models were {case}: any wrong {error} in {worst.any_wrong} of runs, "
            f"{worst.trials.median:,.0f} trials, goal reached in {per_cent(worst.resolved.share)}."
        )


def show_ways(planned: Plan, hours: float) -> None:
    """Show time and cost of batches where their price is known."""
    if all(way.usd is None for way in planned.ways):
        return
    print_table(
        ("<asked", "rounds", "trials", "USD", "time"),
        [
            (
                way.way,
                "–" if way.rounds is None else f"{way.rounds.median:,.0f}",
                f"{way.trials.median:,.0f}",
                "–" if way.usd is None else f"{way.usd.median:,.2f}",
                "–" if way.hours is None else _duration(way.hours.median),
            )
            for way in planned.ways
        ],
        title="Live and in batches, by round-robin (medians). Assumed: half the price, "
        f"{_duration(hours)} a batch, and 500 requests in it where the config does not say",
    )


def _show_room(planned: Plan) -> None:
    from adaptive_eval.store.run_files import free_bytes, in_words

    largest = max((row.disk_bytes.high for row in planned.rows if row.disk_bytes is not None), default=None)
    free = free_bytes(RUNS)
    if largest is not None and largest > free:
        click.echo(
            f"The largest of these takes about {in_words(largest)} on the disk; {in_words(free)} are free."
        )


def _gap_row(gap: float, row: PlanRow) -> tuple[str, ...]:
    return (
        f"{gap:g}",
        f"{row.trials.median:,.0f}",
        f"{row.trials.low:,.0f}–{row.trials.high:,.0f}",
        f"{row.resolved.share:.0%}",
        f"{row.winners:.0%}/{row.ties:.0%}/{row.open:.0%}",
    )


def _row(row: PlanRow, kind: str) -> tuple[str, ...]:
    from adaptive_eval.store.run_files import in_words

    return (
        row.policy,
        "none" if row.margin is None else f"{row.margin:g}",
        f"{row.trials.median:,.0f}",
        f"{row.trials.low:,.0f}–{row.trials.high:,.0f}",
        _count(row.tokens),
        "–" if row.usd is None else f"{row.usd.median:,.2f}",
        "–" if row.hours is None else _duration(row.hours.median),
        "–" if row.disk_bytes is None else in_words(row.disk_bytes.median),
        "one look" if row.policy.startswith("fixed") else f"{row.resolved.share:.0%}",
        *(
            ("–" if row.policy.startswith("fixed") else f"{row.ties:.0%}/{row.open:.0%}",)
            if kind == "width"
            else (f"{row.winners:.0%}/{row.ties:.0%}/{row.open:.0%}", f"{row.any_wrong.share:.1%}")
        ),
    )


def _duration(hours: float) -> str:
    if hours < 0.1:
        return f"{3600 * hours:.0f} s"
    return f"{60 * hours:.0f} min" if hours < 2.0 else f"{hours:,.1f} h"


def _count(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    value = spread.median
    for unit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{suffix}"
    return f"{value:.0f}"
