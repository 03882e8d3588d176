"""``adaptive-eval run``: the main job."""

from __future__ import annotations

from pathlib import Path

import click

from adaptive_eval.cli.options import config_options, disk_option, display_option, metrics_options
from adaptive_eval.errors import UsageError

__all__ = ["command"]


@click.command("run")
@config_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The run's directory. Default: runs/NAME, with the config's name.",
)
@click.option("--new", is_flag=True, help="Start over; an earlier run of this name is kept as NAME-1, -2, ….")
@disk_option
@display_option
@metrics_options
def command(
    config_file: Path,
    overrides: tuple[str, ...],
    out: Path | None,
    new: bool,
    disk_check: bool,
    display: str | None,
    metrics_port: str | None,
    metrics_file: Path | None,
) -> int:
    """Run the config CONFIG: ask, score, decide, stop; then write the report.

    A run of the same name that was interrupted, or whose budget has been raised, goes on where it was: no
    stored answer is paid for twice. Ctrl-C stops after the answers in flight; a second Ctrl-C cancels them.
    """
    from adaptive_eval.build.assembly import build
    from adaptive_eval.config import load_config
    from adaptive_eval.run.disk import require_room
    from adaptive_eval.run.execution import sit
    from adaptive_eval.run.observers import MetricsOptions

    config = load_config(config_file, overrides)
    built = build(config)
    directory = out if out is not None else Path("runs") / config.name
    if new:
        built.session()  # every mistake shows before anything is moved
        _set_aside(directory)
    if disk_check:
        require_room(built, directory)
    return sit(built, directory, display, MetricsOptions(metrics_port, metrics_file))


def _set_aside(directory: Path) -> None:
    """Rename an earlier run, so that nothing is lost; a directory that holds none stays where it is."""
    if not any((directory / name).exists() for name in ("run.db", "run.db.new")):
        return
    from adaptive_eval.store.writer import RunWriter

    if directory.name in ("", ".."):
        directory = directory.resolve()
    if Path.cwd().is_relative_to(directory.resolve()):
        raise UsageError(
            f"--new renames the directory of the earlier run, {directory}, and you are in it; start the "
            "command somewhere else, or name another directory with --out"
        )
    if (directory / "run.db").exists():
        RunWriter.open(directory).close()  # refuses while another process writes to it
    number = 1
    while (kept := directory.with_name(f"{directory.name}-{number}")).exists():
        number += 1
    try:
        directory.rename(kept)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be renamed to {kept.name}: {error.strerror}") from None
    click.echo(f"The earlier run is kept as {kept}.")
