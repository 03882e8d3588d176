"""What a person sees when a sitting has ended."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from rich.console import Console

from adaptive_eval.config import RunConfig
from adaptive_eval.core.results import StopReason
from adaptive_eval.monitor.attach import Attachment
from adaptive_eval.monitor.run_end import render_summary
from adaptive_eval.monitor.snapshot import RunView
from adaptive_eval.report import ReportPaths
from adaptive_eval.store import RunReader
from adaptive_eval.text.raised_limits import more_passes, raised_budgets

__all__ = ["show_end"]


_GO_ON: dict[StopReason, str] = {
    "interrupted": "Go on with",
    "budget": "Raise the budget and go on",
    "max_passes": "Allow more passes and go on",
    "endpoints": "When the endpoints answer again, go on with",
    "partial": "When the endpoints answer again, go on with",
}


def show_end(
    console: Console, directory: Path, config: RunConfig, paths: ReportPaths, reason: StopReason
) -> None:
    """Print verdict, ranking, where the report is, and how a run that is not resolved goes on.

    What is to be raised stands there as a command that can be given as it is: it doubles the limit.
    """
    with RunReader(directory) as reader:
        view = Attachment(reader, time.time).view()
    console.print(render_summary(view, paths.html))
    if reason in _GO_ON:
        words, overrides = _going_on(view, config, reason)
        command = ["adaptive-eval", "resume", str(directory)]
        for override in overrides:
            command += ["-o", override]
        console.print(f"{words}: {shlex.join(command)}", soft_wrap=True)


def _going_on(view: RunView, config: RunConfig, reason: StopReason) -> tuple[str, list[str]]:
    """Return what to say before the command, and the settings that it takes."""
    if reason == "max_passes":
        return _GO_ON[reason], [more_passes(config)]
    raised = raised_budgets(view.results, view.decisions, config)
    return _GO_ON["budget" if raised else reason], raised
