"""``adaptive-eval samples``: look at single trials of a run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from adaptive_eval.cli.options import WholeNumber
from adaptive_eval.errors import UsageError


@click.command("samples")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--model", metavar="NAME", help="Only this model.")
@click.option("--task", metavar="NAME", help="Only this task.")
@click.option("--question", metavar="ID", help="Only the question with this id.")
@click.option("--category", type=WholeNumber(min=0), metavar="K", help="Only answers of category K.")
@click.option("--missing", is_flag=True, help="Only trials that got no answer or no category.")
@click.option(
    "--limit", type=WholeNumber(min=1), metavar="N", help="At most N. Default: 10; with --json, all."
)
@click.option("--newest", is_flag=True, help="The newest first.")
@click.option("--full", is_flag=True, help="Show long texts whole.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line, with whole texts.")
def command(
    run: Path,
    model: str | None,
    task: str | None,
    question: str | None,
    category: int | None,
    missing: bool,
    limit: int | None,
    newest: bool,
    full: bool,
    as_json: bool,
) -> None:
    """Show trials of the run in the directory RUN: prompt, answer, extraction, category, and why.

    The run may still be running.
    """
    from adaptive_eval.build.describe import describe_run
    from adaptive_eval.store.reader import RunReader
    from adaptive_eval.views.trials import sample_data, sample_lines

    if missing and category is not None:
        raise UsageError(f"--category {category} and --missing: a missing trial has no category")
    with RunReader(run) as reader:
        about = describe_run(reader)
        _known("model", model, list(about.models))
        _known("task", task, list(about.categories))
        trials = reader.trials(
            model=model,
            task=task,
            question=question,
            category=category,
            missing=True if missing else None,
            newest_first=newest,
            limit=limit if limit is not None or as_json else 10,
        )
        shown = 0
        for record in trials:
            known = about.categories.get(record.request.task, ()), about.target(record)
            if as_json:
                click.echo(json.dumps(sample_data(record, *known)))
            else:
                click.echo("\n".join([*([""] if shown else []), *sample_lines(record, *known, full=full)]))
            shown += 1
    if not shown and not as_json:
        click.echo("No stored trial matches.", err=True)


def _known(option: str, name: str | None, names: list[str]) -> None:
    if name is not None and name not in names:
        raise UsageError(f"--{option} {name!r}: the run has {', '.join(names)}")
