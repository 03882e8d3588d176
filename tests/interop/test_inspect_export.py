"""A run of ours as logs of Inspect: its own reader opens them, and reads the same scores."""

import json
from pathlib import Path
from statistics import fmean

import pytest

from adaptive_eval import evaluate
from adaptive_eval.build.describe import describe_run
from adaptive_eval.interop.export_logs import write_inspect, write_lm_eval
from adaptive_eval.interop.found import ReadingOptions
from adaptive_eval.interop.import_run import import_logs
from adaptive_eval.interop.recorded_files import open_logs, read_recorded
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import STEPS, ScoreRange

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def run(inspect_logs, tmp_path_factory):
    place = tmp_path_factory.mktemp("export") / "run"
    import_logs(open_logs([Path(log.location) for log in inspect_logs], ReadingOptions()), place)
    return place


def test_the_logs_open_with_inspects_reader_and_say_the_same(run, inspect_logs, tmp_path):
    from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

    with RunReader(run) as reader:
        paths = write_inspect(reader, describe_run(reader), tmp_path / "logs")
    accuracy = {log.eval.model: log.results.scores[0].metrics["accuracy"].value for log in inspect_logs}
    for path in paths:
        log = read_eval_log(str(path))
        assert log.status == "success"
        assert log.results.scores[0].metrics["mean"].value == pytest.approx(accuracy[log.eval.model])
        assert len(read_eval_log_sample_summaries(str(path))) == 60
        first = log.samples[0]
        again = read_eval_log_sample(str(path), first.id, epoch=3)
        assert "boxed" in again.output.completion
    assert {read_eval_log(str(path), header_only=True).eval.model for path in paths} == set(accuracy)


def test_a_log_of_graded_answers_says_how_each_ended_and_the_mean_of_questions(inspect, tmp_path):
    rows, means = [], {}
    for place in range(12):  # three questions of two, four and six trials
        question = f"q{(place > 1) + (place > 5)}"
        row = {"model": "a", "question": question, "category": int(place % 4 > 0), "text": f"answer {place}"}
        if place % 5 == 3:
            row |= {"category": None, "text": None, "missing": f"lost {place}"}
        else:
            means.setdefault(question, []).append((-1, 3)[row["category"]])
        rows.append({**row, "truncated": place % 3 == 1})
    table = tmp_path / "rows.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    import_logs(open_logs([table], ReadingOptions()), tmp_path / "run", weights=(-1.0, 3.0))
    with RunReader(tmp_path / "run") as reader:
        (path,) = write_inspect(reader, describe_run(reader), tmp_path / "logs")
    log = inspect.log.read_eval_log(str(path))
    mean = log.results.scores[0].metrics["mean"].value
    assert mean == pytest.approx(fmean(map(fmean, means.values())))
    assert {one.error.message for one in log.samples if one.error} >= {"lost 3", "lost 8"}
    answered = {one.output.completion: one for one in log.samples if one.error is None}
    for row in rows:
        if row["text"] is not None:
            sample = answered.pop(row["text"])
            assert sample.output.stop_reason == ("max_tokens" if row["truncated"] else "stop")
            assert sample.scores["adaptive_eval"].value == (-1, 3)[row["category"]]
    assert answered == {}
    again = read_recorded([path], ReadingOptions(range=ScoreRange((-1, 3))))  # in random order
    for place, (_, question) in enumerate(again.questions):
        found = [step for step in again.categories[0, place].tolist() if step >= 0]
        assert sorted(found) == sorted(STEPS * (value == 3) for value in means[question])


def test_each_of_several_checks_is_a_score_of_its_own_and_is_not_read_as_the_verdict(inspect, tmp_path):
    def brief(answer):
        return len(answer) < 6

    rows = [{"id": f"q{n}", "input": f"{n} + {n}?", "target": str(2 * n)} for n in range(12)]
    models = {
        "long": lambda prompt: f"It is {2 * int(prompt.split()[0])}.",
        "brief": lambda prompt: str(2 * int(prompt.split()[0])),
    }
    scorer = ["numeric", brief]
    evaluate(models, rows, "budget", scorer=scorer, budget={"trials": 48}, out=tmp_path / "run")
    with RunReader(tmp_path / "run") as reader:
        paths = write_inspect(reader, describe_run(reader), tmp_path / "logs")
    means = {}
    for path in paths:
        log = inspect.log.read_eval_log(str(path))
        found = [(one.name, round(one.metrics["mean"].value, 9)) for one in log.results.scores]
        means[log.eval.model] = found
        assert all(
            one.scores["check_brief"].value == one.scores["adaptive_eval"].value for one in log.samples
        )
    names = ("adaptive_eval", "check_numeric", "check_brief")
    assert {model: tuple(found) for model, found in means.items()} == {
        "long": tuple(zip(names, (0.0, 1.0, 0.0), strict=True)),
        "brief": tuple(zip(names, (1.0, 1.0, 1.0), strict=True)),
    }
    again = read_recorded(paths, ReadingOptions())
    right = {model: set(again.categories[place].ravel()) for place, model in enumerate(again.models)}
    assert {model: max(found) for model, found in right.items()} == {"long": 0, "brief": 1}
    assert read_recorded(paths, ReadingOptions(metric="check_numeric")).categories.max() == 1


def test_samples_for_lm_eval_load_with_datasets(run, tmp_path):
    datasets = pytest.importorskip("datasets", reason="the harness brings it")
    with RunReader(run) as reader:
        paths = write_lm_eval(reader, describe_run(reader), tmp_path / "out")
    samples = [str(path) for path in paths if path.suffix == ".jsonl"]
    loaded = datasets.load_dataset(
        "json", data_files=samples, split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded.num_rows == 40
    assert {len(texts[0]) for texts in loaded["resps"]} == {3}
