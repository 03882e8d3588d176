"""Answers one by one in a real browser: from a server and in a file that runs nothing."""

import chromium
import pytest
import run_examples as runs

from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.files import write_reports

WIDTHS = (1400, 390)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples") / "forest"
    runs.make_run(folder, missing=0.05, truncated=0.1)
    write_reports(folder)
    return folder


def fits(page):
    """No page and no table is wider than the window."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        wide = (
            "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1)"
        )
        assert page.evaluate(f"{wide}.map((one) => one.ariaLabel)") == [], width


def badges(page):
    return set(page.locator(".sample:visible > label .badge").all_inner_texts())


def test_a_server_shows_the_answers_that_are_asked_for(browser, run):
    with RunReader(run) as reader:
        models = sorted({one.request.key.model for one in reader.trials(limit=100)})
        wrong = {(one.request.question, one.request.repeat) for one in reader.trials(model="yew", category=0)}
        right = list(reader.trials(model="oak", category=1))
    both = sum((one.request.question, one.request.repeat) in wrong for one in right)
    with chromium.served(run) as address:
        page = chromium.watched(browser, f"{address}runs/forest/")
        page.get_by_role("link", name="Look through all answers").click()
        page.locator(".sample").nth(29).wait_for()
        page.wait_for_load_state()
        shown = page.locator(".sample:visible > .shown:visible")
        assert shown.count() == 1
        assert [one.get_attribute("aria-label") for one in shown.locator("pre").all()][-1] == "Answer"
        page.keyboard.press("n")
        assert page.locator(".sample").nth(1).locator(".shown").is_visible()
        page.keyboard.press("ArrowUp")
        assert page.locator(".sample").first.locator(".shown").is_visible()

        page.locator("select[name=model]").select_option(label="oak")
        page.wait_for_url("**model=*")
        page.locator("select[name=beaten]").select_option(str(models.index("yew")))
        page.wait_for_url("**beaten=*")
        assert badges(page) <= {"correct"}
        assert page.locator(".sample").count() == min(both, 30)
        page.goto(f"{address}runs/forest/samples?kind=missing")
        assert badges(page) == {"no answer"}
        page.goto(f"{address}runs/forest/samples?kind=wrong")
        first = page.locator(".sample label").first.inner_text()
        page.get_by_role("link", name="Next answers").click()
        page.wait_for_url("**after=*")
        assert page.locator(".sample label").first.inner_text() != first
        page.get_by_role("link", name="Previous answers").click()
        page.wait_for_url("**before=*")
        assert page.locator(".sample label").first.inner_text() == first
        page.get_by_role("searchbox").fill("no such text")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**text=*")
        assert page.locator(".sample").count() == 0
        page.goto(f"{address}runs/forest/samples")
        fits(page)
        assert chromium.objections(page, chromium.LOOKS[:2]) == []
        assert page.failures == []
        page.context.close()


def test_a_file_lets_its_reader_choose_among_the_answers_that_it_carries(browser, run):
    page = chromium.watched(browser, (run / "report.html").as_uri(), console=True, java_script_enabled=False)
    assert "This file carries" in page.locator("section", has=page.locator("#examples")).inner_text()
    for kind, words in {"right": {"correct"}, "wrong": {"wrong"}, "missing": {"no answer"}}.items():
        page.locator(f".by-{kind}").check()
        assert badges(page) == words, kind
    page.locator(".by-right").check()
    before = page.locator(".sample:visible").count()
    page.get_by_role("group", name="right, where this one was wrong").get_by_label("yew").check()
    assert 0 < page.locator(".sample:visible").count() < before
    page.locator(".sample:visible input").first.check()
    page.keyboard.press("ArrowDown")
    assert page.locator(".sample:visible").nth(1).locator(".shown").is_visible()
    assert page.failures == []
    page.context.close()


def test_no_table_of_a_report_is_cut_off(browser, run):
    page = chromium.watched(browser, (run / "report.html").as_uri(), console=True)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    fits(page)
    assert page.failures == []
    page.context.close()
