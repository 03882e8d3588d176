"""What a cap on run-ahead saves, and what it costs in time: simulated runs in virtual time.

    python benchmarks/run_ahead.py --runs 12
    python benchmarks/run_ahead.py --board eight --seed 11

The cap was chosen on the board ``five``: five models on 60 questions (means .3 to .8, margin .05). ``two``
and ``eight`` were not used for it. Questions are asked as runs do by default (``auto``: in rounds, up to 100
questions) and in one order (``schedule``). `excess` is the trials of a run less one flight, against a run
with one trial in flight; `time` is virtual seconds against unlimited run-ahead, for which predictions know
only the common prefix. The same answers are drawn for all columns. With ``right 7x`` right answers take seven
times as long.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np

from adaptive_eval.core import drain
from adaptive_eval.core.spec import AllocationSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.simulate import BiasedCoins, SimulationResult, simulate
from adaptive_eval.simulate.virtual_time import Latency

BOARDS = {
    "five": ((0.3, 0.45, 0.5, 0.65, 0.8), 60, 60, 0.05),
    "two": ((0.55, 0.62), 30, 100, 0.04),
    "eight": ((0.25, 0.35, 0.42, 0.5, 0.55, 0.6, 0.72, 0.85), 200, 20, 0.05),
}
"""Means of the models, questions, most passes, margin."""
SMALL_FLIGHT = drain.SMALL_FLIGHT


@dataclass(frozen=True)
class Exponential(Latency):
    """Exponential seconds; `median` is their mean."""

    def draw(self, model: int, score: float, rng: np.random.Generator) -> float:
        """Return the seconds that one answer takes."""
        return float(rng.exponential(1.0))


LATENCIES = {
    "exponential": Exponential(tick=0.02),
    "sigma 1.5": Latency(1.0, 1.5, tick=0.02),
    "right 7x": Latency(1.0, 0.5, 7.0, tick=0.02),
}


def spec_of(board: str, questions: str, run_ahead: str | None) -> SessionSpec:
    """Return the models of a board on one task."""
    means, size, passes, margin = BOARDS[board]
    return SessionSpec(
        models=tuple(ModelSpec(f"m{number}") for number in range(len(means))),
        tasks=(TaskSpec("t", tuple(f"q{number}" for number in range(size))),),
        stopping=StoppingSpec(equivalence=margin, max_passes=passes),
        allocation=AllocationSpec(questions=questions, run_ahead=run_ahead),  # type: ignore[arg-type]
    )


def run(
    spec: SessionSpec,
    coins: BiasedCoins,
    options: argparse.Namespace,
    in_flight: int,
    latency: Latency | None,
) -> SimulationResult:
    """Simulate some runs."""
    drain.SMALL_FLIGHT = math.inf if spec.allocation.run_ahead is None else SMALL_FLIGHT
    return simulate(spec, coins, options.runs, options.seed, in_flight, latency, workers=1)


def main() -> None:
    """Print a row for each way of asking, number in flight and latency."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 512, 2000])
    parser.add_argument("--questions", nargs="+", default=["auto", "schedule"])
    parser.add_argument("--board", choices=BOARDS, default="five")
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    coins = BiasedCoins(BOARDS[options.board][0])
    for questions in options.questions:
        free, capped = (spec_of(options.board, questions, run_ahead) for run_ahead in (None, "auto"))
        alone = run(free, coins, options, 1, None).trials.sum() / options.runs
        print(f"{questions}, one in flight: {alone:.0f} trials a run")
        print("in flight  latency      unlimited    auto  excess   time")
        for in_flight in options.in_flight:
            for name, latency in LATENCIES.items():
                most, fewer = (run(spec, coins, options, in_flight, latency) for spec in (free, capped))
                trials = [one.trials.sum() / options.runs for one in (most, fewer)]
                print(
                    f"{in_flight:9}  {name:11} {trials[0]:10.0f} {trials[1]:7.0f} "
                    f"{(trials[1] - in_flight) / alone:6.2f}x {fewer.time.mean() / most.time.mean():5.2f}x",
                    flush=True,
                )


if __name__ == "__main__":
    main()
