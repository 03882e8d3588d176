"""The score that ranks and Bayes@N, rebuilt from the exported trials alone."""

from __future__ import annotations

import csv
import json
import random
from collections import defaultdict
from math import sqrt
from pathlib import Path

import pytest
from click.testing import CliRunner

import adaptive_eval
from adaptive_eval.cli.main import cli

CATEGORIES = 2
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


def bayes(answers: list[list[int]]) -> tuple[float, float]:
    """Return Bayes@N under a uniform prior: mean and standard deviation, as in arXiv:2510.04265."""
    shares = [(1 + sum(given)) / (CATEGORIES + len(given)) for given in answers]
    variances = [
        share * (1 - share) / (1 + CATEGORIES + len(given))
        for share, given in zip(shares, answers, strict=True)
    ]
    return sum(shares) / len(shares), sqrt(sum(variances)) / len(shares)


def test_the_export_rebuilds_the_score_that_ranks_and_bayes_at_n(tmp_path):
    """Mean of question means, and the posterior under a uniform prior, of every model after three passes."""
    models = {"old": coin(0.5, 1), "new": coin(0.8, 2), "other": coin(0.6, 3)}
    run = tmp_path / "run"
    stopping = {"max_passes": 3, "equivalence": 0.05}
    adaptive_eval.evaluate(models, ROWS, scorer="numeric", out=run, seed=4, stopping=stopping)
    assert CliRunner().invoke(cli, ["report", str(run)], catch_exceptions=False).exit_code == 0
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    answers = exported(run, tmp_path / "trials.csv")
    for line in report["models"]:
        given = [answers[line["model"]][row["id"]] for row in ROWS]
        means = [sum(one) / len(one) for one in given if one]
        assert line["questions"] == len(means)
        assert sum(means) / len(means) == pytest.approx(line["score"], abs=1e-9)
        assert bayes(given) == pytest.approx((line["bayes_mu"], line["bayes_sigma"]), abs=1e-9)
    scores = [line["score"] for line in report["models"]]
    assert scores == sorted(scores, reverse=True)


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
