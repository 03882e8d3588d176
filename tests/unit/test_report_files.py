"""The files of a report: a stable JSON schema, written whole or not at all."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import run_examples as runs
import standings_examples as examples

from adaptive_eval.errors import RunFileError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.files import write_reports
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.report_json import JsonLines, to_json

DOCS = Path(__file__).parents[2] / "docs" / "report-schema.md"

RUN_KEYS = "name started_at updated_at elapsed_seconds finished stop"
COUNT_KEYS = "models questions trials stored uncounted pairs separated tied measured open"
MODEL_KEYS = (
    "model state waits_for note rank rank_low rank_high score score_low score_high bayes_mu bayes_sigma "
    "early_rank transfer_mu transfer_sigma trials issued questions missing copies missing_reasons "
    "score_if_missing_wrong score_if_missing_right truncated no_answer after_stop categories errors "
    "prompt_tokens completion_tokens usd latency_p50_seconds latency_p95_seconds"
)
PAIR_KEYS = (
    "needed first "
    "second verdict kind words difference difference_low difference_high evidence threshold tie_margin "
    "trials_each questions decided_at exact population_low population_high"
)
TOP_KEYS = (
    "schema version run verdict goal rule in_rounds counts models tasks pairs pairs_left_out ties decisions "
    "decisions_left_out budgets saving "
    "forecast promises warnings warning_codes changes prior rankings questions meta"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the directory of a finished run."""
    directory = tmp_path_factory.mktemp("files") / "forest"
    runs.make_run(directory, missing=0.03, truncated=0.05, trials=5_000, meta={"base_dir": "/home/someone"})
    return directory


@pytest.fixture(scope="module")
def data(run):
    """Return the JSON report as parsed data."""
    with RunReader(run) as reader:
        return json.loads(to_json(summarise(reader)))


def test_the_schema_is_stable(data):
    assert (data["schema"], data["version"]) == ("adaptive-eval/report", 1)
    assert keys(data) == TOP_KEYS
    assert {keys(model) for model in data["models"]} == {MODEL_KEYS}
    assert {keys(pair) for pair in data["pairs"]} == {PAIR_KEYS}
    assert keys(data["run"]) == RUN_KEYS
    assert keys(data["rule"]) == "name confidence family equivalence target package ties"
    assert keys(data["counts"]) == COUNT_KEYS
    assert {keys(one) for one in data["decisions"]} == {"at trials kind models verdict step text evidence"}
    assert {keys(one) for one in data["budgets"]} == {"name spent reserved limit scope owner presumed"}
    assert keys(data["saving"]) == "issued uniform fixed"
    assert {keys(one) for one in data["questions"]} == {"task question trials correct spread by_model"}


def keys(mapping):
    """Return the keys of a mapping in their order."""
    return " ".join(mapping)


def keys_of(value):
    """Return every key of nested data."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_every_key_is_documented(data):
    documented = set(re.findall(r"`(\w+)`", DOCS.read_text(encoding="utf-8")))
    free = {"meta", "evidence", "errors", "missing_reasons"}  # their keys are data
    structure = keys_of({key: value for key, value in data.items() if key != "meta"})
    for parent in (*data["models"], *data["decisions"]):
        structure -= {key for name in free if isinstance(parent.get(name), dict) for key in parent[name]}
    assert structure - documented == set()


def test_every_key_of_the_monitor_lines_is_documented():
    documented = set(re.findall(r"`(\w+)`", DOCS.read_text(encoding="utf-8")))
    line = json.loads(JsonLines().line(examples.view_of(examples.midrun())))
    assert set(line) - documented == set()
    assert keys_of([line["open_pairs"], line["budgets"]]) - documented == set()
    assert {key for health in line["endpoints"] for key in health} - documented == set()


def test_the_counts_add_up(data):
    counts = data["counts"]
    assert counts["pairs"] == counts["separated"] + counts["tied"] + counts["open"] == 6
    assert counts["stored"] == sum(model["trials"] + model["missing"] for model in data["models"])
    assert data["run"]["finished"]
    assert data["saving"]["issued"] <= data["saving"]["uniform"]


def test_widths_that_are_open_count_as_open_and_measured_ones_are_no_ties(run):
    with RunReader(run) as reader:
        summary = summarise(reader)
    for verdict, (measured, opened) in {"tie": (3, 0), "open": (0, 3)}.items():
        width = replace(examples.to_a_width().pairs[0], verdict=verdict)
        pairs = (
            *(replace(examples.midrun().pairs[0], verdict=one) for one in ("better", "tie")),
            *[width] * 3,
        )
        one = replace(summary, results=replace(summary.results, pairs=pairs))
        counts = json.loads(to_json(one))["counts"]
        assert [counts[key] for key in ("pairs", "separated", "tied", "measured", "open")] == [
            5, 1, 1, measured, opened,
        ]  # fmt: skip


def test_meta_is_there_without_private_paths(data):
    assert data["meta"]["config"] == runs.CONFIG
    assert data["meta"]["seed"] == "7"
    assert "base_dir" not in data["meta"]


FILES = [
    "report.html", "report.json", "report.md", "report/bayes.md", "report/bayes.tex", "report/decisions.csv",
    "report/models.csv",
    "report/pairs.csv", "report/questions.csv",
]  # fmt: skip


def test_reports_are_written_beside_the_run_or_elsewhere(run, tmp_path):
    beside = write_reports(run)
    assert (beside.html, beside.markdown, beside.json, beside.tables) == (
        run / "report.html",
        run / "report.md",
        run / "report.json",
        run / "report",
    )
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
    assert [path.name for path in place.iterdir() if path.name.startswith(".")] == []
