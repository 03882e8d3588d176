"""What it takes to go on with a long run: seconds until the first new trial can be asked, and memory.

Makes a run file of 500,000 trials of 10 models on 500 questions (answers of 600 characters), as a run writes
it, and then times, in a process of its own, what ``adaptive-eval run`` does before it asks: check the file
for damage, replay the log into a session, count what may have been billed without an answer, look at answers
for copies, and issue trials. The baseline, in the same process, reads the same columns of the log with plain
``sqlite3`` and does nothing with them. CPU seconds are next to those of the clock, for machines that are busy
with other things.

    python benchmarks/resume.py                      # about three minutes; the file is made first
    python benchmarks/resume.py --trials 100000 --keep runs/long --profile
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TypeVar

from adaptive_eval.build.assembly import PreparedRun, build
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialOutcome, TrialRequest, Usage

T = TypeVar("T")
MODELS, QUESTIONS, BATCH = 10, 500, 1000
LOG = (
    "SELECT id, model, step, category, missing, prompt_tokens, completion_tokens, cached_tokens FROM outcomes"
)


def built(folder: Path) -> PreparedRun:
    """Return the run: models that nobody can tell apart, under budgets that need an exact account."""
    questions = folder / "questions.jsonl"
    if not questions.exists():
        rows = [{"id": f"q{n}", "input": f"{n} + {n}?", "target": str(2 * n)} for n in range(QUESTIONS)]
        questions.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    models = [
        {
            "name": f"model-{n}",
            "endpoints": ["http://127.0.0.1:9/v1"],
            "sampling": {"max_tokens": 400, "temperature": 0.7},
            "price": {"input": 0.1, "output": 0.4},
        }
        for n in range(MODELS)
    ]
    config = {
        "name": "long",
        "models": models,
        "tasks": [{"name": "sums", "dataset": str(questions), "scorer": "numeric"}],
        "stopping": {"equivalence": 0.001, "max_passes": 10_000},
        "budget": {"tokens": "2B", "usd": 1000},
    }
    return build(config_from_data(config))


def record(request: TrialRequest, rng: random.Random, words: list[str]) -> TrialRecord:
    right, model = int(rng.random() < 0.6), request.key.model
    text = f"{' '.join(rng.choices(words, k=110))} {right}"
    response = f"chatcmpl-{rng.getrandbits(64):x}"
    return TrialRecord(
        request,
        1.75e9,
        Completion(text, "stop", Usage(30, 150), 1.5, model, response),
        Score(right, str(right), {"is_correct": bool(right)}, "numeric"),
        sent={
            "model": model,
            "messages": [{"role": "user", "content": request.question}],
            "seed": request.seed,
        },
    )


def make(folder: Path, trials: int) -> None:
    """Write the run as a session asks for it."""
    whole, rng = built(folder), random.Random(1)
    session = whole.session()
    words = ["".join(rng.choices("etaoinshrdlu", k=5)) for _ in range(2000)]
    with RunWriter.create(folder / "run", meta=whole.meta(), durability="normal") as writer:
        stored = 0
        while stored < trials:
            requests = session.ask(min(BATCH, trials - stored))
            writer.launch(requests, 1.75e9)
            records = [record(request, rng, words) for request in requests]
            for one in records:
                writer.attempt(AttemptRecord(one.request.key, 1, "http://127.0.0.1:9/v1", 1.75e9, 1.5, 200))
                writer.outcome(one)
            writer.commit()
            session.tell([one.outcome for one in records])
            stored += len(records)


class Watch:
    """Times one thing after the other."""

    def __init__(self) -> None:
        self.seconds, self.cpu = 0.0, 0.0

    def __call__(self, name: str, work: Callable[[], T], *, counts: bool = True) -> T:
        """Do `work`, print what it took, and return its result."""
        clock, cpu = time.perf_counter(), time.process_time()
        result = work()
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
        print(f"{clock:8.2f} s {cpu:8.2f} s CPU   {name}", flush=True)
        if counts:
            self.seconds, self.cpu = self.seconds + clock, self.cpu + cpu
        return result


def resume(folder: Path) -> Watch:
    """Do what a resumed run does before it asks, and time it."""
    watch = Watch()

    def read() -> int:
        with closing(sqlite3.connect(folder / "run" / "run.db")) as db:
            return sum(1 for _ in db.execute(LOG))

    count = watch("baseline: read the log with sqlite3", read, counts=False)
    whole = watch("load the config and its data", lambda: built(folder))
    session, watches = whole.session(), whole.watches()
    with RunReader(folder / "run") as reader:
        watch("check the file for damage", reader.require_undamaged)
        unanswered = watch("count what may have been billed", reader.unanswered)
        log = watches.read_back(session, reader.logged())
        watch("replay the log, past all watches", lambda: session.replay(log, unanswered))
    requests = watch("issue the first trials", lambda: session.ask(64))
    watch("first results", session.results)
    assert (len(requests), session.budget.completed) == (64, count)
    return watch


def peak() -> float:
    """Return the largest resident size of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def growth(folder: Path, further: int) -> tuple[float, float]:
    """Return the peak MB after resuming and after driving the session on by `further` trials."""
    whole = built(folder)
    session = whole.session()
    with RunReader(folder / "run") as reader:
        session.replay(reader.log(), reader.unanswered())
    before = peak()
    rng, told = random.Random(2), 0
    while told < further:
        requests = session.ask(BATCH)
        session.tell([TrialOutcome(one.key, int(rng.random() < 0.6), Usage(30, 150)) for one in requests])
        told += len(requests)
    return before, peak()


def one(folder: Path, profile: bool) -> None:
    with cProfile.Profile() if profile else nullcontext() as profiler:
        watch = resume(folder)
    print(f"{watch.seconds:8.2f} s {watch.cpu:8.2f} s CPU   in all, without the baseline")
    print(f"peak memory {peak():.0f} MB")
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=500_000)
    parser.add_argument("--further", type=int, default=50_000, help="trials of the measurement of growth")
    parser.add_argument("--keep", type=Path, help="make the run here, or use the one that is here")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--growth", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.profile)
    elif options.growth:
        before, after = growth(options.growth, options.further)
        print(f"peak memory {before:.0f} MB when resumed, {after:.0f} MB {options.further:,} trials later")
    else:
        with tempfile.TemporaryDirectory(dir=".") as scratch:
            folder = options.keep or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / "run" / "run.db").exists():
                make(folder, options.trials)
            size = (folder / "run" / "run.db").stat().st_size / 1e6
            print(f"{options.trials:,} trials, {size:,.0f} MB", flush=True)
            for way in ("--one", "--growth"):
                command = [sys.executable, __file__, way, str(folder), "--further", str(options.further)]
                subprocess.run([*command, *(["--profile"] if options.profile else [])], check=True)


if __name__ == "__main__":
    main()
