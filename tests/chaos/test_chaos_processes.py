"""The installed command against a server that misbehaves: killed, stopped, on full disks, for real."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chaos_books import Books, Figures
from command_line import (
    COMMAND,
    PATIENCE,
    Reached,
    adaptive_eval,
    answered_seeds,
    environment,
    mimic_spec,
    quickstart,
    report,
    served,
    set_faults,
    started,
    stored_trials,
    trials,
    write_config,
)

from adaptive_eval.mock_server import LatencySpec, MockServerProcess
from adaptive_eval.store import RunReader, RunWriter
from adaptive_eval.store.migrations import SCRIPTS

LATENCY = LatencySpec(median=0.03, sigma=0.8)
PRICE = {"input": 1.0, "output": 4.0}

WEATHER: list[dict[str, Any]] = [
    {"kind": "status", "status": 429, "retry_after": 0.2, "probability": 0.05},
    {"kind": "status", "status": 503, "probability": 0.05},
    {"kind": "drop", "after": 0.0, "probability": 0.04},
    {"kind": "drop", "after": 0.5, "probability": 0.04},
    {"kind": "malformed", "probability": 0.04},
    {"kind": "cut_off", "finish_reason": "abort", "probability": 0.04},
    {"kind": "hang", "probability": 0.004},
]


@pytest.fixture
def mimic() -> Iterator[MockServerProcess]:
    with MockServerProcess(mimic_spec(latency=LATENCY)) as process:
        yield process


class Ordeal:
    """A run of the installed command with its books."""

    def __init__(self, folder: Path, mimic: MockServerProcess, seed: int, **budget: Any) -> None:
        self.folder, self.mimic, self.run = folder, mimic, folder / "run"
        self.random = random.Random(seed)
        self.books = Books(self.run)
        self.budget = budget
        # Under a budget, a margin too narrow for any other end than that of the budget.
        data = quickstart(base_url=mimic.base_url, equivalence=0.01 if budget else 0.15)
        data["budget"] = budget
        for model in data["models"]:
            model |= {"price": PRICE, "concurrency": 6, "timeout": {"connect": 20, "total": 20}}
        data["retry"] = {"attempts": 4, "max_seconds": 20, "requeue": 3}
        self.config = write_config(folder, data)
        self.paid: Counter[tuple[str, int]] = Counter()

    def command(self) -> tuple[str, ...]:
        """Return one of the two commands that go on with the run."""
        if stored_trials(self.run) and self.random.random() < 0.5:
            return ("resume", str(self.run), "--display", "none")
        return ("run", str(self.config), "--out", str(self.run), "--display", "none")

    def disturbed(self, kind: str, more: int) -> None:
        """Let a sitting store about `more` trials and end it, or hold it up, in a bad way."""
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
            self.books.figures.doubled += answered[trial] > times
        for record in self.books.records:
            trial = (record.request.key.model, record.request.seed)
            self.paid.setdefault(trial, answered.get(trial, 0))

    def account(self) -> Figures:
        """Return the figures: what the server has billed against the budget, and the faults it injected."""
        stats = served(self.mimic)
        figures = self.books.figures
        figures.faults.update(stats["faults"])
        models = stats["models"].values()
        prompt = sum(model["prompt_tokens"] for model in models)
        completion = sum(model["completion_tokens"] for model in models)
        usd = (prompt * PRICE["input"] + completion * PRICE["output"]) / 1e6
        bills = {"tokens": prompt + completion, "usd": usd, "completion_tokens": completion}
        figures.overrun += sum(bill > self.budget.get(name, bill) for name, bill in bills.items())
        return figures


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_killed_in_bad_weather_stays_within_its_budget(
    tmp_path: Path, mimic: MockServerProcess, figures: list[Figures], seed: int
) -> None:
    """Requests that were out when the process died, or came back as rubbish, may have been billed."""
    ordeal = Ordeal(tmp_path, mimic, seed, tokens=200_000, usd=0.6)
    set_faults(mimic, *WEATHER)
    for kind in ("SIGKILL", "SIGSTOP", "SIGKILL", "SIGTERM", "SIGKILL", "SIGINT"):
        ordeal.disturbed(kind, ordeal.random.randrange(1, 40))
    assert ordeal.finish() == 3
    assert report(ordeal.run)["run"]["stop"]["reason"] == "budget"
    assert any(line["presumed"] > 0 for line in report(ordeal.run)["budgets"])
    figures.append(ordeal.account())
    assert figures[0].faults.total() > 20


@pytest.mark.slow
def test_bad_weather_and_kills_change_no_verdict(
    tmp_path: Path, mimic: MockServerProcess, figures: list[Figures], undisturbed_run: Reached
) -> None:
    ordeal = Ordeal(tmp_path, mimic, seed=3)
    set_faults(mimic, *WEATHER)
    for _ in range(6):
        ordeal.disturbed("SIGKILL", ordeal.random.randrange(1, 100))
    set_faults(mimic)
    assert ordeal.finish() == 0
    assert Reached.by(ordeal.run) == undisturbed_run
    figures.append(ordeal.account())


@pytest.fixture(scope="session")
def undisturbed_run(tmp_path_factory: pytest.TempPathFactory) -> Reached:
    """What the run reaches that nobody disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with MockServerProcess(mimic_spec()) as process:
        ordeal = Ordeal(folder, process, seed=0)
        assert ordeal.finish() == 0
        return Reached.by(ordeal.run)


# What stands in the way of a command, said in words and without a traceback.


