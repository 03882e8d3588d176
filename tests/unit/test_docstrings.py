"""Code that a reader can find: whole docstrings, described packages, one name for each file."""

import ast
import inspect
import re
from collections import Counter
from pathlib import Path

import scorio.eval
import scorio.rank

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("scorio", "adaptive_eval")
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_every_docstring_is_whole_and_every_package_is_described():
    joined, silent = [], []
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            tree = ast.parse(path.read_text())
            for node in ast.walk(tree):
                text = ast.get_docstring(node) if isinstance(node, DEFINITIONS) else None
                if text and re.search(r" -{4,} ", text):
                    joined.append(f"{path}: {text[:60]}")
            if path.name == "__init__.py" and len((ast.get_docstring(tree) or "").split()) < 4:
                silent.append(str(path))
    assert joined == [], "a section's underline is joined into a line"
    assert silent == [], "a package does not say what it is"


def test_no_two_files_of_a_package_share_a_name():
    for package in PACKAGES:
        names = Counter(path.name for path in (ROOT / package).rglob("*.py"))
        assert {name for name, times in names.items() if times > 1} <= {"__init__.py", "__main__.py"}


def test_a_parameter_that_is_as_in_another_function_is_described_there():
    """Above "As in :func:`bayes`." stand names that the parameters of `bayes` have."""
    reference = re.compile(r"^([\w, ]+)\n    As in (?::func:)?`(\w+)`", re.MULTILINE)
    wrong, seen = [], 0
    for package in (scorio.eval, scorio.rank):
        for name in package.__all__:
            function = getattr(package, name)
            for names, other in reference.findall(inspect.getdoc(function) or ""):
                there = inspect.signature(getattr(package, other)).parameters
                wrong += [f"{name}: {one}" for one in names.split(", ") if one not in ("ranks", *there)]
                seen += 1
    assert seen > 20
    assert wrong == []
