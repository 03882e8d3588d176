"""Time of ranking 20 models x 30 questions x 80 trials, beside the published scorio where it is installed.

Both packages are called ``scorio``, so the published one runs in an interpreter of its own:

    python benchmarks/rank_speed.py --python PATH/TO/VENV/bin/python

The two take turns on the same tensor, in several rounds; each time is the best of all rounds, the ratio is
theirs over ours. Without ``--python`` only our times are printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

METRICS = {
    "avg": [],
    "bayes": [],
    "bayes, quantile 0.05": [],
    "pass_at_k": [8],
    "pass_hat_k": [8],
    "g_pass_at_k_tau": [8, 0.5],
    "mg_pass_at_k": [8],
    "auc_at_k": [8],
    "maj_at_k": [8],
    "geom_at_k": [8],
    "geom_ds_at_k": [8],
    "geo_spectrum_at_k": [8],
    "max_at_k": [8],
}

# Runs in either interpreter; it may use nothing but numpy and whichever scorio is installed there.
TIMER = """
import json, sys, time
import numpy as np
from scorio import rank

job = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
p = rng.beta(2.0, 2.0, (job["models"], job["questions"], 1))
R = (rng.random((job["models"], job["questions"], job["trials"])) < p).astype(int)
best = {}
for label, args in job["metrics"].items():
    metric = getattr(rank, label.split(",")[0], None)
    if metric is None:
        continue
    options = {"quantile": 0.05} if "quantile" in label else {}
    times = []
    for _ in range(job["calls"]):
        start = time.perf_counter()
        ranks = metric(R, *args, **options)
        times.append(time.perf_counter() - start)
    best[label] = [min(times), np.asarray(ranks).tolist()]
print(json.dumps(best))
"""


def measure(python: str, job: dict[str, object]) -> dict[str, tuple[float, list[int]]]:
    """Return the best time in seconds and the ranks of each metric the interpreter's scorio has."""
    # -I keeps the working directory, where our scorio lies, out of the other interpreter's path.
    command = [python, "-I", "-c", TIMER, json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {label: (seconds, ranks) for label, (seconds, ranks) in json.loads(done.stdout).items()}


def best_of_rounds(
    pythons: list[str], job: dict[str, object], rounds: int
) -> list[dict[str, tuple[float, list[int]]]]:
    """Measure the interpreters in turn, several rounds, and keep each metric's best time."""
    results: list[dict[str, tuple[float, list[int]]]] = [{} for _ in pythons]
    for _ in range(rounds):
        for python, kept in zip(pythons, results, strict=True):
            for label, found in measure(python, job).items():
                kept[label] = min(found, kept.get(label, found), key=lambda item: item[0])
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", metavar="PATH", help="interpreter with the published scorio installed")
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("--calls", type=int, default=100, help="calls of each metric in a round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    job = {
        "models": options.models,
        "questions": options.questions,
        "trials": options.trials,
        "metrics": METRICS,
        "calls": options.calls,
    }
    pythons = [sys.executable, *([options.python] if options.python else [])]
    ours, *others = best_of_rounds(pythons, job, options.rounds)
    theirs = others[0] if others else {}
    print(f"{options.models} x {options.questions} x {options.trials}: microseconds a ranking")
    print(f"{'metric':<22}{'ours':>9}{'published':>11}{'ratio':>8}  same ranks")
    for label, (seconds, ranks) in ours.items():
        line = f"{label:<22}{seconds * 1e6:>9.0f}"
        if label in theirs:
            slow, reference = theirs[label]
            line += f"{slow * 1e6:>11.0f}{slow / seconds:>7.1f}x  {'yes' if ranks == reference else 'NO'}"
        print(line)


if __name__ == "__main__":
    main()
