"""Whole runs against mimics through the command line: exit codes and messages are those a person gets."""

import copy
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from adaptive_eval.cli.main import main

ARITHMETIC = Path(__file__).parents[2] / "configs" / "data" / "arithmetic.jsonl"


@dataclass(frozen=True)
class Result:
    """A command that has ended: exit code, standard output, standard error."""

    exit_code: int
    output: str
    stderr: str


_CONFIG: dict[str, Any] = {
    "name": "mimicked",
    "seed": 3,
    "mimic": {"seed": 7, "models": {"sage": {"mean": 0.9}, "novice": {"mean": 0.3}}},
    "models": [
        {
            "name": name,
            "endpoints": ["mimic"],
            "concurrency": 8,
            "sampling": {"temperature": 0.7, "max_tokens": 400, "logprobs": True},
        }
        for name in ("sage", "novice")
    ],
    "tasks": [
        {
            "name": "arithmetic",
            "dataset": str(ARITHMETIC),
            "fields": {"input": "question", "target": "answer"},
            "prompt": "{input}\nPut the final answer within \\boxed{}.",
            "scorer": "numeric",
        }
    ],
    "goal": "ranking",
    "budget": {"trials": 2000},
}


def mimic_config(task: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    """Return a config of two mimics on one task, with settings of the task and sections changed."""
    config = copy.deepcopy(_CONFIG)
    config["tasks"][0].update(task or {})
    config.update(sections)
    return config


def command(*arguments: object) -> Result:
    """Run ``adaptive-eval`` with these arguments, by the function that the installed command calls."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Result(code, out.getvalue(), err.getvalue())


def write_config(folder: Path, config: dict[str, Any]) -> Path:
    """Write a config and return its path. JSON is YAML."""
    path = folder / "config.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def run_config(folder: Path, config: dict[str, Any], *options: object) -> tuple[Path, Result]:
    """Run a config; return the run's directory and the command's result."""
    out = folder / "run"
    path = write_config(folder, config)
    return out, command("run", path, "--out", out, "--display", "none", *options)
