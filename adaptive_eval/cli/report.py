"""``adaptive-eval report``: write the report of a run again, or compare two runs."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("other", type=click.Path(path_type=Path), metavar="[OTHER]", required=False)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Directory for the reports, made where missing. Default: RUN; a comparison is printed.",
)
def command(run: Path, other: Path | None, output: Path | None) -> None:
    """Write the report on the run in the directory RUN, and print where it is.

    report.html to read, report.md as text, report.json for programs, and a folder report with the tables as
    CSV and a Bayes@N table for a paper.

    With OTHER, a later run: print as Markdown which verdicts have changed and by how much the scores differ;
    with --output write it as comparison.html, comparison.md and comparison.json.

    Only the run file is read. A report on a running run says so.
    """
    if other is not None:
        _compare(run, other, output)
        return
    from adaptive_eval.report import write_reports

    paths = write_reports(run, output)
    for path in (paths.html, paths.markdown, paths.json, paths.tables):
        click.echo(path)


def _compare(before: Path, after: Path, output: Path | None) -> None:
    from adaptive_eval.report.compare_views import comparison_markdown, write_comparison
    from adaptive_eval.run.claims import compare_runs

    comparison = compare_runs(before, after)
    if output is None:
        click.echo(comparison_markdown(comparison), nl=False)
        return
    for path in write_comparison(comparison, output):
        click.echo(path)
