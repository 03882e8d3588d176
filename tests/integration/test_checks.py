"""Several checks of an answer: whole runs, what they show of each check, answers that one cannot judge."""

import csv
import json
import re

import pytest
from command_line import command, finished, mimic_config, report, trials
from scripted_chat import scripted_chat

import adaptive_eval
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.scorer import NOT_FOUND
from adaptive_eval.trial import Completion, Question

BRIEF = "def brief(answer):\n    return len(answer.split()) <= 30\n"
QUESTION = Question("t", "q", "4", {"input": "2 + 2?"})


@pytest.fixture
def judge():
    with scripted_chat() as make:
        yield make


def by_length(body):
    """Judge whether an answer is brief; give no judgement if its number of words is a multiple of 5."""
    (_, answer, _) = re.split(r"ANSWER-\w+\n?", body["messages"][1]["content"])
    words = len(answer.split())
    if words % 5 == 0:
        return "Hm."
    return json.dumps({"reason": "I counted", "verdict": "correct" if words <= 30 else "wrong"})


def wise(server):
    return {"kind": "judge", "endpoint": server.url, "model": "wise", "second_votes": 0}


def scored(text, **options):
    found = build_scorer("checks", options).score(Completion(text, "stop"), QUESTION)
    return found.category, found.signals.get("score")


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ({}, [(1, 1.0), (0, 0.0), (0, 0.0)]),
        ({"by": "any"}, [(1, 1.0), (1, 1.0), (0, 0.0)]),
        ({"by": "mean"}, [(0, 1.0), (0, 0.5), (0, 0.0)]),
        ({"by": "mean", "weights": {"number": 3, "word": 1}}, [(0, 1.0), (0, 0.75), (0, 0.0)]),
        ({"by": "mean", "right_from": 0.5}, [(1, 1.0), (1, 0.5), (0, 0.0)]),
    ],
)
def test_parts_are_combined_as_asked(by, expected):
    parts = {"number": "numeric", "word": {"kind": "regex", "pattern": "(4) apples"}}
    texts = ("It is 4 apples.", "It is 4.", "It is 5.")
    assert [scored(text, parts=parts, **by) for text in texts] == expected


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (-1.0, 3.0)])
def test_a_part_on_a_scale_of_its_own_counts_as_a_share_of_it(low, high):
    parts = {"right": "numeric", "overlap": {"kind": "f1", "range": (low, high)}}
    found = build_scorer("checks", {"parts": parts, "by": "mean"}).score(Completion("4", "stop"), QUESTION)
    assert found.signals["check_overlap"] == 1.0
    assert found.signals["score"] == 0.75


@pytest.mark.parametrize(("by", "nothing"), [("all", [False, True, True]), ("any", [False, False, True])])
def test_nothing_is_found_where_a_part_that_is_needed_finds_nothing(by, nothing):
    parts = {"number": "numeric", "word": {"kind": "regex", "pattern": r"(\d) apples"}}
    scorer = build_scorer("checks", {"parts": parts, "by": by})
    found = [scorer.score(Completion(text, "stop"), QUESTION) for text in ("4 apples", "It is 5.", "No.")]
    assert [one.reason.startswith(NOT_FOUND) for one in found] == nothing


