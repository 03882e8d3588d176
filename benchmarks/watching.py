"""What the web page costs: the first look at a large run, a look at what is new, and watching a live one.

Makes a run of 500,000 trials × 20 models × 500 questions (about a minute), then prints

cold         from a closed run file to the page
incremental  the same when a second's worth of trials and a snapshot have come in
unchanged    the same when nothing has
watching     CPU time of the serving process per second, as part of one core, while the run goes on and a page
             asks for it every two seconds

    python benchmarks/watching.py
    python benchmarks/watching.py --trials 50000 --seconds 20 --keep runs/big
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import httpx

from adaptive_eval.core.results import Results, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import (
    AllocationSpec,
    BudgetSpec,
    ModelSpec,
    Price,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.store.records import EndpointHealth, SnapshotRecord, TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialOutcome, TrialRequest, Usage
from adaptive_eval.views.web_runs import WatchedRun

MODELS, QUESTIONS = 20, 500
STEPS = 25
"""Steps of every model between two snapshots of the run that is made."""

NAMES = [f"vendor-{i % 5}/model-{i:02d}-instruct" for i in range(MODELS)]
STARTED = 1.75e9


class Moments:
    """Results of a real session over biased coins as long as it is quick to drive, then the last ones."""

    def __init__(self, told: int = 30_000) -> None:
        spec = SessionSpec(
            models=tuple(ModelSpec(name, max_tokens=256, price=Price(0.1, 0.4)) for name in NAMES),
            tasks=(TaskSpec("bench", tuple(f"q{i}" for i in range(QUESTIONS))),),
            stopping=StoppingSpec(equivalence=0.001),
            allocation=AllocationSpec(questions="schedule"),
            budget=BudgetSpec(trials=5_000_000),
            seed=3,
        )
        self._session = Session(spec)
        self._left = told
        self._rng = random.Random(1)
        self._last: Results | None = None

    def at(self, trials: int) -> tuple[Results, list[dict[str, object]]]:
        """Return the results after `trials` trials, with the decisions made on the way."""
        decided = []
        if self._left > 0 or self._last is None:
            requests = self._session.ask(dict.fromkeys(NAMES, STEPS))
            outcomes = [
                TrialOutcome(
                    one.key,
                    int(self._rng.random() < 0.9 - 0.03 * NAMES.index(one.key.model)),
                    Usage(120, 250),
                )
                for one in requests
            ]
            self._left -= len(outcomes)
            decided = [asdict(decision) for decision in self._session.tell(outcomes)]
            self._last = self._session.results()
        models = tuple(
            replace(line, trials=trials // MODELS, issued=trials // MODELS) for line in self._last.models
        )
        return replace(self._last, trials=trials, models=models), decided


def batches(count: int, start: int = 0) -> Iterator[list[TrialRecord]]:
    """Yield the trials of the run, one batch a snapshot."""
    rng = random.Random(start)
    words = " ".join("".join(rng.choices("etaoinshrdlu", k=5)) for _ in range(150))
    for tick in range(start // (MODELS * STEPS), count // (MODELS * STEPS)):
        yield [
            _trial(model, step, rng, words)
            for model in NAMES
            for step in range(tick * STEPS, (tick + 1) * STEPS)
        ]


def _trial(model: str, step: int, rng: random.Random, words: str) -> TrialRecord:
    right = int(rng.random() < 0.6)
    return TrialRecord(
        TrialRequest(
            TrialKey(model, step), "bench", f"q{step % QUESTIONS}", step // QUESTIONS, rng.getrandbits(31)
        ),
        STARTED,
        Completion(f"{words[:600]} \\boxed{{{right}}}", "stop", Usage(120, 250), 1.5, model, "id"),
        Score(right, str(right), {"is_correct": bool(right)}, "exact"),
        sent={
            "model": model,
            "messages": [{"role": "user", "content": f"q{step % QUESTIONS}: {words[:300]}"}],
        },
    )


def store(writer: RunWriter, batch: list[TrialRecord], moments: Moments, trials: int, at: float) -> None:
    """Store a batch and the snapshot after it, as a running process does."""
    for record in batch:
        writer.outcome(record)
    results, decided = moments.at(trials)
    for decision in decided:
        writer.decision(at, trials, decision)
    endpoints = tuple(
        EndpointHealth(name, "http://127.0.0.1:8000/v1", 3, 8, trials // MODELS, 7.5, 2600.0, 0.4, 1.7)
        for name in NAMES
    )
    writer.snapshot(SnapshotRecord(at, at - STARTED, trials, to_json(results), endpoints))
    writer.commit()


def make(directory: Path, count: int, moments: Moments) -> None:
    """Make the run file."""
    meta = {"name": "big", "started_at": str(STARTED), "config": "name: big\n"}
    with RunWriter.create(directory, meta=meta, durability="normal") as writer:
        for number, batch in enumerate(batches(count), start=1):
            store(writer, batch, moments, number * len(batch), STARTED + number)


def measured(name: str, call: Callable[[], None]) -> None:
    """Print how long a call takes, by the wall and by the CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{name:<12} {wall * 1000:8.1f} ms wall  {cpu * 1000:8.1f} ms CPU", flush=True)


