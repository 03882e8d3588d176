"""Reasoning that a server keeps apart from the answer: stored, shown and exported, scored only on request."""

import csv
import json
from typing import Any

from answering_server import answering, number_in, run_two, said
from command_line import ROOT, categories, in_process, ran, samples, trials, write_config
from ruamel.yaml import YAML


def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
    """Reason rightly; only the model good also answers so."""
    message = said(f"Attempt {number}: {number_in(prompt) if model == 'good' else -1}")
    details = {"completion_tokens_details": {"reasoning_tokens": 30}}
    return {
        "message": {**message, "reasoning_content": f"so {number_in(prompt)}"},
        "usage": {"prompt_tokens": 9, "completion_tokens": 40, **details},
    }


def test_it_is_stored_shown_and_exported_and_never_scored_by_accident(tmp_path):
    code = """def mine(answer, question): return question.get("reasoning") == f"so {question['target']}"\n"""
    (tmp_path / "own.py").write_text(code, "utf-8")
    run_two(tmp_path, answer, goal="budget", budget={"trials": 16})
    records = trials(tmp_path / "run")
    assert {record.completion.reasoning_tokens for record in records if record.completion} == {30}
    assert categories(tmp_path / "run") == {("good", 1), ("bad", 0)}

    shown = in_process("samples", "run", cwd=tmp_path).out
    assert "reasoning  so " in shown
    for sample in samples(tmp_path / "run"):
        assert sample["reasoning"] == f"so {sample['target']}"
        assert sample["reasoning_tokens"] == 30
    assert in_process("export", "run", "--out", "run.csv", cwd=tmp_path).code == 0
    with (tmp_path / "run.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["reasoning"], row["reasoning_tokens"]) for row in rows} == {
        (f"so {row['target']}", "30") for row in rows
    }
    for asked in (True, False):
        scorer = {"kind": "python", "function": "own:mine", "with_reasoning": asked}
        again = ("rescore", "run", "--scorer", json.dumps(scorer), "--dry-run", "--json")
        _, found = json.loads(in_process(*again, cwd=tmp_path, code=0).out)
        assert {model["score"] for model in found["models"]} == {float(asked)}


def test_the_function_of_the_docs_is_judged_with_its_reasoning(tmp_path):
    page = (ROOT / "docs" / "tasks.md").read_text("utf-8").partition("## A function as model")[2]
    config = YAML(typ="safe", pure=True).load(page.partition("```yaml\n")[2].partition("```")[0])
    (tmp_path / "my_models.py").write_text(page.partition("```python\n")[2].partition("```")[0], "utf-8")
    (tmp_path / "primes.jsonl").write_text(
        page.partition("primes.jsonl ")[2].partition("# ")[2].splitlines()[0]
    )

    def verdict(model: str, prompt: str, number: int) -> dict[str, Any]:
        seen = "<think>\nNo number from 2 to 6 divides it.\n</think>\n\nYes (" in prompt
        return {"message": said(json.dumps({"reason": "r", "verdict": "correct" if seen else "wrong"}))}

    with answering(verdict) as url:
        config["tasks"][0]["scorer"]["endpoint"] = url
        ran(write_config(tmp_path, {"name": "docs", **config}), code=0)
    assert [record.score.category for record in trials(tmp_path / "run") if record.score] == [1] * 4
