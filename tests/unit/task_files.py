"""Tasks from files by the settings that a test names."""

from pathlib import Path
from typing import Any

from adaptive_eval.options.section import as_read
from adaptive_eval.options.task_options import TaskConfig
from adaptive_eval.tasks import load
from adaptive_eval.tasks.task import Task


def load_task(
    name: str, path: str | Path, *, base: Path | None = None, check_target: Any = None, **settings: Any
) -> Task:
    """Return the task of a file."""
    section = as_read({"name": name, "dataset": str(path), "scorer": "exact", **settings})
    return load.load_task(TaskConfig(**section), str(path), base, check_target=check_target)
