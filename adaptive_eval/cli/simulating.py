"""Options, progress bar and tables of the commands that simulate."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from adaptive_eval.cli.options import COUNT, FROM_0, Command, flag, option, stacked
from adaptive_eval.errors import UsageError
from adaptive_eval.views.inert import inert
from adaptive_eval.views.plain_data import json_text

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.simulate.many_runs import Simulator, Workers


Report = Callable[[str, int, int], None]
"""Called with what is simulated, the replicates done and their number."""

PIPED_WIDTH = 160
"""Columns where the output is no terminal."""

SPARE = 1
"""Characters by which a cell may be longer than the first one of its column."""


def simulation_options(replicates: str) -> Callable[[Command], Command]:
    """Add the options of every simulation; `replicates` says how many runs are the default."""
    return stacked(
        option(
            "--replicates N",
            f"Number of simulated runs; the error of a rate falls with its square root. {replicates}",
            COUNT,
        ),
        option("--seed N", "Seed of all random numbers.", FROM_0, default=0),
        option(
            "--ray ADDRESS", "Simulate on a Ray cluster: auto, local or HOST:PORT. The results are the same."
        ),
        option(
            "--workers N", "Processes. Default: one for each core. The results do not depend on it.", COUNT
        ),
        flag("--json as_json", "Print the results as JSON."),
    )


@contextmanager
def workers_of(options: Mapping[str, Any]) -> Iterator[Workers]:
    """Yield processes of this machine, or a Ray cluster."""
    if options["ray"] is None:
        yield options["workers"]
        return
    if options["workers"] is not None:
        raise UsageError("--workers is for processes here and --ray for a cluster; leave one out")
    from adaptive_eval.executors.ray_cluster import ray_pool

    with ray_pool(options["ray"], partial(click.echo, err=True)) as pool:
        yield pool


@contextmanager
def simulator_of(
    options: Mapping[str, Any], replicates: int, trials: int | None = None
) -> Iterator[Simulator]:
    """Yield what simulates as the options say.

    Without their number, there are `replicates` runs, or fewer of about so many `trials` together, in this
    process: others would take longer to begin.
    """
    from adaptive_eval.simulate.many_runs import Simulator

    given = options["replicates"]
    bound = trials if given is None else None
    with workers_of(options) as workers, progress_bar() as bar:
        # Bars would erase the rows that a plan prints on the same terminal, and these are its progress.
        report = None if trials is not None and sys.stdout.isatty() else bar
        if bound is not None and workers is None:
            workers = 1
        yield Simulator(given or replicates, options["seed"], workers, report, bound)


@contextmanager
def progress_bar() -> Iterator[Report]:
    """Show how far the simulations are, on standard error: as bars, or as lines if it is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _ProgressLines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield report


class _ProgressLines:
    """Prints a line of progress, no more than one in ten seconds."""

    every = 10.0  # seconds, as in the plain display of a run

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Print how much of a simulation is done."""
        if time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            click.echo(f"{what}: {done:,} of {total:,}", err=True)


_BETWEEN = 2
"""Characters between two columns."""


class GrowingTable:
    """A table whose rows are printed as they come, as texts by the heads of their columns.

    Columns whose head begins with ``<`` are set left, the others right. The first row sets their widths,
    unless more is said to be needed, by head. On a narrow terminal the `dispensable` ones are left out, as
    many as it takes and in this order.
    """

    def __init__(self, title: str, widths: Mapping[str, int] | None, dispensable: Sequence[str] = ()) -> None:
        self._title = title
        self._least = widths or {}
        self._dispensable = dispensable
        self._left_out: list[str] = []
        self._widths: dict[str, int] = {}

    def add(self, row: Mapping[str, str]) -> None:
        """Print one more row."""
        console = _console()
        first = not self._widths
        if first:
            console.print(self._title, style="bold")
            for head, text in row.items():
                self._widths[head] = max(len(head), len(text) + SPARE, self._least.get(head, 0))
            self._fit(console.width)
        table = Table(box=None, pad_edge=False, show_header=first)
        for head, width in self._widths.items():
            left = head.startswith("<")
            justify: Literal["left", "right"] = "right"
            if left:
                justify = "left"
            table.add_column(head.lstrip("<"), justify=justify, overflow="fold", width=width)
        table.add_row(*(row[head] for head in self._widths))
        console.print(table)

    def _fit(self, width: int) -> None:
        """Leave out columns until the others have room."""
        for head in self._dispensable:
            if sum(self._widths.values()) + _BETWEEN * (len(self._widths) - 1) <= width:
                return
            if head in self._widths:
                del self._widths[head]
                self._left_out.append(head)

    def end(self) -> None:
        """Say what has been left out, and set the table off from what follows."""
        if self._left_out:
            click.echo(f"Left out for want of room: {', '.join(self._left_out)}; --json has all.")
        click.echo()


def _console() -> Console:
    """Return a console on standard output, wide if it is no terminal."""
    from adaptive_eval.views.live_terminal import make_console

    console = make_console(sys.stdout)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table; columns whose name begins with ``<`` are set left, the others right."""
    console = _console()
    if title:
        console.print(title, style="bold")
    table = Table(box=None, pad_edge=False, show_header=any(column.strip("<") for column in columns))
    for column in columns:
        left = column.startswith("<")
        table.add_column(column.lstrip("<"), justify="left" if left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(inert, row))
    console.print(table)
    console.print()


def per_cent(share: float, decimals: int = 0) -> str:
    """Return a share as text, as rates with an interval are written.

    Examples
    --------
    >>> per_cent(0.887, 1), per_cent(0.12)
    ('88.7 %', '12 %')
    """
    return f"{100 * share:.{decimals}f} %"


def print_json(data: Any) -> None:
    """Print `data` as JSON, with null for infinities and NaN."""
    click.echo(json_text(data, indent=1))
