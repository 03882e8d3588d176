"""``adaptive-eval import``: results of other tools become a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.log_options import choices_of, log_options
from adaptive_eval.cli.options import examples
from adaptive_eval.cli.simulating import decision_options, numbers, progress_bar

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import SessionSpec, TaskSpec
    from adaptive_eval.interop.found import Choices
    from adaptive_eval.interop.import_run import Imported

__all__ = ["command"]


@click.command(
    "import",
    epilog=examples(
        "adaptive-eval import lm_eval_out/ logs/*.eval --out runs/imported",
        "adaptive-eval import trials.csv --out runs/table --goal baseline=old --equivalence 0.02",
    ),
)
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SOURCES…")
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="RUN",
    help="The run's directory, which must not exist.",
)  # fmt: skip
@log_options
@click.option(
    "--right-from", type=click.FloatRange(0.0, 1.0), metavar="X", help="Lowest score that counts as right."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the order of questions.")
@decision_options(watched=False, some_models=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(**options: Any) -> None:
    """Write results of other tools as a run that report, monitor, analyze and the others take.

    SOURCES are files, or the folders that a tool writes to; their format is recognised by content:
    samples of lm-evaluation-harness (--log_samples), Inspect logs (.eval, .json), lighteval details,
    evalscope reviews, promptfoo results, tables with a row a trial (CSV, JSONL, Parquet, npz), runs of
    adaptive-eval. Several become one table of models, questions and trials. A mistake in one of them is
    an error, and nothing is imported.
    """
    from adaptive_eval.interop.detect import open_logs
    from adaptive_eval.interop.import_run import import_logs

    weights = None if options["weights"] is None else numbers(options["weights"], "--weights")
    choices = choices_of(options)
    logs = open_logs(options["sources"], choices)
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
    from adaptive_eval.text.headline import headline
    from adaptive_eval.text.numbers import count

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
