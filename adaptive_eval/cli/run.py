"""``adaptive-eval run``: run a config, or continue a run from its run file alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import (
    FOLDER,
    PATH,
    SHARE,
    asked_of,
    asking_options,
    disk_option,
    display_option,
    flag,
    given_options,
    metrics_options,
    named,
    option,
    override_option,
)

if TYPE_CHECKING:
    from adaptive_eval.config import RunConfig

_WITHOUT = "Without CONFIG: "
_OF_NEW_CONFIGS = (
    *("models", "tasks", "margin", "api_key_env", "max_tokens", "temperature", "system", "scorer", "fields"),
)
_OF_CONFIGS = (".yaml", ".yml", ".json")


@named(
    "run",
    "my.yaml",
    "runs/my -o budget.trials=40k",
    "--model http://gpu1:8000/v1#a --model http://gpu1:8000/v1#b --task gsm8k",
    "--model openai/gpt-5-mini --model openai/gpt-5-nano --task rows.jsonl --field input=question",
)
@click.argument("source", type=PATH, metavar="[CONFIG|RUN]", required=False)
@option("--model models MODEL …", f"{_WITHOUT}a model: URL#NAME or PROVIDER/NAME. Repeatable.")
@option("--task tasks NAME …", f"{_WITHOUT}a ready benchmark (adaptive-eval tasks) or a file. Repeatable.")
@option("--margin N", f"{_WITHOUT}models closer than this count as tied.", SHARE)
@asking_options
@override_option
@option("--out DIR", "The run's directory. Default: runs/NAME, with the config's name.", FOLDER)
@flag("--new", "Start over; a previous run is kept as NAME-1, NAME-2, ….")
@flag("--allow-missing", "Run without models whose first request is refused. Default: end the run.")
@disk_option
@display_option
@metrics_options
def command(source: Path | None, out: Path | None, overrides: tuple[str, ...], **options: Any) -> int:
    """Run the config CONFIG until its goal is reached or a budget ends; then write the report.

    A run of the same name continues, if it was interrupted or its budget has been raised. A directory RUN
    continues with its stored config and the settings that -o changes. No stored answer is paid for twice;
    trials without an answer are asked again.

    --model and --task write a config, named for the tasks, and run it.

    Ctrl-C stops after the answers in flight; a second Ctrl-C cancels them.
    """
    if source is None:
        return _run_one_line(out, overrides, options)
    if given := given_options(_OF_NEW_CONFIGS):
        raise click.UsageError(f"{given[0]} is for a run without a config; {source} says that itself")
    if is_run(source):
        if out is not None:
            raise click.UsageError(f"--out is for a config; the run in {source} stays where it is")
        return run_to_the_end(_stored_config(source, overrides), source, options)
    config, directory = _config_and_directory(source, overrides, out)
    return run_to_the_end(config, directory, options)


def _config_and_directory(file: Path, overrides: tuple[str, ...], out: Path | None) -> tuple[RunConfig, Path]:
    from adaptive_eval.config import load_config

    config = load_config(file, overrides)
    return config, out if out is not None else Path("runs") / config.name


def _run_one_line(out: Path | None, overrides: tuple[str, ...], options: Mapping[str, Any]) -> int:
    """Write the config of models and tasks, and run it; leave no new config if nothing is asked."""
    from adaptive_eval.store.run_files import RUN_FILE

    file, new = _written(options)
    begun = False
    try:
        config, directory = _config_and_directory(file, overrides, out)
        try:
            return run_to_the_end(config, directory, options)
        finally:
            begun = (directory / RUN_FILE).exists()
    finally:
        if new and not begun:
            file.unlink()
            click.echo(f"Nothing was asked, so {file} is removed.", err=True)


def _written(options: Mapping[str, Any]) -> tuple[Path, bool]:
    """Write the config of models and tasks that options name; return its file, and whether it is new."""
    models = options["models"]
    tasks = options["tasks"]
    if not models or not tasks:
        raise click.UsageError("name a config or the directory of a run, or give --model URL#NAME and --task")
    from adaptive_eval.run.new_config import write_one_line

    file, new = write_one_line(
        models,
        tasks,
        options["margin"],
        Path(),
        asked=asked_of(options),
        scorer=options["scorer"],
        fields=options["fields"],
    )
    click.echo(f"The config is {file}.", err=True)
    return file, new


def is_run(source: Path) -> bool:
    """Tell whether an argument names a run, and not a config.

    Examples
    --------
    >>> is_run(Path("runs/aime")), is_run(Path("my.yaml"))
    (True, False)
    """
    if source.exists():
        return source.is_dir() or source.suffix == ".db"
    return source.suffix not in _OF_CONFIGS


def _stored_config(run: Path, overrides: tuple[str, ...]) -> RunConfig:
    from adaptive_eval.build.assembly import config_of_run
    from adaptive_eval.store.reader import RunReader

    with RunReader(run) as reader:
        return config_of_run(reader, overrides)


def run_to_the_end(config: RunConfig, directory: Path, given: Mapping[str, Any]) -> int:
    """Run or continue the run in `directory` on this terminal; return the exit code."""
    from adaptive_eval.build.assembly import build
    from adaptive_eval.cli.run_terminal import Terminal, lasting_streams
    from adaptive_eval.run.execution import RunOptions, execute, set_aside
    from adaptive_eval.run.observers import MetricsOptions

    with lasting_streams():
        built = build(config)
        if given["new"]:
            built.session()  # every mistake shows before anything is moved
            kept = set_aside(directory)
            if kept is not None:
                click.echo(f"The previous run is kept as {kept}.")
        terminal = Terminal(given["display"])
        options = RunOptions(
            console=terminal,
            metrics=MetricsOptions(given["metrics_port"], given["metrics_file"]),
            disk_check=given["disk_check"],
            allow_missing=given["allow_missing"],
        )
        ended = asyncio.run(execute(built, directory, options))
        return terminal.show_end(directory, config, ended)
