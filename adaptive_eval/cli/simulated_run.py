"""``adaptive-eval plan`` of biased coins or recorded outcomes, whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from adaptive_eval.cli.options import given_options, numbers, replayed, session_spec, weights_of
from adaptive_eval.cli.simulated_result import result_data, show_result
from adaptive_eval.cli.simulating import Report, print_json, progress_bar, workers_of
from adaptive_eval.errors import UsageError

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import SessionSpec
    from adaptive_eval.simulate import Answers, SimulationResult
    from adaptive_eval.simulate.many_runs import Workers

PAPER = "paper"
DEFAULT_MODELS = 5
DEFAULT_QUESTIONS = 30
SPREAD = 8.0
"""Beta concentration of the questions' difficulty where none is given."""

_OF_A_CONFIG = ("models", "questions", "recorded", "only", "weights", "goal", "confidence", "equivalence")
"""Options that a config answers itself."""


def simulate_rule(options: Mapping[str, Any]) -> None:
    """Simulate the session that the options ask for, and print what comes of it."""
    spec, answers = what_to_run(options)
    with workers_of(options) as workers, progress_bar() as report:
        result, others = _simulated(spec, answers, options, workers, report)
    if options["as_json"]:
        print_json(result_data(spec, result, others))
    else:
        show_result(spec, result, others)


def what_to_run(options: Mapping[str, Any]) -> tuple[SessionSpec, Answers]:
    """Return the session and the answers that the command line asks for."""
    from adaptive_eval.core.spec import TaskSpec
    from adaptive_eval.simulate import BiasedCoins
    from adaptive_eval.simulate.assumptions import default_means
    from scorio.study import PAPER_MEANS

    shape = options["spread"] or SPREAD, options["correlation"] or 0.0
    means: tuple[float, ...] | None = None
    if options["means"] is not None:
        means = PAPER_MEANS if options["means"] == PAPER else numbers(options["means"], "--means")
    if options["config_file"] is not None:
        spec = _configured(options)
        means = means if means is not None else default_means(len(spec.models))
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
    means = means if means is not None else default_means(number or DEFAULT_MODELS)
    questions = tuple(f"q{index + 1}" for index in range(options["questions"] or DEFAULT_QUESTIONS))
    names = tuple(f"m{index + 1}" for index in range(len(means)))
    spec = session_spec(options, names, (TaskSpec("simulated", questions, weights_of(options)),))
    return spec, BiasedCoins(means, *shape)


def _configured(options: Mapping[str, Any]) -> SessionSpec:
    from adaptive_eval.build.assembly import build
    from adaptive_eval.config import load_config

    for name in given_options(_OF_A_CONFIG):
        raise UsageError(f"--{name} and a config cannot be combined; change the config with --override")
    return build(load_config(options["config_file"], options["overrides"])).spec


def _simulated(
    spec: SessionSpec, answers: Answers, options: Mapping[str, Any], workers: Workers, report: Report
) -> tuple[SimulationResult, dict[str, float]]:
    """Return the simulated runs, and what other ways to run the session come to."""
    from adaptive_eval.core.spec import AllocationSpec
    from adaptive_eval.simulate import Latency, simulate
    from adaptive_eval.simulate.many_runs import simulate_fixed

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
