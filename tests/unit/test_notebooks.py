"""The notebooks in docs/ run, and show what they have stored."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("notebooks", ROOT / "scripts" / "notebooks.py")
notebooks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(notebooks)


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_has_stored(path, tmp_path, monkeypatch):
    """In a running event loop, as in Jupyter. Figures of a run depend on what was in flight at its end."""
    monkeypatch.chdir(tmp_path)
    notebook = notebooks.read(path)
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert sum(map(len, stored)) >= 5
    shown = notebooks.executed(notebook)
    if path.stem == "evaluate":
        stored, shown = (re.sub(r"[\d.,]+", "#", json.dumps(outputs)) for outputs in (stored, shown))
    assert shown == stored
