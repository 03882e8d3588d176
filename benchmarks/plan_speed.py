"""Measure `plan` of five configs of which nothing is known: first row, CPU time, memory.

    python benchmarks/plan_speed.py [--baseline]

CPU seconds of all processes, so that a busy machine distorts little. With --baseline each config is also
planned with 200 replicates a row in one process, and the ratio is printed: that takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import yaml

CONFIGS = ((2, 500), (8, 100), (4, 60), (3, 300), (6, 80))
"""Models and questions."""
SAMPLING = {"temperature": 0.7, "max_tokens": 400}
COMMAND = (sys.executable, "-m", "adaptive_eval")


class Taken(NamedTuple):
    """What a command took: CPU seconds to its first row and in all, and MB of its largest process."""

    first: float
    whole: float
    megabytes: float


def write_config(folder: Path, models: int, questions: int) -> Path:
    """Write a config of so many models and questions, of which nothing is known."""
    lines = [json.dumps({"question": f"{i} + {i}?", "answer": str(2 * i)}) for i in range(questions)]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n")
    address = ["https://api.example.com/v1"]
    config = {
        "name": "plan-speed",
        "models": [{"name": f"m{i}", "endpoints": address, "sampling": SAMPLING} for i in range(models)],
        "tasks": [
            {
                "name": "sums",
                "dataset": "questions.jsonl",
                "fields": {"input": "question", "target": "answer"},
                "prompt": "{input}",
                "scorer": "numeric",
            }
        ],
        "goal": "ranking",
        "stopping": {"equivalence": 0.05},
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def cpu_of(process: int) -> float:
    """Return the CPU seconds so far of a process and of those it has waited for."""
    ticks = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def measured(config: Path, *options: str) -> Taken:
    """Plan a config, and return what it took."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*COMMAND, "plan", str(config), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    first = None
    for line in process.stdout:
        if first is None and line.startswith("round-robin"):
            first = cpu_of(process.pid)
    _, status, used = os.wait4(process.pid, 0)
    if status or first is None:
        raise SystemExit(f"plan ended with status {status}")
    return Taken(first, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", action="store_true", help="also plan 200 replicates a row")
    given = parser.parse_args()
    for models, questions in CONFIGS:
        with tempfile.TemporaryDirectory() as folder:
            config = write_config(Path(folder), models, questions)
            found = measured(config)
            print(
                f"{models} models x {questions} questions: first row after {found.first:.1f} CPU s, "
                f"all after {found.whole:.1f}, largest process {found.megabytes:.0f} MB",
                flush=True,
            )
            if given.baseline:
                base = measured(config, "--replicates", "200", "--workers", "1")
                print(
                    f"  200 replicates a row: {base.first:.1f}, {base.whole:.1f} CPU s, "
                    f"{base.megabytes:.0f} MB; {found.whole / base.whole:.2f} of it",
                    flush=True,
                )


if __name__ == "__main__":
    main()
