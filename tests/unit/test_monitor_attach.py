"""Watching a run from outside: what is seen, when it ends, and what its exit code says."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
import run_examples as runs
import standings_examples as examples
from standings_examples import HEADER, view_of

from adaptive_eval.cli import main
from adaptive_eval.core.results import BudgetLine, StopVerdict, to_json
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SnapshotRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.reading import Attachment, is_running
from adaptive_eval.views.report_json import JsonLines
from adaptive_eval.views.summary import budget_use, evidence_progress, summary_at

# Watching a run from outside: what is seen, when it ends, and what is left alone.


def attachment_of(reader, *, now=runs.STARTED + 1e6, running=lambda directory, age: False):
    return Attachment(reader, lambda: now, running)


def test_a_finished_run_is_shown_once(tmp_path):
    runs.make_run(tmp_path / "forest")
    slept = []
    with RunReader(tmp_path / "forest") as reader:
        views = list(attachment_of(reader).follow(slept.append))
    assert [view.state for view in views] == ["stopped"]
    assert views[0].name == "forest"
    assert views[0].started == runs.STARTED
    assert views[0].decisions
    assert slept == []


def followed(directory, moments, **options):
    """Return what a watcher sees of a run that advances by a moment whenever he sleeps."""
    left = iter(enumerate(moments, start=1))
    with RunWriter.create(directory, meta={"name": "forest"}) as writer:

        def go_on(seconds):
            number, results = next(left)
            writer.snapshot(examples.snapshot_of(results, 10.0 * number))
            for decision in examples.decisions_of(results)[number - 1 : number]:
                writer.decision(0.0, decision.trials, asdict(decision))
            writer.commit()

        with RunReader(directory) as reader:
            return list(attachment_of(reader, running=lambda directory, age: True).follow(go_on, **options))


def test_a_live_run_is_followed_until_it_stops(tmp_path):
    views = followed(tmp_path / "forest", (examples.midrun(), examples.midrun(), examples.finished()))
    assert [view.state for view in views] == ["waiting", "running", "running", "stopped"]
    assert views[2].rates.trials == 0.0, "two snapshots of the same results"
    assert [len(view.decisions) for view in views] == [0, 1, 2, 3]


def test_a_run_that_is_looked_at_once_has_the_rate_of_its_last_minutes(tmp_path):
    with RunWriter.create(tmp_path / "forest", meta={"name": "forest"}) as writer:
        for at, results in ((10.0, examples.midrun()), (20.0, examples.finished())):
            writer.snapshot(examples.snapshot_of(results, at))
        writer.commit()
    with RunReader(tmp_path / "forest") as reader:
        rate = attachment_of(reader).summary().rates.trials
    asked = [
        sum(line.trials for line in results.models) for results in (examples.midrun(), examples.finished())
    ]
    assert rate == pytest.approx((asked[1] - asked[0]) / 10.0)


def test_an_interruption_is_waited_out_where_the_goal_is_wanted(tmp_path):
    interrupted = replace(examples.midrun(), stop=StopVerdict("interrupted", "ctrl-c"))
    moments = (interrupted, examples.midrun(), examples.finished())
    views = followed(tmp_path / "run", moments, wait_out=True)
    assert [view.state for view in views] == ["waiting", "interrupted", "running", "stopped"]


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


HOST_ELSEWHERE = '{"pid": 1, "host": "elsewhere.invalid", "since": 0}'
BROKEN = ["", "{", "[]", '{"pid": "x", "host": "a"}', '{"host": "a"}', "null"]


@pytest.mark.parametrize("note", [HOST_ELSEWHERE, *BROKEN])
def test_a_run_on_another_host_is_judged_by_its_snapshots_and_a_broken_note_is_no_process(tmp_path, note):
    (tmp_path / "run.lock").write_text(note)
    assert is_running(tmp_path, 60.0) == (note == HOST_ELSEWHERE)
    assert not is_running(tmp_path, 600.0)


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


def test_the_command_prints_plain_lines_when_piped_and_says_how_to_continue_a_dead_run(tmp_path):
    runs.make_run(tmp_path / "forest", rounds=3)
    result = runs.command("monitor", tmp_path / "forest", code=0)
    assert f"adaptive-eval run {tmp_path / 'forest'}" in result.stderr
    first, *_, last = result.stdout.splitlines()
    assert (first.split()[1], last.split()[1:3]) == ("start", ["end", "interrupted"])


# ``monitor --until``: a shell script waits on a run and learns from the exit code how it ended.


def exit_code(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["monitor", *map(str, arguments)])
    return ended.value.code


def run_that(folder, reason):
    """Return a run that ended in a given way."""
    with RunWriter.create(folder / "run", meta={}) as writer:
        results = replace(examples.midrun(), stop=reason and StopVerdict(reason, "because"))
        writer.snapshot(replace(examples.snapshot_of(results), at=1.0))
    return folder / "run"


@pytest.mark.parametrize(
    ("reason", "code"), [("resolved", 0), ("budget", 3), ("max_passes", 3), ("partial", 3), ("endpoints", 4)]
)
@pytest.mark.parametrize("until", ["resolved", "stopped"])
def test_the_exit_code_is_that_of_the_run(tmp_path, until, reason, code):
    run = run_that(tmp_path, reason)
    assert exit_code(run, "--until", until, "--display", "none") == code
    assert exit_code(run, "--display", "none") == 0


@pytest.mark.parametrize("reason", ["interrupted", None])
def test_an_interrupted_or_killed_run_counts_as_stopped(tmp_path, capsys, reason):
    assert exit_code(run_that(tmp_path, reason), "--until", "stopped", "--json") == 130
    assert json.loads(capsys.readouterr().out)["state"] == "interrupted"


# From a stored snapshot to the view of a run.


@pytest.mark.parametrize("moment", examples.MOMENTS)
def test_every_moment_has_a_view_after_a_trip_through_json(moment):
    results = examples.MOMENTS[moment]()
    stored = json.loads(json.dumps(to_json(results)))
    view = summary_at(HEADER, SnapshotRecord(1.0, 2.0, results.trials, stored), ())
    assert sorted(view.results.models, key=repr) == sorted(results.models, key=repr)
    assert len(view.open_pairs) + len(view.decided_pairs) == len(results.pairs)


def test_open_pairs_come_nearest_to_a_verdict_first():
    view = view_of(examples.midrun())
    found = [(row.pair.first, row.pair.second) for row in view.open_pairs]
    assert found == [("oak", "ash"), ("oak", "elm"), ("elm", "ash")]
    nearness = [row.nearness for row in view.open_pairs]
    assert nearness == sorted(nearness, reverse=True)


@pytest.mark.parametrize(
    ("evidence", "threshold", "progress"),
    [
        (0.0, 5.0, 0.0), (-3.0, 5.0, 0.0), (2.5, 5.0, 0.5), (5.0, 5.0, 1.0), (1.0, float("inf"), 0.0),
        (0.5, 0.0, 1.0), (float("nan"), 5.0, 0.0),
    ],
)  # fmt: skip
def test_progress_of_the_evidence_is_clipped(evidence, threshold, progress):
    assert evidence_progress(evidence, threshold) == progress


def test_rates_are_taken_between_two_snapshots():
    then, now = examples.example(examples.QUICKSTART, 10), examples.example(examples.QUICKSTART, 40)
    own = [
        BudgetLine("usd", spent, 0, 99, "model", name, presumed=spent / 2)
        for name, spent in (("oak", 4.0), ("elm", 7.0))
    ]
    then = replace(then, budgets=(*then.budgets, *own))
    now = replace(now, budgets=(*now.budgets, *(replace(line, spent=10.0) for line in own)))
    earlier = examples.snapshot_of(then, 100.0)
    view = view_of(now, 130.0, previous=earlier)
    assert view.rates.trials == pytest.approx((200 - 50) / 30)
    assert view.rates.tokens == pytest.approx(470 * 150 / 30)
    assert [use.rate for use in view.rates.budgets[-2:]] == pytest.approx([0.2, 0.1])
    trials = view.rates.budgets[0]
    assert trials.rate == pytest.approx(5.0)
    assert trials.seconds_left == pytest.approx((20_000 - 200) / 5.0)


def test_a_budget_without_a_limit_or_a_rate_has_no_end():
    assert budget_use(BudgetLine("trials", 10, 0, None), 0.0, 5.0).seconds_left is None
    assert budget_use(BudgetLine("trials", 0, 0, 100), 0.0, 5.0).seconds_left is None
    assert budget_use(BudgetLine("usd", 3.0, 0, 2.0), 0.0, 6.0).seconds_left == 0.0


def test_a_run_whose_process_ended_before_its_first_results_is_not_waited_for(tmp_path):
    RunWriter.create(tmp_path / "run", meta={"name": "run"}).close()
    slept = []
    with RunReader(tmp_path / "run") as reader:
        views = list(attachment_of(reader, running=lambda directory, age: False).follow(slept.append))
    assert ([view.state for view in views], slept) == (["waiting"], [])
