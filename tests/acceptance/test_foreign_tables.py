"""Tables of other tools, by a map of their columns or a shape that is known: previewed, imported."""

import csv
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Finished, in_process, trials


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), "utf-8")


def bring(folder: Path, source: str, *options: str, code: int = 0) -> Finished:
    """Import a file."""
    return in_process("analyze", source, "--write", "run", *options, cwd=folder, code=code)


Outcomes = Iterable[tuple[str, str, int | None]]  # model, question, category; repeats come in random order


def check(folder: Path, expected: Outcomes, tasks: set[str] | None = None) -> None:
    """Check the imported trials, in any order, and the names of their tasks."""
    records = trials(folder / "run")
    found = Counter(
        (one.request.key.model, one.request.question, one.score and one.score.category) for one in records
    )
    assert found == Counter(expected)
    assert tasks is None or {record.request.task for record in records} == tasks


def test_statistics_of_helm(tmp_path):
    for model, right in (("org/a", 1.0), ("org/b", 0.0)):
        folder = tmp_path / "runs" / "v1" / f"gsm:model={model.replace('/', '_')},stop=none"
        spec = {"name": f"gsm:model={model},stop=none", "adapter_spec": {"model": model}}
        write(folder / "run_spec.json", spec)
        rows: list[dict[str, Any]] = []
        for n, split in enumerate(("valid", "test")):
            for name, value in (("exact_match", 0.0), ("final_number_exact_match", right)):
                stat = {"name": {"name": name, "split": split}, "count": 1, "sum": value, "mean": value}
                rows.append({"instance_id": f"id{n}", "train_trial_index": 0, "stats": [stat]})
        rows.append({**rows[-1], "perturbation": {"name": "typos"}})
        write(folder / "per_instance_stats.json", rows)
    refused = bring(tmp_path, "runs", "--metric", "f1", code=2)
    assert (
        "no metric 'f1'; choose one with --metric. There are: exact_match, final_number_exact_match"
        in refused.err
    )
    bring(tmp_path, "runs", "--metric", "final_number_exact_match")
    expected = [("org/a", "id0", 1), ("org/a", "id1", 1), ("org/b", "id0", 0), ("org/b", "id1", 0)]
    check(tmp_path, expected, {"gsm:stop=none/valid", "gsm:stop=none/test"})


@pytest.mark.parametrize("replicas", [1, 2])
def test_details_of_opencompass(tmp_path, replicas):
    expected = []
    for model in "ab":
        folder = tmp_path / "outputs" / "20250101" / "results" / model
        right = [True, model == "a"]
        if replicas == 1:  # as OpenICLEvalTask formats details that the evaluator did not give
            row = {"prompt": "2 + 2?", "origin_prediction": "It is 4", "predictions": "4", "references": "4"}
            rows = {str(n): {**row, "correct": right[n]} for n in (0, 1)}
            details: Any = {"type": "GEN", **rows}
            expected += [(model, str(n), int(right[n])) for n in (0, 1)]
        else:
            details = [{"example_abbr": f"sums_{n}", "pred": ["4", "5"], "correct": right} for n in range(2)]
            expected += [(model, f"sums_{n}", int(one)) for n in (0, 1) for one in right]
        write(folder / "sums.json", {"accuracy": 75.0, "details": details})
        write(folder / "other.json", {"accuracy": 75.0})
    bring(tmp_path, "outputs")
    check(tmp_path, expected, {"sums"})
    write(folder / "sums.json", {"details": [{"example_abbr": "sums_0", "pred": [1]}]})
    seen = in_process("analyze", folder / "sums.json", "--preview", cwd=tmp_path, code=2)
    assert "has none of correct, is_correct" in seen.err


def test_results_of_mcpmark(tmp_path):
    name, expected = "online_resume__task_1", []
    for model in ("gpt", "o3"):
        for run in (1, 2):
            folder = tmp_path / "results" / "exp" / f"{model}__notion" / f"run-{run}" / name
            right = model == "gpt" or run == 2
            meta = {
                "task_name": name,
                "model_name": model,
                "mcp": "notion",
                "agent_execution_time": 4.0,
                "execution_result": {"success": right, "error_message": None},
                "token_usage": {"input_tokens": 900, "output_tokens": 70 + run},
            }
            write(folder / "meta.json", meta)
            write(folder / "messages.json", [])
            expected.append((model, name, int(right)))
    bring(tmp_path, "results")
    check(tmp_path, expected)
    assert {record.usage.total_tokens for record in trials(tmp_path / "run")} == {971, 972}


