"""The list of runs, places where no run can be read or written, and commands written a little wrong."""

import json
import os

import pytest
from command_line import (
    command,
    in_process,
    mimic_config,
)


def test_runs_are_listed_with_state_and_trials(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(mimic_config(budget={"trials": 10})), encoding="utf-8")
    assert command("run", config, "--out", tmp_path / "runs" / "one", "--display", "none").code == 3
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.db").write_text("no database")
    done = command("monitor", tmp_path / "runs", "--json")
    found = {row["run"]: row for row in map(json.loads, done.out.splitlines())}
    assert (found["one"]["stop"], found["one"]["trials"]) == ("budget", 10)
    assert "error" in found["broken"]
    assert "one: budget, 10 trials" in command("monitor", tmp_path / "runs").out
    compared = command("report", tmp_path / "runs" / "one", tmp_path / "runs" / "one")
    assert (compared.code, compared.err) == (0, "")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("reprot", "report"),
        ("validat", "validate"),
    ],
)
def test_an_unknown_command_suggests_the_nearest(written, meant):
    done = command(written, code=2)
    assert f"did you mean {meant}" in done.err


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
