"""What the run file costs: trials per second, bytes per trial, and the time to read 500,000 trials back.

Run ``python benchmarks/store.py`` (about a minute); ``--directory`` chooses the disk, ``--trials`` the size.
A trial here is one launch, one attempt and one outcome with an answer of 1 KB, as the engine writes them; the
answers are random English-like words, so they compress about as text does. Writing is timed by wall clock
(waiting for the disk included) and by CPU (what the engine's event loop pays).
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.store.run_files import Durability
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage

MODELS = 10
QUESTIONS = 500
ANSWER_CHARACTERS = 1000


def answers(rng: random.Random, count: int = 512) -> list[str]:
    letters = "etaoinshrdlcumwfgypb"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(2000)]
    frequency = [1 / rank for rank in range(1, 2001)]
    return [
        " ".join(rng.choices(words, frequency, k=ANSWER_CHARACTERS // 4))[:ANSWER_CHARACTERS]
        for _ in range(count)
    ]


def trials(count: int) -> Iterator[TrialRecord]:
    rng = random.Random(1)
    texts = answers(rng)
    prompts = [f"Question {number}: {texts[number % len(texts)][:400]}" for number in range(QUESTIONS)]
    for number in range(count):
        step, model = divmod(number, MODELS)
        repeat, question = divmod(step, QUESTIONS)
        seed = rng.getrandbits(31)
        request = TrialRequest(TrialKey(f"model-{model}", step), "bench", f"q{question}", repeat, seed)
        correct = rng.random() < 0.6
        signals = {
            "is_correct": correct,
            "has_box": True,
            "token_ratio": round(rng.random(), 4),
            "truncated": False,
        }
        yield TrialRecord(
            request,
            1.7e9 + number * 0.01,
            Completion(
                rng.choice(texts),
                "stop",
                Usage(120, 250),
                rng.lognormvariate(1, 0.5),
                f"model-{model}",
                f"chatcmpl-{rng.getrandbits(128):032x}",
            ),
            Score(int(correct), str(rng.randint(0, 999)), signals, "exact match"),
            sent={
                "model": f"model-{model}",
                "messages": [{"role": "user", "content": prompts[question]}],
                "temperature": 0.7,
                "max_tokens": 4096,
                "seed": seed,
            },
        )


def append(writer: RunWriter, records: list[TrialRecord], group: int) -> list[float]:
    """Write the trials in groups; return the seconds that each commit took."""
    commits = []
    for start in range(0, len(records), group):
        chunk = records[start : start + group]
        writer.launch([record.request for record in chunk], at=chunk[0].finished_at)
        for record in chunk:
            writer.attempt(
                AttemptRecord(record.request.key, 1, "http://gpu1:8000/v1", record.finished_at, 2.0, 200)
            )
            writer.outcome(record)
        before = time.perf_counter()
        writer.commit()
        commits.append(time.perf_counter() - before)
    return commits


def timed(action: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - cpu


def measure_writing(directory: Path, count: int) -> None:
    records = list(trials(count))
    print(f"writing {count} trials, each one launch, one attempt, one outcome with a 1 KB answer")
    print("durability  group  trials/s  CPU us/trial  commit ms: median  99 %  slowest")
    levels: tuple[Durability, ...] = ("full", "normal")
    for durability in levels:
        for group in (1, 16, 64):
            some = records[: max(1000, count // (64 // group))]
            with RunWriter.create(
                directory / f"{durability}-{group}", meta={}, durability=durability
            ) as writer:
                wall, cpu = time.perf_counter(), time.process_time()
                commits = sorted(append(writer, some, group))
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            print(
                f"{durability:>10} {group:>6} {len(some) / wall:>9.0f} {cpu / len(some) * 1e6:>13.0f} "
                f"{commits[len(commits) // 2] * 1e3:>18.2f} {commits[len(commits) * 99 // 100] * 1e3:>5.1f} "
                f"{commits[-1] * 1e3:>8.1f}"
            )


def measure_reading(directory: Path, count: int) -> None:
    run = directory / "large"
    with RunWriter.create(run, meta={}, durability="normal") as writer:
        chunk: list[TrialRecord] = []
        for record in trials(count):
            chunk.append(record)
            if len(chunk) == 2000:
                append(writer, chunk, 1000)
                chunk.clear()
        append(writer, chunk, 1000)
    size = (run / "run.db").stat().st_size
    print(f"\n{count} trials: file {size / 1e6:.0f} MB, {size / count:.0f} bytes a trial")
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")
    with RunReader(run) as reader:
        for name, action in {
            "open for writing": lambda: RunWriter.open(run).close(),
            "log()": lambda: sum(len(batch) for batch in reader.log()),
            "outcomes()": lambda: len(reader.outcomes()),
            "trials()": lambda: sum(1 for _ in reader.trials()),
            "trials(question=…)": lambda: sum(1 for _ in reader.trials(question="q7")),
            "launched()": lambda: len(reader.launched()),
            "error_counts()": reader.error_counts,
        }.items():
            wall, cpu = timed(action)
            print(f"{name:<18} {wall:8.3f} s, CPU {cpu:8.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, help="where to write; default: a temporary directory")
    parser.add_argument("--writes", type=int, default=20_000, help="trials per writing measurement")
    parser.add_argument("--trials", type=int, default=500_000, help="trials of the reading measurement")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as scratch:
        print(f"Python {sys.version.split()[0]}, in {scratch}")
        measure_writing(Path(scratch), arguments.writes)
        measure_reading(Path(scratch), arguments.trials)


if __name__ == "__main__":
    main()
