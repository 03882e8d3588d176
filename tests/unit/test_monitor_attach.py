"""Watching a run from outside: what is seen, when it ends, and what is left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest
import run_examples as runs
import standings_examples as examples
from click.testing import CliRunner

from adaptive_eval.cli.monitor import command as monitor
from adaptive_eval.cli.report import command as report
from adaptive_eval.errors import RunNotFound
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.reading import Attachment, is_running
from adaptive_eval.views.report_json import JsonLines
from adaptive_eval.views.sentences import describe


def attachment_of(reader, *, now=runs.STARTED + 1e6, running=lambda directory, age: False):
    return Attachment(reader, lambda: now, running)


@pytest.fixture
def run(tmp_path):
    """Return the directory of a finished run."""
    runs.make_run(tmp_path / "forest")
    return tmp_path / "forest"


def test_a_finished_run_is_shown_once(run):
    slept = []
    with RunReader(run) as reader:
        views = list(attachment_of(reader).follow(slept.append))
    assert [view.state for view in views] == ["stopped"]
    assert views[0].name == "forest"
    assert views[0].started == runs.STARTED
    assert views[0].decisions
    assert slept == []


def test_a_live_run_is_followed_until_it_stops(tmp_path):
    told = examples.decisions_of(examples.finished())[:3]
    work = zip(
        (10.0, 20.0, 30.0), (examples.midrun(), examples.midrun(), examples.finished()), told, strict=True
    )
    with RunWriter.create(tmp_path / "forest", meta={"name": "forest"}) as writer:

        def go_on(seconds):
            """Let the run advance while the watcher sleeps."""
            elapsed, results, decision = next(work)
            writer.snapshot(examples.snapshot_of(results, elapsed))
            writer.decision(0.0, decision.trials, asdict(decision))
            writer.commit()

        with RunReader(tmp_path / "forest") as reader:
            views = list(attachment_of(reader, running=lambda directory, age: True).follow(go_on))
    assert [view.state for view in views] == ["waiting", "running", "running", "stopped"]
    assert views[2].rates.trials == 0.0, "two snapshots of the same standings"
    assert views[-1].decisions == told


def test_a_killed_run_ends_the_watch_as_interrupted(tmp_path):
    runs.make_run(tmp_path / "forest", rounds=3)
    with RunReader(tmp_path / "forest") as reader:
        views = list(attachment_of(reader).follow(pytest.fail))
    assert [view.state for view in views] == ["interrupted"]


def test_the_lock_note_tells_whether_the_process_lives(tmp_path):
    assert not is_running(tmp_path, 60.0), "no lock, no process"
    with RunWriter.create(tmp_path / "live", meta={}):
        assert is_running(tmp_path / "live", 1e6)
    assert not is_running(tmp_path / "live", 60.0), "released"


def test_a_killed_process_does_not_run(tmp_path):
    code = (
        "import os, sys; from adaptive_eval.store.writer import RunWriter\n"
        "writer = RunWriter.create(sys.argv[1], meta={}); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "killed")], check=False)
    assert json.loads((tmp_path / "killed" / "run.lock").read_text())["pid"] != os.getpid()
    assert not is_running(tmp_path / "killed", 60.0)
    assert not is_running(tmp_path / "killed", 0.1), "however fresh its snapshot is"


def test_a_run_on_another_host_is_judged_by_its_snapshots(tmp_path):
    (tmp_path / "run.lock").write_text('{"pid": 1, "host": "elsewhere.invalid", "since": 0}')
    assert is_running(tmp_path, 60.0)
    assert not is_running(tmp_path, 600.0)


@pytest.mark.parametrize("note", ["", "{", "[]", '{"pid": "x", "host": "a"}', '{"host": "a"}', "null"])
def test_a_broken_note_is_no_process(tmp_path, note):
    (tmp_path / "run.lock").write_text(note)
    assert not is_running(tmp_path, 60.0)


def test_json_lines_tell_each_decision_once():
    lines, told, last = JsonLines(), [], None
    for results in (examples.no_trials(), examples.midrun(), examples.midrun(), examples.finished()):
        text = lines.line(examples.view_of(results, float(results.trials)))
        assert (text is None) == (results == last)
        last = results
        if text is not None:
            told += [one["text"] for one in json.loads(text)["new_decisions"]]
    mid = examples.decisions_of(examples.midrun())
    later = examples.decisions_of(examples.finished())[len(mid) :]
    assert told == [describe(decision) for decision in (*mid, *later)]


def test_the_command_prints_plain_lines_when_piped(run):
    result = CliRunner().invoke(monitor, [str(run)], catch_exceptions=False)
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert lines[0].split()[1] == "start"
    assert lines[-1].split()[1:3] == ["end", "resolved"]


def test_the_command_says_how_to_continue_a_dead_run(tmp_path):
    runs.make_run(tmp_path / "forest", rounds=3)
    result = CliRunner().invoke(monitor, [str(tmp_path / "forest")], catch_exceptions=False)
    assert f"adaptive-eval run {tmp_path / 'forest'}" in result.stderr
    assert " end interrupted " in result.stdout


def test_the_commands_refuse_what_is_no_run(tmp_path):
    for command in (monitor, report):
        with pytest.raises(RunNotFound):
            CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)
