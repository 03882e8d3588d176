"""The list of runs, and commands that are written a little wrong."""

import json

import pytest
from mimic_runs import command, mimic_config


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
        ("resume", "run"),
        ("simulate", "plan"),
        ("import", "analyze --write"),
    ],
)
def test_an_unknown_command_suggests_the_nearest(written, meant):
    done = command(written, code=2)
    assert f"did you mean {meant}" in done.err
