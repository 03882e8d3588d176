"""Wrong input: one clear message a mistake, the right exit code, no traceback, nothing spent or left."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import (
    ARITHMETIC,
    QUICKSTART,
    Finished,
    hold_back,
    in_process,
    mimic_spec,
    quickstart,
    served,
    started,
    trials,
    write_config,
)

from adaptive_eval.mimic.process import MimicProcess


@pytest.fixture(scope="module")
def mimic() -> Iterator[MimicProcess]:
    with MimicProcess(mimic_spec()) as process:
        yield process


@pytest.fixture
def folder(tmp_path: Path, mimic: MimicProcess) -> Iterator[Path]:
    """A folder with the quickstart's data; in the end the mimic was asked nothing that costs anything."""
    (tmp_path / "data").mkdir()
    shutil.copy(ARITHMETIC, tmp_path / "data")
    yield tmp_path
    assert served(mimic)["requests"] == 0


def written(folder: Path, *edits: tuple[str, str]) -> Path:
    """Write the quickstart's config with some of its text replaced."""
    text = QUICKSTART.read_text("utf-8")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = folder / "config.yaml"
    path.write_text(text, "utf-8")
    return path


def check_refused(done: Finished, code: int, *messages: str) -> None:
    """Check that the command ended with `code` and one message for each mistake, and no traceback."""
    assert done.code == code, done
    assert done.out == ""
    for message in messages:
        assert message in done.err, f"{message!r} is not in\n{done.err}"


def check_nothing_left(folder: Path) -> None:
    """Check that no run was begun."""
    assert {path.name for path in folder.iterdir()} <= {"config.yaml", "data"}


def test_each_mistake_of_a_config_is_a_line_of_the_message_and_nothing_is_begun(folder):
    edits = (("seed: 3", "seed: one"), ("confidence: 0.95", "confidence: 95"), ("numeric", "numerik"))
    done = in_process("run", written(folder, *edits), cwd=folder)
    check_refused(done, 2, "3 problems\n", "line 5: seed", "line 29: tasks[0].scorer", "line 34: stopping")
    assert len(done.err.splitlines()) < 8
    check_nothing_left(folder)


# Endpoints


def test_an_endpoint_that_is_not_there(folder):
    config = write_config(folder, quickstart(base_url="http://127.0.0.1:9/v1"))
    for command in ("run", "validate"):
        done = in_process(command, config, cwd=folder)
        assert done.out.startswith("config ") or not done.out
        assert "5 endpoints are not usable; nothing was spent" in done.err
        assert done.err.count("connection refused; is the server running?") == 5
        assert done.code == 4
    check_nothing_left(folder)


# Places


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nowhere", "no run at nowhere: there is no such directory"),
        ("my.yaml", "no run at my.yaml: it is a file. A config is run with `adaptive-eval run my.yaml`"),
        ("data.csv", "no run at data.csv: it is a file; name the directory of a run"),
        ("runs", "no run at runs: it has no run.db, but holds runs: a, b. Name one of them"),
        ("runs/a/run.db", "no run at runs/a/run.db: a run is named by its directory, runs/a"),
        ("half", "no run at half: it has no run.db. Its creation was interrupted: start it again"),
        (".", "no run at .: it has no run.db"),
        ("pipe", "no run at pipe: it has no run.db"),
    ],
)
def test_what_is_there_where_no_run_is(tmp_path, place, words):
    for name in ("runs/a", "runs/b", "runs/c", "half"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("my.yaml", "data.csv", "runs/a/run.db", "runs/b/run.db", "half/run.db.new"):
        (tmp_path / name).write_text("x")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "run.db")  # opening it would wait for ever
    assert in_process("samples", place, cwd=tmp_path).err == f"error: {words} [run/not-found]\n"


@pytest.mark.slow
def test_a_run_that_another_process_is_writing(tmp_path):
    with MimicProcess(mimic_spec()) as server:
        config = write_config(tmp_path, quickstart(base_url=server.base_url))
        run = tmp_path / "run"
        hold_back(server, 20)
        with started("run", config, "--out", run, cwd=tmp_path) as running:
            running.until_stored(run, 1)
            for command in (
                ("run", config, "--out", run),
                ("run", config, "--out", run, "--new"),
                ("run", run),
            ):
                done = in_process(*command, cwd=tmp_path)
                check_refused(done, 2, str(run), f"process {running.process.pid}")
            assert running.for_a_moment()
        assert {path.name for path in tmp_path.iterdir()} == {"config.yaml", "run"}


CHANGES = {
    "models[sage].sampling.temperature=0.9": "sampling.temperature",
    "tasks[arithmetic].prompt='{input} Now!'": "prompt",
    "tasks[arithmetic].system='Be brief.'": "system",
    "models[guesser].model=student": "guesser",
    "seed=2": "seed",
}


@pytest.mark.slow
def test_a_config_that_would_change_what_is_stored(tmp_path):
    with MimicProcess(mimic_spec()) as server:
        config = write_config(tmp_path, quickstart(base_url=server.base_url))
        run = tmp_path / "run"
        assert in_process("run", config, "--out", run, "-o", "budget.trials=20", cwd=tmp_path).code == 3
        before, asked = trials(run), served(server)["requests"]
        further = ("-o", "budget.trials=40")
        changes = [word for change in CHANGES for word in ("-o", change)]
        done = in_process("run", run, *changes, *further, cwd=tmp_path)
        check_refused(done, 2, "asks for other trials than those stored", "--new", *CHANGES.values())
        assert len(done.err.splitlines()) == 1 + len(CHANGES) + 2
        assert served(server)["requests"] == asked
        assert trials(run) == before
        done = in_process("run", run, *further, "-o", "stopping.confidence=0.9", cwd=tmp_path, code=3)
        assert trials(run)[:20] == before
        assert len(trials(run)) == 40
