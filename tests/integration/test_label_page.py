"""The page on which answers are labelled, in Chromium."""

import json

import pytest
from chromium import objections, watched
from command_line import command, finished, mimic_config

from adaptive_eval.views.label_page import label_page

KEYS = ["id", "question", "prompt", "answer", "target", "pi", "score"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with answers of 8 questions to be labelled, made before a browser runs in this thread."""
    config = mimic_config(budget={"trials": 60}, goal="budget")
    made = finished(tmp_path_factory.mktemp("page"), config)
    command("samples", made, "--label", 8, code=0)
    return made


def downloaded(page):
    with page.expect_download() as started:
        page.keyboard.press("s")
    assert started.value.suggested_filename == "labels.jsonl"
    return [json.loads(line) for line in started.value.path().read_text("utf-8").splitlines()]


def test_the_page_labels_by_keys_and_saves_the_same_file(run, browser):
    rows = [json.loads(line) for line in (run / "labels.jsonl").read_text("utf-8").splitlines()]
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
    assert page.inner_text("#answer") == answer.replace("\u202e", "\\u202e")
    page.fill("#number", "11")
    page.press("#number", "Enter")
    assert page.inner_text("#said") == "no label yet"
    page.fill("#number", "7.5")
    page.press("#number", "Enter")
    page.locator("body").press("ArrowLeft")
    page.locator("#question").click()
    saved = downloaded(page)
    assert [row["score"] for row in saved] == [7.5, None]
    assert saved[0]["answer"] == answer
    assert page.failures == []
