"""A user's type checker reads results of scorio as what they are."""

import runpy
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "data" / "user_of_scorio.py"


@pytest.mark.slow
def test_plain_code_of_a_user_passes_strict_mypy(tmp_path):
    api = pytest.importorskip("mypy.api")
    said, _, status = api.run(["--strict", "--config-file=", f"--cache-dir={tmp_path}", str(SOURCE)])
    assert status == 0, said


def test_that_code_runs(capsys):
    runpy.run_path(str(SOURCE))
    assert "rank" in capsys.readouterr().out
