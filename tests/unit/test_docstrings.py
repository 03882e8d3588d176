"""Code that a reader can find: whole docstrings, described packages, one name for each file."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("scorio", "adaptive_eval")
FILES = sorted(str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _parsed(path):
    return ast.parse((ROOT / path).read_text())


@pytest.mark.parametrize("path", FILES)
def test_no_section_underline_is_joined_into_a_line(path):
    found = [ast.get_docstring(node) for node in ast.walk(_parsed(path)) if isinstance(node, DEFINITIONS)]
    assert [text for text in found if text and re.search(r" -{4,} ", text)] == []


@pytest.mark.parametrize("path", [path for path in FILES if path.endswith("__init__.py")])
def test_a_package_says_what_it_is(path):
    text = ast.get_docstring(_parsed(path)) or ""
    assert len(text.split()) >= 4


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_files_share_a_name(package):
    names = Counter(Path(path).name for path in FILES if path.startswith(f"{package}/"))
    assert {name for name, times in names.items() if times > 1} <= {"__init__.py", "__main__.py"}
