"""Time of every ranking of 2 to 20 models, and the ratio to the published scorio where it is installed.

Both packages are called ``scorio``, so the published one runs in an interpreter of its own:

    python benchmarks/rank_speed.py --python PATH/TO/VENV/bin/python

The two take turns on the same tensors, in several rounds; each time is the best of all rounds, the ratio is
theirs over ours. Without ``--python`` only our times are printed. Exits 1 where one of ours is slower.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

SHAPES = ((2, 30, 80), (3, 30, 80), (5, 30, 80), (20, 30, 80), (20, 200, 300), (20, 1000, 16), (20, 14000, 4))
"""Models, questions, trials."""

# Arguments after the tensor; k is the smaller of 8 and the trials.
METRICS: dict[str, list[float | str]] = {
    **{name: [] for name in ("avg", "bayes", "bayes, quantile 0.05")},
    **{name: ["k"] for name in ("pass_at_k", "pass_hat_k", "mg_pass_at_k", "auc_at_k", "maj_at_k")},
    **{name: ["k"] for name in ("geom_at_k", "geom_ds_at_k", "geo_spectrum_at_k", "max_at_k")},
    "g_pass_at_k_tau": ["k", 0.5],
}
METHODS: dict[str, list[float | str]] = {
    name: []
    for name in (
        *("bradley_terry", "bradley_terry_map", "bradley_terry_davidson", "rao_kupper", "plackett_luce"),
        *("borda", "copeland", "win_rate", "schulze", "pagerank", "rank_centrality", "elo", "rasch"),
        *("rasch_map", "bradley_terry_davidson_map", "rao_kupper_map", "plackett_luce_map", "ranked_pairs"),
        *("glicko", "trueskill"),
    )
}
SLOW: dict[str, list[float | str]] = {
    name: []
    for name in (
        *("kemeny_young", "rasch_2pl", "rasch_2pl_map", "rasch_3pl", "rasch_3pl_map"),
        *("rasch_mml", "rasch_mml_credible"),
    )
}
MOST_FOR_SLOW = 1_000
"""Questions times models up to which the slow methods are timed: the published ones take minutes beyond."""


# Runs in either interpreter; it may use nothing but numpy and whichever scorio is installed there.
TIMER = """
import json, sys, time
import numpy as np
from scorio import rank

job = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
p = rng.beta(2.0, 2.0, (job["models"], job["questions"], 1))
R = (rng.random((job["models"], job["questions"], job["trials"])) < p).astype(int)
for label, args in job["metrics"].items():
    args = [min(8, job["trials"]) if value == "k" else value for value in args]
    metric = getattr(rank, label.split(",")[0], None)
    if metric is None:
        continue
    options = {"quantile": 0.05} if "quantile" in label else {}
    times = []
    try:
        metric(R[:, :30], *args, **options)  # imports are no part of a call
        metric(R, *args, **options)
    except (RuntimeError, ValueError):  # it has no finite fit, or does not converge
        continue
    while len(times) < job["calls"] and sum(times) < job["seconds"]:
        start = time.process_time()
        ranks = metric(R, *args, **options)
        times.append(time.process_time() - start)
    print(json.dumps([label, min(times), np.asarray(ranks).tolist()]), flush=True)
"""


def measure(python: str, job: dict[str, object]) -> dict[str, tuple[float, list[int]]]:
    """Return the best time in seconds and the ranks of each ranking, up to one that ends the interpreter."""
    # -I keeps the working directory, where our scorio lies, out of the other interpreter's path.
    command = [python, "-I", "-c", TIMER, json.dumps(job)]
    # Waiting threads of BLAS would be timed on a busy machine.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"{python} ended with {done.returncode}: {done.stderr[-200:]}", flush=True)
    rows = map(json.loads, done.stdout.splitlines())
    return {label: (seconds, ranks) for label, seconds, ranks in rows}


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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", metavar="PATH", help="interpreter with the published scorio installed")
    parser.add_argument("--calls", type=int, default=100, help="calls of each ranking in a round, at most")
    parser.add_argument("--seconds", type=float, default=0.5, help="seconds a ranking in a round, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--methods", action="store_true", help="the ranking methods in place of the metrics")
    options = parser.parse_args()
    pythons = [sys.executable, *([options.python] if options.python else [])]
    slower = 0
    for models, questions, trials in SHAPES:
        methods = METHODS | (SLOW if models * questions <= MOST_FOR_SLOW else {})
        job = {
            "models": models,
            "questions": questions,
            "trials": trials,
            "metrics": methods if options.methods else METRICS,
            "calls": options.calls,
            "seconds": options.seconds,
        }
        ours, *others = best_of_rounds(pythons, job, options.rounds)
        theirs = others[0] if others else {}
        print(f"\n{models} x {questions} x {trials}: microseconds a ranking")
        print(f"{'ranking':<26}{'ours':>10}{'published':>12}{'ratio':>9}  same ranks")
        for label, (seconds, ranks) in ours.items():
            line = f"{label:<26}{seconds * 1e6:>10.0f}"
            if label in theirs:
                slow, reference = theirs[label]
                slower += slow < seconds
                line += f"{slow * 1e6:>12.0f}{slow / seconds:>8.1f}x  {'yes' if ranks == reference else 'NO'}"
            print(line, flush=True)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
