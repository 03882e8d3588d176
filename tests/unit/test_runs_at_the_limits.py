"""Runs of one model or question, of ties, lost answers, long names: every view of them, and the way back."""

import csv
import io
import json
import math
import re

import numpy as np
import pytest
import run_examples as runs

from adaptive_eval.build.assembly import build
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import Completion, Usage
from adaptive_eval.views.files import write_reports
from adaptive_eval.views.report_json import report_data

LONG = ("org/" + "a-very-long-name-" * 6)[:100]
ODD = ("a (b)", "c_d_e", "f+g", "1:2@3")
CHANCES = {"good": 0.95, "fair": 0.5, "poor": 0.1}
CASES = {
    "plain": {},
    "one model": {"models": ["good"], "goal": "width=0.4"},
    "one question": {"size": 1},
    "one model, one question": {"models": ["good"], "size": 1, "goal": "width=0.4"},
    "always right": {"chances": dict.fromkeys(CHANCES, 1.0)},
    "never right": {"chances": dict.fromkeys(CHANCES, 0.0)},
    "two alike": {"chances": {"good": 0.5, "fair": 0.5}, "models": ["good", "fair"], "seed": 0},
    "one lost": {"lost": {"fair": 1.0}},
    "some lost": {"lost": {"fair": 0.3, "good": 0.2}},
    "one question lost": {"lost_question": "q0"},
    "all lost": {"lost": dict.fromkeys(CHANCES, 1.0)},
    "long and odd names": {"models": [LONG, *ODD]},
    "many models": {"models": [f"m{number}" for number in range(9)], "budget": 250},
    "another scale": {"weights": [-30.0, 70.0]},
    "worse than nothing": {"weights": [-3.0, -1.0]},
    "few trials": {"budget": 7},
    "rounds": {"questions": "rounds", "size": 12},
    "several tasks": {"tasks": 3},
}


def chance_of(case, model):
    known = {**CHANCES, **case.get("chances", {})}
    return known.get(model, 0.2 + 0.6 * (sum(model.encode()) % 7) / 6)


