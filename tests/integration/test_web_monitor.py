"""The web page in a real browser: live, complete, usable by all, and deaf to what models say."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import chromium
import hostile_run
import httpx
import pytest
import run_examples as runs
import standings_examples as examples

from adaptive_eval.cli.main import main
from adaptive_eval.store.writer import RunWriter

PAGES = ("models/1", "pairs/0", "questions", "questions/0", "trials", "trials/1/0")
"""Pages behind the run's page, one of each kind."""

PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}

# The plotting library brings the style sheet of a map with it, which the policy keeps out: no map is drawn.
KNOWN = "plotly.min.js"

LISTEN = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


@pytest.fixture
def open_page(browser):
    """Return a function that opens an address in a fresh profile and watches over what the page does."""
    contexts, pages = [], []

    def opened(address, **options):
        context = browser.new_context(**({"viewport": DESKTOP, "reduced_motion": "reduce"} | options))
        context.set_default_timeout(1000 * chromium.PATIENCE)
        context.add_init_script(LISTEN)
        page = context.new_page()
        page.asked, page.failures = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("pageerror", lambda error: page.failures.append(str(error)))
        page.on("dialog", lambda dialog: page.failures.append(f"dialog {dialog.message}"))
        page.goto(address)
        contexts.append(context)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        assert page.failures == []
        violations = page.evaluate("window.violations ?? []")
        assert [one for one in violations if KNOWN not in one or "style-src-elem inline" not in one] == []
        assert {
            re.match(r"(data:|http://127\.0\.0\.1:\d+/[\w-]{32,}/)", url) is not None for url in page.asked
        } == {True}, "only our own server is asked, and only below the token"
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Serve a finished run; give its page's address."""
    run = tmp_path_factory.mktemp("runs") / "forest"
    runs.make_run(run, missing=0.05, truncated=0.1)
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


def until(page, expression, *, seconds=chromium.PATIENCE):
    """Wait until an expression is true in the page (the page's policy keeps the driver's own waiting out)."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(50)


def connected(page):
    """Wait until the page listens."""
    page.locator("#live[data-state=live]").wait_for()
    return page


def unfold(page):
    """Open everything that can be opened."""
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")


def drawn(page, figure):
    """Go to a figure, wait until it is drawn and return its element."""
    page.locator(f"#figure-{figure}").scroll_into_view_if_needed()
    element = page.locator(f"#figure-{figure} .plot.js-plotly-plot")
    element.locator(".main-svg").first.wait_for(state="attached")
    return element


def test_a_live_run_is_told_of_at_once_and_followed(open_page, live, tmp_path):
    told = examples.decisions_of(examples.finished())
    live.goes_on(replace(examples.midrun(), forecast=examples.MORE), told[:1])
    with chromium.served(live.directory) as address:
        page = connected(open_page(address))
        tells_in_ten_seconds(page)
        leaves_the_reader_where_he_is(page, live, told)
        asks_for_nothing_while_nobody_looks(page, live)
        live.directory.rename(tmp_path / "elsewhere")
        page.locator("#live", has_text="moved or deleted").wait_for()
        assert "oak is ahead" in page.locator(".verdict").inner_text()


def tells_in_ten_seconds(page):
    seen = " ".join(page.locator("#part-summary").inner_text().split())
    assert page.locator("#part-summary").bounding_box()["y"] < 300
    words = (
        "First place is not resolved between oak, elm and ash",
        "7 of 10",
        "1,056 trials",
        "80 % interval 594–4,362 trials",
        "91 % goal reached in budget",
        "Used so far",
        "without an answer",
    )
    for one in words:
        assert one in seen
    headings = page.locator("h2").all_inner_texts()
    assert headings[:5] == [
        "Who is ahead, and how sure",
        "What is open, and what it will take",
        "Cost so far",
        "Anything broken?",
        "Plots",
    ]
    assert chromium.objections(page, chromium.LOOKS[:2]) == []
    row = page.locator("#part-board tbody tr").first  # the last look is that of a phone
    assert re.fullmatch(r"\[0\.\d+, [01]\.\d+\]", row.locator(".narrow").inner_text())
    state = row.locator("td").last.bounding_box()
    assert state["x"] + state["width"] <= PHONE["width"]
    page.set_viewport_size(DESKTOP)


def leaves_the_reader_where_he_is(page, live, told):
    count = "document.querySelector('#figure-scores .plot').data[2].x.length"
    moments = drawn(page, "scores") and page.evaluate(count)
    page.locator("#part-pairs summary").click()  # was open: the reader closes it
    page.locator("#part-board a", has_text="elm").focus()
    for results, decisions in ((examples.midrun(), told[1:3]), (examples.finished(), told[3:])):
        live.goes_on(results, decisions)
    page.locator(".verdict", has_text="oak is ahead of all others").wait_for()
    page.locator("#part-state", has_text="resolved").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "elm"
    assert page.evaluate("document.querySelector('#part-pairs details').open") is False
    assert page.locator("#said").text_content() == told[-1].text
    assert page.locator("#part-decisions li").first.inner_text().endswith(told[-1].text)
    page.locator("#figure-scores").scroll_into_view_if_needed()
    until(page, f"{count} > {moments}")


def asks_for_nothing_while_nobody_looks(page, live):
    hide = """hidden => {
      Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    streams = len([url for url in page.asked if url.endswith("/stream")])
    live.goes_on(examples.midrun())
    page.wait_for_timeout(2_500)
    assert "oak is ahead" in page.locator(".verdict").inner_text()
    page.evaluate(hide, False)
    page.locator(".verdict", has_text="First place").wait_for()
    assert len([url for url in page.asked if url.endswith("/stream")]) == streams + 1
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


def test_the_keyboard_reaches_everything_and_figures_are_drawn_once_they_can_be_seen(open_page, finished):
    page = connected(open_page(finished, viewport={"width": 1280, "height": 300}, color_scheme="dark"))
    assert not [url for url in page.asked if "plotly" in url]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            """() => {
              const e = document.activeElement;
              const outline = parseFloat(getComputedStyle(e).outlineWidth);
              return [e.id || e.textContent.trim() || e.ariaLabel, outline];
            }"""
        )
        assert outline >= 2, name
        reached.append(name)
    assert "theme" in reached
    for name in ("oak", "elm", "Scores as a table"):
        assert any(name in one for one in reached), name
    details = page.locator("#figure-scores details.data")
    details.locator("summary").focus()
    page.keyboard.press("Enter")
    assert details.get_attribute("open") is not None
    page.keyboard.press("Enter")
    every_figure_has_its_data_behind_it(page)
    the_theme_follows_the_reader(page)


