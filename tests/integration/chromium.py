"""A real headless Chromium, and the installed command serving a page for it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--no-sandbox",  # Chromium refuses to be root's with it
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
COMMAND = Path(sys.executable).with_name("adaptive-eval")

PATIENCE = 240.0
"""Seconds after which a browser or a command counts as hanging, on a machine that is busy elsewhere."""


def executable() -> str:
    """Return where Chromium is, or skip the test."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium here: apt-get install -y chromium")
    return found


@contextmanager
def browser():
    """Open a browser with a fresh profile."""
    path = executable()
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=list(OPTIONS), timeout=1000 * PATIENCE)
        yield opened
        opened.close()


@contextmanager
def served(path: Path, *options: str) -> Iterator[str]:
    """Serve a run or a folder with the installed command; give the address it prints."""
    command = [COMMAND, "monitor", path, "--web", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"Open (http://127\.0\.0\.1:\d+/[\w-]{32,}/)\n", line)
            assert found, line
            yield found[1]
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)
