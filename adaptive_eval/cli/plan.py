"""``adaptive-eval plan``: the cost of a config, before anything is sent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import Number, WholeNumber, config_options
from adaptive_eval.cli.simulating import (
    per_cent,
    print_json,
    print_table,
    progress_bar,
    simulation_options,
    workers_of,
)
from adaptive_eval.errors import UsageError

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from collections.abc import Sequence

    from adaptive_eval.cli.planning import Assumptions
    from adaptive_eval.core.spec import SessionSpec
    from adaptive_eval.simulate.plan_forecast import Plan, PlanRow, Spread

RUNS = "runs"
"""The default folder of runs."""

MARGINS = (0.02, 0.03, 0.05, 0.1)
"""Margins compared with the config's own, as shares of the range of scores."""


@click.command("plan")
@config_options
@click.option(
    "--assume",
    "stated",
    multiple=True,
    metavar="NAME=MEAN",
    help="A model's mean score, from 0 (worst category) to 1 (best). Repeatable.",
)
@click.option(
    "--from",
    "previous",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Assume the scores of a previous run, or of a file of recorded outcomes.",
)
@click.option(
    "--margin",
    "margins",
    multiple=True,
    type=Number(min=0.0, min_open=True),
    metavar="E",
    help="Equivalence margin to compare with the config's, in score units. Repeatable.",
)
@click.option(
    "--spread",
    type=Number(min=0.0, min_open=True),
    metavar="X",
    help="Beta concentration of the questions' difficulty: larger is more alike.",
)
@click.option(
    "--correlation",
    type=Number(0.0, 1.0),
    metavar="R",
    help="Correlation of difficulty between models, from 0 to 1.",
)
@click.option("--prompt-tokens", type=Number(min=0.0), metavar="N", help="Mean tokens of a prompt.")
@click.option("--answer-tokens", type=Number(min=0.0), metavar="N", help="Mean tokens of an answer.")
@click.option("--latency", type=Number(min=0.0), metavar="S", help="Mean latency of an answer, in seconds.")
@click.option(
    "--fixed", type=WholeNumber(min=1), metavar="N",
    help="Trials per question of the run of fixed length to compare with. Default: max_passes.",
)  # fmt: skip
@click.option(
    "--batch-hours",
    type=Number(min=0.0, min_open=True),
    default=1.0,
    metavar="H",
    help="Assumed hours until a batch is answered, to compare live requests with batches.",
)
@simulation_options(200)
def command(config_file: Path, overrides: tuple[str, ...], **options: Any) -> None:
    """Simulate the config CONFIG: expected trials, tokens, USD, hours, bytes, errors, per policy and margin.

    Nothing is sent. Without --assume or --from, a table first shows what gaps between the models take, from
    the margin on: a gap near the margin takes the most trials.
    """
    from adaptive_eval.build.assembly import build
    from adaptive_eval.cli.planning import MeanUsage, Stated, assume
    from adaptive_eval.config import load_config
    from adaptive_eval.simulate import BiasedCoins
    from adaptive_eval.simulate.assumptions import assumed_answers, means_for, sole_kind
    from adaptive_eval.simulate.plan_forecast import plan

    built = build(load_config(config_file, overrides))
    spec = built.spec
    _require_verdicts(spec)
    usage = MeanUsage(options["prompt_tokens"], options["answer_tokens"], options["latency"])
    stated = Stated(options["stated"], options["previous"], usage, options["spread"], options["correlation"])
    assumed = assume(built, stated)
    shape = {"concentration": assumed.concentration, "correlation": assumed.correlation}
    answers = assumed_answers(spec, assumed.means, assumed.recorded, seed=options["seed"], **shape)
    origin, unit = spec.scale
    kind = sole_kind(spec)
    level = (float((answers.truth(spec).mean() - origin) / unit),) * len(spec.models)
    equal = means_for(spec, 0.0) if kind == "threshold" else None if kind == "width" else level
    margins = _margins(spec, options["margins"])
    with workers_of(options) as workers, progress_bar() as report:
        planned = plan(
            spec,
            answers,
            assumed.workload,
            margins,
            options["replicates"],
            options["seed"],
            options["fixed"],
            None if equal is None else BiasedCoins(equal, **shape),
            workers,
            report,
            {gap: BiasedCoins(means, **shape) for gap, means in assumed.gaps.items()},
            options["batch_hours"],
        )
    if options["as_json"]:
        print_json({"assumptions": assumed.sources, **asdict(planned)})
    else:
        _show(spec, assumed, planned, options["replicates"])
        _show_ways(planned, options["batch_hours"])


def _require_verdicts(spec: SessionSpec) -> None:
    if spec.goal.kind == "budget":
        raise UsageError(
            "goal budget spends what it is given and decides nothing, so there is nothing to plan; choose "
            "another goal to see what deciding it would take"
        )


def _margins(spec: SessionSpec, given: Sequence[float]) -> list[float | None]:
    """Return the margins to compare, the config's own first."""
    own, unit = spec.stopping.equivalence, spec.scale[1]
    others = given or [share * unit for share in MARGINS]
    margins: list[float | None] = [own]
    if spec.stopping.rule != "zscore" and any(goal.kind != "width" for goal in spec.goal.parts):
        margins += sorted(margin for margin in others if margin != own)
    return margins


# ---------------------------------------------------------------------- what is shown


def _show(spec: SessionSpec, assumed: Assumptions, planned: Plan, replicates: int) -> None:
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
    if any(goal.kind == "top-k" for goal in spec.goal.parts):
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


def _show_ways(planned: Plan, hours: float) -> None:
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
    from adaptive_eval.store.disk_space import free_bytes, in_words

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
    from adaptive_eval.store.disk_space import in_words

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
