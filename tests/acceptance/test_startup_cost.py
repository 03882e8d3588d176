"""What a person waits for before anything happens: help at once, the first trial soon."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click import Context
from command_line import (
    QUICKSTART,
    adaptive_eval,
    environment,
    trials,
)

from adaptive_eval.cli.main import COMMANDS, cli

HEAVY = (
    "numpy",
    "scipy",
    "openai",
    "pydantic",
    "aiohttp",
    "httpx2",
    "starlette",
    "uvicorn",
    "ruamel",
)

ASK_FOR_HELP = f"""
import sys
from adaptive_eval.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    loaded = sorted(set({HEAVY}) & sys.modules.keys())
    sys.exit(f"loaded {{loaded}}, code {{end.code}}" if loaded or end.code else 0)
"""


def asked_for_help(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ASK_FOR_HELP, *arguments], capture_output=True, text=True, env=environment()
    )


def test_help_loads_nothing_heavy() -> None:
    done = asked_for_help("--help")
    assert done.returncode == 0, done.stderr
    for command in COMMANDS:
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_that_loads_nothing_heavy(command: str) -> None:
    done = asked_for_help(command, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Usage: adaptive-eval {command} ")
    loaded = cli.get_command(Context(cli), command)
    assert loaded is not None
    for parameter in loaded.params:
        if parameter.param_type_name == "option":
            assert parameter.help, f"{command} {parameter.opts} says nothing of itself"


def computed(command: Callable[[], object]) -> float:
    """Return the seconds of processor time that a command takes, with all processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def python(code: str) -> Callable[[], object]:
    return partial(subprocess.run, [sys.executable, "-c", code], check=True)


def test_help_is_there_at_once() -> None:
    """0.4 s are promised of an idle machine, where Python with the parser of commands needs a third of it.

    Processor time, and in proportion: so it is the same of a slow machine and of a busy one. Best of three.
    """
    bare = min(computed(python("import click")) for _ in range(3))
    seconds = min(computed(lambda: adaptive_eval("--help", cwd=Path.cwd())) for _ in range(3))
    print(f"adaptive-eval --help: {seconds:.2f} s of processor time; Python with click: {bare:.2f} s")
    assert seconds < 4.0 * bare


def test_the_first_trial_starts_soon(tmp_path: Path) -> None:
    """2 s are promised of an idle machine, a third of them for the libraries that a run cannot do without."""
    command = ("run", QUICKSTART, "--out", "run", "-o", "budget.trials=5", "--display", "none")
    libraries = computed(python("import aiohttp, numpy, openai, pydantic, ruamel.yaml"))
    seconds = computed(lambda: adaptive_eval(*command, cwd=tmp_path))
    print(f"a run of five trials: {seconds:.2f} s of processor time; its libraries: {libraries:.2f} s")
    assert len(trials(tmp_path / "run")) == 5
    assert seconds < 6.0 * libraries
