"""``adaptive-eval plan``: the cost of a config, or the errors of a rule, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import (
    COUNT,
    NOT_NEGATIVE,
    PATH,
    POSITIVE,
    NumberInRange,
    decision_options,
    given_options,
    named,
    numbers,
    option,
    refuse_options,
    replayed,
    session_spec,
    weights_of,
)
from adaptive_eval.cli.simulating import print_json, simulation_options, simulator_of
from adaptive_eval.errors import UsageError

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import SessionSpec
    from adaptive_eval.simulate import AnswerSource, SimulationResult
    from adaptive_eval.simulate.many_runs import Simulator

MARGINS = (0.5, 2.0)
"""Margins compared with the config's own, as shares of it."""


_OF_CONFIGS = ("stated", "previous", "margins", "prompt_tokens", "answer_tokens")
_OF_A_CONFIG = ("models", "questions", "recorded", "only", "weights", "goal", "confidence", "equivalence")
"""Options that a config answers itself."""
_OF_SESSIONS = (*_OF_A_CONFIG, "means", "in_flight", "latency_sigma", "latency_factor")
"""Options of the two jobs of the command that the other one does not read."""


PAPER = "paper"
DEFAULT_MODELS = 5
DEFAULT_QUESTIONS = 30
COIN_RUNS = 200
SPREAD = 8.0
"""Beta concentration of the questions' difficulty where none is given."""