def every_figure_has_its_data_behind_it(page):
    traces = {"scores": 12, "evidence": 7, "matrix": 1, "ranks": 4, "cells": 1, "cost": 1, "calibration": 4}
    for figure, count in traces.items():
        assert drawn(page, figure).evaluate("plot => plot.data.length") == count, figure
        assert page.locator(f"#figure-{figure} .plot").get_attribute("role") == "img"
        data = page.locator(f"#figure-{figure} details.data")
        data.locator("summary").click()
        data.locator("tbody tr").first.wait_for()
    plotted = drawn(page, "scores").evaluate("plot => plot.data[2].y.at(-1)")
    table = page.locator("#figure-scores details.data tbody tr").last.inner_text()
    assert f"{plotted:.3f}" in table
    assert len([url for url in page.asked if "plotly" in url]) == 1


def the_theme_follows_the_reader(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Light theme").click()
    light = page.evaluate(ground)
    assert light != dark
    page.reload()
    assert page.evaluate(ground) == light
    assert drawn(page, "cost").evaluate("plot => plot.layout.paper_bgcolor") == "#ffffff"
    page.get_by_role("button", name="Dark theme").click()
    drawn(page, "cost")  # the button is at the top of the page: figures out of sight wait to be drawn again
    until(page, "document.querySelector('#figure-cost .plot').layout.paper_bgcolor === '#1a1d23'")


def test_models_pairs_questions_and_heat_maps_lead_to_their_trials(open_page, finished):
    page = open_page(finished)
    page.locator("#part-board a", has_text="elm").click()
    page.wait_for_url("**/models/1")
    trial = page.locator("details.trial").first
    trial.locator("summary").click()
    assert "The answer is" in trial.locator("pre[aria-label=Answer]").inner_text()
    trial.get_by_role("link", name="All of this question").click()
    page.locator("h2", has_text="Models on this question").wait_for()
    page.goto(f"{finished}pairs/0")
    assert page.locator(".verdict").inner_text() == "oak is ahead of elm."
    page.get_by_role("link", name="Earlier trials").click()
    page.wait_for_url("**beyond=**")
    assert page.locator("details.trial").count() > 5
    page.get_by_label("Show").select_option("0")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**outcome=0")
    assert set(page.locator("details.trial .chip").all_text_contents()) == {"category 0"}
    for figure, wanted in (("matrix", r"pairs/\d+$"), ("cells", r"questions/\d+$")):
        page.goto(finished)
        box = drawn(page, figure).locator(".nsewdrag").bounding_box()
        label = page.locator(f"#figure-{figure} .hoverlayer .hovertext")
        deadline = time.monotonic() + chromium.PATIENCE
        while not label.count():  # the figure is there before it heeds the mouse
            assert time.monotonic() < deadline
            for share in (0.1, 0.11):
                page.mouse.move(box["x"] + box["width"] * (0.7 + share), box["y"] + box["height"] * share)
            page.wait_for_timeout(100)
        page.mouse.down()
        page.mouse.up()
        page.wait_for_url(re.compile(wanted))


def test_without_scripts_the_run_can_still_be_read(browser, finished):
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(1000 * chromium.PATIENCE)
    page = context.new_page()
    page.goto(finished)
    assert "oak is ahead of all others" in page.locator(".verdict").inner_text()
    assert "Without scripts" in page.locator("noscript").inner_text()
    context.close()


# Everyone can use it


def sideways(page):
    """Return how far a page can be scrolled sideways on a phone, with everything open."""
    unfold(page)
    page.set_viewport_size(PHONE)
    width = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size(DESKTOP)
    return width - PHONE["width"]


def test_axe_finds_nothing_to_object_to_and_a_phone_needs_no_scrolling_sideways(open_page, finished):
    page = open_page(finished)
    for path in ("", *PAGES, "../../"):
        page.goto(finished + path)
        if not path:
            for figure in ("scores", "matrix", "cells"):
                drawn(page, figure)
        assert chromium.objections(page, chromium.LOOKS[1:2] if path else chromium.LOOKS) == []


# Deaf to what models say


def test_hostile_content_does_nothing(open_page, hostile):
    page = open_page(hostile)
    for path in ("", "trials/1/7", *PAGES):
        page.goto(hostile + path)
        if not path:
            connected(page)
            names_do_nothing_in_a_plot(page)
        assert sideways(page) <= 0, path
        assert page.evaluate("window.pwned") is None, path
        assert page.locator("h1").count() == 1, path
        assert page.locator("img").count() == 0, path
        assert page.evaluate("[...document.scripts].filter((s) => !s.src).length") == 0, path
        text = page.evaluate("document.body.innerText + document.title")
        assert not set("\x1b\x07\0\u202e\u2028") & set(text), path
        assert page.title() != "title", path
    a_megabyte_is_shown_in_part_and_had_whole(page, hostile)


def a_megabyte_is_shown_in_part_and_had_whole(page, hostile):
    step = hostile_run.ANSWERS.index(hostile_run.LONG_LINE)
    page.goto(f"{hostile}trials/1/{step}")
    answer = page.locator("pre[aria-label=Answer]")
    assert len(answer.inner_text()) == 200_000
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all of it").last.click()
    assert Path(download.value.path()).read_text() == hostile_run.LONG_LINE


def names_do_nothing_in_a_plot(page):
    for figure in ("scores", "matrix", "cells", "ranks"):
        element = drawn(page, figure)
        box = element.locator(".nsewdrag").bounding_box()
        for share in (0.2, 0.5, 0.8):
            page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] * share)
            page.wait_for_timeout(120)
        assert element.locator("a, script, foreignObject, [style*=bold]").count() == 0, figure
    shown = page.locator("#figure-scores .legendtext").all_text_contents()
    assert "<b>bold</b>" in shown, "the plotting library reads no markup in a name"


# The command


def test_the_address_is_on_this_machine_and_useless_without_its_token(finished):
    root = re.match(r"http://127\.0\.0\.1:\d+/", finished)[0]
    assert httpx.get(root).status_code == 404
    assert httpx.get(f"{root}runs/forest/").status_code == 404
    assert httpx.get(finished).status_code == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--json",), "--web and --json cannot be combined"),
        (("--host", "no.such.host.invalid"), "cannot listen on no.such.host.invalid"),
        (("--host", "203.0.113.7"), "cannot listen on 203.0.113.7"),
    ],
)
def test_wrong_usage_is_one_message(tmp_path, capsys, options, words):
    with pytest.raises(SystemExit) as end:
        main(["monitor", str(tmp_path), "--web", *options])
    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_the_page_imports_nothing_before_it_is_wanted():
    code = "import sys, adaptive_eval.cli.monitor; print({'jinja2', 'starlette'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
