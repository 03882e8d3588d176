"""Logs that the real Inspect and lm-evaluation-harness write against a local server of biased coins."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from ruamel.yaml import YAML

from adaptive_eval.cli.main import cli
from adaptive_eval.mimic.mimic_spec import MimicSpec, spec_from_data

ARITHMETIC = Path(__file__).parents[2] / "configs" / "data" / "arithmetic.jsonl"
MODELS = {"sage": 0.9, "novice": 0.3}
PROMPT = "{question}\nPut the final answer within \\boxed{{}}."

_FILE = Path(__file__).parents[1] / "data" / "lm_eval_task.yaml"
LM_EVAL_TASK = YAML(typ="safe", pure=True).load(_FILE.read_text("utf-8"))

INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import pattern
from inspect_ai.solver import generate


def sample(row):
    text = row["question"] + "\\nPut the final answer within \\\\boxed{{}}."
    return Sample(input=text, target=row["answer"], id=row["id"])


@task
def sums():
    return Task(
        dataset=json_dataset({dataset!r}, sample),
        solver=generate(),
        scorer=pattern(r"boxed\\{{(-?[0-9.,]+)\\}}"),
    )
"""


def questions(folder: Path, count: int = 20) -> Path:
    """Write questions whose answers are texts, so that no library makes other numbers of them."""
    rows = [json.loads(line) for line in ARITHMETIC.read_text(encoding="utf-8").splitlines()]
    whole = [row for row in rows if isinstance(row["answer"], int)][:count]
    path = folder / "questions.jsonl"
    lines = [json.dumps({**row, "answer": str(row["answer"])}) for row in whole]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def mimic_spec(dataset: Path) -> MimicSpec:
    """Return a server that knows these questions."""
    rows = [json.loads(line) for line in dataset.read_text(encoding="utf-8").splitlines()]
    known = [
        {"id": row["id"], "question": row["question"], "target": row["answer"], "kind": "numeric",
         "dataset": "sums"}
        for row in rows
    ]  # fmt: skip
    models = [{"name": name, "mean": mean} for name, mean in MODELS.items()]
    return spec_from_data({"seed": 5, "models": models, "questions": known}, "mimic")


def models_at(url: str) -> list[dict[str, Any]]:
    """Return both models of a config, at this address."""
    sampling = {"temperature": 0.7, "max_tokens": 400}
    return [{"name": name, "endpoints": [url], "concurrency": 4, "sampling": sampling} for name in MODELS]


def run(folder: Path, config: dict[str, Any], *options: str) -> tuple[int, str]:
    """Run a config through the command; return the exit code and what was printed."""
    path = folder / "config.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    arguments = ["run", str(path), "--out", str(folder / "run"), "--display", "none", *options]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def inspect_task(folder: Path, dataset: Path) -> Path:
    """Write a task of Inspect over these questions."""
    path = folder / "sums_task.py"
    path.write_text(INSPECT_TASK.format(dataset=str(dataset)), encoding="utf-8")
    return path


def lm_eval_logs(folder: Path, dataset: Path, base_url: str, repeats: int) -> Path:
    """Run lm-eval's command for every model; return the folder that it wrote to."""
    tasks, out = folder / "tasks", folder / f"lm_eval_{repeats}"
    tasks.mkdir(exist_ok=True)
    task = {**LM_EVAL_TASK, "repeats": repeats, "dataset_kwargs": {"data_files": {"test": str(dataset)}}}
    (tasks / "sums.yaml").write_text(json.dumps(task), encoding="utf-8")  # JSON is YAML
    environment = {
        **os.environ,
        "OPENAI_API_KEY": "none",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "huggingface"),
    }
    for model in MODELS:
        arguments = (
            f"model={model},base_url={base_url}/chat/completions,num_concurrent=4,tokenized_requests=False"
        )
        command = [
            sys.executable, "-m", "lm_eval", "run", "--model", "local-chat-completions",
            "--model_args", arguments, "--tasks", "sums", "--include_path", str(tasks),
            "--apply_chat_template", "--log_samples", "--output_path", str(out),
        ]  # fmt: skip
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
    return out
