"""The files and names of docs/architecture.md exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
NAMED = sorted(
    set(re.findall(r"`([\w./*]+(?:/|\.(?:py|md|sql|jinja|jsonl|yaml|ipynb))(?:: [\w.]+)?)`", PAGE))
)


@pytest.mark.parametrize("named", NAMED)
def test_a_file_and_its_name_exist(named: str) -> None:
    path, _, name = named.partition(": ")
    below = ("adaptive_eval", "scorio", ".")
    found = [file for folder in below for file in (ROOT / folder).glob(path.rstrip("/"))]
    assert found, path
    for part in filter(None, name.split(".")):
        text = found[0].read_text("utf-8")
        assert re.search(rf"^\s*(?:(?:async )?def |class )?{part}\b", text, re.MULTILINE), named


def test_there_are_files_to_check() -> None:
    assert len(NAMED) > 40
