"""What a person waits for before anything happens: no more is loaded than is used.

The seconds are printed by ``benchmarks/startup.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click import Context
from command_line import QUICKSTART, environment, trials

from adaptive_eval.cli.main import COMMANDS, cli

HEAVY = (
    "numpy", "scipy", "openai", "pydantic", "aiohttp", "httpx2", "starlette", "uvicorn", "ruamel",
)  # fmt: skip

ASK_FOR_HELP = f"""
import io, json, sys
from contextlib import redirect_stdout
from adaptive_eval.cli import main
said = {{}}
for command in sys.argv[1:]:
    with redirect_stdout(io.StringIO()) as text:
        try:
            main([*command.split(), "--help"])
        except SystemExit as end:
            loaded = sorted(set({HEAVY}) & sys.modules.keys())
            said[command] = [end.code, text.getvalue(), loaded]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def helps() -> dict[str, list[Any]]:
    """Code, text and what is loaded by then, of each command's help in turn; first, of no command's."""
    done = subprocess.run(
        [sys.executable, "-c", ASK_FOR_HELP, "", *COMMANDS], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, list[Any]] = json.loads(done.stdout)
    return said


def test_help_loads_nothing_heavy(helps: dict[str, list[Any]]) -> None:
    code, text, loaded = helps[""]
    assert (code, loaded) == (0, [])
    for command in COMMANDS:
        assert f"\n  {command} " in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_that_loads_nothing_heavy(helps: dict[str, list[Any]], command: str) -> None:
    code, text, heavy = helps[command]
    assert (code, heavy) == (0, [])
    assert text.startswith(f"Usage: adaptive-eval {command} ")
    assert "\\" not in text, "marks for the formatter are not for the reader"
    *_, examples = text.partition("\n  Examples:\n")
    assert all(line.startswith("    adaptive-eval ") for line in examples.splitlines()), examples
    loaded = cli.get_command(Context(cli), command)
    assert loaded is not None
    for parameter in loaded.params:
        if parameter.param_type_name == "option":
            assert parameter.help, f"{command} {parameter.opts} says nothing of itself"


IN_NO_RUN = (
    "scipy", "pandas", "polars", "pyarrow", "starlette", "uvicorn", "sympy", "datasets",
    "mlflow", "opentelemetry", "wandb", "litellm", "inspect_ai", "lm_eval", "ray",
)  # fmt: skip
"""What a run that scores numbers and shows itself in the terminal can do without."""

RUN = f"""
import sys
from adaptive_eval.cli import main
asked = set()
class Asked:  # also notices imports of what is not installed here
    def find_spec(name, *_):
        asked.add(name)
sys.meta_path.insert(0, Asked)
try:
    main(sys.argv[1:])
except SystemExit as end:
    print("loaded", *sorted(set({IN_NO_RUN}) & (asked | sys.modules.keys())), "and ended with", end.code)
"""


def test_a_run_loads_only_what_it_uses(tmp_path: Path) -> None:
    command = ("run", QUICKSTART, "--out", "run", "-o", "budget.trials=5", "--display", "none")
    done = subprocess.run(
        [sys.executable, "-c", RUN, *command], cwd=tmp_path, capture_output=True, text=True, env=environment()
    )
    assert done.stdout.endswith("loaded and ended with 3\n"), done.stdout + done.stderr
    assert len(trials(tmp_path / "run")) == 5