def json_lines(folder):
    files = sorted(folder.rglob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_a_run_shows_each_check_in_samples_exports_and_report(tmp_path, judge):
    (tmp_path / "words.py").write_text(BRIEF, "utf-8")
    server = judge(
        lambda body: by_length(body) if "{" in by_length(body) else '{"reason": "", "verdict": "wrong"}'
    )
    parts = {"number": "numeric", "brief": "words.py:brief", "polite": wise(server) | {"anchors": 0}}
    scorer = {"kind": "checks", "parts": parts}
    config = mimic_config({"scorer": scorer}, goal="budget", budget={"trials": 120}, name="checked")
    out = finished(tmp_path, config)
    records = trials(out)
    for record in records:
        signals, words = record.score.signals, len(record.completion.text.split())
        assert signals["check_brief"] == (words <= 30)
        assert signals["check_polite"] == (words <= 30 and words % 5 > 0)
        found = all(signals[f"check_{name}"] for name in parts)
        assert record.score.category == signals["is_correct"] == int(found)
        assert signals["judge_requests"] == 1
    assert {record.score.category for record in records} == {0, 1}
    shown = command("samples", out, "--limit", "1", code=0).out
    assert re.search(r"checks +number [01], brief [01], polite [01]\n", shown)
    command("export", out, "--out", tmp_path / "table.csv", code=0)
    command("export", out, "--out", tmp_path / "table.parquet", code=0)
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text("utf-8").splitlines()))
    for row, record in zip(rows, records, strict=True):
        for name in parts:
            assert float(row[f"check_{name}"]) == record.score.signals[f"check_{name}"]
    command("export", out, "--format", "lm-eval", "--out", tmp_path / "lm", code=0)
    command("export", out, "--format", "eee", "--out", tmp_path / "eee", code=0)
    for name in parts:
        expected = sorted(float(record.score.signals[f"check_{name}"]) for record in records)
        lists = [row[f"check_{name}"] for row in json_lines(tmp_path / "lm")]
        assert sorted(value for some in lists for value in some) == expected
        cells = [row["metadata"][f"check_{name}"] for row in json_lines(tmp_path / "eee")]
        assert sorted(map(float, cells)) == expected
    rankings = {one["name"]: one["models"] for one in report(out)["rankings"]}
    assert [*rankings] == ["as run", "check_number", "check_brief", "check_polite"]
    page = (out / "report.html").read_text("utf-8")
    assert all(f"check_{name}" in page for name in parts)
    again = json.loads(command("rescore", out, "--scorer", "numeric", "--json", "--dry-run", code=0).out)
    assert again[1]["models"] == rankings["check_number"]
    same = command("rescore", out, "--scorer", json.dumps(scorer), "--json", "--dry-run", code=0)
    as_run, anew = json.loads(same.out)
    assert as_run["models"] == anew["models"] == rankings["as run"]
    table = command("analyze", tmp_path / "table.csv", code=(0, 3))
    assert "sage" in table.out


def test_an_answer_that_one_check_cannot_judge_is_missing_whatever_the_others_say(tmp_path, judge):
    """A wrong answer is lost as a right one is: what is lost does not depend on the other checks."""
    server = judge(by_length)
    scorer = {"kind": "checks", "parts": {"number": "numeric", "polite": wise(server)}}
    out = finished(tmp_path, mimic_config({"scorer": scorer}, goal="budget", budget={"trials": 120}))
    lost = set()
    for record in trials(out):
        signals, told = record.score.signals, len(record.completion.text.split()) % 5 > 0
        assert ("check_polite" in signals) == (record.score.category is not None) == told
        if not told:
            lost.add(signals["check_number"])
            assert "gave no usable judgement" in record.missing
            assert "(check polite)" in record.missing
            assert not {"is_correct", "score"} & signals.keys()
    assert lost == {True, False}
    kept = json.loads(command("rescore", out, "--scorer", "numeric", "--json", "--dry-run", code=0).out)[1]
    assert sum(line["missing"] for line in kept["models"]) == 0


def test_functions_are_parts_in_python():
    def brief(answer):
        return len(answer) < 4

    async def target(answer, target):
        return target in answer

    rows = [{"id": f"q{n}", "input": f"{n} + {n}?", "target": str(2 * n)} for n in range(30)]
    models = {"right": lambda prompt: str(2 * int(prompt.split()[0])), "long": lambda prompt: "0 " * 9}
    found = adaptive_eval.evaluate(models, rows, scorer=[brief, target, "numeric"], deterministic=models)
    assert found.ranking == ("right", "long")
    (found,) = {tuple(one.score.signals.items())[-5:-2] for one in found.answers(model="right")}
    assert found == tuple((f"check_{name}", True) for name in ("brief", "target", "numeric"))
