"""``adaptive-eval quickstart``: a whole run on this machine, from an installed package too."""

import shutil
import sys
from pathlib import Path

import click

import adaptive_eval
from adaptive_eval.cli.options import named

_WITHIN = Path(adaptive_eval.__file__).parent
_CONFIGS = (_WITHIN / "quickstart", _WITHIN.parent / "configs")
"""Paths of the config in an installed package and in a clone."""

_NEXT = (
    ("monitor runs/quickstart --web", "shows the report in a browser"),
    ("samples runs/quickstart", "shows answers, and how they were scored"),
    ("init my.yaml", "writes a config for your own models"),
)


@named("quickstart", "", "--display plain", context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF run]")
def command(options: tuple[str, ...]) -> int:
    """Rank five simulated models on 40 word problems: half a minute, no key, no GPU, nothing downloaded.

    A local mimic server (real HTTP) answers. The run is kept in runs/quickstart, a previous one as
    runs/quickstart-1, and so on.
    """
    from adaptive_eval.cli.run import command as run

    config = next(file for folder in _CONFIGS if (file := folder / "quickstart.yaml").exists())
    code = run.main([str(config), "--new", *options], "adaptive-eval quickstart", standalone_mode=False)
    assert isinstance(code, int)
    elsewhere = any(option.startswith("--out") for option in options)
    if code == 0 and not elsewhere:
        click.echo("\nNext")
        called = _called()
        width = max(len(arguments) for arguments, _ in _NEXT)
        for arguments, purpose in _NEXT:
            click.echo(f"  {called} {arguments:<{width}}  {purpose}")
    return code


def _called() -> str:
    """Return what to type for this command: its path if the shell would not find it."""
    name = "adaptive-eval"
    if shutil.which(name):
        return name
    return str(Path(sys.argv[0]))
