"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from adaptive_eval.errors import UsageError

if TYPE_CHECKING:
    from adaptive_eval.interop.found import Choices

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


def given_options(names: Iterable[str]) -> list[str]:
    """Return which of the options `names` the command line gives, as they are written there."""
    context = click.get_current_context()
    written = click.core.ParameterSource.COMMANDLINE
    return [name.replace("_", "-") for name in names if context.get_parameter_source(name) is written]


def named_mean(option: str, text: str) -> tuple[str, float]:
    """Return name and mean of NAME=MEAN.

    Examples
    --------
    >>> named_mean("--model", "expert=0.9")
    ('expert', 0.9)
    """
    name, _, value = text.rpartition("=")
    with suppress(ValueError):
        if name and 0.0 <= float(value) <= 1.0:
            return name, float(value)
    raise UsageError(f"{option} {text!r} is not NAME=MEAN with a mean from 0 to 1, such as expert=0.9")


def examples(*commands: str) -> str:
    """Return the end of a command's help: examples, one per line."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


log_options = stacked(
    click.option(
        "--model",
        multiple=True,
        metavar="NAME[=FILE]",
        help="The model, for files that name none; or a file more and its model. Repeatable.",
    ),
    click.option("--task", metavar="NAME", help="Name of the task, in place of the files' own."),
    click.option("--rename", multiple=True, metavar="OLD=NEW", help="Rename a model. Repeatable."),
    click.option("--id", "question_id", metavar="FIELD", help="The dataset's field that names a question."),
    click.option(
        "--map",
        "mapped",
        metavar="OURS=THEIRS,…",
        help="Which columns of a table hold what: question=task_id,model=agent,score=passed,repeat=trial. A "
        "point leads into an object; rows=PATH says where the rows of a JSON file are.",
    ),
    click.option("--metric", metavar="NAME", help="Metric or scorer to take, where the log has several."),
    click.option("--filter", metavar="NAME", help="Filter to take, where the log has several (lm-eval)."),
    click.option(
        "--scorer",
        metavar="SCORER",
        help="Score the answers again: a scorer's kind, or a mapping with kind and options.",
    ),
    click.option("--incomplete", is_flag=True, help="Take logs of unfinished evaluations too."),
)


def choices_of(options: Mapping[str, Any]) -> Choices:
    """Return the choices that the options hold; none for a command without these options."""
    from adaptive_eval.interop.found import Choices

    if "rename" not in options:
        return Choices()
    from adaptive_eval.interop.column_maps import read_map

    model, models = None, dict[Path, str]()
    for text in options["model"]:
        name, equals, file = text.rpartition("=")
        if equals and not Path(file).exists():
            raise UsageError(f"--model {text}: there is no file {file!r}")
        if equals:
            models[Path(file)] = name
        elif model is not None:
            raise UsageError(f"--model {model} and --model {text} name the same files; write NAME=FILE")
        else:
            model = text
    rename = {}
    for text in options["rename"]:
        old, _, new = text.rpartition("=")
        if not old or not new:
            raise UsageError(f"--rename {text!r} is not OLD=NEW")
        rename[old] = new
    scorer, scorer_options = None, {}
    if options["scorer"] is not None:
        from adaptive_eval.run.rescoring_requests import read_scorer

        section = read_scorer(options["scorer"])
        scorer, scorer_options = section.kind, section.options()
    as_given = ("task", "question_id", "metric", "filter", "incomplete")
    return Choices(
        model=model,
        models=models,
        rename=rename,
        columns=read_map(options["mapped"]),
        scorer=scorer,
        scorer_options=scorer_options,
        **{name: options[name] for name in as_given},
    )
