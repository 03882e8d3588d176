"""Figures of the chaos suite: gathered over its tests and printed at the end."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos_books import Figures

for neighbour in ("engine", "integration"):  # their clocks and scripts
    sys.path.insert(0, str(Path(__file__).parents[1] / neighbour))

_gathered: list[Figures] = []


@pytest.fixture
def figures() -> Iterator[list[Figures]]:
    """Yield a list for the figures of a test; each must be free of losses, double counts and overruns."""
    mine: list[Figures] = []
    yield mine
    _gathered.extend(mine)
    assert mine, "a test of the chaos suite has to account for itself"
    for one in mine:
        one.check()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of all tests of the suite in this process."""
    if _gathered:
        terminalreporter.section("chaos: computed from the run files and from what the servers have billed")
        for line in sum(_gathered, Figures()).lines():
            terminalreporter.write_line(line)
