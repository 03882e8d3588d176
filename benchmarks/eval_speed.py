"""Time every function of `scorio.eval` against the published scorio and print the ratios.

Both packages are called ``scorio``, so each runs in its own interpreter: ours in this one's, the published
in a virtual environment that has it (``--python PATH``), or in a temporary one that pip fills. The two take
turns on every function and the best of the turns counts, in processor time: a busy machine slows both alike.
Exits 1 where a promise fails: no function slower, and `mg_pass_at_k_ci` and `max_at_k_ci`, where the
published package loops for ``k > 1``, at least five times faster.

    python benchmarks/eval_speed.py --python /path/to/published/bin/python
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SIZES = ((30, 80), (200, 300), (1000, 16), (14000, 4))
LARGE = ("mg_pass_at_k_ci", "auc_at_k_ci", "pass_at_k_ci", "maj_at_k_ci", "mg_pass_at_k", "auc_at_k")
LARGE_SIZE = (1, 1_000_000, 100_000)
"""Questions, trials and k with which these are called once."""
TURNS = 40
SECONDS_PER_TURN = 0.004
SECONDS_PER_ROW = 1.0
FIVE_TIMES = ("mg_pass_at_k_ci", "max_at_k_ci")


def cases(questions: int, trials: int, k: int) -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Label -> (function, arguments); the same on both sides."""
    rng = np.random.default_rng(20260101)
    skill = rng.beta(1.0, 1.0, questions)
    binary = (rng.random((questions, trials)) < skill[:, None]).astype(int)
    categorical = rng.integers(0, 4, (questions, trials))
    prior = rng.integers(0, 4, (questions, 3))
    w = np.array([0.0, 0.3, 0.6, 1.0])
    weights = np.full(k, 1.0 / k)
    table: dict[str, tuple[str, tuple[Any, ...]]] = {
        "bayes": ("bayes", (binary,)),
        "bayes (4 categories)": ("bayes", (categorical, w)),
        "bayes (4 categories, R0)": ("bayes", (categorical, w, prior)),
        "bayes_ci": ("bayes_ci", (binary,)),
        "avg": ("avg", (binary,)),
        "avg (4 categories)": ("avg", (categorical, w)),
        "avg_ci": ("avg_ci", (binary,)),
        "max_at_k": ("max_at_k", (binary, k)),
        "max_at_k (4 categories)": ("max_at_k", (categorical, k, w)),
        "max_at_k_ci": ("max_at_k_ci", (binary, k)),
        "max_at_k_ci (4 categories)": ("max_at_k_ci", (categorical, k, w)),
        "max_at_k_ci (4 categories, R0)": ("max_at_k_ci", (categorical, k, w, prior)),
        "g_pass_at_k_tau": ("g_pass_at_k_tau", (binary, k, 0.5)),
        "g_pass_at_k_tau_ci": ("g_pass_at_k_tau_ci", (binary, k, 0.5)),
        "threshold_spectrum_at_k": ("threshold_spectrum_at_k", (binary, k, weights)),
        "threshold_spectrum_at_k_ci": ("threshold_spectrum_at_k_ci", (binary, k, weights)),
        "geo_spectrum_at_k (weights)": ("geo_spectrum_at_k", (binary, k, 0.5, weights)),
    }
    for metric in (
        *("pass_at_k", "pass_hat_k", "unanimous_at_k", "g_pass_at_k", "mg_pass_at_k", "maj_at_k", "auc_at_k"),
        *("geom_at_k", "geom_ds_at_k", "geo_spectrum_at_k", "geo_spectrum_star_at_k"),
    ):
        for name in (metric, f"{metric}_ci"):
            table[name] = (name, (binary, k))
    return table


def seconds_a_call(call: Callable[[], object]) -> float:
    """Seconds of processor time a call, averaged over about `SECONDS_PER_TURN`."""
    start = time.process_time()
    call()
    once = time.process_time() - start
    repeats = max(1, int(SECONDS_PER_TURN / max(once, 1e-6)))
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def serve() -> None:
    """Answer lines of ``[questions, trials, k, label]`` with the seconds and the value of one call."""
    from scorio import eval as metrics

    for line in sys.stdin:
        *size, label = json.loads(line)
        name, arguments = cases(*size)[label]
        call = partial(getattr(metrics, name), *arguments)
        start = time.process_time()
        value = call()
        once = time.process_time() - start
        print(json.dumps([once if once > 1.0 else seconds_a_call(call), value]), flush=True)


