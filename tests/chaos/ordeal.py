"""The installed command against a server that misbehaves, killed and stopped for real."""

import json
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from chaos_books import Books, Figures
from command_line import (
    adaptive_eval,
    answered_seeds,
    quickstart,
    served,
    set_faults,
    started,
    stored_trials,
    write_config,
)
from scripted_chat import Scripted

from adaptive_eval.core.results import from_json
from adaptive_eval.mimic.mimic_spec import LatencySpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.reader import RunReader

LATENCY = LatencySpec(median=0.03, sigma=0.8)
NAMES = {"drop": "dropped", "cut_off": "aborted", "status": "429 or 503"}
"""Faults of the mimic server by the names that storms in virtual time have for them."""

PRICE = {"input": 1.0, "output": 4.0}

REQUEST = {"tokens": 400, "usd": 0.0015}
"""What one request takes at most, or a little more."""

JUDGED = 2_000
"""Most requests to the judge of a run."""

WEATHER: list[dict[str, Any]] = [
    {"kind": "status", "status": 429, "retry_after": 0.2, "probability": 0.05},
    {"kind": "status", "status": 503, "probability": 0.05},
    {"kind": "drop", "after": 0.0, "probability": 0.04},
    {"kind": "drop", "after": 0.5, "probability": 0.04},
    {"kind": "malformed", "probability": 0.04},
    {"kind": "cut_off", "finish_reason": "abort", "probability": 0.04},
    {"kind": "hang", "probability": 0.004},
]


