"""Time 100,000 bootstrap replicates of convergence@n for 20 models x 30 questions x 80 trials.

    python benchmarks/convergence_speed.py [--replicates 100000] [--jobs 2]

Prints seconds and peak memory beside the targets and exits with 1 when one is missed. Every result is the
same for any number of jobs, which is checked here as well.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor

import numpy as np

from scorio.study import Bootstrap, Convergence, Metric, biased_coins, convergence

MODELS, QUESTIONS, TRIALS = 20, 30, 80
TARGETS = ((Metric("avg"), 10.0), (Metric("bayes"), 10.0), (Metric("pass_at_k", k=8), 180.0))
MEMORY_TARGET_MB = 2_000.0


def peak_memory_mb(workers: int) -> float:
    """Return an upper bound: this process's peak plus `workers` times the largest worker's."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if workers else 0
    unit = 1 if sys.platform == "darwin" else 1024  # macOS reports bytes, Linux KiB
    return (own + workers * worker) * unit / 1e6


def timed(
    source: Bootstrap, metric: Metric, replicates: int, executor: Executor | None
) -> tuple[float, Convergence]:
    start = time.perf_counter()
    result = convergence(source, metric, replicates=replicates, seed=3, executor=executor)
    return time.perf_counter() - start, result


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2, help="worker processes of the second measurement")
    options = parser.parse_args(arguments)
    coins = biased_coins(np.linspace(0.2, 0.8, MODELS), QUESTIONS, seed=1)
    source = Bootstrap(coins.sample(TRIALS, seed=2))
    print(f"{options.replicates:,} replicates of convergence@n, {MODELS} x {QUESTIONS} x {TRIALS}, columns")
    shared_title = f"{options.jobs} workers"
    print(f"{'metric':<10}{'1 process':>12}{shared_title:>12}{'target':>10}{'never':>9}{'mean>=':>9}")
    missed = 0
    with ProcessPoolExecutor(options.jobs) as executor:
        for metric, target in TARGETS:
            alone, first = timed(source, metric, options.replicates, None)
            shared, second = timed(source, metric, options.replicates, executor)
            if not np.array_equal(first.at, second.at):
                print(f"{metric.label}: workers changed the result", file=sys.stderr)
                return 1
            missed += shared > target
            print(
                f"{metric.label:<10}{alone:>10.2f} s{shared:>10.2f} s{target:>8.0f} s"
                f"{first.never:>9.3f}{first.mean_at_least:>9.1f}"
            )
    memory = peak_memory_mb(options.jobs)
    missed += memory > MEMORY_TARGET_MB
    print(
        f"peak memory of all processes together at most {memory:,.0f} MB (target {MEMORY_TARGET_MB:,.0f} MB)"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
