"""The files of reports and leaderboards, and results of earlier runs in them."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import run_examples as runs
import standings_examples as examples
from run_examples import summary_of

from adaptive_eval.core.session import Session
from adaptive_eval.errors import RunFileError, UsageError
from adaptive_eval.run.trackers import figures_of
from adaptive_eval.store.reader import RunReader
from adaptive_eval.views import report_columns
from adaptive_eval.views.answer_list import samples_in_file
from adaptive_eval.views.files import runs_in, write_files, write_leaderboard, write_reports
from adaptive_eval.views.metrics import RunMetrics
from adaptive_eval.views.page import to_html, to_markdown
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.report_json import JsonLines, report_data, to_json

# The files of a report: a stable JSON schema, written whole or not at all.


DOCS = Path(__file__).parents[2] / "docs" / "report-schema.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the directory of a finished run."""
    directory = tmp_path_factory.mktemp("files") / "forest"
    runs.make_run(directory, missing=0.03, truncated=0.05, trials=5_000, meta={"base_dir": "/home/someone"})
    return directory


@pytest.fixture(scope="module")
def data(run):
    """Return the JSON report as parsed data."""
    return json.loads(to_json(runs.read_summary(run)))


def test_what_is_left_out_is_counted(run, data, monkeypatch):
    monkeypatch.setattr(report_columns, "MOST_PAIRS", 3)
    monkeypatch.setattr(report_columns, "MOST_DECISIONS", 2)
    short = report_data(runs.read_summary(run))
    for name, most in (("pairs", 3), ("decisions", 2)):
        assert (len(short[name]), short[f"{name}_left_out"]) == (most, len(data[name]) - most)


