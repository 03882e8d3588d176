"""Programs for the scorer code, with their tests and results: ``tests/data/programs.txt``."""

import re
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parents[1] / "data" / "programs.txt"


class Program(NamedTuple):
    """One program, and what is expected of it where the group says so."""

    code: str
    tests: str
    expected: str


def programs(group: str) -> dict[str, Program]:
    """Return the programs of a group by their names."""
    found = {}
    for part in re.split(r"^=== ", FILE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        rest, _, expected = rest.partition("--- expected: ")
        code, _, tests = rest.partition("--- tests\n")
        kind, _, name = title.partition(": ")
        if kind == group:
            found[name] = Program(code.rstrip("\n"), tests.rstrip("\n"), expected.rstrip("\n"))
    return found
