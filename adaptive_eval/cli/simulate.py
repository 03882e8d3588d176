"""``adaptive-eval simulate``: a stopping rule against answers whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import Number, WholeNumber, override_option
from adaptive_eval.cli.simulating import (
    Offered,
    Report,
    decision_options,
    print_json,
    progress_bar,
    simulation_options,
    workers_of,
)
from adaptive_eval.core.plugins import POLICY_GROUP

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import SessionSpec
    from adaptive_eval.simulate import Answers, SimulationResult
    from adaptive_eval.simulate.many_runs import Workers


@click.command("simulate")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take models, questions, goal, rule and policy from a config; change them with --override.",
)
@override_option
@click.option("--models", type=WholeNumber(min=1), metavar="N", help="Number of models. Default: 5.")
@click.option(
    "--means",
    metavar="LIST",
    help="Mean scores, such as 0.6,0.5,0.5, or paper for the paper's eleven. Default: 0.3 to 0.7, evenly.",
)
@click.option("--questions", type=WholeNumber(min=1), default=30, metavar="N", help="Number of questions.")
@click.option(
    "--spread",
    type=Number(),
    default=8.0,
    metavar="X",
    help="Beta concentration of the questions' difficulty: larger is more alike; below 2 most are "
    "always or never solved.",
)
@click.option(
    "--correlation",
    type=Number(),
    default=0.0,
    metavar="R",
    help="Correlation of difficulty between models, from 0 to 1.",
)
@click.option(
    "--recorded",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Replay recorded outcomes (npz, jsonl, csv, parquet, or a run's directory) in shuffled order.",
)
@decision_options(watched=True)
@click.option(
    "--max-passes", type=WholeNumber(min=1), metavar="N",
    help="Passes after which a run ends. Default: 80; for recorded outcomes, as many as there are.",
)  # fmt: skip
@click.option(
    "--target",
    type=click.Choice(["benchmark", "population"]),
    default="benchmark",
    help="Whether verdicts hold for these questions, or for the population they are a sample of.",
)
@click.option(
    "--policy",
    type=Offered(["round-robin", "uniform", "lowest-z", "top-two"], POLICY_GROUP),
    default="round-robin",
    help="Allocation policy: which model gets the next trial; built in, or the name of an installed "
    "package's.",
)
@click.option(
    "--order",
    type=click.Choice(["schedule", "rounds", "auto"]),
    default="schedule",
    help="Which question comes next; a run takes auto unless its config says otherwise.",
)
@click.option(
    "--in-flight",
    type=WholeNumber(min=1),
    default=1,
    metavar="N",
    help="Trials in flight; decisions do not depend on it, trials spent do. 1 simulates fastest.",
)
@click.option("--latency", type=Number(), metavar="S", help="Median latency of an answer, in seconds.")
@click.option("--latency-sigma", type=Number(), default=0.4, help="Its log standard deviation.")
@click.option(
    "--latency-factor", type=Number(), default=1.0, help="A right answer takes this many times as long."
)
@click.option(
    "--fixed", type=WholeNumber(min=1), metavar="N", help="Compare with a run of N trials per question."
)
@simulation_options(1000)
def command(**options: Any) -> None:
    """Measure a stopping rule: wrong calls, ties, trials.

    The code that decides real runs decides simulated ones, in virtual time, with biased coins or recorded
    outcomes. Nothing is sent.
    """
    from adaptive_eval.cli.simulated_result import result_data, show_result
    from adaptive_eval.cli.simulated_run import what_to_run

    spec, answers = what_to_run(options)
    with workers_of(options) as workers, progress_bar() as report:
        result, others = _simulated(spec, answers, options, workers, report)
    if options["as_json"]:
        print_json(result_data(spec, result, others))
    else:
        show_result(spec, result, others)


def _simulated(
    spec: SessionSpec, answers: Answers, options: Mapping[str, Any], workers: Workers, report: Report
) -> tuple[SimulationResult, dict[str, float]]:
    """Return the simulated runs, and what other ways to run the session come to."""
    from adaptive_eval.core.spec import AllocationSpec
    from adaptive_eval.simulate import Latency, simulate
    from adaptive_eval.simulate.fixed import simulate_fixed

    latency = None
    if options["latency"] is not None:
        latency = Latency(options["latency"], options["latency_sigma"], options["latency_factor"])
    replicates, seed = options["replicates"], options["seed"]
    policy, fixed = spec.allocation.models, options["fixed"]

    def run(policy: str, spec: SessionSpec) -> SimulationResult:
        progress = partial(report, policy)
        return simulate(spec, answers, replicates, seed, options["in_flight"], latency, workers, progress)

    result, others = run(policy, spec), {}
    if policy == "round-robin" and result.one_by_one:
        others["uniform"] = float(result.uniform_total.mean())
    elif policy != "uniform":
        uniform = replace(spec, allocation=AllocationSpec("uniform", spec.allocation.questions))
        others["uniform"] = float(run("uniform", uniform).total.mean())
    if fixed is not None:
        name = f"fixed N={fixed}"
        once = simulate_fixed(
            spec, answers, fixed, replicates, seed, workers=workers, progress=partial(report, name)
        )
        others[name] = float(once.total.mean())
        others["fixed: any wrong winner"] = once.family_wise.share
        others["fixed: undecided"] = once.share("open")
    return result, others
