"""``adaptive-eval analyze --write``: results of other tools become a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import choices_of, numbers, session_spec
from adaptive_eval.cli.simulating import progress_bar

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import SessionSpec, TaskSpec
    from adaptive_eval.interop.found import Choices, Found, Log
    from adaptive_eval.interop.import_run import Imported

_PREVIEWED = 10
"""Trials that a preview shows of each log."""


def preview(options: Mapping[str, Any]) -> None:
    """Show how the first trials are read."""
    from adaptive_eval.interop.recorded_files import open_logs

    _preview(open_logs(options["recorded"], choices_of(options)))


def write_run(options: Mapping[str, Any]) -> None:
    """Write the results as a run."""
    from adaptive_eval.interop.import_run import import_logs
    from adaptive_eval.interop.recorded_files import open_logs

    weights = None if options["weights"] is None else numbers(options["weights"], "--weights")
    choices = choices_of(options)
    logs = open_logs(options["recorded"], choices)
    with progress_bar() as report:
        imported = import_logs(
            logs,
            options["write"],
            right_from=options["right_from"],
            weights=weights,
            decide=partial(_session, options, choices),
            progress=report,
        )
    _show(imported, len(logs), as_json=options["as_json"])


def _preview(logs: Sequence[Log]) -> None:
    """Show how the first trials of each log are read, and count all of them."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from adaptive_eval.interop.found import checked
    from adaptive_eval.views.inert import inert
    from adaptive_eval.views.numbers import count

    for log in logs:
        table = Table("model", "task", "question", "trial", "result", "text", box=box.SIMPLE)
        models, questions, trials = set(), set(), 0
        for trials, found in enumerate(checked(log), start=1):
            models.add(found.model)
            questions.add((found.task, found.question))
            if trials <= _PREVIEWED:
                number = "next" if found.number is None else str(found.number)
                cells = (found.model, found.task, found.question, number, _result_of(found), found.text[:40])
                table.add_row(*map(escape, map(inert, cells)))
        words = (count(len(models), "model"), count(len(questions), "question"), count(trials, "trial"))
        click.echo(f"{log.path} ({log.format}): {', '.join(words)}")
        Console().print(table)


def _result_of(found: Found) -> str:
    if found.missing is not None:
        return f"missing: {found.missing}"
    return f"score {found.score:g}" if found.score is not None else f"category {found.category}"


def _session(
    options: Mapping[str, Any], choices: Choices, models: tuple[str, ...], tasks: tuple[TaskSpec, ...]
) -> SessionSpec:
    """Return the session that decides; one model alone is only estimated, unless something else is asked."""
    from adaptive_eval.interop.import_run import default_spec

    choices.require_renamed(models)
    if len(models) == 1 and options["goal"] in (None, "ranking"):
        return default_spec(models, tasks)
    return session_spec(options, models, tasks)


def _show(imported: Imported, logs: int, *, as_json: bool) -> None:
    from adaptive_eval.views.headline import headline
    from adaptive_eval.views.numbers import count

    verdict = headline(imported.results)
    if as_json:
        data = {
            "run": str(imported.directory),
            "logs": logs,
            "trials": imported.trials,
            "missing": imported.missing,
            "copies": imported.copies,
            "absent": imported.absent,
            "notes": list(imported.notes),
            "models": {line.model: line.score for line in imported.results.models},
            "verdict": verdict,
        }
        click.echo(json.dumps(data, indent=2))
        return
    lacking = imported.missing - imported.copies
    missing = f", {lacking:,} without an answer" if lacking else ""
    click.echo(f"{imported.directory}: {imported.trials:,} trials{missing}, from {count(logs, 'log')}.")
    for note in imported.notes:
        click.echo(f"note: {note}")
    if imported.absent:
        trials = count(imported.absent, "trial")
        click.echo(f"note: the models' trial sequences have {trials} that no log has")
    click.echo(verdict)
    click.echo(f"Report: adaptive-eval report {imported.directory}")
