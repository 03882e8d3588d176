"""What a person sees when a sitting has ended."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from rich.console import Console

from adaptive_eval.core.standings import StopReason
from adaptive_eval.monitor.attach import Attachment
from adaptive_eval.monitor.ending import render_summary
from adaptive_eval.monitor.snapshot import RunView
from adaptive_eval.report import ReportPaths
from adaptive_eval.store import RunReader

__all__ = ["show_end"]


_GO_ON: dict[StopReason, tuple[str, str]] = {
    "interrupted": ("Go on with", ""),
    "budget": ("Raise the budget and go on", " -o budget.NAME=VALUE"),
    "max_passes": ("Allow more passes and go on", " -o stopping.max_passes=NUMBER"),
    "endpoints": ("When the endpoints answer again, go on with", ""),
    "partial": ("When the endpoints answer again, go on with", ""),
}


def show_end(console: Console, directory: Path, paths: ReportPaths, reason: StopReason) -> None:
    """Print verdict, ranking, where the report is, and how a run that is not resolved goes on."""
    with RunReader(directory) as reader:
        view = Attachment(reader, time.time).view()
    console.print(render_summary(view, paths.html))
    if reason in _GO_ON:
        words, overrides = _GO_ON[reason]
        raised = _budget_to_raise(view)
        if reason in ("budget", "partial") and raised is not None:
            words, overrides = _GO_ON["budget"][0], f" -o {shlex.quote(raised)}"
        command = f"adaptive-eval resume {shlex.quote(str(directory))}{overrides}"
        console.print(f"{words}: {command}", soft_wrap=True)


def _budget_to_raise(view: RunView) -> str | None:
    """Return the setting of a model's or task's own budget that has ended the run or left pairs open."""
    spent = [
        one.models[0] for one in view.decisions if one.kind == "model_stopped" and one.verdict == "budget"
    ]
    stopped = {line.model for line in view.models if line.state == "stopped"}
    for model in reversed(spent):
        if model in stopped:
            return f"models[{model}].budget.NAME=VALUE"
    ended = view.stop.text if view.stop is not None else ""
    for line in view.standings.budgets:
        if line.scope == "task" and ended.startswith(f"budget of task {line.owner} ended "):
            return f"tasks[{line.owner}].budget.NAME=VALUE"
    return None
