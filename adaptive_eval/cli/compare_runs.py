"""``adaptive-eval compare``: what has changed from one run to another."""

from __future__ import annotations

from pathlib import Path

import click

from adaptive_eval.cli.options import examples


@click.command(
    "compare",
    epilog=examples(
        "adaptive-eval compare runs/before runs/after",
        "adaptive-eval compare runs/before runs/after --output changes",
    ),
)
@click.argument("before", type=click.Path(path_type=Path), metavar="BEFORE")
@click.argument("after", type=click.Path(path_type=Path), metavar="AFTER")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Directory for the comparison, made where missing. Default: it is printed.",
)
def command(before: Path, after: Path, output: Path | None) -> None:
    """Compare the runs in the directories BEFORE and AFTER.

    Prints as Markdown which verdicts have changed and by how much the scores differ, with intervals; with
    --output writes it as comparison.html, comparison.md and comparison.json. Only the run files are read.
    Several runs are put on one page by adaptive-eval report.
    """
    from adaptive_eval.cli.report import compare

    compare(before, after, output)