class Ordeal:
    """A run of the installed command with its books."""

    def __init__(self, folder: Path, mimic: MimicProcess, seed: int, **budget: Any) -> None:
        self.folder, self.mimic, self.run = folder, mimic, folder / "run"
        self.random = random.Random(seed)
        self.books = Books(self.run)
        self.budget = budget
        self.judge: Scripted | None = None
        self.kill = "kill"  # as kills are counted
        # Under a budget, a margin too narrow for any other end than that of the budget.
        data = quickstart(base_url=mimic.base_url, equivalence=0.01 if budget else 0.15)
        data["budget"] = budget
        for model in data["models"]:
            model |= {"price": PRICE, "concurrency": 6, "timeout": {"total": 20}}
        data["retry"] = {"attempts": 4, "max_seconds": 20, "requeue": 3}
        self.config = write_config(folder, data)
        self.paid: Counter[tuple[str, int]] = Counter()

    def command(self) -> tuple[str, ...]:
        """Return one of the two commands that go on with the run."""
        if stored_trials(self.run) and self.random.random() < 0.5:
            return ("run", str(self.run), "--display", "none")
        return ("run", str(self.config), "--out", str(self.run), "--display", "none")

    def judged_by(self, judge: Scripted) -> None:
        """Have a judge score the answers."""
        data = json.loads(self.config.read_text("utf-8"))
        scorer = {"kind": "judge", "endpoint": judge.url, "model": "wise", "budget": {"requests": JUDGED}}
        data["tasks"][0]["scorer"] = scorer
        data["models"] = data["models"][::3]
        self.config, self.judge = write_config(self.folder, data), judge

    def in_batches(self) -> None:
        """Have the models asked in batches."""
        data = json.loads(self.config.read_text("utf-8"))
        for model in data["models"]:
            model |= {"concurrency": 24, "batch": {"gather": 0.1, "poll": 0.1}}
        self.config, self.kill = write_config(self.folder, data), "kill in batches"

    def on_ray(self, address: str) -> None:
        """Have workers on a cluster of Ray make the requests."""
        data = json.loads(self.config.read_text("utf-8"))
        data["executor"] = {"kind": "ray", "address": address, "actors": 1}
        self.config, self.kill = write_config(self.folder, data), "kill on Ray"

    def moved(self, run: Path) -> None:
        """Have the run in another folder, on a disk that fills up."""
        self.run, self.books, self.kill = run, Books(run), "kill on a full disk"

    def out_of_space(self, seconds: float, room: int) -> None:
        """Let a session have `room` bytes of the run's disk, and kill it after that time at the latest."""
        others = self.run.parent / "others"
        others.write_bytes(bytes(max(0, shutil.disk_usage(self.run.parent).free - room)))
        before, since = stored_trials(self.run), time.time()
        with started(*self.command(), "--no-disk-check", *self._limits(), cwd=self.folder) as running:
            kind = self.kill
            if not running.for_a_moment(seconds):
                done = running.finish()
                assert done.code == 3 or (done.code == 2 and "disk" in done.err), done
                kind = "the budget's end" if done.code == 3 else "full disk"
            running.process.kill()
            running.process.wait()
        others.unlink()
        if kind == "the budget's end":
            self.budget = {name: self.budget[name] + REQUEST[name] for name in self.budget}
        else:
            self.books.figures.faults[f"{kind}: {self._stage(before, since)}"] += 1
        self.look()

    def _limits(self) -> list[str]:
        limits = [f"budget.{name}={limit}" for name, limit in self.budget.items()]
        return [part for setting in limits for part in ("-o", setting)]

    def killed_after(self, seconds: float, more: int = 0) -> None:
        """Kill a session that long after its start, or after `more` trials; count the kill by its stage.

        One that has ended at its budget goes on with room for one request more, so that most sessions are
        within one request of their limits.
        """
        before, since = stored_trials(self.run), time.time()
        with started(*self.command(), *self._limits(), cwd=self.folder) as running:
            if not (running.towards(self.run, before + more) and running.for_a_moment(seconds)):
                done = running.finish()
                assert done.code == 3, done
                self.budget = {name: self.budget[name] + REQUEST[name] for name in self.budget}
                self.look()
                return
            running.process.kill()
            running.process.wait()
        self.books.figures.faults[f"{self.kill}: {self._stage(before, since)}"] += 1
        self.look()

    def _stage(self, before: int, since: float) -> str:
        """Return what the session that began at `since` was killed at, by what is on the disk."""
        if not (self.run / "run.db").exists():
            return "start-up or probing"
        with RunReader(self.run) as reader:
            latest = reader.latest_snapshot()
        if latest is not None and latest.at > since and from_json(latest.results).stop is not None:
            return "end"
        return "asking" if stored_trials(self.run) > before else "start-up or probing"

    def disturbed(self, kind: str, more: int) -> None:
        """Let a session of the run store about `more` trials and end it, or hold it up, in a bad way."""
        self.books.figures.faults[kind] += 1
        with started(*self.command(), cwd=self.folder) as running:
            running.towards(self.run, stored_trials(self.run) + more)
            running.for_a_moment(self.random.uniform(0.0, 0.1))
            if kind == "SIGSTOP":  # as a machine that falls asleep
                running.process.send_signal(signal.SIGSTOP)
                time.sleep(4.0)
                running.process.send_signal(signal.SIGCONT)
                running.for_a_moment(1.0)
            if kind in ("SIGINT", "SIGTERM"):
                running.process.send_signal(getattr(signal, kind))
                assert running.finish().code in (0, 3, 130)
            else:
                running.process.kill()
                running.process.wait()
        self.look()

    def stopped_by_signals(self) -> int:
        """Let it be killed and stopped six times in bad weather and then end; return the exit code."""
        set_faults(self.mimic, *WEATHER)
        for kind in ("SIGKILL", "SIGSTOP", "SIGKILL", "SIGTERM", "SIGKILL", "SIGINT"):
            self.disturbed(kind, self.random.randrange(1, 40))
        return self.finish()

    def finish(self, *overrides: str) -> int:
        """Let the run end by itself and return the exit code."""
        done = adaptive_eval(*self.command(), *overrides, cwd=self.folder)
        assert "Traceback" not in done.said, done.said
        self.look()
        return done.code

    def look(self) -> None:
        """Look into the books, and at what the server has answered again although it was stored."""
        self.books.look()
        answered = answered_seeds(self.mimic)
        for trial, times in self.paid.items():
            self.books.figures.doubled += answered.get(trial, 0) > times
        for record in self.books.records:
            trial = (record.request.key.model, record.request.seed)
            self.paid.setdefault(trial, answered.get(trial, 0))

    def account(self) -> Figures:
        """Return the figures: what the server has billed against the budget, and the faults it injected."""
        stats = served(self.mimic)
        figures = self.books.figures
        for kind, number in stats["faults"].items():
            figures.faults[NAMES.get(kind, kind)] += number
        models = stats["models"].values()
        prompt = sum(model["prompt_tokens"] for model in models)
        completion = sum(model["completion_tokens"] for model in models)
        usd = (prompt * PRICE["input"] + completion * PRICE["output"]) / 1e6
        bills = {"tokens": prompt + completion, "usd": usd, "completion_tokens": completion}
        figures.overrun += sum(bill > self.budget.get(name, bill) for name, bill in bills.items())
        figures.overrun += self.judge is not None and len(self.judge.asked) > JUDGED
        return figures