def made(folder, case):
    """Make a run, and return its folder with its trials."""
    rows = [{"id": f"q{n}", "input": f"{n}?", "target": "1"} for n in range(case.get("size", 6))]
    tasks = [f"t{number}" for number in range(case.get("tasks", 1))]
    for task in tasks:
        (folder / f"{task}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    scored = {"scorer": "numeric", "rubric": {"weights": case.get("weights", [0.0, 1.0])}}
    models = [{"name": one, "endpoints": ["http://localhost:9/v1"]} for one in case.get("models", CHANCES)]
    low, high = case.get("weights", (0.0, 1.0))
    data = {
        "name": "unusual",
        "models": models,
        "tasks": [{"name": task, "dataset": f"{task}.jsonl", **scored} for task in tasks],
        "stopping": {"equivalence": 0.1 * (high - low), "max_passes": 12},
        "allocation": {"questions": case.get("questions", "schedule")},
        "budget": {"trials": case.get("budget", 300)},
        **({"goal": case["goal"]} if "goal" in case else {}),
    }
    built = build(config_from_data(data, folder))

    def answer(request, at, *, after_stop=False):
        model = request.key.model
        seed = [case.get("seed", sum(model.encode())), int(request.question[1:]), request.repeat]
        lost, right = np.random.default_rng(seed).random(2)
        sent = {"messages": [{"role": "user", "content": request.question}]}
        if lost < case.get("lost", {}).get(model, 0.0) or request.question == case.get("lost_question"):
            return TrialRecord(request, at, None, None, "timeout", after_stop, sent)
        text = f"\\boxed{{{int(right < chance_of(case, model))}}}"
        completion = Completion(text, "stop", Usage(9, 5), latency=0.5)
        question = built.tasks[0].by_id[request.question]
        score = built.scoring[request.task].score(completion, question)
        return TrialRecord(request, at, completion, score, after_stop=after_stop, sent=sent)

    directory = folder / "run"
    runs.store_run(directory, built.meta(), built.session(), answer, slots=8)
    with RunReader(directory) as reader:
        return directory, list(reader.trials())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    known = {}

    def make(name):
        if name not in known:
            known[name] = made(tmp_path_factory.mktemp("limit"), CASES[name])
        return known[name]

    return make


def score_of(case, trials, model):
    """Return the mean of tasks of means of questions; None where nothing was answered."""
    weights = case.get("weights", (0.0, 1.0))
    cells = {}
    for one in trials:
        if one.request.key.model == model and one.missing is None:
            value = weights[one.score.category]
            cells.setdefault(one.request.task, {}).setdefault(one.request.question, []).append(value)
    if not cells:
        return None
    return float(np.mean([np.mean([np.mean(own) for own in task.values()]) for task in cells.values()]))


def near(value):
    return None if value is None else pytest.approx(value, abs=1e-9)


def cells_of(page, heading):
    """Return the rows of the first table of a Markdown page under a heading, without their escapes."""
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    table = []
    for line in lines:
        parts = re.split(r"(?<!\\)\|", line.strip().strip("|"))
        table.append([re.sub(r"\\(.)", r"\1", part).strip() for part in parts])
    return table


NO_FIGURE = re.compile(r"(?<![\w-])(?:nan|inf|-inf|None|NaN|Infinity)(?![\w-])")


@pytest.mark.parametrize("name", CASES)
def test_a_report_holds_every_model_with_its_score_wherever_it_is_read(run, name):
    case, (directory, trials) = CASES[name], run(name)
    models = case.get("models", list(CHANCES))
    write_reports(directory, with_examples=False)
    text = (directory / "report.json").read_text("utf-8")
    data = json.loads(text, parse_constant=pytest.fail)
    assert sorted(line["model"] for line in data["models"]) == sorted(models)
    counts = data["counts"]
    assert (counts["models"], counts["stored"]) == (len(models), len(trials))
    assert counts["pairs"] == (
        len(models) * (len(models) - 1) // 2 if "goal" not in case else counts["pairs"]
    )
    low, high = case.get("weights", (0.0, 1.0))
    for line in data["models"]:
        own = [one for one in trials if one.request.key.model == line["model"]]
        answered = [one for one in own if one.missing is None]
        assert (line["trials"], line["missing"]) == (len(answered), len(own) - len(answered))
        assert line["score"] == near(score_of(case, trials, line["model"]))
        assert line["questions"] == len({(one.request.task, one.request.question) for one in answered})
        if line["score"] is not None:
            assert low <= line["score_low"] <= line["score"] <= line["score_high"] <= high
        if "goal" not in case:
            assert 1 <= line["rank_low"] <= line["rank_high"] <= len(models)
    scores = [-math.inf if line["score"] is None else line["score"] for line in data["models"]]
    if name not in ("all lost", "one lost", "some lost", "few trials"):
        assert scores == sorted(scores, reverse=True)
    page = (directory / "report.md").read_text("utf-8")
    heading, _, *rows = cells_of(page, "Ranking" if "\n## Ranking\n" in page else "Models")
    place = next(at for at, title in enumerate(heading) if title.startswith("mean of"))
    digits = 2 if high - low > 9 else 3
    assert [row[heading.index("model")] for row in rows] == [line["model"] for line in data["models"]]
    for row, line in zip(rows, data["models"], strict=True):
        shown = row[place].replace("−", "-")
        if line["score"] is not None:
            assert float(shown) == pytest.approx(line["score"], abs=0.51 * 10**-digits)
        else:
            assert not re.search(r"\d", shown)
        assert row[heading.index("trials")].replace(",", "") == str(line["trials"])
    with (directory / "report" / "models.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    for row, line in zip(table, data["models"], strict=True):
        assert row["model"].lstrip("'") == line["model"]
        assert row["score"] == ("" if line["score"] is None else str(line["score"]))
    html = (directory / "report.html").read_text("utf-8")
    printed = runs.printed("report", directory)
    for view in (page, printed, re.sub("<[^>]*>", " ", html.split("<script")[0])):
        assert not NO_FIGURE.search(view), NO_FIGURE.search(view)
    assert all(name in html for name in models if name.isalnum())
    again = runs.printed("validate", directory)
    assert "lead to its results" in again


READ_AGAIN = [name for name in CASES if name not in ("all lost", "one lost")]


@pytest.mark.parametrize(("name", "form"), list(zip(READ_AGAIN, ["csv", "jsonl"] * 8, strict=True)))
def test_what_is_exported_is_the_run_when_it_is_read_again(run, name, form, tmp_path):
    case, (directory, trials) = CASES[name], run(name)
    table = tmp_path / f"table.{form}"
    runs.printed("export", directory, "--out", table)
    text = table.read_text("utf-8")
    rows = (
        list(csv.DictReader(io.StringIO(text))) if form == "csv" else list(map(json.loads, text.splitlines()))
    )
    assert len(rows) == len(trials)
    low = min(case.get("weights", (0.0, 1.0)))
    totals = {}
    for row, one in zip(rows, trials, strict=True):
        key = one.request.key
        assert (row["model"].lstrip("'"), int(row["step"])) == (key.model, key.index)
        assert (row["task"], row["question"]) == (one.request.task, one.request.question)
        if row["score"] not in (None, ""):
            share = float(row["weight"]) * (float(row["score"]) - low)
            totals[key.model] = totals.get(key.model, 0.0) + share
    data = report_data(runs.read_summary(directory))
    for line in data["models"]:
        assert totals[line["model"]] == pytest.approx(line["score"] - low, abs=1e-9)
    again = tmp_path / "again"
    runs.printed("analyze", table, "--write", again)
    other = report_data(runs.read_summary(again))
    expected = {line["model"]: (near(line["score"]), line["trials"]) for line in data["models"]}
    assert {line["model"]: (line["score"], line["trials"]) for line in other["models"]} == expected