@pytest.mark.slow
def test_arrays_and_raw_answers_of_the_paper(tmp_path):
    arrays = {"aime": np.array([[[1, 0], [1, 1]], [[0, 0], [0, 1]]]), "hmmt": np.array([[[1, 1]], [[0, -1]]])}
    np.savez(tmp_path / "tasks.npz", **arrays, models=np.array(["a", "b"]))
    bring(tmp_path, "tasks.npz")
    of_a = [("a", "q1", 1), ("a", "q1", 0), ("a", "q2", 1), ("a", "q2", 1), ("a", "q1", 1), ("a", "q1", 1)]
    of_b = [("b", "q1", 0), ("b", "q1", 0), ("b", "q2", 0), ("b", "q2", 1), ("b", "q1", 0), ("b", "q1", None)]
    check(tmp_path, [*of_a, *of_b], {*arrays})
    in_process("analyze", "tasks.npz", "--json", cwd=tmp_path, code=0)

    rows = [
        {"model": "m", "data_id": n, "seed": seed, "output": {"text": "4", "num_completion_tokens": 40},
         "tokens": {"completion_ppl": 1.5}, "processed_results": {"is_correct": k, "has_box": 1}}
        for n in (6, 7) for k, seed in enumerate((1261, 1262))
    ]  # fmt: skip
    (tmp_path / "raw.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    in_process("analyze", "raw.jsonl", "--write", "raw", cwd=tmp_path, code=0)
    raw = trials(tmp_path / "raw")
    assert {(r.request.question, r.score and r.score.category) for r in raw} == {
        ("6", 0), ("7", 0), ("6", 1), ("7", 1),
    }  # fmt: skip
    assert {(r.usage.completion_tokens, r.completion and r.completion.text) for r in raw} == {(40, "4")}


def test_any_table_by_a_map(tmp_path):
    rows = [
        {"agent": agent, "task_id": f"t{n}", "is_resolved": str(agent == "new"), "trial": k}
        for agent in ("old", "new") for n in range(2) for k in range(2)
    ]  # fmt: skip
    with (tmp_path / "board.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    columns = ("--map", "question=task_id,model=agent,score=is_resolved,repeat=trial")
    seen = in_process("analyze", "board.csv", "--preview", *columns, cwd=tmp_path, code=0)
    assert "2 models, 2 questions, 8 trials" in seen.out
    assert not (tmp_path / "run").exists()
    bring(tmp_path, "board.csv", *columns)
    check(tmp_path, [(row["agent"], row["task_id"], int(row["agent"] == "new")) for row in rows])


def test_names_of_a_stranger_neither_act_on_the_terminal_nor_begin_a_line(tmp_path):
    names = ["\x1b]0;owned\x07red", "oak\n::warning::forged", "\u202egnirts", "a\r\nforged"]
    rows = [
        {"model": model, "question": f"forged{question}\nforged", "correct": (row + question) % 2}
        for row, model in enumerate(names)
        for question in range(4)
    ]
    write(tmp_path / "r.json", rows)
    said = [in_process("analyze", "r.json", cwd=tmp_path).said, bring(tmp_path, "r.json").said]
    claims = (
        ("--each-question", "1 of 1"),
        ("--not-worse", "x:y"),
        ("--at-least", "x:0.5"),
        ("--each-question", "1 of 1", "--model", "x"),
    )
    said += [in_process("check", "run", *options, cwd=tmp_path).said for options in claims]
    said.append(in_process("samples", "run", "--model", "x", cwd=tmp_path).said)
    write(tmp_path / "columns.json", [{"\x1b]0;owned\x07": 1, "other": 2}])
    said.append(in_process("analyze", "columns.json", cwd=tmp_path, code=2).said)
    for text in said:
        assert "owned" in text
        assert not set(text) & set("\x1b\x07\r\u202e"), text
        assert not [line for line in text.splitlines() if line.startswith(("forged", "::"))], text
