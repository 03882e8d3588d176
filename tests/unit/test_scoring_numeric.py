"""The scorer `numeric`: what is read as a number, where it is found, and what counts as the same."""

from __future__ import annotations

import json
import os
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from adaptive_eval.scoring.numeric import find_numbers, read_number

TEXTS = json.loads((Path(__file__).parents[1] / "data" / "read_texts.json").read_text())
READABLE, UNREADABLE, FOUND = (TEXTS[name] for name in ("numbers", "no_numbers", "numbers_in_prose"))


@pytest.mark.parametrize(("text", "value"), READABLE)
def test_one_number_is_read_exactly_in_any_notation(text, value):
    number = read_number(text)
    assert number is not None
    assert number.value == Fraction(value)
    assert not number.is_percent


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_not_one_number_is_not_read(text):
    assert read_number(text) is None


READ_THERE = """
import json, sys
from adaptive_eval.scoring.numeric import find_numbers, read_number
texts = json.load(sys.stdin)
print(json.dumps([[str(getattr(read_number(text), "value", None)) for text in texts],
                  [[found.text for found in find_numbers(f"It is {text}.")] for text in texts]]))
"""


def test_the_systems_own_python_reads_the_same_numbers():
    # Debian's 3.11.2 has faults in possessive quantifiers, which later patch versions mended. The others are
    # tested by ./scripts/interpreters.
    known = "/usr/bin/python3"
    if not Path(known).exists():
        pytest.skip("the system has no Python of its own")
    texts = [
        *(text for text, _ in READABLE),
        *UNREADABLE,
        *(text for text, _ in FOUND),
        "1,23,45,678",
        "1,234,56",
    ]
    root = Path(__file__).parents[2]
    there = subprocess.run(
        [known, "-c", READ_THERE],
        input=json.dumps(texts),
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    here = [str(getattr(read_number(text), "value", None)) for text in texts]
    found = [[found.text for found in find_numbers(f"It is {text}.")] for text in texts]
    assert json.loads(there.stdout) == [here, found], there.stderr


@pytest.mark.parametrize("text", ["50%", r"50\%", "50 %", "50 percent", "$50\\%$"])
def test_percent_is_read_and_remembered(text):
    number = read_number(text)
    assert (number.value, number.is_percent) == (50, True)


@pytest.mark.parametrize(("text", "numbers"), FOUND)
def test_numbers_are_found_in_prose(text, numbers):
    assert [found.text for found in find_numbers(text)] == numbers