def look(directory: Path, count: int, moments: Moments) -> None:
    """Measure a first look and later ones; the page's own pace is switched off."""
    now = [0.0]

    def again() -> None:
        now[0] += 60.0
        page.page()

    page = WatchedRun(directory, ticks=lambda: now[0], effort=lambda: 0.0)
    again()  # compiles the templates, once a process
    page.close()
    page = WatchedRun(directory, ticks=lambda: now[0], effort=lambda: 0.0)
    measured("cold", again)
    with RunWriter.open(directory, durability="normal") as writer:
        for number, batch in enumerate(batches(count + 5 * MODELS * STEPS, count)):
            trials = count + (number + 1) * len(batch)
            store(writer, batch, moments, trials, STARTED + trials)
            measured("incremental", again)
    measured("unchanged", again)
    page.close()


def watch(directory: Path, count: int, moments: Moments, seconds: int) -> None:
    """Measure what serving a page costs while the run goes on, a snapshot a second."""
    command = [str(Path(sys.executable).with_name("adaptive-eval")), "monitor", str(directory), "--web"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        address = f"{found[0]}runs/{directory.name}/"
        httpx.get(address, timeout=60)
        told = [0, 0]
        threading.Thread(target=_listen, args=(address, told), daemon=True).start()
        time.sleep(2.0)
        start = count + 5 * MODELS * STEPS
        with RunWriter.open(directory, durability="normal") as writer:
            began, before = time.monotonic(), _cpu_seconds(server.pid)
            for number, batch in enumerate(batches(start + seconds * MODELS * STEPS, start)):
                trials = start + (number + 1) * len(batch)
                store(writer, batch, moments, trials, STARTED + trials)
                time.sleep(max(0.0, began + number + 1 - time.monotonic()))
            spent, passed = _cpu_seconds(server.pid) - before, time.monotonic() - began
        server.terminate()
    share = 100 * spent / passed
    print(f"watching     {share:.2f} % of one core, {told[0]} pages, {told[1]} times nothing new")


def _listen(address: str, told: list[int]) -> None:
    tag = ""
    while True:
        try:
            answer = httpx.get(address, headers={"If-None-Match": tag}, timeout=60)
        except httpx.TransportError:
            return  # the server has ended
        told[answer.status_code == 304] += 1
        tag = answer.headers["ETag"]
        time.sleep(2.0)


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Make the run and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=500_000)
    parser.add_argument("--seconds", type=int, default=30, help="how long to watch the live run")
    parser.add_argument("--keep", type=Path, help="where to make the run, to be kept; it must not exist")
    options = parser.parse_args()
    count = options.trials // (MODELS * STEPS) * MODELS * STEPS
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.keep or Path(scratch, "big")
        moments = Moments()
        began = time.monotonic()
        make(directory, count, moments)
        size = f"{count:,} trials × {MODELS} models × {QUESTIONS} questions"
        print(f"made {size} in {time.monotonic() - began:.0f} s", flush=True)
        look(directory, count, moments)
        watch(directory, count, moments, options.seconds)


if __name__ == "__main__":
    main()
