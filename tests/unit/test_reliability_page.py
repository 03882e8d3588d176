"""Faults of docs/reliability.md and promises of tests/statistical name their tests, and these exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text("utf-8")
PROMISES = (ROOT / "tests" / "statistical" / "README.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py::[\w:]+)`", PAGE + PROMISES)))
ROWS = [line for line in PAGE.partition("\n## Faults")[2].splitlines() if line.startswith("| ")][2:]


@pytest.mark.parametrize("node", NAMED)
def test_a_named_test_exists(node: str) -> None:
    path, *names = node.split("::")
    body = ast.parse((ROOT / path).read_text("utf-8")).body
    for name in names:
        found = [item for item in body if getattr(item, "name", None) == name]
        assert found, f"{node}: there is no {name}"
        body = getattr(found[0], "body", [])
    assert names[-1].startswith("test_")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_every_fault_has_a_test(row: str) -> None:
    _, _fault, _what, tests, _ = re.split(r"(?<!`)\|", row)
    assert any(node in tests for node in NAMED)


def test_every_error_rate_that_is_simulated_has_a_row_with_its_seed():
    rows = [re.split(r"(?<!`)\|", line)[1:-1] for line in PROMISES.splitlines() if line.startswith("| ")][2:]
    assert all(len(row) == 5 and re.search(r"\d", row[3]) and re.search(r"\d", row[4]) for row in rows)
    tests = [
        f"{path.relative_to(ROOT)}::{name}"
        for path in sorted((ROOT / "tests" / "statistical").glob("test_*.py"))
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
        if "at_most" in name or "level" in name
    ]
    assert len(tests) > 8
    assert [name for name in tests if f"`{name}`" not in PROMISES] == []


def test_there_are_faults_to_check() -> None:
    assert len(ROWS) > 30


def test_the_table_of_storms_shows_no_harm() -> None:
    """`./scripts/chaos --write` makes it, and what it shows is what the page promises."""
    table = PAGE.partition("<!-- chaos: begin -->")[2].partition("<!-- chaos: end -->")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "|" in line
    ]
    faults = {row[0]: row[1:] for row in rows if len(row) == 3}
    assert faults["**all**"][0] == faults["**all**"][1] != "0"
    assert [row[1] for row in rows if len(row) == 2] == ["number", "--:", "0", "0", "0", "0"]
