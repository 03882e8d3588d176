"""What a cap on run-ahead saves, and what it costs in time: simulated runs in virtual time.

    python benchmarks/run_ahead.py --runs 4

Five models on 60 questions (means .3 to .8, margin .05). Trials are counted against a run with one trial in
flight, virtual seconds against unlimited run-ahead. Latencies are lognormal; with ``right 7x`` right answers
take seven times as long.
"""

from __future__ import annotations

import argparse

from adaptive_eval.core.spec import AllocationSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.simulate import BiasedCoins, simulate
from adaptive_eval.simulate.virtual_time import Latency

MEANS = (0.3, 0.45, 0.5, 0.65, 0.8)
LATENCIES = {
    "sigma 1": Latency(1.0, 1.0, tick=0.02),
    "sigma 1.5": Latency(1.0, 1.5, tick=0.02),
    "right 7x": Latency(1.0, 0.5, 7.0, tick=0.02),
}


def board(run_ahead: str | None) -> SessionSpec:
    """Return five models on one task."""
    return SessionSpec(
        models=tuple(ModelSpec(f"m{number}") for number in range(len(MEANS))),
        tasks=(TaskSpec("t", tuple(f"q{number}" for number in range(60))),),
        stopping=StoppingSpec(equivalence=0.05, max_passes=60),
        allocation=AllocationSpec(run_ahead=run_ahead),  # type: ignore[arg-type]
    )


def main() -> None:
    """Print a row for each number in flight and each latency."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 512, 2000])
    options = parser.parse_args()
    coins = BiasedCoins(MEANS)
    alone = simulate(board(None), coins, options.runs, 3, 1, workers=1).trials.sum() / options.runs
    print(f"one in flight: {alone:.0f} trials a run")
    print("in flight  latency    unlimited      auto  trials saved  time against unlimited")
    for in_flight in options.in_flight:
        for name, latency in LATENCIES.items():
            free, capped = (
                simulate(board(chosen), coins, options.runs, 3, in_flight, latency, workers=1)
                for chosen in (None, "auto")
            )
            most, fewer = (run.trials.sum() / options.runs / alone for run in (free, capped))
            time = capped.time.mean() / free.time.mean()
            print(
                f"{in_flight:9}  {name:9}  {most:8.2f}x {fewer:8.2f}x {1 - fewer / most:12.0%} {time:18.2f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()
