"""``adaptive-eval``: the group of commands, and what an error looks like to a person."""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from traceback import extract_tb

import click

from adaptive_eval import __version__
from adaptive_eval.errors import AdaptiveEvalError, ConfigError, UsageError, in_words
from adaptive_eval.run.interrupts import ends_at_once, use_defaults
from adaptive_eval.stops import EXIT_CODES_HELP, INTERRUPTED, UNEXPECTED, USAGE

COMMANDS = {
    "quickstart": "Rank simulated models on this machine, in half a minute.",
    "init": "Write a first config; servers are asked which models they list.",
    "run": "Run a config until its goal or budget, or continue a run.",
    "monitor": "Watch a run in the terminal or browser, or list the runs of a folder.",
    "report": "Write the report of a run again, compare two runs, or put several on one page.",
    "samples": "Show trials of a run, or the answers of two models side by side.",
    "rescore": "Rank stored answers under another scorer or rubric; nothing is asked.",
    "tasks": "List the ready benchmarks, or write one out for a config.",
    "validate": "Check a config with its data and endpoints, or a run file; nothing is spent.",
    "plan": "Simulate a config: expected trials, cost, time, errors.",
    "analyze": "Rank results of other tools, tables or runs.",
    "check": "Check claims about a run by exit code, for CI.",
    "export": "Write a run for other tools: tables, logs, files of the Hub.",
    "mimic": "Serve biased coins as an OpenAI-compatible endpoint.",
    "paper": "Make the paper's simulated figures and tables, next to ours.",
}
"""Every command with its one-line help, so that --help imports none of them."""


class _LazyGroup(click.Group):
    """Imports a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in ("quickstart", "run"):
            use_defaults()
        command = import_module(f"adaptive_eval.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = get_close_matches(name, COMMANDS, n=1)
            hint = "; --help lists the commands"
            if near:
                hint = f"; did you mean {near[0]}?"
            raise click.UsageError(f"there is no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except OSError as error:  # of a path that was given, or that a config or run file names
            if error.filename is None:
                raise
            raise UsageError(f"{error.filename}: {error.strerror}; name another place") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog=EXIT_CODES_HELP,
)
@click.version_option(__version__, prog_name="adaptive-eval")
def cli() -> None:
    """Rank language models with as few answers as the question needs, and know how sure the ranking is."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; a user's mistake is one message, never a traceback."""
    _open_streams()
    with ends_at_once():
        code = _exit_code(sys.argv[1:] if arguments is None else arguments)
    sys.exit(code)


def _require_folder() -> None:
    """Refuse to work in a folder that is gone: every path would be in it."""
    try:
        Path.cwd()
    except OSError as error:
        raise UsageError(f"the current folder cannot be used: {in_words(error)}; change to another") from None


def _exit_code(arguments: Sequence[str]) -> int:
    try:
        _require_folder()
        code = cli.main(args=arguments, prog_name="adaptive-eval", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        _show_as_json(arguments, UsageError(error.format_message()))
        error.show()
        click.echo(f"[{UsageError.code}]", err=True)
        return error.exit_code
    except SystemExit as error:  # of a package's code: no verdict of ours
        where = extract_tb(error.__traceback__)[-1]
        if where.filename == click.core.__file__ or isinstance(error.__context__, BrokenPipeError):
            sys.stderr.close()  # Click or Rich ends us: the reader of our output has gone (``… | head``)
            return UNEXPECTED
        click.echo(
            f"error: code that this command calls raised SystemExit: {error} "
            f"({where.filename}, line {where.lineno})",
            err=True,
        )
        return UNEXPECTED
    except click.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except AdaptiveEvalError as error:
        with suppress(OSError):
            _show_as_json(arguments, error)
            click.echo(f"error: {_shown(_with_code(error))}", err=True)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        return UNEXPECTED
    if isinstance(code, int):
        return code
    return 0


def _show_as_json(arguments: Sequence[str], error: AdaptiveEvalError) -> None:
    """Print the error as a line of JSON (docs/report-schema.md) if ``--json`` asks for it."""
    if "--json" in arguments:
        said: dict[str, object] = {"code": error.code, "message": str(error)}
        if isinstance(error, ConfigError):
            said["problems"] = list(map(asdict, error.problems))
        click.echo(json.dumps({"error": said}))


def _shown(words: str) -> str:
    """Return what an error says, which may hold names from a file of a stranger, for a terminal."""
    from adaptive_eval.views.inert import inert

    return "\n".join(map(inert, words.split("\n")))


def _with_code(error: AdaptiveEvalError) -> str:
    """Return what an error says and its code, on a line of its own below a list; problems have theirs."""
    words = str(error)
    if isinstance(error, ConfigError):
        return words
    gap = " "
    if "\n" in words:
        gap = "\n"
    return words + gap + f"[{error.code}]"


def _open_streams() -> None:
    """Put the null device in the place of standard streams that are closed (``>&-``)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for good
