"""Scorers beyond exact, numeric and choice in whole runs against mimics."""

import json

import pytest
from command_line import ARITHMETIC, command, finished, mimic_config, trials
from task_files import load_task


@pytest.fixture(autouse=True)
def packages():
    pytest.importorskip("math_verify")


def load_task_of(path):
    return load_task("arithmetic", path, fields={"input": "question", "target": "answer"})


@pytest.mark.slow
def test_a_run_scored_by_math_agrees_with_numeric(tmp_path):
    out = finished(tmp_path, mimic_config({"scorer": "math"}, budget={"trials": 200}))
    assert {record.score.category for record in trials(out)} == {0, 1}
    again = command("rescore", out, "--scorer", "numeric", "--dry-run", "--json", code=0)
    as_run, numeric = json.loads(again.out)
    assert as_run["models"] == numeric["models"]


def test_a_function_beside_the_config_scores_a_run(tmp_path):
    code = (
        "import numpy\n\n"  # whose booleans are no bool
        "def judge(answer, question):\n    return numpy.bool_('{' + question['target'] + '}' in answer)\n"
    )
    (tmp_path / "scorer_beside_the_config.py").write_text(code, encoding="utf-8")
    scorer = {"kind": "python", "function": "scorer_beside_the_config:judge"}
    out = finished(tmp_path, mimic_config({"scorer": scorer}, budget={"trials": 60}))
    targets = {question.id: question.target for question in load_task_of(ARITHMETIC).questions}
    records = trials(out)
    assert {record.score.category for record in records} == {0, 1}
    for record in records:
        right = f"{{{targets[record.request.question]}}}" in record.completion.text
        assert record.score.category == int(right)


def test_options_shuffled_per_trial_are_scored_as_they_were_shown(tmp_path):
    rows = [
        {
            "id": f"q{n}",
            "question": f"What is {n} plus {n}?",
            "options": [str(2 * n + more) for more in (7, 0, 3, 1)],
            "answer": "B",
        }
        for n in range(10, 30)
    ]
    (tmp_path / "choices.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    task = {
        "dataset": "choices.jsonl",
        "fields": {"input": "question", "target": "answer", "choices": "options"},
        "prompt": "{input}\n{choices}",
        "scorer": "choice",
        "shuffle_options": True,
    }
    out = finished(tmp_path, mimic_config(task, budget={"trials": 200}))
    letters, scored = set(), {"sage": [], "novice": []}
    for record in trials(out):
        number = int(record.request.question[1:])
        shown = record.sent["messages"][0]["content"]
        letter = next(line[0] for line in shown.splitlines() if line[1:] == f". {2 * number}")
        letters.add(letter)
        right = record.score.extracted == letter
        assert record.score.category == int(right)
        scored[record.request.key.model].append(right)
    assert letters == set("ABCD")
    assert sum(scored["sage"]) / len(scored["sage"]) > 0.7 > sum(scored["novice"]) / len(scored["novice"])
    again = command("rescore", out, "--scorer", "choice", "--json", "--dry-run")
    as_run, anew = json.loads(again.out)
    assert as_run["models"] == anew["models"]
