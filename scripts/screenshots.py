"""Makes the pictures in docs/images from a real run of configs/quickstart.yaml: about two minutes.

Needs Chromium (Debian: apt-get install -y chromium) and the extra dev. The pictures of the terminal
are drawn from the run file, those of the web page by the browser, while the run goes on and after its end.

    .venv/bin/python scripts/screenshots.py
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright
from rich.console import Console

from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.reading import Attachment, decision_from
from adaptive_eval.views.summary import RunHeader, RunSummary, summary_at
from adaptive_eval.views.terminal import render_summary, run_display

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COMMAND = Path(sys.executable).with_name("adaptive-eval")
LARGEST = 300_000
"""Bytes a picture may have."""

DESKTOP: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}
WIDTH, HEIGHT = 100, 36


def main() -> None:
    """Make every picture."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, browser() as chromium:
        run = Path(scratch, "quickstart")
        config = ROOT / "configs" / "quickstart.yaml"
        with subprocess.Popen(
            [COMMAND, "run", config, "--out", run, "--display", "none"], stdout=subprocess.DEVNULL
        ) as process:
            while not (run / "run.db").exists():
                assert process.poll() is None, "the run did not start"
                time.sleep(0.2)
            with served(run) as address:
                live_picture(chromium, f"{address}runs/quickstart/")
                process.wait()
                finished_picture(chromium, f"{address}runs/quickstart/")
        terminal_pictures(run)
    for picture in sorted(IMAGES.iterdir()):
        size = picture.stat().st_size
        print(f"{picture.relative_to(ROOT)}  {size / 1000:.0f} kB")
        assert size < LARGEST, f"{picture.name} is too large for a README"


def live_picture(chromium: Browser, address: str) -> None:
    """Show the page while one pair is open."""
    page = opened(chromium, address, "light", DESKTOP)
    page.get_by_text("9 of 10").first.wait_for(timeout=120_000)
    page.wait_for_timeout(8_000)
    page.screenshot(path=IMAGES / "web-live.png")
    page.context.close()


def finished_picture(chromium: Browser, address: str) -> None:
    """Show the page after the run's end on a phone."""
    page = opened(chromium, address, "light", PHONE)
    page.screenshot(path=IMAGES / "web-phone.png")
    page.context.close()


def terminal_pictures(run: Path) -> None:
    """Show the terminal's live view in the middle of the run, and the summary at its end."""
    with RunReader(run) as reader:
        live = run_display(view_in_the_middle(reader))
        draw("terminal-live.svg", live, "adaptive-eval run quickstart.yaml")
        ended = render_summary(Attachment(reader, time.time).summary(), "runs/quickstart/report.html")
    draw("terminal-end.svg", ended, "adaptive-eval run quickstart.yaml")


def view_in_the_middle(reader: RunReader) -> RunSummary:
    """Return the view of the run at half its time."""
    snapshots = list(reader.snapshots())
    middle = next(one for one in snapshots if one.elapsed >= snapshots[-1].elapsed / 2)
    earlier = [one for one in snapshots if one.elapsed < middle.elapsed - 10.0]
    decisions = [decision_from(one.body) for one in reader.decisions() if one.at <= middle.at]
    return summary_at(RunHeader("quickstart"), middle, decisions, previous=earlier[-1] if earlier else None)


def draw(name: str, shown: object, title: str) -> None:
    """Draw what a terminal shows as SVG, without the web font that would be asked of another server."""
    console = Console(record=True, width=WIDTH, height=HEIGHT, file=io.StringIO(), force_terminal=True)
    console.print(shown)
    svg = console.export_svg(title=title, unique_id=name.removesuffix(".svg"))
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    assert not re.search(r"(url\(|href=|src=)[\"']?http", svg), f"{name} asks for something of another server"
    (IMAGES / name).write_text(svg, encoding="utf-8")


def opened(chromium: Browser, address: str, scheme: Literal["light", "dark"], viewport: ViewportSize) -> Page:
    """Open a page that is up to date."""
    context = chromium.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(address)
    if page.locator("#live").count():
        page.locator("#live[data-state=live]").wait_for()
    return page


@contextmanager
def browser() -> Iterator[Browser]:
    """Open Chromium."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no Chromium here: apt-get install -y chromium")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@contextmanager
def served(run: Path) -> Iterator[str]:
    """Serve the page of a run; give its address."""
    with subprocess.Popen(
        [COMMAND, "monitor", run, "--web"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().removeprefix("Open ").strip()
        server.terminate()


if __name__ == "__main__":
    main()
