"""What workers on Ray bring and cost: answers per second and CPU per trial, beside one process.

The engine with a real run file gets the same number of answers from the same server (a canned answer, in a
process of its own) in three ways, in turns: in this process, with one worker of one CPU, and with two. Once
the scorer computes for ``--busy`` milliseconds in Python, as a parser of proofs does; once it costs nothing.

Two figures for the gain of two workers over one: the ratio of answers per second (best of the turns), which
wants a machine that does nothing else; and the ratio of CPU seconds that the busiest process has to spend,
which bounds the rate and depends little on what else the machine does.

    python benchmarks/executor.py                   # needs adaptive-eval[ray]; two minutes on two cores
    python benchmarks/executor.py --turns 1 --busy 5
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from canned_server import canned_server
from engine import MODEL, QUESTIONS, _Bench, _InOrder, prompt

from adaptive_eval.build.assembly import PreparedRun, build
from adaptive_eval.build.model_clients import endpoint_at
from adaptive_eval.build.workplace import workplace_of
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.engine.limits import FixedConcurrency
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.runner import Runner
from adaptive_eval.executors.remote import RemoteExecutor
from adaptive_eval.run.execution import collecting_little as frozen
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Question, Score

WAYS = ("here", "1 worker", "2 workers")


@dataclass(frozen=True)
class _Busy:
    """A scorer that computes for a while, without letting go of the interpreter."""

    seconds: float

    def check_target(self, question: Question) -> None:
        return None

    def score(self, completion: Completion, question: Question) -> Score:
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            sum(range(200))
        return Score(1, "4", {"is_correct": True, "has_box": True, "truncated": False})


@dataclass
class _Figures:
    """Of one turn: answers per second, and milliseconds of CPU per trial of each process."""

    rate: float
    driver: float
    workers: list[float]

    @property
    def busiest(self) -> float:
        return max(self.driver, *self.workers, 0.0)


def built_for(url: str, folder: Path, busy: float, workers: int) -> PreparedRun:
    rows = [{"id": f"q{q}", "input": prompt(q), "target": "4"} for q in range(QUESTIONS)]
    (folder / "bench.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data: dict[str, Any] = {
        "name": "bench",
        "models": [
            {"name": name, "model": MODEL, "endpoints": [url], "concurrency": 128}
            for name in (MODEL, "other")
        ],
        "tasks": [{"name": "bench", "dataset": "bench.jsonl", "scorer": "exact"}],
        "executor": {"kind": "ray", "address": "auto", "actors": workers} if workers else {"kind": "local"},
    }
    built = build(config_from_data(data, folder))
    return replace(built, scorers={"bench": _Busy(busy)}) if busy else built


def cpu_of_workers() -> dict[int, float]:
    """Return the CPU seconds of every worker on this machine, by process id."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"ray::Worker"):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                found[int(entry.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:  # it has just ended
            continue
    return found


async def turn(built: PreparedRun, url: str, trials: int, in_flight: int) -> _Figures:
    with workplace_of(built, print) as workplace:
        chat = endpoint_at(built.config.models[0], url)
        async with chat, workplace(built) as executor:
            if isinstance(executor, RemoteExecutor):
                await _complete(executor, built.config.executor.actors)
            await work(executor, chat, 2 * in_flight, in_flight)  # connections, imports
            before, cpu, wall = cpu_of_workers(), time.process_time(), time.perf_counter()
            await work(executor, chat, trials, in_flight)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            after = cpu_of_workers()
    spent = [1000 * (after[pid] - before[pid]) / trials for pid in before if pid in after]
    return _Figures(trials / wall, 1000 * cpu / trials, spent)


async def _complete(executor: RemoteExecutor, workers: int) -> None:
    while len(executor.workers) < workers:  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0.05)


async def work(executor: Any, chat: Any, trials: int, in_flight: int) -> None:
    with (
        tempfile.TemporaryDirectory(dir=".") as directory,
        RunWriter.create(Path(directory, "run"), meta={}) as writer,
        frozen(),
    ):
        client = ModelClient([chat], FixedConcurrency(in_flight))
        await Runner(_InOrder(trials), writer, {MODEL: client}, prompts=_Bench(), executor=executor).run()


def measured(url: str, options: argparse.Namespace, busy: float, trials: int) -> Mapping[str, list[_Figures]]:
    found: dict[str, list[_Figures]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.turns):
            for workers, way in enumerate(WAYS):
                built = built_for(url, Path(folder), busy, workers)
                found[way].append(asyncio.run(turn(built, url, trials, options.in_flight)))
                print(f"  turn {number + 1}, {way}: {found[way][-1].rate:,.0f}/s", flush=True)
    return found


def show(title: str, found: Mapping[str, list[_Figures]]) -> None:
    print(f"\n{title}")
    print(f"{'':<10}{'answers/s':>11}{'driver ms':>11}{'busiest ms':>12}")
    best = {way: max(turns, key=lambda one: one.rate) for way, turns in found.items()}
    least = {way: min(one.busiest for one in turns) for way, turns in found.items()}
    for way, figures in best.items():
        driver = min(one.driver for one in found[way])
        print(f"{way:<10}{figures.rate:>11,.0f}{driver:>11.3f}{least[way]:>12.3f}")
    one, two = WAYS[1:]
    print(
        f"2 workers to 1: {best[two].rate / best[one].rate:.2f} by the clock, "
        f"{least[one] / least[two]:.2f} by CPU time; to this process: "
        f"{best[two].rate / best['here'].rate:.2f} by the clock, {least['here'] / least[two]:.2f} by CPU time"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--busy", type=float, default=10.0, help="milliseconds that a score takes")
    parser.add_argument("--trials", type=int, default=4000, help="of the scorer that costs nothing")
    parser.add_argument("--busy-trials", type=int, default=600)
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=80 * 2**20,
        log_to_driver=False,
        logging_level="ERROR",
    )
    with canned_server() as url:
        heavy = measured(url, options, options.busy / 1000, options.busy_trials)
        light = measured(url, options, 0.0, options.trials)
    ray.shutdown()
    show(f"A scorer that computes for {options.busy:g} ms", heavy)
    show("A scorer that costs nothing", light)


if __name__ == "__main__":
    main()
