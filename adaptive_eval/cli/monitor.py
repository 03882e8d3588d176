"""``adaptive-eval monitor``: watch a live or finished run from another process, or list those of a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import PATH, WholeNumber, display_option, flag, given_options, option
from adaptive_eval.errors import UsageError
from adaptive_eval.stops import INTERRUPTED
from adaptive_eval.store.file_errors import decoding
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.run_files import RUN_FILE, holds_runs

if TYPE_CHECKING:
    from adaptive_eval.store.records import TargetLookup
    from adaptive_eval.views.summary import RunSummary
    from adaptive_eval.views.web_runs import RunRow

LOOK_EVERY = 0.5
"""Seconds between two looks at the run."""


ENDED = ("stopped", "interrupted")
"""States of a run that no process writes."""


@click.command("monitor")
@click.argument("run", type=PATH, metavar="[RUN|FOLDER]", default="runs")
@display_option
@flag("--json as_json", "Print a line of JSON at every change, or for every run.")
@flag("--once", "Show the run once and exit.")
@flag("--bayes", "Show Bayes@N mu ± sigma in addition to the scores.")
@click.option(
    "--until",
    type=click.Choice(["resolved", "stopped"]),
    help="Wait, then exit with the run's exit code. stopped: until the run ends, or no "
    "process runs it. resolved: wait through interruptions, until the goal is reached or a budget, a cap or "
    "its endpoints have ended the run.",
)
@flag("--web", "Serve a live web page, of a run or of all in a folder.")
@option(
    "--host ADDRESS",
    "Address the page listens on. With another, anyone who reaches it and knows the printed link, which "
    "holds a random token, can read the run; nobody can change it.",
    default="127.0.0.1",
)
@option("--port N", "Port of the page; 0 takes a free one.", WholeNumber(0, 65535), default=0)
def command(run: Path, display: str | None, as_json: bool, until: str | None, **options: Any) -> int:
    """Watch the run in the directory RUN until it stops. Any number of processes can watch.

    A FOLDER of runs is listed, the latest change first: state, trials, cost and verdict. Default: runs.

    The results of a run that has ended are made again from its trials, up to 100,000 of them; a live run
    and those of a folder are shown as stored, not replayed.

    The run file is only read. Ctrl-C ends the watching, not the run.
    """
    once = options["once"]
    bayes = options["bayes"]
    if options["web"]:
        for name in given_options(("display", "as_json", "once", "until")):
            raise UsageError(f"--web and {name} cannot be combined; watch from a second terminal for {name}")
        _serve(run, options["host"], options["port"])
        return 0
    if once and until is not None:
        raise UsageError("--once and --until cannot be combined: one leaves at once, the other waits")

    if holds_runs(run):
        if until is not None:
            raise UsageError(f"--until waits for one run, and {run} is a folder of runs; name one of them")
        _list(run, as_json)
        return 0
    from adaptive_eval.views.reading import Attachment

    with RunReader(run) as reader, decoding(reader.directory / RUN_FILE):
        attachment = Attachment(reader, time.time)
        try:
            if once:
                view = _print_once(_replayed(reader, attachment.summary(), ENDED), as_json, display, bayes)
            else:
                views = attachment.follow(time.sleep, LOOK_EVERY, wait_out=until == "resolved")
                views = (_replayed(reader, view, ENDED[:1]) for view in views)  # one that waits sees no end
                if as_json:
                    view = _print_json(views)
                else:
                    view = _watch(views, run, display, bayes)
        except KeyboardInterrupt:
            click.echo("Left; the run itself is not affected.", err=True)
            if until is not None:
                return INTERRUPTED
            return 0
    if until is None:
        return 0
    if view.stop is None:
        return INTERRUPTED
    return view.results.exit_code


def _replayed(reader: RunReader, summary: RunSummary, states: Collection[str]) -> RunSummary:
    """Return a view of a run that has ended as its trials lead to it; a live one is of the stored results."""
    from adaptive_eval.build.replay import replayed
    from adaptive_eval.views.reading import as_trials_say

    if summary.state in states:
        return as_trials_say(reader, summary, replayed)
    return summary


def _print_json(views: Iterator[RunSummary]) -> RunSummary:
    from adaptive_eval.views.report_json import JsonLines

    lines = JsonLines()
    for view in views:
        text = lines.line(view)
        if text is not None:
            click.echo(text)
    return view


def _print_once(view: RunSummary, as_json: bool, display: str | None, bayes: bool) -> RunSummary:
    from adaptive_eval.views.live_terminal import LiveView, make_console
    from adaptive_eval.views.terminal import run_display

    if as_json:
        return _print_json(iter([view]))
    if display in ("plain", "none"):
        with LiveView(display) as live:
            live.update(view)
    else:
        make_console().print(run_display(view, compact=display == "compact", bayes=bayes))
    return view


def _watch(views: Iterator[RunSummary], run: Path, display: str | None, bayes: bool) -> RunSummary:
    from adaptive_eval.views.live_terminal import LiveView
    from adaptive_eval.views.terminal import render_summary

    with LiveView(display, bayes=bayes) as live:
        for view in views:
            live.update(view)
    if live.display == "none":
        return view
    if live.display != "plain":
        report = run / "report.md"
        page = None
        if report.exists():
            page = report
        live.console.print(render_summary(view, page, bayes=bayes))
    if view.stop is None:
        click.echo(f"No process is running it. Continue it with: adaptive-eval run {run}", err=True)
    return view


def _list(folder: Path, as_json: bool) -> None:
    from adaptive_eval.views.web_runs import open_folder

    for row in open_folder(folder).rows():
        if as_json:
            click.echo(json.dumps(_row_data(row)))
        else:
            click.echo(_row_line(row))
    click.echo("These are stored results, not replayed: adaptive-eval validate RUN compares them.", err=True)


def _row_data(row: RunRow) -> dict[str, Any]:
    summary = row.summary
    if summary is None:
        return {"run": row.key, "error": row.error}
    models = [line.model for line in summary.results.models]
    stop = None
    if summary.stop is not None:
        stop = summary.stop.reason
    return {
        "run": row.key,
        "state": summary.state,
        "stop": stop,
        "models": models,
        "trials": summary.results.trials,
        "pairs_decided": len(summary.decided_pairs),
        "pairs": len(summary.results.pairs),
        "updated_at": summary.updated,
        "verdict": summary.headline_within(),
    }


def _row_line(row: RunRow) -> str:
    from adaptive_eval.views.sentences import used

    summary = row.summary
    if summary is None:
        return f"{row.label}: cannot be read: {row.error}"
    results = summary.results
    state = summary.state if summary.stop is None else summary.stop.reason
    return (
        f"{row.label}: {state}, {results.trials:,} trials, {used(results)}, "
        f"{len(summary.decided_pairs)} of {len(results.pairs)} pairs decided. {summary.headline_within()}"
    )


def _targets(reader: RunReader) -> TargetLookup:
    from adaptive_eval.build.describe import report_targets

    return report_targets(reader)


def _serve(run: Path, host: str, port: int) -> None:
    from adaptive_eval.views.web_app import is_loopback, serve

    def announce(address: str) -> None:
        click.echo(f"Open {address}")
        if not is_loopback(host):
            click.echo("Anyone who has this address and can reach this machine can read the run.", err=True)
        click.echo("Ctrl-C stops the page; the run itself is not affected.", err=True)

    try:
        serve(run, host=host, port=port, ready=announce, targets=_targets)
    except KeyboardInterrupt:
        click.echo("Stopped; the run itself is not affected.", err=True)
