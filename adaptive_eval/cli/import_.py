"""``adaptive-eval import``: results of other tools become a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import Number, WholeNumber, choices_of, examples, log_options
from adaptive_eval.cli.simulating import decision_options, numbers, progress_bar

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import SessionSpec, TaskSpec
    from adaptive_eval.interop.found import Choices, Found, Log
    from adaptive_eval.interop.import_run import Imported

_PREVIEWED = 10
"""Trials that a preview shows of each log."""


@click.command(
    "import",
    epilog=examples(
        "adaptive-eval import lm_eval_out/ logs/*.eval --out runs/imported",
        "adaptive-eval import trials.csv --out runs/table --goal baseline=old --equivalence 0.02",
        "adaptive-eval import leaderboard.jsonl --map question=task_id,score=passed --model mine --preview",
    ),
)
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SOURCES…")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="RUN",
    help="The run's directory, which must not exist.",
)  # fmt: skip
@log_options
@click.option("--right-from", type=Number(0.0, 1.0), metavar="X", help="Lowest score that counts as right.")
@click.option("--preview", is_flag=True, help="Show how the first trials are read, and import nothing.")
@click.option("--seed", type=WholeNumber(min=0), default=0, help="Seed of the order of questions.")
@decision_options(watched=False, some_models=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(**options: Any) -> None:
    """Write results of other tools as a run that report, monitor, analyze and the others take.

    SOURCES are files, or the folders that a tool writes to; their format is recognised by content:
    samples of lm-evaluation-harness (--log_samples), Inspect logs (.eval, .json), lighteval details,
    evalscope reviews, promptfoo results, results.json of Terminal-Bench, runs.jsonl of METR, meta.json of
    MCPMark, per_instance_stats.json of HELM, results of OpenCompass with details, tables with a row a trial
    (CSV, JSON, JSONL, Parquet, npz; --map names their columns), runs of adaptive-eval. Several become one
    table of models, questions and trials. A mistake in one of them is an error, and nothing is imported.
    """
    from adaptive_eval.interop.detect import open_logs
    from adaptive_eval.interop.import_run import import_logs

    weights = None if options["weights"] is None else numbers(options["weights"], "--weights")
    choices = choices_of(options)
    if options["out"] is None and not options["preview"]:
        raise click.UsageError("say where to with --out RUN, or look at it first with --preview")
    logs = open_logs(options["sources"], choices)
    if options["preview"]:
        _preview(logs)
        return
    decide = partial(_session, {**options, "recorded": True}, choices)
    with progress_bar() as report:
        imported = import_logs(
            logs,
            options["out"],
            right_from=options["right_from"],
            weights=weights,
            decide=decide,
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
    from adaptive_eval.cli.simulated_run import session_spec
    from adaptive_eval.interop.import_run import default_spec

    choices.require_renamed(models)
    if len(models) == 1 and options["goal"] == "ranking":
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
