"""How often late, refused and cut answers make a winner of two equal models, over HTTP and as a user runs it.

A server of its own process ignores seeds, as hosted ones do, and keeps back a share of the wrong answers of
one model: beyond the run's timeout, as a gateway that says 504, or by cutting the connection; or it is slow
with them while the run is killed by ``kill -9`` and continued. If the next answer counted in the place of
the one that was kept back, that model would seem better. Other cells give
two models 20 points apart, of which 5 % of all answers are kept back, and have to be told apart.

    python benchmarks/discarded.py                           # 24 runs a cell
    python benchmarks/discarded.py --runs 3 --cells timeout,kill
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import uvicorn

from adaptive_eval.store.reader import RunReader

QUESTIONS, MARGIN = 100, 0.1
TIMEOUT = 6.0
"""Seconds after which a run gives up a request; an answer that is not kept back takes some milliseconds."""
KEPT_BACK = {"timeout": TIMEOUT + 4.0, "gateway": 0.1, "cut": 0.1, "kill": 1.0}
"""Seconds for which an answer is kept back, by the way in which it is."""
IN_FLIGHT = 32
"""Requests of each model in flight."""
KILLS, BETWEEN = 5, 1.5
"""How often a run is killed, and seconds that it has after its first answer of a session."""


@dataclass(frozen=True)
class Cell:
    """Two models, and which of their answers do not come."""

    way: str  # how an answer is kept back
    rates: tuple[float, float] = (0.6, 0.6)  # shares of right answers
    wrong: tuple[float, float] = (0.0, 0.3)  # shares of the wrong answers that are kept back
    right: tuple[float, float] = (0.0, 0.0)  # likewise of the right ones
    trials: int = 3000  # the budget

    @property
    def kills(self) -> int:
        """How often a run of it is killed."""
        return KILLS if self.way == "kill" else 0


CELLS = {
    "timeout": Cell("timeout"),
    "gateway": Cell("gateway"),
    "cut": Cell("cut"),
    "kill": Cell("kill"),
    "apart-timeout": Cell("timeout", (0.8, 0.6), (0.05, 0.05), (0.05, 0.05)),
    "apart-gateway": Cell("gateway", (0.8, 0.6), (0.05, 0.05), (0.05, 0.05)),
    "apart-cut": Cell("cut", (0.8, 0.6), (0.05, 0.05), (0.05, 0.05)),
    "apart-kill": Cell("kill", (0.8, 0.6), (0.05, 0.05), (0.05, 0.05)),
}


class Server:
    """An ASGI application that answers as a cell says."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._rng = random.Random()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer a request."""
        data, more = b"", True
        while more:
            event = await receive()
            data, more = data + event.get("body", b""), event.get("more_body", False)
        if scope["method"] == "GET":
            await _respond(send, 200, {"object": "list", "data": []})
            return
        cell, body = self._cell, json.loads(data)
        model = int(body["model"])
        right = self._rng.random() < cell.rates[model]
        shares = cell.right if right else cell.wrong
        if self._rng.random() < shares[model]:
            await asyncio.sleep(KEPT_BACK[cell.way])
            if cell.way == "gateway":
                await _respond(send, 504, {"error": {"message": "upstream timed out"}})
                return
            if cell.way == "cut":
                await _start(send, 200, 1000)
                await send({"type": "http.response.body", "body": b'{"id": "1"', "more_body": True})
                raise ConnectionResetError("the connection is cut")
        number = body["messages"][-1]["content"].removeprefix("Say ").removesuffix(".")
        said = f"Attempt {self._rng.getrandbits(64):x}: {number if right else -1}"
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        await _respond(send, 200, {"id": said, "model": body["model"], "choices": [choice], "usage": usage})


async def _start(send: Any, status: int, length: int) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(length).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _respond(send: Any, status: int, data: Any) -> None:
    body = json.dumps(data).encode()
    await _start(send, status, len(body))
    await send({"type": "http.response.body", "body": body})


