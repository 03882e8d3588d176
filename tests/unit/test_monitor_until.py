"""``monitor --until``: a shell script waits on a run and learns from the exit code how it ended."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import standings_examples as examples

from adaptive_eval.cli import main
from adaptive_eval.core.results import StopVerdict
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.reading import Attachment


def exit_code(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["monitor", *map(str, arguments)])
    return ended.value.code


@pytest.fixture
def run_that(tmp_path):
    """Return a function that makes a run that ended in a given way."""

    def made(reason):
        with RunWriter.create(tmp_path / "run", meta={}) as writer:
            stop = StopVerdict(reason, "because") if reason else None
            results = replace(examples.midrun(), stop=stop)
            writer.snapshot(replace(examples.snapshot_of(results), at=1.0))
        return tmp_path / "run"

    return made


@pytest.mark.parametrize(
    ("reason", "code"), [("resolved", 0), ("budget", 3), ("max_passes", 3), ("partial", 3), ("endpoints", 4)]
)
@pytest.mark.parametrize("until", ["resolved", "stopped"])
def test_the_exit_code_is_that_of_the_run(run_that, until, reason, code):
    assert exit_code(run_that(reason), "--until", until, "--display", "none") == code


@pytest.mark.parametrize("reason", ["interrupted", None])
def test_an_interrupted_or_killed_run_counts_as_stopped(run_that, capsys, reason):
    assert exit_code(run_that(reason), "--until", "stopped", "--json") == 130
    assert json.loads(capsys.readouterr().out)["state"] == "interrupted"


def test_without_until_watching_is_always_a_success(run_that):
    assert exit_code(run_that("budget"), "--display", "none") == 0


def test_an_interruption_is_waited_out_where_the_goal_is_wanted(tmp_path):
    moments = iter(
        [
            replace(examples.midrun(), stop=StopVerdict("interrupted", "ctrl-c")),
            examples.midrun(),
            examples.finished(),
        ]
    )
    with RunWriter.create(tmp_path / "run", meta={}) as writer:

        def go_on(seconds):
            """Interrupt the run, resume it, let it reach its goal."""
            writer.snapshot(examples.snapshot_of(next(moments), 10.0 * writer_time()))
            writer.commit()

        writer_time = iter(range(1, 10)).__next__
        with RunReader(tmp_path / "run") as reader:
            attachment = Attachment(reader, lambda: examples.STARTED, lambda directory, age: True)
            states = [view.state for view in attachment.follow(go_on, wait_out=True)]
    assert states == ["waiting", "interrupted", "running", "stopped"]
