"""``adaptive-eval report``: write the report of a run again, compare two runs, or put several on one page."""

import json
from pathlib import Path

import click

from adaptive_eval.cli.options import FOLDER, PATH, flag, named, option
from adaptive_eval.errors import UsageError
from adaptive_eval.store.run_files import holds_runs


@named(
    "report",
    "runs/aime",
    "runs/before runs/after",
    "runs --output site",
)
@click.argument("run", type=PATH, metavar="RUN...", nargs=-1)
@option(
    "--output DIR",
    "Directory for the reports, made if missing. Default: RUN; a comparison is printed; a "
    "leaderboard goes to leaderboard.",
    FOLDER,
)
@flag("--leaderboard", "One page for one or two runs too.")
@flag("--no-examples", "Quote no questions and answers in report.html.")
@flag("--schema", "Print the JSON schema of report.json.")
def command(
    run: tuple[Path, ...], output: Path | None, leaderboard: bool, no_examples: bool, schema: bool
) -> None:
    """Write the report on the run in the directory RUN, and print where it is.

    report.html to read, report.md as text, report.json for programs, and a folder report with the tables as
    CSV and a Bayes@N table for a paper.

    Two runs are compared: changed verdicts, and differences of scores with intervals, printed as Markdown.
    With --output they are written as comparison.html, comparison.md and comparison.json.

    Three or more runs, or a folder of runs, make a leaderboard with the report of each: a static site.
    Reports of other runs in DIR stay. If another run has the same name, its report moves to NAME@DATE.

    Only run files are read, and datasets for expected answers. The report of an unfinished run says so.
    """
    if schema:
        from adaptive_eval.views.report_json import report_schema

        click.echo(json.dumps(report_schema(), indent=2))
        return
    if not run:
        raise UsageError("say which run to report on: adaptive-eval report RUN, such as runs/aime")
    if leaderboard or len(run) > 2 or any(map(holds_runs, run)):
        from adaptive_eval.build.describe import report_targets
        from adaptive_eval.build.replay import replayed
        from adaptive_eval.views.files import runs_in, write_leaderboard

        site = Path("leaderboard") if output is None else output
        click.echo(
            write_leaderboard(
                runs_in(run), site, with_examples=not no_examples, targets=report_targets, replay=replayed
            )
        )
    elif len(run) == 2:
        _compare(*run, output)
    else:
        from adaptive_eval.build.describe import report_targets
        from adaptive_eval.build.replay import replayed
        from adaptive_eval.views.files import write_reports

        paths = write_reports(
            run[0], output, with_examples=not no_examples, targets=report_targets, replay=replayed
        )
        for path in (paths.html, paths.markdown, paths.json, paths.tables):
            click.echo(path)


def _compare(before: Path, after: Path, output: Path | None) -> None:
    """Print the changes from one run to another, or write them to a directory."""
    from adaptive_eval.run.claims import compare_runs
    from adaptive_eval.views.comparison import comparison_markdown, write_comparison

    comparison = compare_runs(before, after)
    if output is None:
        click.echo(comparison_markdown(comparison), nl=False)
        return
    for path in write_comparison(comparison, output):
        click.echo(path)