class Side:
    """One interpreter with one of the two packages."""

    def __init__(self, python: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [python, str(Path(__file__).resolve()), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=tempfile.gettempdir(),
        )

    def measure(self, questions: int, trials: int, k: int, label: str) -> tuple[float, Any]:
        """Seconds a call and the value."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([questions, trials, k, label]) + "\n")
        self.process.stdin.flush()
        seconds, value = json.loads(self.process.stdout.readline())
        return seconds, value

    def close(self) -> None:
        """End the interpreter."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(ours: Side, published: Side, most: int) -> list[str]:
    """Print the table; return the promises that failed."""
    failures = []
    for questions, trials in SIZES:
        k = min(most, trials)
        print(f"\n{questions} x {trials}, k = {k}: microseconds a call")
        print(f"{'function':32}{'ours':>10}{'published':>12}{'ratio':>9}   largest difference of value")
        for label, (name, _) in cases(questions, trials, k).items():
            our_best = their_best = float("inf")
            deadline = time.perf_counter() + SECONDS_PER_ROW
            for _ in range(TURNS):
                our_seconds, our_value = ours.measure(questions, trials, k, label)
                their_seconds, their_value = published.measure(questions, trials, k, label)
                our_best, their_best = min(our_best, our_seconds), min(their_best, their_seconds)
                if time.perf_counter() > deadline:
                    break
            ratio = their_best / our_best
            difference = float(np.max(np.abs(np.subtract(our_value, their_value))))
            needed = 5.0 if name in FIVE_TIMES and k > 1 else 1.0
            mark = "" if ratio >= needed else f"   below {needed:g}"
            row = f"{label:32}{our_best * 1e6:10.1f}{their_best * 1e6:12.1f}{ratio:8.1f}x"
            print(f"{row}   {difference:.0e}{mark}", flush=True)
            if ratio < needed:
                failures.append(
                    f"{label} at {questions} x {trials}, k = {k}: {ratio:.2f}x, promised {needed:g}x"
                )
    return failures


def large(ours: Side, published: Side) -> None:
    """Print seconds of single calls with very many trials."""
    questions, trials, k = LARGE_SIZE
    print(f"\n{questions} x {trials:,}, k = {k:,}: seconds a call")
    for name in LARGE:
        seconds, value = ours.measure(questions, trials, k, name)
        print(f"{name:32}{seconds:10.3f}", end="", flush=True)
        theirs, reference = published.measure(questions, trials, k, name)
        difference = float(np.max(np.abs(np.subtract(value, reference))))
        print(
            f"{name:32}{seconds:10.3f}{theirs:12.3f}{theirs / seconds:8.1f}x   {difference:.0e}", flush=True
        )


def import_seconds(python: str, environment: dict[str, str], statement: str) -> float:
    """Best of seven fresh interpreters: seconds of `statement` after NumPy is loaded."""
    code = f"import numpy, time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    runs = [
        subprocess.run(
            [python, "-c", code],
            env=environment,
            cwd=tempfile.gettempdir(),
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(7)
    ]
    return min(float(run.stdout) for run in runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", help="interpreter of an environment with the published scorio")
    parser.add_argument("--version", default="0.2.3", help="version to install where --python is not given")
    parser.add_argument("--k", type=int, default=8, help="trials to draw, at most 64")
    parser.add_argument("--large", action="store_true", help="only the calls with very many trials")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    with tempfile.TemporaryDirectory() as folder:
        python = options.python
        if python is None:
            venv.create(folder, with_pip=True)
            python = str(Path(folder) / "bin" / "python")
            subprocess.run([python, "-m", "pip", "install", "-q", f"scorio=={options.version}"], check=True)
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        plain["OPENBLAS_NUM_THREADS"] = "1"  # waiting threads would count as processor time
        with_ours = {**plain, "PYTHONPATH": str(ROOT)}
        ours, published = Side(sys.executable, with_ours), Side(python, plain)
        for side in (ours, published):
            side.measure(30, 80, 8, "bayes")  # imports and caches are no part of a call
        failures = [] if options.large else compare(ours, published, options.k)
        if options.large:
            large(ours, published)
        ours.close()
        published.close()
        statement = "from scorio import eval"
        our_import = import_seconds(sys.executable, with_ours, statement)
        their_import = import_seconds(python, plain, statement)
        print(f"\n{statement}, beyond numpy:", end=" ")
        print(f"ours {our_import * 1e3:.0f} ms, published {their_import * 1e3:.0f} ms")
    print("\n" + ("\n".join(failures) if failures else "every promise holds"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
