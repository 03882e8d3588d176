"""Scores of rounds next to those of the trials that are exported."""

import csv
import json
import random
from collections import defaultdict
from pathlib import Path

from click.testing import CliRunner

import adaptive_eval
from adaptive_eval.cli.main import cli

QUESTIONS = 30
ROWS = [{"id": f"q{n}", "input": f"{n} + {n}?", "target": str(2 * n)} for n in range(QUESTIONS)]


def coin(mean, seed):
    """A function that is right with this probability."""
    rng = random.Random(seed)

    async def answer(prompt):
        right = 2 * int(prompt.split()[0])
        return f"It is {right if rng.random() < mean else right + 1}."

    return answer


def exported(run: Path, file: Path) -> dict[str, dict[str, list[int]]]:
    """Return the categories of scored trials by model and question, as `adaptive-eval export` writes them."""
    result = CliRunner().invoke(cli, ["export", str(run), "--out", str(file)], catch_exceptions=False)
    assert result.exit_code == 0
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["category"] and not row["missing"]:
                assert float(row["score"]) == float(row["category"])
                found[row["model"]][row["question"]].append(int(row["category"]))
    return found


def test_a_report_of_rounds_says_that_plain_means_differ_from_its_scores(tmp_path):
    """Rounds weight the trials of a question: six passes of two close models."""
    run, models = tmp_path / "run", {"old": coin(0.5, 1), "new": coin(0.55, 2)}
    adaptive_eval.evaluate(models, ROWS, scorer="numeric", out=run, seed=4, stopping={"max_passes": 6})
    assert CliRunner().invoke(cli, ["report", str(run)], catch_exceptions=False).exit_code == 0
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    answers = exported(run, tmp_path / "trials.csv")
    assert report["in_rounds"] == ["task"]
    for line in report["models"]:
        given = [answers[line["model"]][row["id"]] for row in ROWS]
        plain = sum(sum(one) / len(one) for one in given) / len(given)
        assert 1e-4 < abs(line["score"] - plain) < 0.03
    page = (run / "report.md").read_text(encoding="utf-8")
    assert "the plain mean of the exported trials differs from the score" in page
    assert "(from the third pass on, rounds weight the trials of a question)" in page
    assert "| changes |" not in page  # an empty setting
    assert "| thresholds |" not in page
    assert ">stopped<" not in (run / "report.html").read_text(encoding="utf-8")  # "Stopped (…)" says it
