"""Whole runs against mimics through the command line: exit codes and messages are those a person gets."""

import copy
from pathlib import Path
from typing import Any

from command_line import ARITHMETIC_TASK, Code, Finished, in_process, write_config

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
    "tasks": [ARITHMETIC_TASK],
    "goal": "ranking",
    "budget": {"trials": 2000},
}


def mimic_config(task: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    """Return a config of two mimics on one task, with settings of the task and sections changed."""
    config = copy.deepcopy(_CONFIG)
    config["tasks"][0].update(task or {})
    config.update(sections)
    return config


def command(*arguments: object, code: Code = None) -> Finished:
    """Run ``adaptive-eval`` with these arguments where this process is; it has to end with this code."""
    return in_process(*arguments, cwd=Path.cwd(), code=code)


def run_config(folder: Path, config: dict[str, Any], *options: object) -> tuple[Path, Finished]:
    """Run a config; return the run's directory and the command's result."""
    out = folder / "run"
    path = write_config(folder, config)
    return out, command("run", path, "--out", out, "--display", "none", *options)


def finished(folder: Path, config: dict[str, Any], *options: object, code: int | None = None) -> Path:
    """Run a config to its goal, to the end of its budget, or to the exit code; return the run's directory."""
    out, done = run_config(folder, config, *options)
    done.ending_with((0, 3) if code is None else code)
    return out
