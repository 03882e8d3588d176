"""``adaptive-eval runs``: list the runs of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from adaptive_eval.views.web.folder import RunRow


@click.command("runs")
@click.argument("folder", type=click.Path(path_type=Path), metavar="[FOLDER]", default="runs")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def command(folder: Path, as_json: bool) -> None:
    """List the runs in FOLDER, the latest change first: state, trials, cost and verdict.

    FOLDER is a folder of runs or a run. Default: runs.
    """
    from adaptive_eval.views.web.folder import open_folder

    for row in open_folder(folder).rows():
        click.echo(json.dumps(_data(row)) if as_json else _line(row))


def _data(row: RunRow) -> dict[str, Any]:
    if row.view is None:
        return {"run": row.key, "error": row.error}
    results, stop = row.view.results, row.view.stop
    return {
        "run": row.key,
        "state": row.view.state,
        "stop": None if stop is None else stop.reason,
        "models": [line.model for line in row.view.models],
        "trials": results.trials,
        "pairs_decided": row.resolved,
        "pairs": row.pairs,
        "changed_at": row.view.at,
        "headline": row.headline,
    }


def _line(row: RunRow) -> str:
    if row.view is None:
        return f"{row.label}: cannot be read: {row.error}"
    stop = row.view.stop
    state = row.view.state if stop is None else stop.reason
    return (
        f"{row.label}: {state}, {row.view.results.trials:,} trials, {row.used}, "
        f"{row.resolved} of {row.pairs} pairs decided. {row.headline}"
    )
