"""Answers that a judge is shown again in each pass: requests, costs, and a judge that changes."""

import json
from collections import Counter

import pytest
from command_line import command, finished, mimic_config, started, stored_trials, write_config
from scripted_chat import answer_is_right, scripted_chat

from adaptive_eval.build.anchors import Anchors
from adaptive_eval.build.assembly import build, config_of_run
from adaptive_eval.options.scorers import JudgeScorerConfig
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import ANCHOR

QUESTIONS = 40


@pytest.fixture
def judge():
    with scripted_chat() as make:
        yield make


def config_of(server, trials, **options):
    mimics = {"sage": {"mean": 0.6}, "novice": {"mean": 0.6}}
    config = mimic_config(mimics=mimics, budget={"trials": trials}, goal="budget")
    (task,) = config["tasks"]
    task["limit"] = QUESTIONS
    task["scorer"] = {"kind": "judge", "endpoint": server.url, "model": "wise", "second_votes": 0, **options}
    return config


@pytest.mark.parametrize(
    ("options", "questions", "number"),
    [
        ({}, 20, 4),  # of 40 cells one in ten
        ({}, 400, 30),
        ({"labels": "l.jsonl"}, 10, 20),  # held against labels it is shown all of a small board
        ({"labels": "l.jsonl"}, 20, 30),
        ({"anchors": 7, "labels": "l.jsonl"}, 20, 7),
        ({"anchors": 500}, 20, 40),
    ],
)
def test_how_many_answers_a_judge_is_shown_again(options, questions, number):
    judge = JudgeScorerConfig(kind="judge", endpoint="http://127.0.0.1:9/v1", model="wise", **options)
    places = {f"q{place}": place for place in range(questions)}
    assert Anchors(judge, {"a": 0, "b": 1}, places).number == number


def verdict(word):
    return json.dumps({"reason": "because", "verdict": word})


def fair(body):
    return verdict("correct" if answer_is_right(body) else "wrong")


def signals_of(run):
    with RunReader(run) as reader:
        return [record.score.signals for record in reader.trials() if record.score is not None]


def anchors_in(run):
    """Return how often each anchor was judged."""
    names = [name for signals in signals_of(run) for name in signals if name.startswith(ANCHOR)]
    return Counter(name.removeprefix(ANCHOR).split("_")[0] for name in names)


@pytest.mark.slow
def test_thirty_answers_are_judged_in_every_pass_and_paid_for(judge, tmp_path):
    server = judge(fair)
    run = finished(tmp_path, config_of(server, 3 * 2 * QUESTIONS, anchors=30))
    times = anchors_in(run)
    assert len(times) == 30
    assert set(times.values()) <= {2, 3}  # a few second trials come before their anchor is there
    assert len(server.asked) == sum(one["judge_requests"] for one in signals_of(run))
    assert sum(times.values()) - 30 == len(server.asked) - 3 * 2 * QUESTIONS
    assert not json.loads((run / "report.json").read_text())["changes"]


@pytest.mark.slow
def test_a_judge_that_changes_is_told_from_models_that_do_and_again_when_the_run_continues(judge, tmp_path):
    passes = 2 * QUESTIONS

    def drifting(body):
        return verdict("correct") if len(server.asked) > 5 * (passes + 30) else fair(body)

    server = judge(drifting)
    run = finished(tmp_path, config_of(server, 5 * passes, anchors=30))
    kept = anchors_in(run)
    command("run", run, "-o", f"budget.trials={8 * passes}", code=0)
    assert all(times >= kept[name] for name, times in anchors_in(run).items())
    assert len(anchors_in(run)) == 30
    report = json.loads((run / "report.json").read_text())
    (change,) = [one for one in report["changes"] if one["model"].startswith("judge of")]
    assert change["before"] < change["after"]
    assert "warning/judge-changed" in json.dumps(report)
    with RunReader(run) as reader:  # the state is a fold over the log
        built = build(config_of_run(reader))
        watches = built.watches()
        built.rebuild(built.session(), reader, watches)
    assert [one.model for one in watches.judges.changes] == [change["model"]]
    command("validate", run, code=0)


@pytest.mark.slow
def test_anchors_go_on_where_a_killed_run_stopped(judge, tmp_path):
    passes = 2 * QUESTIONS
    config = config_of(judge(fair), 5 * passes, anchors=30)
    config["models"] = [{**model, "concurrency": 4} for model in config["models"]]
    file, run = write_config(tmp_path, config), tmp_path / "run"
    for stored in (passes // 2, 2 * passes, 3 * passes):
        with started("run", file, "--out", run, "--display", "none", cwd=tmp_path) as running:
            running.until_stored(run, stored)
        assert stored <= stored_trials(run) < 5 * passes  # it was killed in its midst
    command("run", run, "--display", "none", code=0)
    times = anchors_in(run)
    assert len(times) == 30
    with RunReader(run) as reader:
        trials = Counter((one.request.key.model, one.request.question) for one in reader.trials())
    # once in each pass that has begun; a few second trials come before their anchor is there
    assert min(trials.values()) - 1 <= min(times.values()) <= max(times.values()) <= max(trials.values())
    assert not json.loads((run / "report.json").read_text())["changes"]
    command("validate", run, code=0)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "number"), [({"anchors": 0}, 0), ({}, 2 * QUESTIONS // 10)])
def test_without_labels_a_tenth_of_the_answers_at_most_is_judged_again(judge, tmp_path, options, number):
    server = judge(fair)
    run = finished(tmp_path, config_of(server, 2 * 2 * QUESTIONS, **options))
    assert len(anchors_in(run)) == number
    assert len(server.asked) <= 2 * 2 * QUESTIONS + number


@pytest.mark.slow
def test_a_judge_among_checks_is_watched(judge, tmp_path):
    server = judge(lambda body: verdict("wrong"))
    config = config_of(server, 3 * 2 * QUESTIONS, anchors=30)
    (task,) = config["tasks"]
    task["scorer"] = {"kind": "checks", "by": "any", "parts": {"wise": task["scorer"], "number": "numeric"}}
    run = finished(tmp_path, config)
    times = anchors_in(run)
    assert len(times) == 30
    assert set(times.values()) <= {2, 3}
    assert sum(times.values()) - 30 == len(server.asked) - 3 * 2 * QUESTIONS
    assert {name[-2:] for one in signals_of(run) for name in one if name.startswith(ANCHOR)} == {"_0"}