@contextmanager
def served(name: str) -> Iterator[str]:
    """Serve a cell in a process of its own, and yield the base URL."""
    line = [sys.executable, __file__, "--serve", name]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def serve(name: str) -> None:
    """Serve a cell at a free port, whose address is printed."""
    config = uvicorn.Config(Server(CELLS[name]), port=0, lifespan="off", log_level="critical")
    listening = config.bind_socket()
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/v1", flush=True)
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


def written(folder: Path, cell: Cell, url: str, seed: int) -> Path:
    """Write the config of a run and its questions."""
    folder.mkdir(parents=True)
    rows = [{"id": str(n), "input": f"Say {n}.", "target": str(n)} for n in range(QUESTIONS)]
    (folder / "numbers.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    models = [
        {
            "name": name,
            "model": model,
            "endpoints": [url],
            "concurrency": IN_FLIGHT,
            "timeout": {"total": TIMEOUT if cell.way == "timeout" else 60},
            "sampling": {"temperature": 0.7, "max_tokens": 64},
        }
        for name, model in (("whole", "0"), ("late", "1"))
    ]
    task = {"name": "numbers", "dataset": "numbers.jsonl", "prompt": "{input}", "scorer": "numeric"}
    config = {
        "name": "discarded",
        "seed": seed,
        "models": models,
        "tasks": [task],
        "stopping": {"equivalence": MARGIN},
        "budget": {"trials": cell.trials},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config), "utf-8")
    return path


def stored(run: Path) -> int:
    """Return how many answers a run has stored."""
    if not (run / "run.db").exists():
        return 0
    with RunReader(run) as reader:
        return reader.count()


def finish(path: Path, kills: int) -> str:
    """Run a config to its end, killed so often before; return what was said at the end."""
    run = path.with_name("run")
    begin = [sys.executable, "-m", "adaptive_eval", "run"]
    options = ["--display", "none"]
    for number in range(kills + 1):
        line = [*begin, str(run)] if stored(run) else [*begin, str(path), "--out", str(run)]
        process = subprocess.Popen([*line, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if number < kills:
            before = stored(run)
            while process.poll() is None and stored(run) == before:
                time.sleep(0.05)
            try:
                process.wait(timeout=BETWEEN)
            except subprocess.TimeoutExpired:
                process.kill()
        said = process.communicate()[0].decode()
        if process.returncode >= 0:
            break
    if process.returncode < 0 or not (run / "report.json").exists():
        raise RuntimeError(said)
    return f"exit {process.returncode}"


def tried(name: str, folder: Path, given: argparse.Namespace) -> None:
    """Run a cell so often, and print what came out."""
    cell, runs = CELLS[name], given.runs
    verdicts: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    trials = discarded = 0
    with served(name) as url, ThreadPoolExecutor(given.jobs) as pool:
        paths = [written(folder / name / str(n), cell, url, given.seed + n) for n in range(runs)]
        for path, end in zip(paths, pool.map(finish, paths, repeat(cell.kills)), strict=True):
            ends[end] += 1
            report = json.loads((path.parent / "run" / "report.json").read_text("utf-8"))
            (pair,) = report["pairs"]
            ahead = {"better": "first", "worse": "second"}.get(pair["verdict"])
            verdicts[pair["verdict"] if ahead is None else f"{pair[ahead]} ahead"] += 1
            trials += sum(line["trials"] + line["discarded_trials"] for line in report["models"])
            discarded += sum(line["discarded_trials"] for line in report["models"])
    counts = ", ".join(f"{words}: {number}" for words, number in sorted(verdicts.items()))
    exits = ", ".join(f"{words} ({number})" for words, number in sorted(ends.items()))
    share = discarded / max(trials, 1)
    print(f"{name:22} {counts:40} {share:6.1%} of {trials / runs:,.0f} trials discarded; {exits}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=24, help="runs of a cell (24)")
    parser.add_argument("--cells", default=",".join(CELLS), help="cells, by commas")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first run's questions (1)")
    parser.add_argument("--jobs", type=int, default=3, help="runs at once (3)")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in given.cells.split(","):
            tried(name, Path(folder), given)


if __name__ == "__main__":
    main()
