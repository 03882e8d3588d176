"""A real headless Chromium, and the installed command serving a page for it."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from command_line import COMMAND, PATIENCE
from json_server import serving

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


def watched(browser, address, *, console=False, **options):
    """Open an address in a fresh profile; the page keeps what it has asked for and what went wrong."""
    context = browser.new_context(**options)
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    page.asked, page.failures = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.failures.append(str(error)))
    page.on("dialog", lambda dialog: (page.failures.append(dialog.message), dialog.dismiss()))
    if console:
        page.on("console", lambda message: page.failures.append(message.text))
    page.goto(address)
    return page


LOOKS = (("light", 1440), ("dark", 390), ("dark", 1440), ("light", 390))
"""Themes, and widths of a screen and of a phone, under which pages are looked at."""


def objections(page, looks=LOOKS) -> list[str]:
    """Return what axe objects to on a page with everything unfolded, and where the page is too wide."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python"
    ).Axe()
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    found = []
    for scheme, width in looks:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        for one in axe.run(page).response["violations"]:
            places = [" ".join(map(str, node["target"])) for node in one["nodes"][:3]]
            found.append(f"{page.url} {scheme} {width}: {one['id']}: {one['help']}: {', '.join(places)}")
        if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
            found.append(f"{page.url} {scheme} {width}: is {wide} wide")
    return found


class Files(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *_):
        pass


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """Serve the files of a folder; give its address."""
    with serving(partial(Files, directory=str(folder))) as address:
        yield f"{address}/"


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
