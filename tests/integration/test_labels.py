"""Answers chosen for labels: the files to fill in, the page in Chromium, and verdicts that rest on labels."""

import json
import re
from collections import Counter

import pytest
from chromium import objections, watched
from command_line import command, finished, mimic_config

from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.label_page import label_page

KEYS = ["id", "question", "prompt", "answer", "target", "pi", "score"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    mimics = {"sage": {"mean": 0.6}, "novice": {"mean": 0.5}}
    config = mimic_config(mimics=mimics, budget={"trials": 240}, goal="budget")
    return finished(tmp_path_factory.mktemp("labels"), config)


@pytest.fixture
def run(made):
    """A run without labels."""
    for file in made.glob("labels*"):
        file.unlink()
    return made


def rows_of(run):
    return [json.loads(line) for line in (run / "labels.jsonl").read_text("utf-8").splitlines()]


def write(run, rows):
    (run / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def test_chosen_answers_are_those_of_all_models_without_their_names(run):
    said = command("samples", run, "--label", "0.25", code=0).out
    rows = rows_of(run)
    assert f"{len(rows)} answers" in said
    assert all(list(row) == KEYS and row["score"] is None for row in rows)
    assert {row["pi"] for row in rows} == {0.25}
    with RunReader(run) as reader:
        records = list(reader.trials())
        models = reader.cells().models
    asked = len({one.request.key.index for one in records})
    assert len(rows) == round(0.25 * asked) * len(models)
    written = (run / "labels.jsonl").read_text() + (run / "labels.html").read_text()
    assert not re.search("sage|novice", written)
    times = Counter(row["question"] for row in rows)
    assert all(number % len(models) == 0 for number in times.values())


def test_the_choice_is_that_of_the_run_and_a_larger_share_keeps_what_is_filled_in(run):
    command("samples", run, "--label", 20, code=0)
    first = rows_of(run)
    for file in run.glob("labels*"):
        file.unlink()
    command("samples", run, "--label", 20, code=0)
    assert rows_of(run) == first
    first[3] |= {"score": "right"}
    write(run, first)
    command("samples", run, "--label", 50, code=0)
    rows = rows_of(run)
    assert rows[: len(first)] == first
    assert len({row["id"] for row in rows}) == len(rows) == 100
    assert {row["pi"] for row in rows[len(first) :]} == {0.3}  # 30 of the 100 that were left
    assert '"score": "right"' in (run / "labels.html").read_text()
    again = command("samples", run, "--label", 30, code=2).err
    assert "50 of 120 questions are chosen already" in again


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--label", "2.5"], "above 0 and up to 1.0"),
        (["--label", "1000"], "has asked 120 questions"),
        (["--label", "0.1", "--model", "sage"], "--model does not go with --label"),
    ],
)
def test_what_cannot_be_chosen_is_said(run, options, said):
    assert said in command("samples", run, *options, code=2).err
    assert not list(run.glob("labels*"))


def downloaded(page):
    with page.expect_download() as started:
        page.keyboard.press("s")
    assert started.value.suggested_filename == "labels.jsonl"
    return [json.loads(line) for line in started.value.path().read_text("utf-8").splitlines()]


def test_the_page_labels_by_keys_and_saves_the_same_file(run, browser):
    command("samples", run, "--label", 8, code=0)
    rows = rows_of(run)
    page = watched(browser, (run / "labels.html").as_uri(), console=True)
    assert page.inner_text("#answer").strip() == rows[0]["answer"].strip()
    assert page.inner_text("#choices") == "1 · wrong2 · right"
    for key in ("2", "1", "2"):
        page.keyboard.press(key)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    assert page.inner_text("#progress") == f"2 of {len(rows)} answers have a label"
    saved = downloaded(page)
    assert saved == [
        row | {"score": score} for row, score in zip(rows, ("right", "wrong", *[None] * 14), strict=True)
    ]
    assert objections(page) == []
    assert page.failures == []
    assert page.asked == [page.url]


def test_scores_in_a_range_are_typed_and_hostile_answers_are_text(tmp_path, browser):
    answer = "</script><script>alert(1)</script><!-- \u202e"
    row = dict.fromkeys(KEYS, "x") | {"answer": answer, "pi": 0.5, "score": None, "target": None}
    file = tmp_path / "labels.html"
    file.write_text(label_page("</title>", [row, row], ["t", "t"], {"t": [1, 10]}), "utf-8")
    page = watched(browser, file.as_uri(), console=True)
    assert page.inner_text("#answer") == answer
    page.fill("#number", "11")
    page.press("#number", "Enter")
    assert page.inner_text("#said") == "no label yet"
    page.fill("#number", "7.5")
    page.press("#number", "Enter")
    page.locator("body").press("ArrowLeft")
    page.locator("#question").click()
    assert [row["score"] for row in downloaded(page)] == [7.5, None]
    assert page.failures == []
