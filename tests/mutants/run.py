r"""Plant faults in a copy of the code, one at a time; the tests named for each must fail.

    python tests/mutants/run.py [--sample N] [--only TEXT] [--places]

The table is ``table.txt``. A line ``tests: NAME ...`` names the tests (arguments of pytest) that must kill
the mutants below it, ``file: PATH`` their file. Each mutant names a place in the syntax tree and what
stands there instead (``\n`` for a new line)::

    Holm.threshold BinOp 2 ==> pairs - won - 1

the second binary operation of that method. A function, a class or a name that is assigned outside
functions owns the nodes in it, without those of the functions and classes in it; they are counted by kind
in the order of the file, so that another layout of the code changes no place.
``OWNER KIND NUMBER: old ==> new`` changes a part of a node: a line of SQL, a statement of several. In a file
that is not Python, ``old ==> new`` changes text that occurs once.

The exit code is 1 if a mutant survives, its place is not there (any more), it changes nothing, it cannot be
imported, or the tests fail without it. ``--places`` only looks for the places.
"""

import argparse
import ast
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
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 150.0
"""Seconds, at least, after which a mutant that has made an endless loop counts as killed."""
WARM = ("aiohttp", "httpx2", "numpy", "pydantic", "pytest", "scipy.stats", "starlette")
"""Imported once, before each mutant gets a process of its own."""


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Place = tuple[str, str, int]
"""Owner, kind of node, number among the owner's nodes of this kind."""


@dataclass(frozen=True)
class Mutant:
    """One fault: what stands at a place, or what stands for a text at this place, is replaced."""

    tests: tuple[str, ...]
    file: str
    place: Place | None  # None: anywhere in the file
    old: str  # "": the whole node
    new: str
    line: int  # in the table

    def __str__(self) -> str:
        place = " ".join(map(str, self.place or ()))
        return f"table.txt:{self.line}: {self.file}: {place} {self.old} ==> {self.new}"

    def planted(self, code: str) -> str:
        """Return a file's text with the fault in it; a ValueError says why there can be none."""
        start, end = 0, len(code.encode())
        if self.place is not None:
            try:
                start, end = places(code)[self.place]
            except KeyError:
                raise ValueError("its place is not in the file") from None
        before, whole, after = (part.decode() for part in _parts(code.encode(), start, end))
        found = whole.count(self.old)
        if self.old and found != 1:
            raise ValueError(f"its old text occurs {found} times there, not once")
        changed = before + whole.replace(self.old or whole, self.new) + after
        if changed.split() == code.split():
            raise ValueError("it changes nothing")
        if self.file.endswith(".py"):
            ast.parse(changed)
        return changed


def _parts(code: bytes, start: int, end: int) -> tuple[bytes, bytes, bytes]:
    """Return the bytes before, between and after two positions."""
    return code[:start], code[start:end], code[end:]


@cache
def places(code: str) -> dict[Place, tuple[int, int]]:
    """Return from where to where each node of a file stands, in bytes."""
    starts = [0]
    for line in code.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[Place, tuple[int, int]] = {}
    numbers: dict[tuple[str, str], int] = {}
    for owner, node in owned(ast.parse(code), "", outside=True):
        if not isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.excepthandler | ast.arg):
            continue
        kind = type(node).__name__
        number = numbers[owner, kind] = numbers.get((owner, kind), 0) + 1
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        found[owner, kind, number] = (start, end)
    return found


def owned(node: ast.AST, owner: str, outside: bool) -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes below a node, each with its owner; `outside` of functions a value's name owns it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, SCOPES):
            yield owner, child
            name = f"{owner}.{child.name}".removeprefix(".")
            yield from owned(child, name, outside and isinstance(child, ast.ClassDef))
            continue
        target = _assigned(child) if outside else ""
        name = f"{owner}.{target}".removeprefix(".") if target else owner
        yield name, child
        yield from owned(child, name, outside and not target)


def _assigned(node: ast.AST) -> str:
    """Return the name that a statement assigns, or ""."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) else ""


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
            left, arrow, new = line.replace("\\n", "\n").partition(" ==> ")
            place: Place | None = None
            old = left
            if file.endswith(".py"):
                owner, kind, left = left.split(" ", 2)
                position, _, old = left.partition(": ")
                place = (owner, kind, int(position))
            if not (arrow and tests and file) or old == new != "":
                sys.exit(f"table.txt:{number}: a mutant stands below tests: and file:, got {line!r}")
            yield Mutant(tests, file, place, old, new, number)


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
    path.write_text(mutant.planted(original), encoding="utf-8")
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
    parser.add_argument("--places", action="store_true", help="only look for the places")
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("table.txt"))
    asked = parser.parse_args()
    mutants = list(table(asked.table))
    chosen = [one for one in mutants if asked.only in f"{one} {' '.join(one.tests)}"]
    stale = 0
    for one in mutants:
        try:
            one.planted((ROOT / one.file).read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError) as error:
            print(f"{one}: {error}: update the table")
            stale += 1
    if stale or asked.places:
        print(f"{len(mutants) - stale} of {len(mutants)} places found")
        return int(stale > 0)
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
