"""The report in a real browser: whole on its own, deaf to what models say, on screens, phones and paper."""

import shutil
from dataclasses import replace

import chromium
import pytest
import run_examples as runs

from adaptive_eval.core.results import ModelResult, PairResult, Results, StopVerdict, to_json
from adaptive_eval.run.claims import compare_runs
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SnapshotRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.accounts import QuestionAccount
from adaptive_eval.views.comparison import write_comparison
from adaptive_eval.views.files import write_leaderboard, write_reports
from adaptive_eval.views.page import to_html
from adaptive_eval.views.reading import summarise

HOSTILE = (
    "</style></title><script>window.hit = 1; alert(1)</script>",
    '"><img src="https://example.com/x" onerror="window.hit = 1">',
    "\x1b[2J\x1b]0;title\x07 user\u202egnp.exe",
    "javascript:window.hit=1//" + "x" * 1_000_000,
)


def line(name, rank, score, models):
    return ModelResult(
        model=name, state="retired", trials=25_000, issued=25_000, missing=3, after_stop=0, questions=500,
        score=score, score_low=score - 0.01, score_high=score + 0.01, bayes_mu=score, bayes_sigma=0.003,
        rank=rank, rank_low=rank, rank_high=min(rank + 1, models),
        prompt_tokens=10**7, completion_tokens=10**8, usd=12.5,
    )  # fmt: skip


