"""Measure `analyze` of tables of recorded answers, with and without `--write`, against a plain script.

The script is what one writes first: csv.DictReader, a row of SQLite for each answer, and scipy's binomtest
of every two models. Each takes turns in a process of its own; the least CPU time of all turns counts.

    python benchmarks/analyze_speed.py [--turns N]
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SIZES = ((100, 100, 1), (100, 100, 4), (300, 100, 1))
"""Models, questions, answers to each question."""

SCRIPT = """
import csv, sqlite3, sys
from collections import defaultdict
from itertools import combinations
from scipy.stats import binomtest

db = sqlite3.connect(sys.argv[2])
db.execute("CREATE TABLE answers (model TEXT, question TEXT, trial INTEGER, score INTEGER)")
scores = defaultdict(list)
with open(sys.argv[1]) as file:
    for row in csv.DictReader(file):
        db.execute("INSERT INTO answers VALUES (?, ?, ?, ?)", tuple(row.values()))
        scores[row["model"]].append(int(row["score"]))
db.commit()
for first, second in combinations(scores.values(), 2):
    better = sum(a > b for a, b in zip(first, second))
    worse = sum(a < b for a, b in zip(first, second))
    if better + worse:
        binomtest(better, better + worse).pvalue
"""


def write_table(path: Path, models: int, questions: int, answers: int) -> None:
    """Write right and wrong answers of models of different strength."""
    rng = np.random.default_rng(1)
    chances = np.linspace(0.2, 0.8, models)[:, None] + rng.normal(0.0, 0.2, questions)
    scores = rng.random((models, questions, answers)) < chances[:, :, None]
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("model", "question", "trial", "score"))
        for (model, question, trial), score in np.ndenumerate(scores):
            table.writerow((f"m{model}", f"q{question}", trial, int(score)))


def cpu_seconds(*command: str | Path) -> float:
    """Run a command; return its CPU seconds."""
    # as installed: compiled once, not at every start
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env=kept, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    for size in SIZES:
        taken: dict[str, list[float]] = {"script": [], "analyze": [], "--write": []}
        with tempfile.TemporaryDirectory() as folder:
            table, run, database = (Path(folder, name) for name in ("table.csv", "run", "plain.db"))
            write_table(table, *size)
            analyze = sys.executable, "-m", "adaptive_eval", "analyze", table
            for _ in range(given.turns):
                taken["script"].append(cpu_seconds(sys.executable, "-c", SCRIPT, table, database))
                taken["analyze"].append(cpu_seconds(*analyze))
                taken["--write"].append(cpu_seconds(*analyze, "--write", run))
                database.unlink()
                shutil.rmtree(run)
        script, alone, written = map(min, taken.values())
        models, questions, answers = size
        print(
            f"{models} models x {questions} questions x {answers}: script {script:.1f} CPU s, analyze "
            f"{alone:.1f} ({alone / script:.2f} of it), --write {written:.1f} ({written / script:.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