def test_a_report_fits_the_schema_that_the_command_prints(data):
    assert (data["schema"], data["version"]) == ("adaptive-eval/report", 1)
    schema = json.loads(runs.command("report", "--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    fits = jsonschema.Draft202012Validator(schema)
    fits.validate(data)
    for spoiled in ({"another": 1}, {"models": [{**data["models"][0], "score": "high"}]}):
        assert not fits.is_valid({**data, **spoiled}), "it says the type of each figure, and lists them all"
    assert (data["meta"]["config"], data["meta"]["seed"]) == (runs.CONFIG, "7")
    assert "base_dir" not in data["meta"], "it is a private path"


def test_a_figure_has_one_key_in_every_output(run, data):
    """Keys of one thing with one value have one name: in the report, the monitor, tables and metrics."""
    summary = runs.read_summary(run)
    line = json.loads(JsonLines().line(summary))["results"]
    tables = {name: run / "report" / f"{name}.csv" for name in ("models", "pairs")}
    write_reports(run)
    for table, path in tables.items():
        (row, *_), (other, *_) = data[table], line[table]
        assert row.keys() & other.keys() == other.keys(), "the report has all that a line of the monitor has"
        differing = {key for key in other if row[key] != other[key]} - {"note", "waits_for"}
        assert differing == set()
        assert set(path.read_text("utf-8").splitlines()[0].split(",")) <= row.keys()
    metrics = RunMetrics("run")
    metrics.update(0.0, 0.0, summary.results, ())
    of_models = [one for one in metrics.collect() if one.samples and [*one.samples[0].labels] == ["model"]]
    assert {one.name.removeprefix("adaptive_eval_") for one in of_models} <= data["models"][0].keys()
    tracked = {key.split("/")[1] for key in figures_of(summary.results) if key.startswith("oak/")}
    assert tracked <= data["models"][0].keys()


def keys_of(value):
    """Return every key of nested data."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_every_key_of_reports_and_monitor_lines_is_documented(data):
    documented = set(re.findall(r"`(\w+)`", DOCS.read_text(encoding="utf-8")))
    free = {"meta", "evidence", "errors", "missing_reasons"}  # their keys are data
    structure = keys_of({key: value for key, value in data.items() if key != "meta"})
    for parent in (*data["models"], *data["decisions"]):
        structure -= {key for name in free if isinstance(parent.get(name), dict) for key in parent[name]}
    assert structure - documented == set()
    line = json.loads(JsonLines().line(examples.view_of(examples.midrun())))
    assert set(line) - documented == set()
    assert keys_of([line["open_pairs"], line["budgets"]]) - documented == set()
    assert {key for health in line["endpoints"] for key in health} - documented == set()


FILES = [
    "report.html", "report.json", "report.md", "report/bayes.md", "report/bayes.tex", "report/decisions.csv",
    "report/models.csv",
    "report/pairs.csv", "report/questions.csv",
]  # fmt: skip


def test_reports_are_written_beside_the_run_or_elsewhere(run, tmp_path):
    beside = write_reports(run)
    places = [run / name for name in ("report.html", "report.md", "report.json", "report")]
    assert [beside.html, beside.markdown, beside.json, beside.tables] == places
    place = tmp_path / "new" / "place"
    assert write_reports(run, place).html == place / "report.html"
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*.*")) == FILES
    for name in FILES:
        assert (place / name).read_bytes() == (run / name).read_bytes()


def test_a_report_that_cannot_be_written_leaves_the_old_one(run, tmp_path):
    place = tmp_path / "reports"
    (place / "report.json").mkdir(parents=True)
    with pytest.raises(RunFileError, match=r"cannot write the report to .*reports: .*--output"):
        write_reports(run, place)
    with pytest.raises(UnicodeEncodeError):
        write_files(place, {"report.md": "half a character: \ud83d"})
    assert "# forest" in (place / "report.md").read_text("utf-8")
    assert [path.name for path in place.iterdir() if path.name.startswith(".")] == []


# Several runs on one page, and the answers that a report quotes.


SCORED = '{"trees": {"scorer": {"kind": "exact"}}}'
META = {"identity": '{"tasks": {"trees": {"hash": "1"}}}', "scoring": SCORED}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of four runs, two of them scored or meant otherwise."""
    place = tmp_path_factory.mktemp("runs")
    runs.make_run(place / "one", meta=META)
    shutil.copytree(place / "one", place / "two")
    runs.make_run(place / "three", meta={**META, "scoring": SCORED.replace("exact", "regex")})
    runs.make_run(place / "four", meta={**META, "config": "stopping: {target: population}"})
    return place


def test_runs_that_ask_the_same_share_a_board_and_each_has_its_report(folder, tmp_path):
    index = write_leaderboard(runs_in([folder]), tmp_path / "site")
    boards = json.loads((tmp_path / "site" / "index.json").read_text(encoding="utf-8"))["boards"]
    found = {frozenset(line["run"] for line in board["models"]) for board in boards}
    assert found == {frozenset({"one", "two"}), frozenset({"three"}), frozenset({"four"})}
    assert len({board["tasks"] for board in boards}) == 3, "tables of the same tasks have names of their own"
    for board in boards:
        scores = [line["score"] for line in board["models"]]
        assert scores == sorted(scores, reverse=True)
    text = index.read_text(encoding="utf-8")
    for name in ("one", "two", "three", "four"):
        assert f'href="{name}/report.html"' in text
        assert (tmp_path / "site" / name / "report.html").exists()
    assert "Earlier reports" not in text
    assert '<th scope="col"><bdi>answers' not in text, "a column says something of a model of the table"
    assert "scoring.trees.scorer.kind was &#39;exact&#39; and is now &#39;regex&#39;" in text


def test_a_model_without_answers_is_the_last_of_a_board_of_any_scale(tmp_path):
    coins, spec = runs.Coins(runs.COINS), runs.spec_of(runs.COINS, trials=80)
    spec = replace(spec, tasks=(replace(spec.tasks[0], weights=(-9.0, -4.0)),))

    def answer(request, at, **late):
        record = coins.answer(request, at, **late)
        lost = {"completion": None, "score": None, "missing": "timeout"}
        return replace(record, **lost) if request.key.model == "oak" else record

    runs.store_run(tmp_path / "low", {**META, "name": "low"}, Session(spec), answer)
    index = write_leaderboard([tmp_path / "low"], tmp_path)
    assert '<th scope="col"><bdi>answers' in index.read_text("utf-8"), "few answers are marked on phones too"
    (board,) = json.loads((tmp_path / "index.json").read_text("utf-8"))["boards"]
    *lines, last = board["models"]
    assert (last["model"], last["score"]) == ("oak", None)
    assert -4 >= lines[0]["score"] > lines[-1]["score"] >= -9


def test_a_report_of_another_run_of_one_name_is_kept_with_its_date(folder, tmp_path):
    write_leaderboard([folder / "one"], tmp_path)
    before = (tmp_path / "one" / "report.json").read_bytes()
    write_leaderboard([folder / "one"], tmp_path)
    assert not list(tmp_path.glob("one@*")), "the same run is written in place"
    runs.make_run(tmp_path / "new" / "one", meta={**META, "started_at": "1763000000.0"})
    for _ in range(2):
        text = write_leaderboard([tmp_path / "new" / "one"], tmp_path).read_text(encoding="utf-8")
    (kept,) = tmp_path.glob("one@*")
    assert (kept / "report.json").read_bytes() == before
    assert f'href="{kept.name.replace("@", "%40")}/report.html"' in text.partition("Earlier reports")[2]
    with pytest.raises(UsageError, match="holds another run"):
        write_leaderboard([folder / "one"], tmp_path / "new")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "written"),
    [(["one"], "report.html"), (["one", "two"], "comparison.html"), (["one", "two", "three"], "index.html"),
     (["."], "index.html"), (["one", "--leaderboard"], "index.html")],
)  # fmt: skip
def test_the_number_of_runs_says_what_is_written(folder, tmp_path, monkeypatch, arguments, written):
    monkeypatch.chdir(folder)
    assert str(tmp_path / "out" / written) in runs.printed("report", *arguments, "--output", tmp_path / "out")
    assert Path(tmp_path / "out" / written).exists()