def large(names):
    """Return the end of a run of these models over 500 questions."""
    lines = [line(name, i + 1, 0.95 - 0.03 * i, len(names)) for i, name in enumerate(names)]
    pairs = [
        PairResult(a.model, b.model, "better", a.score - b.score, 0.01, 0.2, 9.0, 5.0, 0.1, 300, 300, 300)
        for i, a in enumerate(lines)
        for b in lines[i + 1 :]
    ]
    return Results(
        goal="rank all models", rule="anytime", confidence=0.95, family="holm", equivalence=0.02,
        questions=500, models=tuple(lines), pairs=tuple(pairs), budgets=(), trials=25_000 * len(names),
        stop=StopVerdict("resolved", "goal reached"), warnings=HOSTILE[:1],
    )  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return the address of the report on a run of 20 models and 500 questions, some of them hostile."""
    folder = tmp_path_factory.mktemp("browser")
    names = [*HOSTILE, *(f"vendor/model-{i:02d}-instruct" for i in range(16))]
    with RunWriter.create(folder / "run", meta={"name": HOSTILE[0], "config": "\n".join(HOSTILE)}) as writer:
        results = large(names)
        writer.snapshot(SnapshotRecord(1.75e9, 60.0, results.trials, to_json(results)))
    write_reports(folder / "run")
    with RunReader(folder / "run") as reader:
        summary = summarise(reader)
    questions = tuple(
        QuestionAccount("aime", f"{HOSTILE[i % 4][:80]} {i}", 1000, i / 500, 0.1, ((50, i // 10),) * 20)
        for i in range(500)
    )
    path = folder / "report.html"
    path.write_text(to_html(runs.with_details(summary, questions=questions)), encoding="utf-8")
    return path


def opened(browser, path):
    return chromium.watched(browser, path.as_uri(), console=True)


def test_it_loads_nothing_is_bounded_and_is_read_aloud_in_order(browser, report):
    """What a browser has to do for it is bounded: bytes to read, elements to lay out, no script to run."""
    page = opened(browser, report)
    assert (page.asked, page.failures) == ([report.as_uri()], [])
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.querySelectorAll('script, img, iframe, link').length") == 0
    assert HOSTILE[0] in page.inner_text("h1")
    assert "\u202e" not in page.inner_text("body")

    assert report.stat().st_size < 8_000_000
    assert page.locator("#pairs").is_visible()
    assert page.evaluate("document.querySelectorAll('*').length") < 40_000
    assert page.locator("main table").count() >= 9

    assert page.locator("main").count() == page.locator("h1").count() == 1
    assert page.get_by_role("table", name="Models by score, with rank intervals").count() == 1
    first = page.get_by_role("table", name="Models by score").get_by_role("rowheader").first
    assert first.locator("bdi").get_attribute("title").startswith(HOSTILE[0]), "whole on hover"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    fits_screens_and_paper_and_can_be_read(page)
    page.context.close()


def fits_screens_and_paper_and_can_be_read(page):
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper, ink = page.evaluate(
            "(style => [style.backgroundColor, style.color])(getComputedStyle(document.body))"
        )
        lightness = [sum(map(int, colour[4:-1].split(","))) / 765 for colour in (paper, ink)]
        assert abs(lightness[0] - lightness[1]) > 0.7
        assert (lightness[0] > 0.5) == (scheme == "light")

    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#all-questions table").bounding_box()["height"] > 1_000
    assert page.evaluate("getComputedStyle(document.querySelector('pre')).maxHeight") == "none"


def test_a_report_a_comparison_and_a_leaderboard_are_accessible_and_show_intervals_on_a_phone(
    browser, tmp_path
):
    """The leaderboard has two tables of the same tasks."""
    scored = '{"trees": {"answers": {"k": 2, "by": "any"}}}'
    runs.make_run(tmp_path / "one", meta={"identity": '{"tasks": {"trees": {}}}', "scoring": scored})
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with RunWriter.open(tmp_path / "two") as writer:
        writer.set_meta("scoring", "{}")
    index = write_leaderboard([tmp_path / "one", tmp_path / "two"], tmp_path / "site")
    write_comparison(compare_runs(tmp_path / "one", tmp_path / "two"), tmp_path / "site")
    for name, looks in {"index.html": 2, "comparison.html": 2, "one/report.html": 4}.items():
        page = opened(browser, index.parent / name)
        assert (chromium.objections(page, chromium.LOOKS[:looks]), page.failures) == ([], [])
        for cell in page.locator("tbody tr:first-child .narrow").all():
            box = cell.bounding_box()  # the last look is that of a phone
            assert box["x"] + box["width"] <= 390, name
        page.context.close()


def test_forty_models_of_long_names_fit_a_screen_and_a_phone(browser, tmp_path):
    """The pairs are a matrix, with a list of those that are open: 780 rows would be 30,000 pixels.

    Tables of all models but the ranking are shown when they are asked for; no column of any is cut off.
    """
    names = [f"organisation/checkpoint-{1000 * i:06d}-instruct-2025-11-fp8-long-context" for i in range(40)]
    results = large(names)
    lines = tuple(replace(one, score=0.95 - 0.02 * i) for i, one in enumerate(results.models))
    last = results.pairs[-1]
    pairs = (*results.pairs[:-1], replace(last, verdict="open", decided_at=None))
    results = replace(results, models=lines, pairs=pairs)
    with RunWriter.create(tmp_path / "run", meta={"name": "forty", "config": "seed: 1\n" * 99}) as writer:
        for elapsed, moment in ((30.0, replace(results, trials=results.trials // 2)), (60.0, results)):
            writer.snapshot(SnapshotRecord(1.75e9 + elapsed, elapsed, moment.trials, to_json(moment)))
    write_reports(tmp_path / "run")
    page = opened(browser, tmp_path / "run" / "report.html")
    cut = "[...document.querySelectorAll('.scroll')].filter((it) => it.scrollWidth > it.clientWidth + 1)"
    unfold = "(open) => { for (const one of document.querySelectorAll('details')) one.open = open }"
    for width, highest in ((1400, 6_500), (390, 9_500)):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(unfold, False)
        assert page.evaluate("document.documentElement.scrollHeight") < highest, width
        for is_open in (False, True):
            page.evaluate(unfold, is_open)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(f"{cut}.map((it) => it.ariaLabel)") == [], width
    drawn = page.locator("#plot-evidence .legend bdi").first
    assert (
        drawn.get_attribute("title").count("organisation/") == 2 > drawn.inner_text().count("organisation/")
    )
    assert len(page.inner_text("h1")) < 500
    ranking = page.get_by_role("table", name="Models by score, with rank intervals")
    assert ranking.locator("tbody tr").count() == 40
    rows = page.locator("table.matrix tbody th")
    shown = rows.all_inner_texts()
    assert len({name.split()[1] for name in shown}) == 40, "each is told apart on a phone"
    fits = "(rows) => rows.filter((it) => it.scrollWidth > it.clientWidth).length"
    assert rows.evaluate_all(fits) == 0, "and none is cut off"
    page.context.close()
