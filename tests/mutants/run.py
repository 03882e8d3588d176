r"""Apply one-line mutants to a copy of the code, one at a time; the tests named for each must fail.

    python tests/mutants/run.py [--sample N] [--only TEXT]

The table is ``table.txt``. A line ``tests: NAME ...`` names the tests (arguments of pytest) that must kill
the mutants below it, ``file: PATH`` their file. Each mutant is a line ``old ==> new`` (``\n`` for a new
line), whose old text occurs exactly once in the file. The exit code is 1 where a mutant survives, its old
text is not there (any more), it cannot be imported, or the tests fail without it.
"""

import argparse
import compileall
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 150.0
"""Seconds, at least, after which a mutant that has made an endless loop counts as killed."""
WARM = ("aiohttp", "httpx2", "numpy", "pydantic", "pytest", "scipy.stats", "starlette")
"""Imported once, before each mutant gets a process of its own."""


@dataclass(frozen=True)
class Mutant:
    """One change of one line."""

    tests: tuple[str, ...]
    file: str
    old: str
    new: str
    line: int  # in the table

    def __str__(self) -> str:
        return f"table.txt:{self.line}: {self.file}: {self.old} ==> {self.new}"


def table(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of the table."""
    tests: tuple[str, ...] = ()
    file = ""
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        line = raw
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("tests: "):
            tests = tuple(line.removeprefix("tests: ").split())
        elif line.startswith("file: "):
            file = line.removeprefix("file: ")
        else:
            old, arrow, new = line.partition(" ==> ")
            if not (arrow and tests and file and old != new):
                sys.exit(
                    f"table.txt:{number}: a mutant is `old ==> new` below tests: and file:, got {line!r}"
                )
            yield Mutant(tests, file, old.replace("\\n", "\n"), new.replace("\\n", "\n"), number)


def copied(folder: Path) -> None:
    """Copy what tests need, as it is in the working tree."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def outcome(folder: Path, tests: tuple[str, ...], limit: float) -> int:
    """Return pytest's exit code for `tests` in a forked process; 1 where they take too long."""
    child = os.fork()
    if child == 0:
        os.setsid()  # what the tests start ends with them
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        code = 3
        try:
            import pytest

            code = int(pytest.main(["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", *tests]))
        finally:
            os._exit(code)
    ends = time.monotonic() + limit
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found or time.monotonic() > ends:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status) if found else (os.waitpid(child, 0), 1)[1]
        time.sleep(0.01)


def tried(folder: Path, mutant: Mutant, limit: float) -> str:
    """Return what became of a mutant: killed, or why it was not."""
    path = folder / mutant.file
    original = path.read_text(encoding="utf-8")
    path.write_text(original.replace(mutant.old, mutant.new), encoding="utf-8")
    compiled = list((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"))
    for one in compiled:  # nobody writes it again, so that no stale one is read
        one.unlink()
    try:
        code = outcome(folder, mutant.tests, limit)
    finally:
        path.write_text(original, encoding="utf-8")
    if code == 1:
        return "killed"
    return "SURVIVED" if code == 0 else f"pytest ended with {code}: does it import, do its tests exist?"


def sampled(mutants: list[Mutant], number: int) -> list[Mutant]:
    """Return so many mutants, those of recently changed files first; another choice with each commit."""
    head, changed = git("rev-parse", "HEAD"), set(git("log", "-20", "--name-only", "--format=").split())
    order = random.Random(head).sample(mutants, len(mutants))
    order.sort(key=lambda one: one.file not in changed)
    return sorted(order[:number], key=lambda one: one.line)


def git(*arguments: str) -> str:
    """Return what git says about the project."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout


def main() -> int:
    """Try the mutants that are asked for, and say what became of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, help="try so many, of recently changed files first")
    parser.add_argument("--only", default="", help="try those whose line holds this text")
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("table.txt"))
    asked = parser.parse_args()
    mutants = list(table(asked.table))
    chosen = [one for one in mutants if asked.only in f"{one} {' '.join(one.tests)}"]
    stale = False
    for one in mutants:
        found = (ROOT / one.file).read_text(encoding="utf-8").count(one.old)
        if found != 1:
            print(f"{one}: its old text occurs {found} times in the file, not once: update the table")
            stale = True
    if stale:
        return 1
    if asked.sample is not None:
        chosen = sampled(chosen, asked.sample)
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    for name in WARM:
        importlib.import_module(name)

    began, failed = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PYTHONPATH"] = name
        copied(folder)
        for package in ("adaptive_eval", "scorio", "tests"):
            compileall.compile_dir(folder / package, quiet=2)
        for tests in dict.fromkeys(one.tests for one in chosen):
            started, those = time.monotonic(), [one for one in chosen if one.tests == tests]
            code = outcome(folder, tests, 10 * LIMIT)
            limit = max(LIMIT, 3.0 * (time.monotonic() - started))
            if code:
                print(f"the tests {' '.join(tests)} end with {code} without any mutant", flush=True)
                failed += len(those)
                continue
            said = {one: tried(folder, one, limit) for one in those}
            missed = {one: words for one, words in said.items() if words != "killed"}
            for one, words in missed.items():
                print(f"{one}: {words}", flush=True)
            failed += len(missed)
            seconds = time.monotonic() - started
            killed = len(those) - len(missed)
            print(f"{killed} of {len(those)} killed in {seconds:.0f} s by {tests[0]}", flush=True)
    print(
        f"{len(chosen) - failed} of {len(chosen)} mutants killed ({len(mutants)} in the table), "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
