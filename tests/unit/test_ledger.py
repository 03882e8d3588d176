"""The ledger of CI: no skip without leave, no test that is rerun twice."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CONFTEST = """
import os, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from ledger import Ledger

def pytest_configure(config):
    config.pluginmanager.register(Ledger(Path(os.environ["CI_LEDGER"])))
"""


def run(folder, text):
    (folder / "conftest.py").write_text(CONFTEST.format(tests=str(TESTS)))
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    environment = {"CI_LEDGER": str(folder / "ledger"), "PATH": "", "PYTHONPATH": ""}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reason", "code"), [("root reads everything", 0), ("no Chromium here: apt-get install -y chromium", 1)]
)
def test_only_named_reasons_may_skip_a_test(tmp_path, reason, code):
    done = run(tmp_path, f"import pytest\ndef test_one():\n    pytest.skip({reason!r})\n")
    assert done.returncode == code, done.stdout
    assert ("SKIPPED WITHOUT LEAVE" in done.stdout) == bool(code)
    assert (tmp_path / "ledger").read_text() == f"skip\ttest_it.py::test_one\tSkipped: {reason}\n"


def test_a_file_that_is_skipped_as_a_whole_fails_the_run(tmp_path):
    done = run(tmp_path, "import pytest\npytest.importorskip('no_such_package')\ndef test_one():\n    pass\n")
    assert done.returncode == 1, done.stdout


def test_a_test_that_is_rerun_twice_fails_the_summary(tmp_path):
    ledger = tmp_path / "ledger"
    command = [sys.executable, str(TESTS / "ledger.py"), str(ledger)]
    assert subprocess.run(command, capture_output=True).returncode == 0
    ledger.write_text("rerun\ta\t\nrerun\tb\t\nskip\tc\tno disk\n")
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "1 tests skipped, 2 rerun")
    ledger.write_text("rerun\ta\t\nrerun\ta\t\n")
    assert subprocess.run(command, capture_output=True).returncode == 1


def test_an_attempt_whose_end_fails_too_counts_once(tmp_path):
    text = (
        "import pytest\nseen = []\n@pytest.fixture\ndef account():\n    yield\n    assert len(seen) > 1\n"
        "@pytest.mark.flaky(reruns=1)\ndef test_one(account):\n    seen.append(1)\n    assert len(seen) > 1\n"
    )
    done = run(tmp_path, text)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "ledger").read_text() == "rerun\ttest_it.py::test_one\t\n"
