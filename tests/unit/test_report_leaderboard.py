"""Several runs on one page, and the answers that a report quotes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import run_examples as runs
from click.testing import CliRunner

from adaptive_eval.cli.main import cli
from adaptive_eval.errors import UsageError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.files import runs_in, write_leaderboard
from adaptive_eval.views.inert import excerpt
from adaptive_eval.views.page import to_html
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.trials import ApartExample, Example, Examples

META = {"identity": '{"tasks": {"trees": {"hash": "1"}}}', "scoring": '{"trees": "exact"}'}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of three runs, one of them on other questions."""
    place = tmp_path_factory.mktemp("runs")
    runs.make_run(place / "one", meta=META)
    shutil.copytree(place / "one", place / "two")
    runs.make_run(place / "three", meta={**META, "scoring": '{"trees": "regex"}'})
    return place


def test_runs_that_ask_the_same_share_a_board_and_each_has_its_report(folder, tmp_path):
    index = write_leaderboard(runs_in([folder]), tmp_path / "site")
    boards = json.loads((tmp_path / "site" / "index.json").read_text(encoding="utf-8"))["boards"]
    assert {frozenset(line["run"] for line in board["models"]) for board in boards} == {
        frozenset({"one", "two"}),
        frozenset({"three"}),
    }
    assert len({board["tasks"] for board in boards}) == 2, "tables of the same tasks have names of their own"
    for board in boards:
        scores = [line["score"] for line in board["models"]]
        assert scores == sorted(scores, reverse=True)
    text = index.read_text(encoding="utf-8")
    for name in ("one", "two", "three"):
        assert f'href="{name}/report.html"' in text
        assert (tmp_path / "site" / name / "report.html").exists()
    assert "Earlier reports" not in text
    assert "scoring.trees was &#39;exact&#39; and is now &#39;regex&#39;" in text


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


def test_what_is_no_run_and_two_of_one_name_are_refused(folder, tmp_path):
    with pytest.raises(UsageError, match="neither a run nor a folder of runs"):
        runs_in([tmp_path])
    with pytest.raises(UsageError, match="two runs have directories named one"):
        runs_in([folder, folder / "one"])


@pytest.mark.parametrize(
    ("arguments", "written"),
    [(["one"], "report.html"), (["one", "two"], "comparison.html"), (["one", "two", "three"], "index.html"),
     (["."], "index.html"), (["one", "--leaderboard"], "index.html")],
)  # fmt: skip
def test_the_number_of_runs_says_what_is_written(folder, tmp_path, monkeypatch, arguments, written):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(cli, ["report", *arguments, "--output", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert str(tmp_path / "out" / written) in result.output
    assert Path(tmp_path / "out" / written).exists()


def test_each_model_has_a_right_and_a_wrong_answer_and_hard_questions_have_one_of_all(folder):
    with RunReader(folder / "one") as reader:
        found = summarise(reader, examples_with=lambda trial: f"expected of {trial.request.question}")
    assert found.details.examples is not None
    assert [model for model, _ in found.details.examples.models] == [
        line.model for line in found.results.models
    ]
    for model, shown in found.details.examples.models:
        assert len({one.kind for one in shown}) == len(shown) >= 1
        assert all(one.model == model for one in shown)
        assert all(one.expected == f"expected of {one.question}" for one in shown)
    assert found.details.examples.apart
    for question in found.details.examples.apart:
        assert {one.question for one in question.answers} == {question.question}


def test_hostile_answers_are_text_of_bounded_length(folder):
    hostile = "</pre><script>alert(1)</script>\x1b[2J" + "x" * 1_000_000
    short = excerpt(hostile)
    one = Example("oak", "wrong", hostile, short, short, short, hostile, short)
    summary = runs.read_summary(folder / "one")
    shown = Examples((("oak", (one,)),), (ApartExample(hostile, hostile, excerpt(hostile), (one,)),))
    plain, text = to_html(summary), to_html(runs.with_details(summary, examples=shown))
    assert "<script" not in text
    assert "\x1b" not in text
    assert text.count("</pre>") > plain.count("</pre>")
    assert len(text) < len(plain) + 30_000
