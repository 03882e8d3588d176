"""What a long run on the mimic server takes: memory, lateness of the event loop, run file, report, resume.

Starts a mimic server and ``adaptive-eval run`` with models that are too close to be told apart, each with its
own requests in flight. ``--trials`` ends the run. Then the commands that read the run file are timed. CPU
seconds and the most resident memory are those of the command, without the server.

    python benchmarks/long_runs.py --models 10 --questions 14000 --concurrency 64 --trials 300000
    python benchmarks/long_runs.py --models 100 --questions 200 --concurrency 40 --trials 60000 --faults
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from adaptive_eval.mimic.mimic_spec import DatasetSpec, FaultSpec, LatencySpec, MimicModelSpec, MimicSpec
from adaptive_eval.mimic.process import MimicProcess

COMMAND = Path(sys.executable).with_name("adaptive-eval")
FAULTS = (
    FaultSpec(kind="status", status=429, retry_after=0.2, probability=0.04),
    FaultSpec(kind="status", status=503, probability=0.02),
    FaultSpec(kind="drop", probability=0.02),
    FaultSpec(kind="malformed", probability=0.01),
    FaultSpec(kind="cut_off", probability=0.01),
    FaultSpec(kind="hang", seconds=3.0, probability=0.01),
)
EVERY = 5.0
"""Seconds between two looks at a command's memory and metrics."""


@dataclass
class Watched:
    """A command that has ended: code, seconds, CPU seconds, memory in MB at each look and at most."""

    code: int
    seconds: float
    cpu: float
    sizes: list[float]
    peak: float
    late: list[float]


def memory(process: int) -> float:
    """Return the resident memory of a process in MB."""
    fields = Path(f"/proc/{process}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20 if fields else 0.0


def watched(*arguments: object, cwd: Path, metrics: Path | None = None) -> Watched:
    """Run a command and look at it now and then."""
    began, ended = time.monotonic(), threading.Event()
    process = subprocess.Popen(
        [COMMAND, *map(str, arguments)], cwd=cwd, stdout=subprocess.DEVNULL, stderr=sys.stderr
    )
    sizes: list[float] = []
    late: list[float] = []

    def look() -> None:
        while not ended.wait(EVERY):
            try:
                sizes.append(memory(process.pid))
                text = metrics.read_text() if metrics else ""
            except (OSError, ValueError):
                continue
            late.extend(map(float, re.findall(r"^adaptive_eval_\w*loop\w* (\S+)$", text, re.MULTILINE)))

    looks = threading.Thread(target=look)
    looks.start()
    _, status, used = os.wait4(process.pid, 0)
    ended.set()
    looks.join()
    return Watched(
        os.waitstatus_to_exitcode(status),
        time.monotonic() - began,
        used.ru_utime + used.ru_stime,
        sizes,
        used.ru_maxrss / 1024,
        late,
    )


def config(url: str, options: argparse.Namespace, questions: Path) -> dict[str, object]:
    """Return the config of a run that only its budget ends."""
    return {
        "name": "long",
        "models": [
            {"name": f"m{n}", "endpoints": [url], "concurrency": options.concurrency}
            | {"sampling": {"max_tokens": 400, "temperature": 0.7}}
            for n in range(options.models)
        ],
        "tasks": [{"name": "sums", "dataset": str(questions), "scorer": "numeric"}],
        "stopping": {"equivalence": 0.002, "max_passes": 10_000},
        "budget": {"trials": options.trials},
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--questions", type=int, default=14_000)
    parser.add_argument("--concurrency", type=int, default=64, help="requests in flight of each model")
    parser.add_argument("--trials", type=int, default=300_000)
    parser.add_argument("--latency", type=float, default=0.05, help="median seconds of an answer")
    parser.add_argument("--spread", type=float, default=0.0, help="between the best and the worst mean")
    parser.add_argument("--faults", action="store_true", help="let a tenth of the requests fail")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        questions = folder / "questions.jsonl"
        rows = (
            {"id": f"q{n}", "input": f"{n} + {n}?", "target": str(2 * n)} for n in range(options.questions)
        )
        questions.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        steps = range(options.models)
        spec = MimicSpec(
            models=tuple(
                MimicModelSpec(
                    name=f"m{n}",
                    mean=0.6 + options.spread * (n / max(options.models - 1, 1) - 0.5),
                    latency=LatencySpec(median=options.latency),
                )
                for n in steps
            ),
            datasets=(DatasetSpec(path=str(questions), question="input", target="target"),),
            faults=FAULTS if options.faults else (),
        )
        with MimicProcess(spec) as mimic:
            path = folder / "long.json"
            path.write_text(json.dumps(config(mimic.base_url, options, questions)))
            run = watched(
                "run", path, "--out", "run", "--display", "none", "--metrics-file", folder / "metrics.prom",
                cwd=folder, metrics=folder / "metrics.prom",
            )  # fmt: skip
            size = sum(one.stat().st_size for one in (folder / "run").glob("run.db*")) / 1e6
            quarters = [f"{run.sizes[(len(run.sizes) - 1) * k // 4]:.0f}" for k in range(5) if run.sizes]
            print(
                f"run: exit {run.code}, {run.seconds:.0f} s, {run.cpu:.0f} s CPU, "
                f"{1e3 * run.cpu / options.trials:.2f} ms CPU a trial\n"
                f"memory at its quarters, MB: {', '.join(quarters)}; at most {run.peak:.0f}\n"
                f"event loop late by at most {max(run.late, default=float('nan')):.2f} s\n"
                f"run file: {size:.0f} MB",
                flush=True,
            )
            more = ("-o", f"budget.trials={options.trials + 100}", "--display", "none")
            for name, *arguments in (
                ("report", "report", "run"),
                ("monitor", "monitor", "run", "--once"),
                ("the run continued, with 100 more trials and the report", "run", "run", *more),
            ):
                done = watched(*arguments, cwd=folder)
                print(
                    f"{name}: exit {done.code}, {done.seconds:.1f} s, {done.cpu:.1f} s CPU, "
                    f"{done.peak:.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
