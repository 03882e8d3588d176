"""The cluster that the tests marked ``ray`` share."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 240.0

KEY = "ray-test-key-5e7d1c"
"""A key that the cluster's nodes have in their environment, as LAB_PASS."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster: its address, and the folder in which it keeps its logs and what was shipped."""

    address: str
    folder: Path


GRADER = """
from numbers_beside import last_number

def grade(answer, question):
    return last_number(answer) == question["target"]
"""

NUMBERS = r"""
import re

def last_number(text):
    found = re.findall(r"-?\d+", text)
    return found[-1] if found else None
"""


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def write_grader(folder: Path) -> None:
    """Write a scorer ``own_grader:grade`` and a module that it imports."""
    (folder / "own_grader.py").write_text(GRADER)
    (folder / "numbers_beside.py").write_text(NUMBERS)
