"""``adaptive-eval plan``: the cost of a config, or the errors of a rule, before anything is sent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import Number, WholeNumber, decision_options, examples, given_options
from adaptive_eval.cli.simulating import (
    print_json,
    progress_bar,
    simulation_options,
    workers_of,
)
from adaptive_eval.errors import UsageError

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from collections.abc import Sequence

    from adaptive_eval.core.spec import SessionSpec

MARGINS = (0.02, 0.03, 0.05, 0.1)
"""Margins compared with the config's own, as shares of the range of scores."""


_WRITTEN = {"stated": "assume", "previous": "from", "margins": "margin"}
_OF_CONFIGS = ("stated", "previous", "margins", "prompt_tokens", "answer_tokens", "batch_hours")
_OF_SESSIONS = (
    "models", "means", "questions", "recorded", "only", "weights", "goal", "confidence", "equivalence",
    "in_flight", "latency_sigma", "latency_factor",
)  # fmt: skip
"""Options of the two jobs of the command that the other one does not read."""


@click.command(
    "plan",
    epilog=examples(
        "adaptive-eval plan my.yaml",
        "adaptive-eval plan --means 0.75,0.7,0.5 --questions 60 --equivalence 0.08",
        "adaptive-eval plan --recorded outcomes.csv --goal top-k=2",
    ),
)
@click.argument("config_file", metavar="[CONFIG]", required=False, type=click.Path(path_type=Path))
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
@click.option("--latency", type=Number(min=0.0), metavar="S", help="Seconds that an answer takes.")
@click.option(
    "--fixed", type=WholeNumber(min=1), metavar="N",
    help="Trials per question of the run of fixed length to compare with. Default: max_passes of the config.",
)  # fmt: skip
@click.option(
    "--batch-hours",
    type=Number(min=0.0, min_open=True),
    default=1.0,
    metavar="H",
    help="Assumed hours until a batch is answered, to compare live requests with batches.",
)
@click.option("--models", type=WholeNumber(min=1), metavar="N", help="Number of coins. Default: 5.")
@click.option(
    "--means",
    metavar="LIST",
    help="Mean scores of coins, such as 0.6,0.5,0.5, or paper for the paper's eleven. Default: 0.3 to 0.7.",
)
@click.option("--questions", type=WholeNumber(min=1), metavar="N", help="Questions of coins. Default: 30.")
@click.option(
    "--recorded",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Replay recorded outcomes (npz, jsonl, csv, parquet, or a run's directory) in shuffled order.",
)
@decision_options
@click.option(
    "--in-flight",
    type=WholeNumber(min=1),
    default=1,
    metavar="N",
    help="Trials in flight; decisions do not depend on it, trials spent do. 1 simulates fastest.",
)
@click.option("--latency-sigma", type=Number(), default=0.4, help="Log standard deviation of --latency.")
@click.option(
    "--latency-factor", type=Number(), default=1.0, help="A right answer takes this many times as long."
)
@simulation_options(200)
def command(**options: Any) -> None:
    """Simulate the config CONFIG: expected trials, tokens, USD, hours, bytes, errors, per policy and margin.

    Nothing is sent. Without --assume or --from, a table first shows what gaps between the models take, from
    the margin on: a gap near the margin takes the most trials.

    Without CONFIG, measure a rule on biased coins or recorded outcomes, whose truth is known: wrong calls,
    ties, trials. The code that decides real runs decides simulated ones, in virtual time; every setting of
    goal, stopping and allocation is an option or -o. With CONFIG and --means, its session is measured so.
    """
    config_file, overrides = options["config_file"], options["overrides"]
    if config_file is None or given_options(("means",)):
        _refuse(_OF_CONFIGS, "describes a config; give one, without --means")
        from adaptive_eval.cli.simulated_run import simulate_rule

        simulate_rule(options)
        return
    _refuse(_OF_SESSIONS, "is for biased coins and recorded outcomes; leave it or the config out")
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
        from adaptive_eval.cli.plan_tables import show_plan, show_ways

        show_plan(spec, assumed, planned, options["replicates"])
        show_ways(planned, options["batch_hours"])


def _refuse(names: Sequence[str], words: str) -> None:
    for name in given_options(names):
        raise UsageError(f"--{_WRITTEN.get(name, name)} {words}")


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
