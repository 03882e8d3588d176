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


def bring(folder: Path, source: str, *options: str) -> Finished:
    """Import a file."""
    return in_process("analyze", source, "--write", "run", *options, cwd=folder)


Outcomes = Iterable[tuple[str, str, int, int | None]]  # model, question, repeat, category


def any_order(found: Outcomes) -> Counter[tuple[str, str, int | None]]:
    """Return outcomes without the number of the trial: those of a question are read in random order."""
    return Counter((model, question, category) for model, question, _, category in found)


def outcomes(folder: Path) -> Counter[tuple[str, str, int | None]]:
    """Return model, question and category of the imported trials."""
    return any_order(
        (
            record.request.key.model,
            record.request.question,
            record.request.repeat,
            None if record.score is None else record.score.category,
        )
        for record in trials(folder / "run")
    )


def test_statistics_of_helm(tmp_path):
    for model, right in (("org/a", 1.0), ("org/b", 0.0)):
        folder = tmp_path / "runs" / "v1" / f"gsm:model={model.replace('/', '_')},stop=none"
        folder.mkdir(parents=True)
        spec = {"name": f"gsm:model={model},stop=none", "adapter_spec": {"model": model}}
        (folder / "run_spec.json").write_text(json.dumps(spec), "utf-8")
        rows: list[dict[str, Any]] = []
        for n in range(2):
            for name, value in (("exact_match", 0.0), ("final_number_exact_match", right)):
                stat = {
                    "name": {"name": name, "split": ("valid", "test")[n]},
                    "count": 1,
                    "sum": value,
                    "mean": value,
                }
                rows.append({"instance_id": f"id{n}", "train_trial_index": 0, "stats": [stat]})
        rows.append({**rows[-1], "perturbation": {"name": "typos"}})
        (folder / "per_instance_stats.json").write_text(json.dumps(rows), "utf-8")
    refused = bring(tmp_path, "runs", "--metric", "f1")
    assert "there is no metric 'f1'; choose one of exact_match, final_number_exact_match" in refused.err
    done = bring(tmp_path, "runs", "--metric", "final_number_exact_match")
    assert done.code == 0, done.said
    expected = {
        (model, f"id{n}", 0, right) for model, right in (("org/a", 1), ("org/b", 0)) for n in range(2)
    }
    assert outcomes(tmp_path) == any_order(expected)
    assert {record.request.task for record in trials(tmp_path / "run")} == {
        "gsm:stop=none/valid",
        "gsm:stop=none/test",
    }


@pytest.mark.parametrize("replicas", [1, 2])
def test_details_of_opencompass(tmp_path, replicas):
    for model in ("a", "b"):
        folder = tmp_path / "outputs" / "20250101" / "results" / model
        folder.mkdir(parents=True)
        if replicas == 1:  # as OpenICLEvalTask formats details that the evaluator did not give
            row = {"prompt": "2 + 2?", "origin_prediction": "It is 4", "predictions": "4", "references": "4"}
            rows = {str(n): {**row, "correct": n == 0 or model == "a"} for n in range(2)}
            details: Any = {"type": "GEN", **rows}
        else:
            details = [
                {"example_abbr": f"sums_{n}", "pred": ["4", "5"], "correct": [True, model == "a"]}
                for n in range(2)
            ]
        data = {"accuracy": 75.0, "details": details}
        (folder / "sums.json").write_text(json.dumps(data), "utf-8")
        (folder / "other.json").write_text('{"accuracy": 75.0}', "utf-8")
    done = bring(tmp_path, "outputs")
    assert done.code == 0, done.said
    if replicas == 1:
        expected = {("a", "0", 0, 1), ("a", "1", 0, 1), ("b", "0", 0, 1), ("b", "1", 0, 0)}
    else:
        expected = {
            (m, f"sums_{n}", k, int(k == 0 or m == "a")) for m in "ab" for n in (0, 1) for k in (0, 1)
        }
    assert outcomes(tmp_path) == any_order(expected)
    assert {record.request.task for record in trials(tmp_path / "run")} == {"sums"}
    (folder / "sums.json").write_text('{"details": [{"example_abbr": "sums_0", "pred": [1]}]}', "utf-8")
    seen = in_process("analyze", folder / "sums.json", "--preview", cwd=tmp_path)
    assert (seen.code, "has none of correct, is_correct" in seen.err) == (2, True)


def test_results_of_mcpmark(tmp_path):
    for model in ("gpt", "o3"):
        for run in (1, 2):
            folder = (
                tmp_path / "results" / "exp" / f"{model}__notion" / f"run-{run}" / "online_resume__task_1"
            )
            folder.mkdir(parents=True)
            meta = {
                "task_name": "online_resume__task_1",
                "model_name": model,
                "mcp": "notion",
                "agent_execution_time": 4.0,
                "execution_result": {"success": model == "gpt" or run == 2, "error_message": None},
                "token_usage": {"input_tokens": 900, "output_tokens": 70 + run},
            }
            (folder / "meta.json").write_text(json.dumps(meta), "utf-8")
            (folder / "messages.json").write_text("[]", "utf-8")
    done = bring(tmp_path, "results")
    assert done.code == 0, done.said
    name = "online_resume__task_1"
    expected = {("gpt", name, 0, 1), ("gpt", name, 1, 1), ("o3", name, 0, 0), ("o3", name, 1, 1)}
    assert outcomes(tmp_path) == any_order(expected)
    assert {record.usage.total_tokens for record in trials(tmp_path / "run")} == {971, 972}


@pytest.mark.slow
def test_arrays_and_raw_answers_of_the_paper(tmp_path):
    arrays = {"aime": np.array([[[1, 0], [1, 1]], [[0, 0], [0, 1]]]), "hmmt": np.array([[[1, 1]], [[0, -1]]])}
    np.savez(tmp_path / "tasks.npz", **arrays, models=np.array(["a", "b"]))
    done = bring(tmp_path, "tasks.npz")
    assert done.code == 0, done.said
    found = {(r.request.task, r.request.key.model) for r in trials(tmp_path / "run")}
    assert found == {(task, model) for task in arrays for model in "ab"}
    kept = outcomes(tmp_path)
    assert (kept["a", "q1", 0], kept["b", "q2", 1], kept["b", "q1", 0]) == (1, 1, 3)
    in_process("analyze", "tasks.npz", "--json", cwd=tmp_path, code=0)

    rows = [
        {"model": "m", "data_id": n, "seed": seed, "output": {"text": "4", "num_completion_tokens": 40},
         "tokens": {"completion_ppl": 1.5}, "processed_results": {"is_correct": k, "has_box": 1}}
        for n in (6, 7) for k, seed in enumerate((1261, 1262))
    ]  # fmt: skip
    (tmp_path / "raw.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    done = in_process("analyze", "raw.jsonl", "--write", "raw", cwd=tmp_path, code=0)
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
    done = bring(tmp_path, "board.csv", *columns)
    assert done.code == 0, done.said
    expected = {
        (agent, f"t{n}", k, int(agent == "new")) for agent in ("old", "new") for n in (0, 1) for k in (0, 1)
    }
    assert outcomes(tmp_path) == any_order(expected)
