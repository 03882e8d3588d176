"""Interrupts while a command starts, and standard streams that are closed or full."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PATIENCE, QUICKSTART, environment, trials

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


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow)])
def test_an_interrupt_while_starting_is_one_line(tmp_path: Path, moment: str, number: str) -> None:
    command = ("run", str(QUICKSTART), "--out", "run", "--display", "none")
    done = subprocess.run(
        [sys.executable, "-c", AT_MOMENT, moment, number, *command],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_other_commands_clean_up_after_an_interrupt(tmp_path: Path) -> None:
    command = ("plan", str(QUICKSTART))
    done = subprocess.run(
        [sys.executable, "-c", AT_MOMENT, "import:adaptive_eval.config", "SIGINT", *command],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("redirection", [">&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
def test_a_run_outlives_its_streams(tmp_path: Path, redirection: str) -> None:
    command = f"{sys.executable} -m adaptive_eval run {QUICKSTART} --out run -o budget.trials=5 {redirection}"
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 3, done
    assert "Error" not in done.stdout + done.stderr
    assert len(trials(tmp_path / "run")) == 5
    assert (tmp_path / "run" / "report.html").exists()
