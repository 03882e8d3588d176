"""Measure what the stopping rules promise, by simulation: errors, savings, trials to a call.

    python benchmarks/decisions.py [--scale 0.01] [--jobs 2] [--seed 1] [--only ties,boards] [--replay DIR]

Every figure comes from the code that decides a real run. ``--scale 1`` takes replicates enough for ±0.5
points (about 10 core-hours); the default takes a few minutes. ``--replay`` names a directory of recorded
outcomes (npz files with R: models x questions x trials). A row ends with ``ok`` where the figure meets its
target, ``MISS`` where its whole 95 % interval lies beyond it, ``ok?`` and ``?`` where the replicates cannot
tell and the figure itself is below or above.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from decisions_board_tables import boards, budget, concurrency, recorded, savings
from decisions_combinations import combinations
from decisions_options import Options
from decisions_pair_tables import (
    coverage,
    coverage_in_rounds,
    extremes,
    gaps,
    margins,
    margins_in_rounds,
    rules,
    steady,
    stored,
    ties,
)
from decisions_rounds import allocation, rounds
from decisions_saturated import guard, saturated
from decisions_settings import settings
from decisions_tails import spaced, tails, thresholds

SECTIONS: dict[str, Callable[[Options], None]] = {
    function.__name__: function
    for function in (
        ties, rules, coverage, margins, extremes, steady, settings, thresholds, tails, spaced, guard,
        saturated, gaps, stored, boards, concurrency, budget, savings, rounds, margins_in_rounds,
        coverage_in_rounds, allocation, recorded, combinations,
    )
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, separated by commas")
    parser.add_argument(
        "--questions", default="", help="only rows with so many questions, where sections have several"
    )
    parser.add_argument("--rows", default="", help="only rows whose name has this in it (settings)")
    parser.add_argument("--replay", type=Path)
    given = parser.parse_args(arguments)
    started = time.perf_counter()
    with ProcessPoolExecutor(given.jobs) as pool:
        questions = tuple(int(one) for one in given.questions.split(",") if one)
        options = Options(given.scale, given.seed, pool, given.replay, questions, given.rows)
        for name in given.only.split(","):
            if name not in SECTIONS:
                parser.error(f"--only {name}: choose from {', '.join(SECTIONS)}")
            SECTIONS[name](options)
    print(f"\n{time.perf_counter() - started:.0f} s at scale {given.scale:g}", file=sys.stderr)


if __name__ == "__main__":
    main()
