"""The web page in a real browser: live, complete, usable by all, and deaf to what models say."""

import re
import signal
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import chromium
import hostile_run
import pytest
import run_examples as runs
import standings_examples as examples

from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.decision_sentences import describe

PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}

LISTEN = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


@pytest.fixture
def open_page(browser):
    """Return a function that opens an address in a fresh profile and watches over what the page does."""
    pages = []

    def opened(address):
        page = chromium.watched(browser, "about:blank", viewport=DESKTOP, reduced_motion="reduce")
        page.add_init_script(LISTEN)
        page.goto(address)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        assert page.failures == []
        assert page.evaluate("window.violations ?? []") == []
        assert {
            re.match(r"(data:|http://127\.0\.0\.1:\d+/[\w-]{32,}/)", url) is not None for url in page.asked
        } == {True}, "only our own server is asked, and only below the token"
        page.context.close()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Serve a finished run; give its page's address."""
    run = tmp_path_factory.mktemp("runs") / "forest"
    runs.make_run(run, missing=0.03, truncated=0.1)
    with chromium.served(run) as address:
        yield f"{address}runs/forest/"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Serve the hostile run; give its page's address."""
    run = hostile_run.make_hostile_run(tmp_path_factory.mktemp("runs") / "hostile")
    with chromium.served(run) as address:
        yield f"{address}runs/hostile/"


class Live:
    """A run that a test lets go on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.writer = RunWriter.create(directory, meta={"name": "live", "started_at": repr(examples.STARTED)})
        self.elapsed = 0.0

    def goes_on(self, results, decisions=()):
        """Store what a running process would."""
        self.elapsed += 5.0
        self.writer.snapshot(examples.snapshot_of(results, self.elapsed))
        for decision in decisions:
            self.writer.decision(examples.STARTED + self.elapsed, decision.trials, asdict(decision))
        self.writer.commit()


@pytest.fixture
def live(tmp_path):
    run = Live(tmp_path / "live")
    yield run
    run.writer.close()


def connected(page):
    """Wait until the page follows the run."""
    page.locator("#live[data-state=live]").wait_for()
    return page


def test_a_live_run_is_followed_and_leaves_the_reader_where_he_is(open_page, live, tmp_path):
    told = examples.decisions_of(examples.finished())
    live.goes_on(examples.example(examples.QUICKSTART, 20))
    live.goes_on(replace(examples.midrun(), forecast=examples.MORE), told[:1])
    with chromium.served(live.directory) as address:
        page = connected(open_page(address))
        answers_the_first_questions(page)
        changes_under_the_reader(page, live, told)
        asks_for_nothing_while_nobody_looks(page, live)
        live.directory.rename(tmp_path / "elsewhere")
        page.locator("#live", has_text="moved or deleted").wait_for()
        assert "oak is ahead" in page.locator(".verdict").inner_text()


def answers_the_first_questions(page):
    seen = " ".join(page.locator("main header").inner_text().split())
    for words in (
        "First place is not resolved between oak, elm and ash",
        "1,056 more trials",
        "without an answer",
    ):
        assert words in seen
    assert page.locator(".verdict").bounding_box()["y"] < 300
    page.set_viewport_size(PHONE)
    interval = page.get_by_role("table", name="Models by score").locator(".narrow").first
    assert re.fullmatch(r"\[0\.\d+, [01]\.\d+\]", interval.inner_text())
    box = interval.bounding_box()
    assert box["x"] + box["width"] <= PHONE["width"]
    page.set_viewport_size(DESKTOP)


def changes_under_the_reader(page, live, told):
    """An open section, the place on the page, and the focus stay through changes."""
    table = page.locator("#figures-scores")
    table.locator("summary").click()
    page.set_viewport_size(PHONE)
    table.locator("summary").focus()
    page.evaluate("scrollTo(0, 900)")
    place = page.evaluate("scrollY")
    rows = table.locator("tbody tr").count()
    for results, decisions in ((examples.midrun(), told[1:3]), (examples.finished(), told[3:])):
        live.goes_on(results, decisions)
    page.locator(".verdict", has_text="oak is ahead of all others").wait_for()
    assert table.get_attribute("open") is not None
    assert table.locator("tbody tr").count() > rows
    assert page.evaluate("document.activeElement.textContent") == "Scores as a table"
    assert abs(page.evaluate("scrollY") - place) < 400, "the browser holds what is read, not the top"
    assert page.locator("[role=status]").text_content() == describe(told[-1])
    page.set_viewport_size(DESKTOP)


def asks_for_nothing_while_nobody_looks(page, live):
    hide = """hidden => {
      Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    page.wait_for_timeout(500)
    asked = len(page.asked)
    live.goes_on(examples.midrun())
    page.wait_for_timeout(5_000)
    assert len(page.asked) == asked
    page.evaluate(hide, False)
    page.locator(".verdict", has_text="First place").wait_for()
    live.goes_on(examples.finished())
    page.locator(".verdict", has_text="oak is ahead").wait_for()


def test_runs_appear_in_the_list_by_themselves_and_ctrl_c_stops_the_page(open_page, tmp_path):
    command = [chromium.COMMAND, "monitor", tmp_path, "--web"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        page = open_page(process.stdout.readline().removeprefix("Open ").strip())
        assert "no run in this folder yet" in page.locator("main").inner_text()
        runs.make_run(tmp_path / "forest")
        page.get_by_role("link", name="forest").click()
        page.locator(".verdict", has_text="oak is ahead").wait_for()
        page.get_by_role("link", name="All runs").click()
        page.locator("tbody tr th", has_text="forest").wait_for()
        page.get_by_role("link", name="forest").click()
        connected(page)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=chromium.PATIENCE)
    assert process.returncode == 0
    assert "Traceback" not in said
    assert said.splitlines()[-1] == "Stopped; the run itself is not affected."
    page.locator("#live", has_text="connection lost").wait_for()


def test_without_scripts_the_run_can_still_be_read(browser, finished):
    page = chromium.watched(browser, finished, java_script_enabled=False)
    assert "oak is ahead of all others" in page.locator(".verdict").inner_text()
    assert page.locator("#plot-scores svg.plot").is_visible()
    page.context.close()


def test_axe_finds_nothing_to_object_to_and_a_phone_needs_no_scrolling_sideways(open_page, finished):
    page = open_page(finished)
    for path in ("", "trials/1/0", "../../"):
        page.goto(finished + path)
        assert chromium.objections(page, chromium.LOOKS[1:2] if path else chromium.LOOKS) == []


def test_hostile_content_does_nothing(open_page, hostile):
    page = open_page(hostile)
    for path in ("", "trials/1/7", "trials/1/0"):
        page.goto(hostile + path)
        connected(page)
        assert page.evaluate("window.pwned") is None, path
        assert page.locator("h1").count() == 1, path
        assert page.locator("img").count() == 0, path
        assert page.evaluate("[...document.scripts].filter((s) => !s.src).length") == 0, path
        text = page.evaluate("document.body.innerText + document.title")
        assert not set("\x1b\x07\0\u202e\u2028") & set(text), path
        assert page.title() != "title", path
    step = hostile_run.ANSWERS.index(hostile_run.LONG_LINE)
    page.goto(f"{hostile}trials/1/{step}")
    assert len(page.locator("pre[aria-label=Answer]").first.inner_text()) == 200_000
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all of it").last.click()
    assert Path(download.value.path()).read_text() == hostile_run.LONG_LINE


# The command
