"""The scorer `numeric`: what is read as a number, where it is found, and what counts as the same."""

from __future__ import annotations

import json
import os
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from adaptive_eval.scoring.numeric import find_numbers, read_number

READABLE = [
    ("42", 42), ("-7", -7), ("- 7", -7), ("+7", 7), ("−7", -7), ("0.50", "1/2"), (".5", "1/2"),
    ("-.5", "-1/2"), ("1,234", 1234), ("1,234,567.5", "2469135/2"), ("1{,}234", 1234), (r"1\,234", 1234),
    ("1 234 567", 1234567), ("1\u202f234", 1234), ("1'234'567", 1234567), ("12,34,567", 1234567),
    ("$1,200", 1200), (r"\$1,200.00", 1200), ("-$5", -5), ("$-5", -5), ("€ 5", 5), ("US$5", 5),
    ("5 dollars", 5), ("12 cm", 12), ("12cm", 12), ("12 cm^2", 12), ("12 cm²", 12), (r"12 \text{ cm}^2", 12),
    (r"12\ \mathrm{m/s}", 12), ("12 m2", 12), (r"12\mathrm{~cm}", 12), (r"12~\text{kg}", 12),
    (r"2 \times 10^{-3} \mathrm{~mol} / \mathrm{L}", "2/1000"), (r"12\,\Omega", 12), (r"12\,\mu\text{m}", 12),
    ("12€", 12), ("12 £", 12), (r"\pounds 12", 12), (r"12 \quad \text{cm}", 12), ("negative 3", -3),
    ("minus $3", -3), ("90°", 90), (r"90^\circ", 90), (r"90^{\circ}", 90), ("1.2e-3", "12/10000"),
    ("3E5", 300000), ("3 × 10^5", 300000), (r"3 \times 10^{5}", 300000), (r"3 \cdot 10^{-2}", "3/100"),
    ("3×10⁻²", "3/100"), ("2^10", 1024), ("2^{10}", 1024), ("2**10", 1024), ("10**-2", "1/100"), ("10²", 100),
    ("3/4", "3/4"), ("-3/4", "-3/4"), (r"\frac{3}{4}", "3/4"), (r"\dfrac{3}{4}", "3/4"),
    (r"-\frac{3}{4}", "-3/4"), (r"\frac{-3}{4}", "-3/4"), (r"\frac34", "3/4"), ("3 1/2", "7/2"),
    (r"3\frac{1}{2}", "7/2"), ("3½", "7/2"), ("½", "1/2"), ("5 million", 5_000_000), ("2.5 thousand", 2500),
    ("x = 5", 5), ("2 + 3 = 5", 5), ("42 = x", 42), (r"x \approx 5.5", "11/2"), ("about 12", 12),
    ("$42$", 42), (r"\(42\)", 42), (r"\text{42}", 42), (r"\textbf{42}", 42), ("**42**", 42), ("(42)", 42),
    ("{42}", 42), ("42.", 42), ("12 apples", 12), ("12 square units", 12), ("1５", 15), ("#### 72", 72),
    ("He has 3+69=72 left.\n#### 72", 72),
]  # fmt: skip

UNREADABLE = [
    "", "none", "3, 5", "(3, 5)", "3,14", "3 or 5", "3 to 5", "3-5", "3 + 5", "12:30", "2024-05-01",
    "3/4/2024", "1.2.3", "1.000,50", r"2\pi", "2π", r"3\sqrt{2}", "3i", "2^x", "x", r"\frac{1}{x}", "1/0",
    r"\frac{1}{0}", "0^-1", "1e999999", "9^999999", "9" * 401, "5 greater than 3", r"[1, 2]", r"\{5\}",
]  # fmt: skip


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


FOUND = [
    ("10-5=5", ["10", "5", "5"]), ("x-5", ["5"]), ("it is -5", ["-5"]), ("(-5)", ["-5"]),
    ("3 - 2", ["3", "2"]), ("5 minus 3 is minus 2", ["5", "3", "-2"]), ("**Step 1** 7", ["1", "7"]),
    ("- 5 apples", ["5"]), ("area 7 cm^2 and x_1, x_{12}", ["7"]),
    ("7 m s^{-1} or 8 mol⁻¹ or 9 s^-2", ["7", "8", "9"]), ("H2O and B2", []), ("version 1.2.3", []),
    ("in 3 steps.", ["3"]), ("f(1, 2)", ["1", "2"]), ("cost: $1,200.50.", ["$1,200.50"]),
    ("50% of 20", ["50%", "20"]), (r"so $\frac{1}{2}$ of it", [r"\frac{1}{2}"]), ("2^{3} = 8", ["2^3", "8"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "numbers"), FOUND)
def test_numbers_are_found_in_prose(text, numbers):
    assert [found.text for found in find_numbers(text)] == numbers
