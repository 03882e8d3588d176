"""The reference pages hold what the program has, and each example fits its key."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

from adaptive_eval.config.load_config import json_schema

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_section_key_command_and_option_is_on_the_pages(reference):
    """Its words too: ./scripts/check writes the pages again."""
    for name, text in (("config", reference.config_page()), ("cli", reference.cli_page())):
        page = (ROOT / "docs" / f"{name}-reference.md").read_text("utf-8")
        for start in re.findall(r"^(?:## .*|- `[^`]*)", text, re.MULTILINE):
            assert start in page, f"{start} is missing: .venv/bin/python scripts/reference.py"
        keys = [line for line in text.splitlines() if line.startswith("- `")]
        assert not [key for key in keys if key.endswith(": ") and name == "config"], "a key has no meaning"


CODE = re.compile(
    "(?:code|config|dataset|endpoint|library|outcomes|run|scorer|session|usage|warning)/[a-z]+(?:-[a-z]+)*"
)


@pytest.mark.slow
def test_every_code_of_a_message_is_explained_and_none_else():
    used = {
        node.value
        for path in (ROOT / "adaptive_eval").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value)
    }
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    explained = re.findall(r"^- `(\S+/\S+)`", page, re.MULTILINE)
    assert sorted(explained) == sorted(used)


def test_every_key_is_there_with_an_example_that_fits(reference):
    definitions = json_schema()["$defs"]
    paths = [path for path, _ in reference.sections()]
    assert len(set(paths)) == len(paths)
    for path, section in reference.sections():
        for key, value in section["properties"].items():
            shown = reference.example(path, key, value)
            if shown is None:
                assert list(reference._references(value)), f"{path}.{key} has no example"
                continue
            fits = jsonschema.Draft202012Validator({**value, "$defs": definitions}).is_valid(shown)
            assert fits, f"{path}.{key}: {shown!r}"


def test_every_message_of_the_troubleshooting_page_is_one_of_ours():
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    quoted = re.findall(r"`([^`]+)`", " ".join(re.findall(r"^- \*\*(.*?)\*\*(?!: \*\*)", page, re.MULTILINE)))
    ours = " ".join(
        node.value
        for file in (ROOT / "adaptive_eval").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    assert len(quoted) > 15
    assert [text for text in quoted if text not in ours] == []