def test_answers_in_the_file_are_chosen_by_model_result_and_whom_they_beat(tmp_path):
    runs.make_run(tmp_path / "forest", missing=0.03)
    with RunReader(tmp_path / "forest") as reader:
        found = summarise(reader, examples_with=lambda trial: "").details.examples
    _, samples = samples_in_file(found, {}, 9_999)
    every = [one for _, own in found.models for one in own]
    every += [one for question in found.apart for one in question.answers] + [*found.further]
    records = {one.record.request.key: one.record for one in every}
    model, _, beaten = samples.choices
    assert [one.name for one in samples.choices] == ["model", "result", "beaten"]
    of_model, of_beaten = ({words: key for key, words in one.options} for one in (model, beaten))
    right = {key: one.score.category > 0 for key, one in records.items() if one.score is not None}
    wins = 0
    for listed, (key, record) in zip(samples.listed, records.items(), strict=True):
        beats = {
            of_beaten[other.model]
            for other, one in records.items()
            if (right.get(key), right.get(other)) == (True, False)
            and (one.request.question, one.request.repeat) == (record.request.question, record.request.repeat)
        }
        result = {True: "right", False: "wrong", None: "missing"}[right.get(key)]
        assert set(listed.classes.split()) == {of_model[key.model], "t0", result, *beats}
        wins += len(beats)
    assert wins > 2


def test_each_model_has_a_right_and_a_wrong_answer_and_hard_questions_have_one_of_all(folder):
    with RunReader(folder / "one") as reader:
        found = summarise(reader, examples_with=lambda trial: f"expected of {trial.request.question}")
    assert found.details.examples is not None
    ranked = [line.model for line in found.results.models]
    assert [model for model, _ in found.details.examples.models] == ranked
    for model, shown in found.details.examples.models:
        assert len({one.kind for one in shown}) == len(shown) >= 1
        requests = [one.record.request for one in shown]
        assert {request.key.model for request in requests} == {model}
        assert [one.expected for one in shown] == [f"expected of {one.question}" for one in requests]
    assert found.details.examples.apart
    for question in found.details.examples.apart:
        assert {one.record.request.question for one in question.answers} == {question.question}


# What the reports say of earlier results: which are in, from where, and that no verdict rests on them.


SOURCE = "2 earlier trials a question of oak, from runs/<b>first</b>"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return summary_of(
        tmp_path_factory.mktemp("run") / "forest",
        meta={"previous": '{"settings": {"references": [], "prior": null}, "references": [], "prior": null}'},
    )


@pytest.fixture(scope="module")
def primed(plain):
    return replace(plain, results=replace(plain.results, prior=SOURCE))


def test_every_report_says_what_is_in(primed):
    for text in (to_markdown(primed), to_html(primed)):
        assert "starts from previous runs; no verdict does: 2 earlier trials a question of oak" in text
        assert "<b>first</b>" not in text
    data = report_data(primed)
    assert data["prior"] == SOURCE


def test_and_nothing_where_there_is_none(plain):
    for text in (to_markdown(plain), to_html(plain)):
        assert "earlier trials" not in text
    assert "previous" not in plain.details.meta, "its table stays in the run file"
    assert report_data(plain)["prior"] is None
