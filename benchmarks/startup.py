"""Time what a person waits for before anything happens: help, the first trial, ``from scorio import eval``.

    python benchmarks/startup.py

Each is timed beside the bare import of the libraries that it cannot do without: processor seconds of all
processes started, the least of five.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

QUICKSTART = Path(__file__).parents[1] / "configs" / "quickstart.yaml"
COMMAND = "from adaptive_eval.cli import main; main({!r})"


def computed(code: str) -> float:
    """Return the processor seconds of a Python process that runs `code`, with all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least(code: Callable[[], str]) -> float:
    return min(computed(code()) for _ in range(5))


def main() -> None:
    with TemporaryDirectory() as folder:
        number = iter(range(1000))

        def run() -> str:
            out = f"{folder}/{next(number)}"
            return COMMAND.format(
                ["run", str(QUICKSTART), "--out", out, "-o", "budget.trials=5", "--display", "none"]
            )

        for name, code, libraries in (
            ("adaptive-eval --help", lambda: COMMAND.format(["--help"]), "import click"),
            (
                "a run of five trials, with its server",
                run,
                "import aiohttp, numpy, openai, pydantic, ruamel.yaml",
            ),
            ("from scorio import eval", lambda: "from scorio import eval", "import numpy"),
        ):
            seconds, bare = least(code), least(lambda libraries=libraries: libraries)
            print(f"{name:<40} {seconds:6.2f} s, {seconds / bare:4.1f} x {libraries} ({bare:.2f} s)")


if __name__ == "__main__":
    main()