@pytest.fixture
def stopped_run(tmp_path: Path) -> Path:
    """A run that a budget has ended."""
    done = adaptive_eval(
        "run", write_config(tmp_path, quickstart()), "--out", "run", "-o", "budget.trials=40", cwd=tmp_path
    )
    assert done.code == 3, done
    return tmp_path / "run"


def refused(folder: Path, *command: object, words: tuple[str, ...]) -> None:
    done = adaptive_eval(*command, cwd=folder)
    assert done.code == 2, done
    assert "Traceback" not in done.said
    assert all(word in done.err for word in words), done.err


GO_ON = ("-o", "budget.trials=60")


@pytest.mark.slow
def test_a_newer_file_is_refused_with_what_to_do(stopped_run: Path, figures: list[Figures]) -> None:
    books = Books(stopped_run)
    books.look()
    before = (stopped_run / "run.db").read_bytes()
    with closing(sqlite3.connect(stopped_run / "run.db")) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        db.execute("PRAGMA user_version = 99")
    for command in ("resume", "report", "monitor"):
        words = ("file version 99", f"up to {version}", "pip install --upgrade")
        refused(stopped_run.parent, command, stopped_run, words=words)
    with closing(sqlite3.connect(stopped_run / "run.db")) as db:
        db.execute(f"PRAGMA user_version = {version}")
    assert len((stopped_run / "run.db").read_bytes()) == len(before)
    assert adaptive_eval("resume", stopped_run, *GO_ON, cwd=stopped_run.parent).code == 3
    books.look()
    books.figures.faults["newer file"] += 1
    figures.append(books.figures)


def test_a_run_that_another_program_has_locked_is_named_and_goes_on_later(
    stopped_run: Path, figures: list[Figures]
) -> None:
    books = Books(stopped_run)
    books.look()
    with closing(sqlite3.connect(stopped_run / "run.db", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        words = ("run.db", "lock", "try again")
        refused(stopped_run.parent, "resume", stopped_run, *GO_ON, words=words)
    with RunWriter.open(stopped_run):
        words = ("is being written by process", str(os.getpid()))
        refused(stopped_run.parent, "resume", stopped_run, *GO_ON, words=words)
    assert adaptive_eval("resume", stopped_run, *GO_ON, cwd=stopped_run.parent).code == 3
    books.look()
    assert len(trials(stopped_run)) == 60
    books.figures.faults["locked file"] += 2
    figures.append(books.figures)


ON_ANOTHER_DISK = """
set -e
mount -t tmpfs -o "$1" tmpfs "$2"
shift 2
exec "$@"
"""


def on_another_disk(folder: Path, options: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script with a small file system at `folder`/disk that nobody else sees."""
    (folder / "disk").mkdir()
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None:
        pytest.skip("needs to mount a small file system")
    done = subprocess.run(
        [unshare, "--mount", "sh", "-c", ON_ANOTHER_DISK, "sh", options, folder / "disk", "sh", "-c", script],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if "unshare failed" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"may not mount a small file system here: {done.stderr.strip()}")
    return done


@pytest.mark.slow
def test_a_disk_that_fills_up_ends_the_run_in_words(tmp_path: Path, figures: list[Figures]) -> None:
    """What was stored is safe, and the run goes on where there is room."""
    data = quickstart(latency=0.001, equivalence=0.001)
    data["mimic"]["answer"] = "{answer} " + " ".join(str(number) for number in range(400))
    run = f"{COMMAND} run {write_config(tmp_path, data)} --out disk/run --display none --no-disk-check"
    done = on_another_disk(tmp_path, "size=1m", f"{run}; code=$?; cp -r disk/run kept; exit $code")
    assert done.returncode == 2, done
    assert "no space left on the disk" in done.stderr
    assert "Traceback" not in done.stderr
    books = Books(tmp_path / "kept")
    books.look()
    assert books.figures.answers > 50
    more = f"budget.trials={books.figures.answers + 20}"
    assert adaptive_eval("resume", "kept", "-o", more, cwd=tmp_path).code == 3
    books.look()
    books.figures.faults["full disk"] += 1
    figures.append(books.figures)


@pytest.mark.slow
def test_a_place_that_may_not_be_written_to(tmp_path: Path, figures: list[Figures]) -> None:
    run = f"{COMMAND} run {write_config(tmp_path, quickstart())} --out disk/run --display none"
    done = on_another_disk(tmp_path, "ro", run)
    assert done.returncode == 2, done
    assert "disk/run" in done.stderr
    assert "cannot be written to" in done.stderr
    assert "Traceback" not in done.stderr
    figures.append(Figures(Counter({"read-only directory": 1})))


@pytest.mark.slow
def test_an_older_file_is_upgraded_and_goes_on(stopped_run: Path, figures: list[Figures]) -> None:
    """A file of version 1: none of the tables that came later."""
    books = Books(stopped_run)
    books.look()
    with closing(sqlite3.connect(stopped_run / "run.db", isolation_level=None)) as db:
        (now,) = db.execute("PRAGMA user_version").fetchone()
        for table in reversed(re.findall(r"CREATE TABLE (\w+)", "".join(one.sql for one in SCRIPTS[1:]))):
            db.execute(f"DROP TABLE {table}")
        db.execute("ALTER TABLE answers DROP COLUMN checksum")
        db.execute("PRAGMA user_version = 1")
    assert adaptive_eval("monitor", stopped_run, "--once", cwd=stopped_run.parent).code == 0
    assert adaptive_eval("resume", stopped_run, *GO_ON, cwd=stopped_run.parent).code == 3
    with closing(sqlite3.connect(stopped_run / "run.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (now,)
    with RunReader(stopped_run) as reader:
        assert reader.count() == 60
    books.look()
    books.figures.faults["older file"] += 1
    figures.append(books.figures)