@named(
    "plan",
    "my.yaml",
    "--means 0.75,0.7,0.5 --questions 60 --equivalence 0.08",
    "--recorded outcomes.csv --goal top-k=2",
)
@click.argument("config_file", metavar="[CONFIG]", required=False, type=PATH)
@option(
    "--assume stated NAME=MEAN …", "A model's mean score, from 0 (worst category) to 1 (best). Repeatable."
)
@option(
    "--from previous PATH", "Assume the scores of a previous run, or of a file of recorded outcomes.", PATH
)
@option(
    "--margin margins E …",
    "Equivalence margin to compare with the config's, in score units. Repeatable.",
    POSITIVE,
)
@option("--spread X", "Beta concentration of the questions' difficulty: larger is more alike.", POSITIVE)
@option("--correlation R", "Correlation of difficulty between models, from 0 to 1.", NumberInRange(0.0, 1.0))
@option("--prompt-tokens N", "Mean tokens of a prompt.", NOT_NEGATIVE)
@option("--answer-tokens N", "Mean tokens of an answer.", NOT_NEGATIVE)
@option("--latency S", "Seconds that an answer takes.", NOT_NEGATIVE)
@option("--models N", "Number of coins. Default: 5.", COUNT)
@option(
    "--means LIST",
    "Mean scores of coins, such as 0.6,0.5,0.5, or paper for the paper's eleven. Default: 0.3 to 0.7.",
)
@option("--questions N", "Questions of coins. Default: 30.", COUNT)
@option(
    "--recorded FILE …",
    "Replay recorded outcomes (npz, jsonl, csv, parquet, or a run's directory) in shuffled order.",
    PATH,
)
@decision_options
@option(
    "--in-flight N",
    "Trials in flight; decisions do not depend on it, trials spent do. 1 simulates fastest.",
    COUNT,
    default=1,
)
@option("--latency-sigma N", "Log standard deviation of --latency.", NOT_NEGATIVE, default=0.4)
@option("--latency-factor N", "A right answer takes this many times as long.", POSITIVE, default=1.0)
@simulation_options(
    "Default: 200 without CONFIG; with it, 6 to 200 a row, as many as take about 240,000 trials in all."
)
def command(**options: Any) -> None:
    """Simulate the config CONFIG: expected trials, tokens, USD, hours, bytes, errors, per policy and margin.

    Nothing is sent. Without --assume or --from, neighbouring models are taken to be two margins apart.

    Without CONFIG, a rule is measured on biased coins or recorded outcomes, whose truth is known: wrong
    calls, ties, trials. The code of real runs decides, in virtual time. -o changes every setting of goal,
    stopping and allocation. With CONFIG and --means, the config's goal and rule are measured on such coins.
    """
    config_file = options["config_file"]
    overrides = options["overrides"]
    if config_file is None or given_options(("means",)):
        refuse_options(_OF_CONFIGS, "describes a config; give one, without --means")
        simulate_rule(options)
        return
    refuse_options(_OF_SESSIONS, "is for biased coins and recorded outcomes; leave it or the config out")
    from adaptive_eval.build.assembly import build
    from adaptive_eval.cli.plan_tables import show_plan
    from adaptive_eval.cli.planning import assume
    from adaptive_eval.config import load_config
    from adaptive_eval.simulate.plan_forecast import MOST, SHARES_OF_TRIALS, TRIALS, collect, figures

    built = build(load_config(config_file, overrides))
    spec = built.spec
    _require_verdicts(spec)
    assumed = assume(built, options)
    with simulator_of(options, MOST, TRIALS // SHARES_OF_TRIALS) as simulator:
        found = figures(spec, assumed, _margins(spec, options["margins"]), simulator)
        if options["as_json"]:
            print_json({"assumptions": assumed.sources, **asdict(collect(spec, assumed, found))})
        else:
            bounded = "6 to 200 simulated runs a row (--replicates N for more)"
            given = options["replicates"]
            number = bounded
            if given is not None:
                number = f"{given} simulated runs"
            show_plan(spec, assumed, found, number)


def _require_verdicts(spec: SessionSpec) -> None:
    if spec.goal.kind == "budget":
        raise UsageError(
            "goal budget spends what it is given and decides nothing, so there is nothing to plan; choose "
            "another goal to see what deciding it would take"
        )


def _margins(spec: SessionSpec, given: Sequence[float]) -> list[float | None]:
    """Return the margins to compare, the config's own first."""
    from adaptive_eval.cli.planning import UNIT_MARGIN, unit_margin

    unit = spec.scale[1]
    of_goal = unit_margin(spec)
    own = None
    if of_goal is not None:
        own = of_goal * unit
    others = given or [share * (own or UNIT_MARGIN * unit) for share in MARGINS]
    margins: list[float | None] = [own]
    if spec.stopping.rule != "zscore" and any(goal.kind != "width" for goal in spec.goal.parts):
        margins += sorted(margin for margin in others if margin != own)
    return margins


def simulate_rule(options: Mapping[str, Any]) -> None:
    """Simulate the session of the options, and print verdicts, errors and trials."""
    from adaptive_eval.cli.plan_tables import result_data, show_result

    spec, answers = what_to_run(options)
    with simulator_of(options, COIN_RUNS) as simulator:
        result, others = _simulated(spec, answers, options, simulator)
    if options["as_json"]:
        print_json(result_data(spec, result, others))
    else:
        show_result(spec, result, others)


def what_to_run(options: Mapping[str, Any]) -> tuple[SessionSpec, AnswerSource]:
    """Return the session and the answers that the command line asks for."""
    from adaptive_eval.core.spec import TaskSpec
    from adaptive_eval.simulate import BiasedCoins
    from adaptive_eval.simulate.assumptions import default_means
    from scorio.study import PAPER_MEANS

    shape = options["spread"] or SPREAD, options["correlation"] or 0.0
    means: tuple[float, ...] | None = None
    if options["means"] is not None:
        means = PAPER_MEANS
        if options["means"] != PAPER:
            means = numbers(options["means"], "--means")
    if options["config_file"] is not None:
        spec = _configured(options)
        if means is None:
            means = default_means(len(spec.models))
        return spec, BiasedCoins(means, *shape)
    if options["recorded"]:
        if means is not None or options["models"] is not None:
            raise UsageError("--recorded brings its own models; use --only to choose among them")
        return replayed(options)
    number = options["models"]
    if means is not None and number not in (None, len(means)):
        raise UsageError(
            f"--models {number} and --means with {len(means)} numbers disagree; leave --models out"
        )
    if means is None:
        means = default_means(number or DEFAULT_MODELS)
    questions = tuple(f"q{index + 1}" for index in range(options["questions"] or DEFAULT_QUESTIONS))
    names = tuple(f"m{index + 1}" for index in range(len(means)))
    spec = session_spec(options, names, (TaskSpec("simulated", questions, weights_of(options)),))
    return spec, BiasedCoins(means, *shape)


def _configured(options: Mapping[str, Any]) -> SessionSpec:
    from adaptive_eval.build.assembly import build
    from adaptive_eval.config import load_config

    words = "and a config cannot be combined; change the config with --override"
    refuse_options(_OF_A_CONFIG, words)
    return build(load_config(options["config_file"], options["overrides"])).spec


def _simulated(
    spec: SessionSpec, answers: AnswerSource, options: Mapping[str, Any], simulator: Simulator
) -> tuple[SimulationResult, dict[str, float]]:
    """Return the simulated runs, and what other ways to run the session come to."""
    from adaptive_eval.core.spec import AllocationSpec
    from adaptive_eval.simulate import Latency

    latency = None
    if options["latency"] is not None:
        latency = Latency(options["latency"], options["latency_sigma"], options["latency_factor"])
    policy = spec.allocation.models
    flight = (options["in_flight"], latency)
    result = simulator.run(spec, answers, policy, *flight)
    others = {}
    if policy == "round-robin" and result.one_by_one:
        others["uniform"] = float(result.uniform_total.mean())
    elif policy != "uniform":
        uniform = replace(spec, allocation=AllocationSpec("uniform", spec.allocation.questions))
        others["uniform"] = float(simulator.run(uniform, answers, "uniform", *flight).total.mean())
    return result, others
