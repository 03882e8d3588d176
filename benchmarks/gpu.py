"""Time to the same verdicts on a real server, adaptive against uniform, in turns on the same server.

    vllm serve MODEL --port 8000
    python benchmarks/gpu.py http://127.0.0.1:8000/v1

One model is ranked at several temperatures. Its answers are a text of one of three lengths and one of four
letters, as a grammar has it (vLLM's `structured_outputs`). Right is the letter that it gives most often at
the lowest temperature, of `--votes` answers; so it need not know anything: random weights
do the same work.

A row: seconds of the whole command, trials, tokens of the answers and those a second, CPU time of the client
in percent of the seconds, use of the GPU as nvidia-smi has it, pairs decided. Ratios follow every turn.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

LETTERS = "ABCD"
WORDS = (
    "river",
    "stone",
    "light",
    "number",
    "garden",
    "window",
    "paper",
    "music",
    "winter",
    "bridge",
    "market",
)
FIRST = ("[a-h]", "[i-q]", "[r-z]")
"""The first letter of a text says which of the three lengths it has."""
MAX_TOKENS = 1024


@dataclass(frozen=True)
class Row:
    """What a run took."""

    seconds: float
    trials: int
    tokens: int
    cpu: float  # seconds of the client
    gpu: float  # percent
    verdicts: set[tuple[str, ...]]

    def __str__(self) -> str:
        decided = sum("open" not in verdict for verdict in self.verdicts)
        return (
            f"{self.seconds:7.1f} s {self.trials:7,} trials {self.tokens:10,} tokens "
            f"{self.tokens / self.seconds:7,.0f} a second, CPU {self.cpu / self.seconds:4.0%}, "
            f"GPU {self.gpu:3.0f}%, {decided} of {len(self.verdicts)} pairs"
        )


def called(url: str, body: dict[str, Any] | None = None) -> Any:
    """Return what the server answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)


def verdict_of(pair: dict[str, str]) -> tuple[str, ...]:
    """Return the verdict on a pair, its better model first."""
    models = pair["first"], pair["second"]
    return (pair["verdict"], *(models if pair["verdict"] == "better" else sorted(models)))


@contextmanager
def gpu_use() -> Iterator[list[float]]:
    """Note the use of the GPU every second, if nvidia-smi is there."""
    use: list[float] = []
    if shutil.which("nvidia-smi") is None:
        yield use
        return
    line = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-l", "1"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        yield use
    finally:
        process.terminate()
        use += [float(percent) for percent in process.communicate()[0].split()]


@dataclass
class Bench:
    """A served model, and what it is asked."""

    given: argparse.Namespace
    folder: Path

    def __post_init__(self) -> None:
        self.model = called(f"{self.given.url}/models")["data"][0]["id"]
        lengths = zip(FIRST, self.given.letters, strict=True)
        text = "|".join(f"{first}[a-z ]{{{least},{least + 30}}}" for first, least in lengths)
        self.extra = {"structured_outputs": {"regex": f"({text})\nAnswer: [{LETTERS}]"}}

    def question(self, number: int) -> dict[str, str]:
        """Return a question with the letter that the model gives most often."""
        words = " ".join(random.Random(number).choices(WORDS, k=self.given.words))
        prompt = f"Question {number}: {words}. Which of {', '.join(LETTERS)} is it? Think, then answer."
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": min(self.given.temperatures),
            "max_tokens": MAX_TOKENS,
            "n": self.given.votes,
            **self.extra,
        }
        choices = called(f"{self.given.url}/chat/completions", body)["choices"]
        votes = Counter(choice["message"]["content"][-1:] for choice in choices)
        return {"id": str(number), "input": prompt, "target": votes.most_common(1)[0][0]}

    def write_questions(self) -> None:
        """Write the dataset."""
        with ThreadPoolExecutor(32) as pool:
            rows = pool.map(self.question, range(self.given.questions))
            (self.folder / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")

    def config(self, policy: str, seed: int) -> dict[str, Any]:
        """Return the config of a run."""
        given = self.given
        models = [
            {
                "name": f"t{temperature:g}",
                "model": self.model,
                "endpoints": [given.url],
                "concurrency": given.in_flight,
                "sampling": {"temperature": temperature, "max_tokens": MAX_TOKENS},
                "extra_body": self.extra,
            }
            for temperature in given.temperatures
        ]
        scorer = {"kind": "exact", "marker": "Answer:", "extract": "whole"}
        return {
            "name": policy,
            "seed": seed,
            "models": models,
            "servers": [{"url": given.url, "concurrency": given.in_flight}],
            "tasks": [{"name": "letters", "dataset": "questions.jsonl", "scorer": scorer}],
            "stopping": {"equivalence": given.margin},
            "allocation": {"models": policy},
        }

    def run(self, policy: str, seed: int) -> Row:
        """Run a config to its end."""
        path = self.folder / f"{policy}-{seed}.yaml"
        path.write_text(json.dumps(self.config(policy, seed)), "utf-8")
        run = path.with_suffix("")
        line = [sys.executable, "-m", "adaptive_eval", "run", str(path), "--out", str(run)]
        with gpu_use() as use:
            begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([*line, "--display", "none"], capture_output=True, text=True)
            seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        if not (run / "report.json").exists():
            raise RuntimeError(done.stdout + done.stderr)
        report = json.loads((run / "report.json").read_text("utf-8"))
        return Row(
            seconds,
            sum(model["trials"] for model in report["models"]),
            sum(model["completion_tokens"] for model in report["models"]),
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            float(np.mean(use)) if use else float("nan"),
            {verdict_of(pair) for pair in report["pairs"]},
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("url", help="base URL of a vLLM server")
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.3, 0.6, 0.9, 1.2, 1.6])
    parser.add_argument("--questions", type=int, default=100, help="questions (100)")
    parser.add_argument("--words", type=int, default=120, help="words of a question (120)")
    parser.add_argument("--letters", type=int, nargs=3, default=[300, 600, 1200], help="lengths of a text")
    parser.add_argument("--votes", type=int, default=9, help="answers that make the key of a question (9)")
    parser.add_argument("--margin", type=float, default=0.08, help="margin of ties (0.08)")
    parser.add_argument("--in-flight", type=int, default=256, help="requests in flight (256)")
    parser.add_argument("--turns", type=int, default=2, help="runs of each (2)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given, Path(folder))
        bench.write_questions()
        for turn in range(given.turns):
            rows = []
            for name, policy in (("adaptive", "round-robin"), ("uniform", "uniform")):
                rows.append(bench.run(policy, turn))
                print(f"{name:9} {rows[-1]}", flush=True)
            ours, other = rows
            same = len(ours.verdicts & other.verdicts)
            time_, trials = ours.seconds / other.seconds, ours.trials / other.trials
            print(
                f"ratio     time {time_:.2f}, trials {trials:.2f}; {same} pairs with the same verdict",
                flush=True,
            )


if __name__ == "__main__":
    main()
