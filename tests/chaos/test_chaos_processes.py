"""The installed command killed in bad weather, on full disks and on files that it may not write."""

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from chaos_books import Books, Figures
from command_line import (
    COMMAND,
    Finished,
    Reached,
    adaptive_eval,
    ended,
    in_process,
    mimic_spec,
    quickstart,
    ran,
    report,
    set_faults,
    started,
    trials,
    write_config,
)
from ordeal import LATENCY, WEATHER, Ordeal

from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.writer import RunWriter

IN_ROUNDS = 425
"""Stored trials with models in rounds of their own, after two passes of 40 questions; about 650 are all."""


@pytest.fixture
def mimic() -> Iterator[MimicProcess]:
    with MimicProcess(mimic_spec(latency=LATENCY)) as process:
        yield process


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_killed_in_bad_weather_stays_within_its_budget(tmp_path, mimic, figures, seed):
    """Requests that were out when the process died, or came back as rubbish, may have been billed."""
    ordeal = Ordeal(tmp_path, mimic, seed, tokens=200_000, usd=0.6)
    assert ordeal.stopped_by_signals() == 3
    assert report(ordeal.run)["run"]["stop"]["reason"] == "budget"
    assert any(line["presumed"] > 0 for line in report(ordeal.run)["budgets"])
    figures.append(ordeal.account())
    assert figures[0].faults.total() > 20


@pytest.mark.slow
def test_bad_weather_and_kills_change_no_verdict(tmp_path, mimic, figures, undisturbed):
    ordeal = Ordeal(tmp_path, mimic, seed=3)
    for _ in range(4):  # while it loads, replays or asks for the first time
        ordeal.killed_after(ordeal.random.uniform(0.0, 1.5))
    set_faults(mimic, *WEATHER)
    for _ in range(6):
        ordeal.disturbed("SIGKILL", ordeal.random.randrange(1, 80))
    set_faults(mimic)
    ordeal.disturbed("SIGKILL", IN_ROUNDS - len(ordeal.books.records))
    asked = max(record.request.key.index for record in ordeal.books.records)
    assert asked >= 2 * len({record.request.question for record in ordeal.books.records})
    assert ordeal.finish() == 0
    assert Reached.by(ordeal.run) == undisturbed
    figures.append(ordeal.account())


@pytest.mark.slow
def test_the_quickstart_s_own_mimic_is_no_obstacle(tmp_path, figures):
    """The mimic that the run starts for itself dies with it; the next session starts another."""
    config = write_config(tmp_path, quickstart(latency=0.02))
    books = Books(tmp_path / "run")
    with started("run", config, "--out", "run", cwd=tmp_path) as running:
        running.until_stored(books.run, 100)
        running.process.kill()
        running.process.wait()
    books.look()
    done = in_process("run", "run", "--display", "none", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    books.look()
    figures.append(books.figures)


# What stands in the way of a command, said in words and without a traceback.


@pytest.fixture
def stopped_run(tmp_path: Path) -> Path:
    """A run that a budget has ended."""
    ran(write_config(tmp_path, quickstart()), "-o", "budget.trials=40", code=3)
    return tmp_path / "run"


def refused(folder: Path, *command: object, words: tuple[str, ...]) -> None:
    done = adaptive_eval(*command, cwd=folder, code=2)
    assert all(word in done.err for word in words), done.err


GO_ON = ("-o", "budget.trials=60")


@pytest.mark.slow
def test_a_run_that_another_program_has_locked_is_named_and_goes_on_later(tmp_path, stopped_run, figures):
    books = Books(stopped_run)
    books.look()
    with closing(sqlite3.connect(stopped_run / "run.db", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        words = ("run.db", "lock", "try again")
        refused(stopped_run.parent, "run", stopped_run, *GO_ON, words=words)
    with RunWriter.open(stopped_run):
        words = (str(stopped_run), "is being written by process", str(os.getpid()))
        for command in ((stopped_run, *GO_ON), ("config.yaml", "--out", stopped_run, "--new")):
            refused(stopped_run.parent, "run", *command, words=words)
    assert {path.name for path in tmp_path.iterdir()} == {"config.yaml", "run"}
    assert adaptive_eval("run", stopped_run, *GO_ON, cwd=stopped_run.parent).code == 3
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


def on_another_disk(folder: Path, options: str, script: str) -> Finished:
    """Run a shell script with a small file system at `folder`/disk that nobody else sees."""
    (folder / "disk").mkdir()
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None:
        pytest.skip("needs to mount a small file system")
    mounted = (unshare, "--mount", "sh", "-c", ON_ANOTHER_DISK, "sh", options, folder / "disk")
    done = ended(*mounted, "sh", "-c", script, cwd=folder)
    if "unshare failed" in done.err or "mount:" in done.err:
        pytest.skip(f"may not mount a small file system here: {done.err.strip()}")
    return done


@pytest.mark.slow
def test_a_disk_that_fills_up_ends_the_run_in_words(tmp_path, figures):
    """What was stored is safe, and the run goes on where there is room."""
    data = quickstart(latency=0.001, equivalence=0.001)
    data["mimic"]["answer"] = "{answer} " + " ".join(str(number) for number in range(400))
    data["on"] = {"length": "wrong"}
    run = f"{COMMAND} run {write_config(tmp_path, data)} --out disk/run --display none --no-disk-check"
    done = on_another_disk(tmp_path, "size=2m", f"{run}; code=$?; cp -r disk/run kept; exit $code")
    assert done.code == 2, done
    assert "no space left on the disk" in done.err
    books = Books(tmp_path / "kept")
    books.look()
    assert books.figures.answers > 50
    more = f"budget.trials={books.figures.answers + 20}"
    assert adaptive_eval("run", "kept", "-o", more, cwd=tmp_path).code == 3
    books.look()
    books.figures.faults["full disk"] += 1
    figures.append(books.figures)


@pytest.mark.slow
def test_a_place_that_may_not_be_written_to(tmp_path, figures):
    run = f"{COMMAND} run {write_config(tmp_path, quickstart())} --out disk/run --display none"
    done = on_another_disk(tmp_path, "ro", run)
    assert done.code == 2, done
    assert "disk/run" in done.err
    assert "cannot be written to" in done.err
    figures.append(Figures(Counter({"read-only directory": 1})))
