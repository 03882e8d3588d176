"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def stacked(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, the first on top."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


class Number(click.FloatRange):
    """A number, with its range in words."""

    name = "number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what stands for the value in a help text."""
        return "N"

    def _describe_range(self) -> str:
        return range_words(self)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; a mistake is said in words."""
        return in_words(self, super().convert, value, param, ctx)


class WholeNumber(click.IntRange):
    """A whole number, with its range in words."""

    name = "whole number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what stands for the value in a help text."""
        return "N"

    def _describe_range(self) -> str:
        return range_words(self)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; a mistake is said in words."""
        return in_words(self, super().convert, value, param, ctx)


def in_words(
    kind: Number | WholeNumber,
    convert: Callable[..., Any],
    value: Any,
    param: click.Parameter | None,
    context: click.Context | None,
) -> Any:
    """Convert a value; say in words which values there are.

    Examples
    --------
    >>> WholeNumber(1).convert("0", None, None)
    Traceback (most recent call last):
        ...
    click.exceptions.BadParameter: '0' is not a whole number from 1
    """
    try:
        return convert(value, param, context)
    except click.BadParameter:
        words = f"{value!r} is not a {kind.name} {range_words(kind)}".rstrip()
        raise click.BadParameter(words, context, param) from None


def range_words(kind: Number | WholeNumber) -> str:
    """Return which numbers are allowed; nothing where all are.

    Examples
    --------
    >>> range_words(WholeNumber(1)), range_words(Number(0, 1, min_open=True)), range_words(Number())
    ('from 1', 'above 0 up to 1', '')
    """
    parts = []
    if kind.min is not None:
        parts.append(f"above {kind.min:g}" if kind.min_open else f"from {kind.min:g}")
    if kind.max is not None:
        parts.append(f"below {kind.max:g}" if kind.max_open else f"up to {kind.max:g}")
    return " ".join(parts)


override_option = click.option(
    "-o",
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the config, such as budget.trials=500. Repeatable.",
)

display_option = click.option(
    "--display",
    type=click.Choice(["full", "compact", "plain", "none"]),
    help="How to show the run. Default: full on a terminal, plain lines elsewhere.",
)

disk_option = click.option(
    "--disk-check/--no-disk-check",
    default=True,
    help="Check first that the run has room on its disk.",
)

config_options = stacked(
    click.argument("config_file", metavar="CONFIG", type=click.Path(path_type=Path)), override_option
)

metrics_options = stacked(
    click.option(
        "--metrics-port",
        metavar="[HOST:]PORT",
        help="Serve Prometheus metrics at http://127.0.0.1:PORT/metrics while running.",
    ),
    click.option(
        "--metrics-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Keep Prometheus metrics in FILE, for a textfile collector.",
    ),
)


def examples(*commands: str) -> str:
    """Return the end of a command's help: examples, one per line."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])
