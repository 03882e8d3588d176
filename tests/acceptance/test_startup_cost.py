"""What a person waits for before anything happens, and signals meanwhile."""

import json
import sys
from typing import Any

import pytest
from click import Context
from command_line import QUICKSTART, Finished, ended, python, trials

from adaptive_eval.cli.main import COMMANDS, cli

# What a person waits for before anything happens: no more is loaded than is used.


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
    done = python("-c", ASK_FOR_HELP, "", *COMMANDS, code=0)
    said: dict[str, list[Any]] = json.loads(done.out)
    return said


def test_help_loads_nothing_heavy(helps):
    code, text, loaded = helps[""]
    assert (code, loaded) == (0, [])
    for command in COMMANDS:
        assert f"\n  {command} " in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_that_loads_nothing_heavy(helps, command):
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


LOADS = {
    "from adaptive_eval.endpoints.apis import OpenAIChat\nOpenAIChat('http://h/v1', 'm').body([], seed=1)": (
        "openai", "httpx2", "aiohttp", "pydantic",
    ),
    "import adaptive_eval.mimic.serving": ("numpy", "scipy", "openai", "httpx", "rich"),
    "import adaptive_eval.cli.monitor": ("jinja2", "starlette"),
}  # fmt: skip
"""Code, and what it can do without."""


@pytest.mark.parametrize("code", LOADS)
def test_nothing_is_imported_before_it_is_used(code):
    done = python("-c", f"import sys\n{code}\nprint(*set({LOADS[code]}) & sys.modules.keys())")
    assert done == Finished(0, "\n", "")


IN_NO_RUN = (
    "scipy.integrate", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.stats",
    "pandas", "polars", "pyarrow", "starlette", "uvicorn", "sympy", "datasets",
    "mlflow", "opentelemetry", "wandb", "litellm", "inspect_ai", "lm_eval", "ray",
    "adaptive_eval.executors.ray_cluster",
)  # fmt: skip
"""What a run that scores numbers and shows itself in a terminal can do without. Bets need `scipy.special`."""

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


def test_a_run_loads_only_what_it_uses(tmp_path):
    command = ("run", QUICKSTART, "--out", "run", "-o", "budget.trials=5", "--display", "none")
    done = python("-c", RUN, *command, cwd=tmp_path)
    assert done.out.endswith("loaded and ended with 3\n"), done.said
    assert len(trials(tmp_path / "run")) == 5


# Interrupts while a command starts, and standard streams that are closed or full.


AT_MOMENT = """
import os, signal, sys
moment, name, number = sys.argv[1].split(":")[0], sys.argv[1].split(":")[1], signal.Signals[sys.argv[2]]

def hook(event, arguments):
    if event == moment and (not name or arguments[0] == name):
        os.kill(os.getpid(), number)

from adaptive_eval.__main__ import main
sys.addaudithook(hook)
sys.argv[1:] = sys.argv[3:]
main()
"""

MOMENTS = (
    "import:click", "import:numpy", "import:asyncio", "import:adaptive_eval.run.execution",
    "subprocess.Popen:", "sqlite3.connect:",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interrupt_while_starting_is_one_line(tmp_path, moment, number):
    command = ("run", QUICKSTART, "--out", "run", "--display", "none")
    done = python("-c", AT_MOMENT, moment, number, *command, cwd=tmp_path)
    assert done == Finished(130, "", "interrupted\n")


def test_other_commands_clean_up_after_an_interrupt(tmp_path):
    moment = "import:adaptive_eval.config"
    assert python("-c", AT_MOMENT, moment, "SIGINT", "plan", QUICKSTART, cwd=tmp_path).code == 130


@pytest.mark.slow
@pytest.mark.parametrize("redirection", [">&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
def test_a_run_outlives_its_streams(tmp_path, redirection):
    command = f"{sys.executable} -m adaptive_eval run {QUICKSTART} --out run -o budget.trials=5 {redirection}"
    done = ended("sh", "-c", command, cwd=tmp_path, code=3)
    assert "Error" not in done.said
    assert len(trials(tmp_path / "run")) == 5
    assert (tmp_path / "run" / "report.html").exists()
